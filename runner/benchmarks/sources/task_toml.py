"""Read the `task.toml` of Harbor tasks by schema 1.4, whatever version the file names, and write TOML tables.

Unknown keys are ignored and older names are accepted. Anything else that is wrong or not supported here is a
`TaskError` of one sentence.
"""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from runner.errors import TaskError
from runner.records.base import first_fault
from runner.sandbox.network import canonical

Text = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int | float) else value)]
"""String that authors also write as a bare number, such as a version or a user id."""

Kind = TypeVar("Kind", bound=BaseModel)

MEGABYTES = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}


class Table(BaseModel):
    """Base of all tables. Unknown keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class NetworkTable(Table):
    """Network keys that `[environment]`, `[agent]` and `[verifier]` share."""

    network_mode: Literal["public", "no-network", "allowlist"] | None = None
    allowed_hosts: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _hosts(self) -> NetworkTable:
        if self.allowed_hosts and self.network_mode != "allowlist":
            raise ValueError('allowed_hosts needs network_mode = "allowlist"')
        canonical(self.allowed_hosts)
        return self

    @property
    def hosts(self) -> tuple[str, ...]:
        """`allowed_hosts` in lower case, without trailing dots."""
        return canonical(self.allowed_hosts)


class HealthcheckTable(Table):
    """`[environment.healthcheck]`."""

    command: str
    interval_sec: float = 5.0
    timeout_sec: float = 30.0
    start_period_sec: float = 0.0
    retries: int = 3


class EnvironmentTable(NetworkTable):
    """`[environment]` and `[verifier.environment]`."""

    build_timeout_sec: float = 600.0
    docker_image: str | None = None
    os: str = "linux"
    cpus: float | None = None
    memory_mb: int | None = None
    storage_mb: int | None = None
    gpus: int | None = None
    tpu: Any = None
    env: dict[str, str] = {}
    workdir: str | None = None
    healthcheck: HealthcheckTable | None = None
    mcp_servers: tuple[Any, ...] = ()
    skills_dir: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _older_names(cls, data: Any) -> Any:
        """Translate `memory = "4G"`, `storage = "10G"` and `allow_internet`, which are deprecated and in wide use."""
        if not isinstance(data, dict):
            return data
        data = dict(data)
        for older, key in (("memory", "memory_mb"), ("storage", "storage_mb")):
            if not isinstance(data.get(older), str):  # Harbor ignores anything but a text
                continue
            size = _megabytes(older, data[older])
            if data.setdefault(key, size) != size:
                raise ValueError(
                    f"{older} = {data[older]!r} contradicts {key} = {data[key]}: keep one of them"
                )
        if isinstance(data.get("allow_internet"), bool):
            data.setdefault("network_mode", "public" if data["allow_internet"] else "no-network")
        return data

    def unsupported(self, where: str) -> str | None:
        """Return why a container with these settings cannot run here; None if it can. `where` is the table's name."""
        if self.os.lower() != "linux":
            return f'[{where}] asks for os = "{self.os}": only Linux containers run here.'
        if self.gpus:
            return f"[{where}] asks for {self.gpus} GPU(s), and sandboxes here have none: run it elsewhere."
        if self.tpu:
            return f"[{where}] asks for a TPU, and sandboxes here have none: run it elsewhere."
        if self.mcp_servers:
            return f"[{where}] lists mcp_servers, which agents cannot use here: run it elsewhere."
        return None


class AgentTable(NetworkTable):
    """`[agent]`."""

    timeout_sec: float | None = None
    user: Text | None = None


class CollectTable(Table):
    """`[[verifier.collect]]`."""

    command: str
    service: str = "main"
    user: Text | None = None

    def unsupported(self) -> str | None:
        """Return why such a hook cannot run here; None if it can."""
        if self.service != "main":
            return f"A collect hook runs in service {self.service!r}, and only main runs here."
        if self.user not in (None, "root", "0"):
            return (
                f"A collect hook runs as user {self.user!r}: they run as root here, so use `runuser` in it."
            )
        return None


class VerifierTable(NetworkTable):
    """`[verifier]`."""

    timeout_sec: float = 600.0
    env: dict[str, str] = {}
    user: Text | None = None
    environment_mode: Literal["shared", "separate"] | None = None
    environment: EnvironmentTable | None = None
    collect: tuple[CollectTable, ...] = ()

    @property
    def mode(self) -> Literal["shared", "separate"]:
        """Declared mode. By default it is separate if the verifier has its own environment, and shared otherwise."""
        return self.environment_mode or ("separate" if self.environment else "shared")


class SolutionTable(Table):
    """`[solution]`."""

    env: dict[str, str] = {}


class ArtifactTable(Table):
    """Entry of `artifacts` in its long form. `destination` is ignored, since it only names the copy on the host."""

    source: str
    exclude: tuple[str, ...] = ()
    service: str = "main"


class NameTable(Table):
    """`[task]`."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$")
    keywords: tuple[str, ...] = ()


class StepTable(Table):
    """Entry of `[[steps]]`."""

    name: str = Field(
        pattern=r"^[^<>:\"/\\\\|?*\x00-\x1f\x7f]*[^<>:\"/\\\\|?*\x00-\x1f\x7f. ]$", max_length=255
    )
    agent: AgentTable = AgentTable()
    verifier: VerifierTable = VerifierTable()
    min_reward: float | dict[str, float] | None = None
    healthcheck: HealthcheckTable | None = None
    artifacts: tuple[str | ArtifactTable, ...] = ()

    @property
    def least(self) -> dict[str, float]:
        """`min_reward` by key. A bare number is that of `reward`."""
        least = self.min_reward
        return least if isinstance(least, dict) else {} if least is None else {"reward": least}

    def unsupported(self) -> str | None:
        """Return why such a step cannot run here; None if it can."""
        own = self.verifier
        if own.environment or own.environment_mode:
            return f"The verifier of step {self.name!r} has a machine or mode of its own: only the task's is supported."
        if own.network_mode or self.agent.network_mode:
            return f"Step {self.name!r} has a network of its own: only the task's is supported."
        return next(filter(None, (hook.unsupported() for hook in own.collect)), None)


class TaskToml(Table):
    """Whole `task.toml`."""

    schema_version: Text = Field(default="1.4", validation_alias=AliasChoices("schema_version", "version"))
    """Version of the schema: any text, as in Harbor, and without effect. Published tasks have 0.0, 1.0 or their own
    edition."""
    task: NameTable | None = None
    source: Text = ""
    """Benchmark that the task was taken from."""
    metadata: dict[str, Any] = {}
    environment: EnvironmentTable = EnvironmentTable()
    agent: AgentTable = AgentTable()
    verifier: VerifierTable = VerifierTable()
    solution: SolutionTable = SolutionTable()
    artifacts: tuple[str | ArtifactTable, ...] = ()
    steps: tuple[StepTable, ...] = ()
    multi_step_reward_strategy: Literal["mean", "final"] | None = None

    def check(self) -> None:
        """Raise `TaskError` if the file asks for anything that is not supported here."""
        for reason in self._reasons():
            if reason:
                raise TaskError(reason)

    def _reasons(self) -> Iterator[str | None]:
        own = self.verifier.environment
        names = [unicodedata.normalize("NFC", step.name).casefold() for step in self.steps]
        if len(set(names)) < len(names):
            yield "Two of its steps have the same name: rename one of them."
        for step in self.steps:
            yield step.unsupported()
        if own and self.verifier.environment_mode == "shared":
            yield '[verifier] has an environment of its own and environment_mode = "shared": remove one of them.'
        yield self.environment.unsupported("environment")
        if own:
            yield own.unsupported("verifier.environment")
        for hook in self.verifier.collect:
            yield hook.unsupported()

    def declared_env(self) -> tuple[dict[str, str], ...]:
        """Return the variables of each part of the file as they are written."""
        own = self.verifier.environment
        of_steps = tuple(step.verifier.env for step in self.steps)
        return (self.environment.env, self.verifier.env, own.env if own else {}, self.solution.env, *of_steps)

    def artifact_paths(self) -> tuple[str, ...]:
        """Return the absolute paths of the artifacts in the container. Raises `TaskError`."""
        return tuple(self._artifact(entry) for entry in self.artifacts)

    def of_step(self, step: StepTable) -> TaskToml:
        """Return the file as one step sees it. A step's time limit on its tests never falls back to the task's."""
        own, whole = step.verifier, self.verifier
        verifier = whole.model_copy(
            update={
                "timeout_sec": own.timeout_sec,
                "env": whole.env | own.env,
                "user": own.user if own.user is not None else whole.user,
                "collect": (*whole.collect, *own.collect),
            }
        )
        agent = self.agent.model_copy(
            update={
                key: value
                for key in ("timeout_sec", "user")
                if (value := getattr(step.agent, key)) is not None
            }
        )
        artifacts = (*self.artifacts, *step.artifacts)
        return self.model_copy(update={"verifier": verifier, "agent": agent, "artifacts": artifacts})

    def _artifact(self, entry: str | ArtifactTable) -> str:
        artifact = entry if isinstance(entry, ArtifactTable) else ArtifactTable(source=entry)
        if artifact.service != "main":
            raise TaskError(
                f"Artifact {artifact.source!r} comes from service {artifact.service!r}, and only main runs here."
            )
        if artifact.exclude:
            raise TaskError(
                f"Artifact {artifact.source!r} has `exclude` patterns, which are not supported: name what to keep."
            )
        path = PurePosixPath(self.environment.workdir or "", artifact.source)
        if not path.is_absolute() or ".." in path.parts:
            raise TaskError(f"Artifact {artifact.source!r} must be an absolute path without `..`.")
        return str(path)


def read_task_toml(path: Path) -> TaskToml:
    """Parse a `task.toml`. Raises `TaskError` if it is missing or malformed."""
    if not path.is_file():
        raise TaskError("It looks like a task and has no task.toml: add one.")
    return read_toml(path, TaskToml)


def read_toml(path: Path, kind: type[Kind]) -> Kind:
    """Parse a TOML file as a model. Raises `TaskError` with the key and the reason."""
    try:
        return kind.model_validate(tomllib.loads(path.read_text("utf-8-sig")))
    except ValidationError as error:
        raise TaskError(f"{path.name}: {first_fault(error)}.") from error
    except (ValueError, RecursionError) as error:  # also impossible numbers and dates, and endless nesting
        raise TaskError(f"{path.name} is not valid TOML ({error}): correct it.") from error


def _megabytes(key: str, text: Any) -> int:
    """Return a size such as "4G", "512M", "2.5Gi" or "1024K" in MiB."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG])(?:i?B|i)?", str(text).strip(), re.IGNORECASE)
    if not match:
        raise ValueError(f'{key} = {text!r} is not a size such as "4G", "512M" or "1024K"')
    return round(float(match[1]) * MEGABYTES[match[2].upper()])


def table(values: dict[str, Any]) -> str:
    """Return the lines `key = value` of a TOML table."""
    # JSON strings are TOML strings, except for DEL and escaped surrogates.
    return "".join(
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n".replace("\x7f", "\\u007f")
        for key, value in values.items()
    )
