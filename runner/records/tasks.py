"""Tasks: what is to be done, where, and how it is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny

from runner.records.base import Record

Name = Annotated[str, BeforeValidator(lambda name: str(name).encode(errors="backslashreplace").decode())]
"""A name that may be a folder's: bytes that are not text, which no JSON holds, become escapes."""


class Environment(Record):
    """Recipe of a task's sandbox (`[environment]` of a Harbor task)."""

    name: str = Field(default="", exclude=True)
    """Readable purpose of the image: part of its tag, but not of any digest."""
    context: Path | None = None
    """Build context, a folder with a Dockerfile. None: `image` must be local or pulled."""
    image: str | None = None
    """Prebuilt image (`docker_image`): a local image of that tag, else pulled, else `context` is built instead."""
    build_args: dict[str, str] = {}
    """Build arguments of the dataset, such as the base image of this machine."""
    build_timeout_seconds: float = 600.0
    cpus: float | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    env: dict[str, str] = {}
    """Environment variables, with `${VAR}` and `${VAR:-default}` already resolved."""
    workdir: str | None = None
    """Working directory; None means the image's WORKDIR."""
    network: Literal["public", "no-network", "allowlist"] = "public"
    """Network that the task declares. `sandbox.network=task` obeys it; the other modes override it."""
    allowed_hosts: tuple[str, ...] = ()
    healthcheck: Healthcheck | None = None
    digest: str = ""
    """Digest of everything above and of every file in `context`: part of a trial's key, known without Docker. It covers
    `env` as the task declares it, so a variable of this machine counts by its name and not by its value."""


class Healthcheck(Record):
    """Command that has to succeed before the agent starts (`[environment.healthcheck]`)."""

    command: str
    interval_seconds: float = 5.0
    timeout_seconds: float = 30.0
    start_period_seconds: float = 0.0
    retries: int = 3


class VerifierSpec(Record):
    """Way in which a task is judged (`[verifier]` of a Harbor task)."""

    tests: Path | None = None
    """Folder uploaded to `/tests` after the rollout; None when the verifier's image carries its own tests."""
    timeout_seconds: float = 600.0
    env: dict[str, str] = {}
    user: str | None = None
    mode: Literal["shared", "separate"] = "shared"
    """shared: a snapshot of the agent's machine is judged. separate: only `artifacts` travel to another machine."""
    environment: Environment | None = None
    """Environment of a separate verifier; None: a fresh copy of the task's."""
    collect: tuple[str, ...] = ()
    """Commands that run in the agent's container after the rollout, before files are copied out
    (`[[verifier.collect]]`)."""
    keep_processes: bool = False
    """Whether the agent's live container is judged, with the services that run in it. Weaker, so flagged on records."""


class Answer(Record):
    """The answer to a task that asks for a program. It must not lie where the agent can read it."""

    packages: dict[str, tuple[str, ...]] = {}
    """Registry (pypi, npm, go, debian) -> names of packages that are the answer or do its work."""
    source: Path | None = None
    """Folder with the answer's code, there once the dataset is prepared."""
    tolerated: bool = False
    """Whether a trial with the answer in reach is run and flagged instead of refused."""


class Task(Record):
    """One problem: instruction, environment, verifier data, strata."""

    name: Name
    dataset: str
    directory: Path
    """Folder of the task on this machine. Not part of the task's identity."""
    digest: str = ""
    """Digest of every file of the task that can change a result; part of a trial's key."""
    tier: str = "unknown"
    category: str = "unknown"
    language: str = "unknown"
    instruction: str = ""
    environment: Environment = Environment()
    agent_timeout_seconds: float | None = None
    """The task's own time limit of the rollout. The smaller of it and the budget's applies. Agents without a model
    have all of it."""
    agent_user: str | None = None
    """User of the rollout; None: the image's. A user other than root gets no capability at all."""
    verifier: VerifierSpec = VerifierSpec()
    payload: SerializeAsAny[Record] | None = None
    """Data that only the task's benchmark understands: its verifier and its agents look for a class of their own."""
    artifacts: tuple[str, ...] = ()
    """Container paths that travel to the same paths of a separate verifier. `/logs/artifacts` always travels."""
    solution: Path | None = None
    """Folder with `solve.sh`, which only `oracle` ever gets."""
    solution_env: dict[str, str] = {}
    solution_refused: str | None = None
    """Reason why the solution cannot be applied here. Concerns only `oracle`."""
    entrypoint: bool = False
    """Whether its image's ENTRYPOINT runs in the agent's machine."""
    open_dirs: tuple[str, ...] = ()
    """Folders of the agent's machine that everybody may write to. They are made if they are not there."""
    fresh_dirs: tuple[str, ...] = ()
    """Folders of the agent's machine that are mounted new and root-only, for a verifier that judges in that machine."""
    host_env: tuple[str, ...] = ()
    """Names of this machine's environment variables that the task's machine, verifier or solution gets."""
    answer: Answer | None = None
    """Answer that the agent's installation must not hold; None: nothing about the task is secret."""
    refused: str | None = None
    """Reason why this task cannot be run here (several containers, a GPU, a malformed file), or not by the agent of
    its trial (`runner.sweeps.reach`). Counted in the plan."""
    flags: tuple[str, ...] = ()
    """Faults of the published task that are mended here. Every record of a trial has them among its flags."""


Environment.model_rebuild()
