"""What is to be done, and what judges it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny

from runner.records.base import Record

Name = Annotated[str, BeforeValidator(lambda name: str(name).encode(errors="backslashreplace").decode())]
"""A name that may be a folder's: bytes that are not text, which no JSON holds, become escapes."""


class Environment(Record):
    """What a sandbox of a task is made of (`[environment]` of a Harbor task)."""

    name: str = Field(default="", exclude=True)
    """What the image is made for, for people: part of its tag, and of no digest."""
    context: Path | None = None
    """Folder with a Dockerfile, the build context. None: `image` must be pulled or be local."""
    image: str | None = None
    """Prebuilt image (`docker_image`). A local image of that tag counts; else it is pulled; else `context` is built."""
    build_args: dict[str, str] = {}
    """Build arguments of the dataset, such as the base image of this machine."""
    build_timeout_seconds: float = 600.0
    cpus: float | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    env: dict[str, str] = {}
    """Environment variables; `${VAR}` and `${VAR:-default}` are resolved already."""
    workdir: str | None = None
    """Working directory; None means the image's WORKDIR."""
    network: Literal["public", "no-network", "allowlist"] = "public"
    """What the task declares; `sandbox.network=task` obeys it, the other modes override it."""
    allowed_hosts: tuple[str, ...] = ()
    healthcheck: Healthcheck | None = None
    digest: str = ""
    """Digest of everything above and of every file in `context`: part of a trial's key, known without Docker. In `env`
    it is of what the task declares, so that a variable of this machine counts by its name and not by its value."""


class Healthcheck(Record):
    """Command that must succeed before the agent starts (`[environment.healthcheck]`)."""

    command: str
    interval_seconds: float = 5.0
    timeout_seconds: float = 30.0
    start_period_seconds: float = 0.0
    retries: int = 3


class VerifierSpec(Record):
    """How a task is judged (`[verifier]` of a Harbor task)."""

    tests: Path | None = None
    """Folder uploaded to `/tests` after the rollout; None when the verifier's image carries its own tests."""
    timeout_seconds: float = 600.0
    env: dict[str, str] = {}
    user: str | None = None
    mode: Literal["shared", "separate"] = "shared"
    """shared: the machine the agent left is judged, from a snapshot. separate: only `artifacts` travel."""
    environment: Environment | None = None
    """Environment of a separate verifier; None means a fresh copy of the task's."""
    collect: tuple[str, ...] = ()
    """Run in the agent's container after the rollout, before anything is taken out (`[[verifier.collect]]`)."""
    keep_processes: bool = False
    """Judge a service that the agent left running, in its live container. Weaker, so flagged on the record."""


class Answer(Record):
    """What a task asks to be written, which must not lie ready where the agent can read it."""

    packages: dict[str, tuple[str, ...]] = {}
    """Registry (pypi, npm, go, debian) -> names of the packages that are the answer, or do its work."""
    source: Path | None = None
    """Folder of its code; there once the dataset is prepared."""
    tolerated: bool = False
    """Where it does lie in reach: run the trial and flag it, and do not refuse it."""


class Task(Record):
    """One problem: instruction, environment, verifier data, strata."""

    name: Name
    dataset: str
    directory: Path
    """Where it lies on this machine; no part of its identity."""
    digest: str = ""
    """Of every file of the task that can change a result; part of a trial's key."""
    tier: str = "unknown"
    category: str = "unknown"
    language: str = "unknown"
    instruction: str = ""
    environment: Environment = Environment()
    agent_timeout_seconds: float | None = None
    """The task's own limit on the rollout. The smaller of this and the budget's wall clock holds; agents without a
    model have the whole of it."""
    agent_user: str | None = None
    """User of the rollout; None means the image's. A non-root user gets no capability at all."""
    verifier: VerifierSpec = VerifierSpec()
    payload: SerializeAsAny[Record] | None = None
    """Data that only the task's benchmark understands: its verifier and its agents look for a class of their own."""
    artifacts: tuple[str, ...] = ()
    """Container paths that travel to a separate verifier, each to its own path; `/logs/artifacts` always does."""
    solution: Path | None = None
    """Folder with `solve.sh`; only `oracle` ever gets it."""
    solution_env: dict[str, str] = {}
    solution_refused: str | None = None
    """Why the solution cannot be applied here; concerns `oracle` alone."""
    entrypoint: bool = False
    """Whether its image's ENTRYPOINT runs in the agent's machine."""
    open_dirs: tuple[str, ...] = ()
    """Folders of the agent's machine that are made for it, if need be, and that everybody may write to."""
    fresh_dirs: tuple[str, ...] = ()
    """Folders of the agent's machine that are mounted new and root-only, for a verifier that judges in that machine."""
    host_env: tuple[str, ...] = ()
    """Names of this machine's environment variables whose values the task's machine, verifier or solution gets."""
    answer: Answer | None = None
    """What is looked for in the agent's installation; None: nothing of it is secret."""
    refused: str | None = None
    """Why this task cannot be run here (several containers, a GPU, a malformed file), or not by the agent of its trial
    (`runner.sweeps.reach`). Counted in the plan."""
    flags: tuple[str, ...] = ()
    """What is wrong with it as published and mended here; among the flags of every trial's record."""


Environment.model_rebuild()
