"""Tasks: the work, the machine to do it in, and the way in which it is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny

from runner.records.base import Record

Name = Annotated[str, BeforeValidator(lambda name: str(name).encode(errors="backslashreplace").decode())]
"""Type of a name that may be a folder's. Bytes that are not text, which JSON cannot hold, become escapes."""


class Environment(Record):
    """Contents and limits of a task's sandbox (`[environment]` of a Harbor task)."""

    name: str = Field(default="", exclude=True)
    """Readable name of the image's purpose. It appears in the image's tag, but in no digest."""
    context: Path | None = None
    """Folder with a Dockerfile, the build context. None: `image` must be local or be pulled."""
    image: str | None = None
    """Prebuilt image (`docker_image`). A local image of that tag is preferred, then a pull, then a build of
    `context`."""
    build_args: dict[str, str] = {}
    """Build arguments of the dataset, such as the base image of this machine."""
    build_timeout_seconds: float = 600.0
    """Seconds that building the image may take."""
    cpus: float | None = None
    """Processor cores; None, here and below, means the sandbox's configured limit."""
    memory_mb: int | None = None
    """MiB of memory."""
    storage_mb: int | None = None
    """MiB of disk."""
    env: dict[str, str] = {}
    """Environment variables. `${VAR}` and `${VAR:-default}` are resolved already."""
    workdir: str | None = None
    """Working directory; None means the image's WORKDIR."""
    network: Literal["public", "no-network", "allowlist"] = "public"
    """Network that the task declares. `sandbox.network=task` obeys it; the other modes override it."""
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that the network `allowlist` lets through; see `sandbox.network`."""
    trusted_hosts: tuple[str, ...] = Field(default=(), exclude=True)
    """Allowed hosts that this machine's user or its own clients named. They may lie in a private
    network, and the sandbox gets the certificates of this machine's authorities. They appear in no digest, since they
    differ from machine to machine."""
    healthcheck: Healthcheck | None = None
    """Check of the machine before the agent starts; None checks nothing."""
    services: tuple[Service, ...] = Field(default=(), exclude=True)
    """Further containers beside the task's own. They appear in no digest of their own: they are read from a file in
    `context`."""
    digest: str = ""
    """Digest of all fields above and of every file in `context`. It is part of a trial's key and known without Docker.
    For `env` it covers what the task declares, so a variable of this machine counts by name, not by value."""


class Service(Record):
    """A further container of a task's trials, such as a database."""

    name: str
    """Name by which the other containers reach it."""
    environment: Environment
    """Image and limits of the service."""
    settings: dict[str, Any] = {}
    """Other settings of the service, in the words of the Compose model. None of them can harm the machine."""


class Healthcheck(Record):
    """Command that has to succeed before the agent starts (`[environment.healthcheck]`)."""

    command: str
    interval_seconds: float = 5.0
    """Pause between two tries, in seconds."""
    timeout_seconds: float = 30.0
    """Time limit of one try, in seconds."""
    start_period_seconds: float = 0.0
    """Seconds before the first try."""
    retries: int = 3
    """Failed tries after which the machine counts as broken."""


class Beside(Record):
    """Services of the agent's machine that the tests reach from a machine beside it."""

    ports: tuple[int, ...] | None = None
    """TCP ports that the tests reach; None stands for every port on which something listens when the tests begin."""


class VerifierSpec(Record):
    """The way in which a task is judged (`[verifier]` of a Harbor task)."""

    tests: Path | None = None
    """Folder uploaded to `/tests` after the rollout; None when the verifier's image carries its own tests."""
    shared_tests: Path | None = Field(default=None, exclude=True)
    """Folder uploaded to `/tests` before `tests`, which may replace its files: tests that all steps of a task share."""
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
    """True if the agent's live container is judged, with the services that run in it. Weaker, so flagged on records."""
    beside: Beside | None = Field(default=None, exclude_if=lambda beside: beside is None)
    """Services that the tests reach while the machine that they run in is another one, made from a snapshot of the
    agent's; None if no process of the agent's outlives the rollout."""

    @property
    def judged_in(self) -> Literal["shared", "separate", "beside", "live"]:
        """Mode of the verdict; see `Verdict.mode`."""
        if self.keep_processes:
            return "live"
        return self.mode if self.beside is None else "beside"

    @property
    def ends_processes(self) -> bool:
        """Return whether the agent's processes are dead before the verdict."""
        return not self.keep_processes and self.beside is None


class Answer(Record):
    """The solution of a task, which must not be anywhere that the agent can read."""

    packages: dict[str, tuple[str, ...]] = {}
    """Registry (pypi, npm, go, debian) -> names of packages that are the answer."""
    source: Path | None = None
    """Folder of the answer's code. It exists once the dataset is prepared."""
    borrowed: Path | None = None
    """Text file that lists files below `source` which are others' code, one relative path per line. It need not exist:
    then all of `source` is the answer."""
    tolerated: bool = False
    """True if a trial runs with a flag, instead of being refused, if the answer lies in the agent's reach."""


class Task(Record):
    """One problem: instruction, environment, verifier data, strata."""

    name: Name
    """Name, unique in its dataset."""
    dataset: str
    """Name of the dataset."""
    directory: Path
    """Folder on this machine. Not a part of the task's identity."""
    digest: str = ""
    """Digest of every file of the task that can change a result; part of a trial's key."""
    tier: str = "unknown"
    """Difficulty, by which AMS groups."""
    category: str = "unknown"
    language: str = "unknown"
    source: str = "unknown"
    """Benchmark that it was taken from, where a dataset mixes several."""
    instruction: str = ""
    """Text that the agent gets."""
    environment: Environment = Environment()
    """Machine of the rollout."""
    agent_timeout_seconds: float | None = None
    """The task's time limit on the rollout. The smaller of this and the budget's limit holds, but agents without a
    model always have all of it."""
    agent_user: str | None = None
    """User of the rollout; None means the image's. Users other than root get no capability at all."""
    verifier: VerifierSpec = VerifierSpec()
    """The way in which the result is judged."""
    payload: SerializeAsAny[Record] | None = None
    """Data that only the task's benchmark understands: its verifier and its agents look for a class of their own."""
    artifacts: tuple[str, ...] = ()
    """Container paths that travel to a separate verifier, each to its own path. `/logs/artifacts` always travels."""
    solution: Path | None = None
    """Folder with `solve.sh`. Only `oracle` ever gets it."""
    solution_env: dict[str, str] = {}
    """Environment variables of `solve.sh`."""
    solution_refused: str | None = None
    """Reason why the solution cannot be applied here. Concerns `oracle` alone."""
    entrypoint: bool = False
    """True if its image's ENTRYPOINT runs in the agent's machine."""
    skills: Literal["present", "absent"] | None = None
    """Treatment of the skills of its image; None if it has none. See `runner.trials.skills`."""
    skills_dir: str | None = None
    """Folder of its image with skills, beside those in which agents look for them."""
    open_dirs: tuple[str, ...] = ()
    """Folders of the agent's machine that everybody may write to. Missing ones are made."""
    fresh_dirs: tuple[str, ...] = ()
    """Folders of the agent's machine that are mounted new and root-only, for a verifier that judges in that machine."""
    host_env: tuple[str, ...] = ()
    """Names of this machine's environment variables that the task's machine, verifier or solution gets."""
    answer: Answer | None = None
    """Answer to look for in the agent's installation; None if nothing about the task is secret."""
    steps: tuple[Step, ...] = ()
    """Steps, each with an instruction and tests of its own. Empty: the task is one whole."""
    step_reward: Literal["mean", "final"] = "mean"
    """Reward of a task with steps: the mean of those that were judged, or that of the last one."""
    refused: str | None = None
    """Reason why this task cannot be run here (a GPU, a malformed file), or not by the agent of its
    trial (`runner.sweeps.answers_in_reach`). The plan counts refused tasks."""
    flags: tuple[str, ...] = ()
    """Defects of the published task that were repaired here. They are among the flags of every trial's record."""


class Step(Record):
    """One step of a task: the agent works on it and is judged before the next one begins."""

    name: Name
    """Name, unique in its task."""
    task: Task
    """Work that the agent is asked to do and how it is judged, as a task on the same machine."""
    workdir: Path | None = None
    """Folder that is copied into the working directory before the step. Its `setup.sh` is run."""
    healthcheck: Healthcheck | None = None
    """Check of the machine after that."""
    min_reward: dict[str, float] = {}
    """Key of the step's rewards -> value below which the trial ends with this step."""


Environment.model_rebuild()
Task.model_rebuild()
