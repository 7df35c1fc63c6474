"""The axes of variation, one protocol each. Implementations are named by `_target_` in `conf/`, never registered.

Every implementation is a frozen pydantic model whose fields *are* its configuration: `config.build` validates the
YAML straight into it, so an unknown key fails at the door. `__init__` does no I/O. Each protocol has a conformance
suite in `tests/conformance/` and a fake that ships (oracle and nop, the scripted model, the local sandbox).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from runner.benchmarks.project_setup.deliverables import Rerun
    from runner.records import (
        ApiName,
        Build,
        BuildSpec,
        BundleRecipe,
        Changes,
        Counted,
        Endpoint,
        Environment,
        ExecResult,
        ExecSpec,
        Image,
        InstalledBundle,
        Judge,
        Model,
        OwnUsage,
        Reaped,
        SandboxSpec,
        Task,
        TrialRecord,
        Verdict,
    )
    from runner.records.cases import CaseSide
    from runner.sandbox.cases.box import CaseBox
    from runner.terminal.escaping import Say

Job_contra = TypeVar("Job_contra", contravariant=True)

Ask = Callable[[str, str], str]
"""Puts a question to the judge model: (system prompt, question) -> answer, from any thread.

Metered and recorded at the gateway, apart from the agent's calls. Raises `JudgeError` when there is no answer.
"""

Making = Callable[[str], AbstractContextManager[object]]
"""Opens the context within which an image is made; given how, "pulling" or "building"."""


class Configured(Protocol):
    """What every implementation is: a value made of its configuration, which `plan.identity` digests."""

    def model_dump(self) -> dict[str, Any]:
        """Its fields as plain values."""


class Dataset(Configured, Protocol):
    """A benchmark."""

    @property
    def name(self) -> str:
        """What leaderboards call it."""

    @property
    def pass_threshold(self) -> float:
        """A trial passes when its reward reaches this."""

    @property
    def verifier(self) -> Verifier:
        """The judge of its tasks."""

    def tasks(self) -> Sequence[Task]:
        """Every task, those that cannot run here included (with `refused` set), in a stable order.

        Raises `ConfigError` when the dataset itself cannot be read.
        """

    def prepare(self, say: Say) -> None:
        """Fetch what its tasks need from outside, so that their trials need no network; what is there stays.

        `say` hears of long steps. Raises `ConfigError` when something cannot be had.
        """


class Agent(Configured, Protocol):
    """Who works on a task: a `CommandAgent` or a `DrivingAgent`."""

    @property
    def name(self) -> str:
        """What leaderboards call it."""

    @property
    def version(self) -> str:
        """Of the program that is driven."""

    @property
    def uses_model(self) -> bool:
        """False for oracle and nop: their cells do not multiply with the models."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Fields of `records.Model` without which it cannot work; a model that lacks one is refused at the door."""

    @property
    def api(self) -> ApiName:
        """The API by which it asks its model, and by which the model is asked before the first trial."""

    @property
    def memory_mb(self) -> int | None:
        """MiB that a sandbox must have for it, below which a task's limit is raised; None: any limit will do."""

    @property
    def tools(self) -> Mapping[Any, tuple[str, ...]]:
        """Kind of tool -> names under which the agent's tools of that kind appear in its calls."""

    @property
    def bundle(self) -> BundleRecipe | None:
        """Its installation, mounted read-only at `/opt/assay/<bundle.name>`; None needs nothing."""

    def reported(self, sandbox: Sandbox, result: ExecResult) -> OwnUsage | None:
        """What it says itself of its tokens after the rollout that ended as `result`; None if it says nothing.

        Called before the sandbox's processes are ended. Raises `ValueError` when what it says cannot be read, and
        `EngineError` when the sandbox cannot be reached.
        """


class CommandAgent(Agent, Protocol):
    """A coding CLI or loop that runs in the sandbox: a pure function from task and endpoint to one command."""

    def command(self, task: Task, endpoint: Endpoint | None) -> ExecSpec:
        """What to run in the task's sandbox. `endpoint` is None exactly when `uses_model` is False."""


@runtime_checkable
class DrivingAgent(Agent, Protocol):
    """An agent that runs in our process and drives the sandbox from there."""

    def refusal(self, task: Task) -> str | None:
        """Why it cannot work on this task, in a sentence that says what to do.

        Asked before anything is started or fetched, by a dry run too.
        """

    def run(self, task: Task, bench: Bench) -> int:
        """Work until it is done or gives up; returns its exit code, 0 when it says itself that it is done.

        `Stopped` and `ModelFailed` of the bench pass through it. Raises `EngineError` when the sandbox cannot be
        reached.
        """


class Bench(Protocol):
    """What a `DrivingAgent` is given for one rollout; nothing of it outlives the rollout. For one thread."""

    @property
    def sandbox(self) -> Sandbox:
        """The task's machine: the agent's commands run there and nowhere else.

        Its `exec` raises `Stopped` when the rollout ends under a command, by the deadline, by the user, or because
        the machine died of the command.
        """

    @property
    def key(self) -> str:
        """Of the trial, which pays for what is asked here and kept for others."""

    @property
    def cache(self) -> Path:
        """A folder that all trials of all sweeps share; it may not exist yet."""

    @property
    def model(self) -> Model:
        """The model that `ask` asks, so that what it said can be kept for others of the same."""

    def ask(self, messages: Sequence[dict[str, str]]) -> str:
        """Ask the trial's model (role and content each); returns its words.

        A call like every agent's: metered, capped and on the ledger. Raises `Stopped` when the budget, the deadline or
        the user allow no more, and `ModelFailed` when the model gave no answer.
        """

    def share(self, trial: str, question: str) -> None:
        """For replays: the answer to this question is the one that the trial of this key was given."""

    def use(self, name: str, arguments: Mapping[str, Any]) -> None:
        """For the record: the model's last answer calls this tool. Said before it is run."""

    def returned(self, result: str) -> None:
        """For the record: what the tool that was called last gave back. Said before the model is asked again."""

    def log(self, text: str) -> None:
        """Add a line to what people read of the rollout while it runs, the trial's `agent.stdout`."""

    def check(self) -> None:
        """Raises `Stopped` when the deadline has passed or the user has stopped the run."""

    def rerun(self) -> Rerun:
        """What the two scripts that lie in the workspace now do from scratch, in a new sandbox. Raises `Stopped`."""


class Sandbox(Protocol):
    """One running container (or folder). A context manager: leaving it removes everything of it."""

    @property
    def image(self) -> Image:
        """What it was started from."""

    @property
    def workdir(self) -> str:
        """Absolute path in which commands run unless told otherwise."""

    def exec(
        self,
        spec: ExecSpec,
        cancelled: Callable[[], bool] = lambda: False,
        extension: Callable[[], float] = lambda: 0.0,
    ) -> ExecResult:
        """Run one command to its end, deadline or cancellation; never raises for what the command does.

        `extension` tells by how many seconds the deadline has moved on so far; it never falls.

        Raises `EngineError` when the sandbox itself cannot be reached.
        """

    def put(self, source: Path, target: str) -> None:
        """Copy a host folder's content into a container folder, root-owned; a tar file's members, as they are.

        Processes in it are frozen meanwhile, and no command may be starting in another thread. Once a command has run,
        this method, `exec`, `get`, `kill` and `snapshot` raise `SpoiledMachine` for what that did to the machine.
        """

    def get(self, path: str, target: Path) -> int:
        """Copy a container path out as a tar file at `target`; returns the number of regular files in it.

        Works after the processes are dead. Raises `WorkspaceTooLarge` past the caps, `FileNotFoundError` if absent.
        """

    def kill(self) -> None:
        """End every process in it; the file system stays readable until the context is left. Idempotent."""

    def counted(self) -> Counted:
        """What the kernel counted of it, until now or until `kill`."""

    @property
    def entrypoint_ended(self) -> bool:
        """Whether the image's ENTRYPOINT was to run and ended at once, in a machine that an agent had left so."""

    def changes(self) -> Changes | None:
        """What differs in its file system from its image, until now; mounts and the runner's own files aside.

        None when it cannot be listed, or is too much to be: a sandbox's processes can bring that about.
        """

    @property
    def excess(self) -> Literal["disk", "files"] | None:
        """What it had more of than its limits allow when `kill` ended it; None before that."""

    def snapshot(self) -> Image:
        """Its file system, frozen, as an image that the sandbox's context removes with it.

        Raises `SpoiledMachine` for one past its limits (`excess`).
        """

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...


class SandboxProvider(Configured, Protocol):
    """Where sandboxes come from."""

    @property
    def network(self) -> str:
        """Configured mode: allowlist, gateway, open or task."""

    @property
    def allowed_hosts(self) -> tuple[str, ...]:
        """What the mode allowlist lets through; see `sandbox.network`."""

    def memory_of(self, environment: Environment) -> int | None:
        """MiB that a sandbox of this environment may use; None: there is no limit."""

    def image(self, environment: Environment, making: Making = lambda _: nullcontext()) -> Image:
        """A usable image for an environment: local, pulled, or built. One build for all who ask at once.

        `making` is given "pulling" or "building" where that has to be done, for the one who does it. Raises
        `ImageError`.
        """

    def build(
        self, spec: BuildSpec, cancelled: Callable[[], bool] = lambda: False
    ) -> AbstractContextManager[Build]:
        """Build an untrusted Dockerfile under limits; leaving the context removes the image. See `sandbox.builds`.

        A build that fails is a value. Raises `EngineError`.
        """

    def open(self, spec: SandboxSpec) -> AbstractContextManager[Sandbox]:
        """Start a sandbox. Raises `EngineError`."""

    def cases(self, side: CaseSide) -> AbstractContextManager[CaseBox]:
        """Start one side of a differential test. Raises `EngineError`."""

    def check(self, bundles: Sequence[BundleRecipe]) -> None:
        """Raises `ConfigError` when these bundles could not be prepared as they are configured. Starts nothing."""

    def prepare(self, bundles: Sequence[BundleRecipe], say: Say) -> dict[str, InstalledBundle]:
        """Make sure that the base image, the `python` runtime and these bundles exist; returns them by name.

        `say` hears of long steps. Raises `EngineError`.
        """

    def reap(self, say: Say = lambda _: None) -> Reaped:
        """Remove what dead owners left. What cannot be removed in time is named and left. Raises `EngineError`.

        `say` hears how much it is, unless there is nothing.
        """

    def release(self) -> None:
        """Remove the sandboxes of this process, which is about to end, while other threads may be using them.

        What cannot be removed in a few seconds is left to the next `reap`.
        """


class Verifier(Protocol):
    """The judge of the final workspace."""

    @property
    def judge(self) -> Judge | None:
        """The model that it asks; None asks none."""

    def verify(
        self, task: Task, sandbox: Sandbox, sandboxes: SandboxProvider, into: Path, ask: Ask | None = None
    ) -> Verdict:
        """Judge what the rollout left in `sandbox`, whose processes are dead unless the task keeps them.

        Opens its own sandbox from `sandboxes`. What the verifier wrote is copied into the host folder `into`. What
        cannot be judged for what the agent left, or may have brought about, is a `Verdict` of reward 0 with its error,
        never an exception. `ask` is given exactly when there is a `judge`. Raises `EngineError` when our side fails,
        `JudgeError` when the judge does.
        """


class Executor(Protocol):
    """Runs planned trials."""

    @property
    def retries(self) -> int:
        """How often a trial is repeated after an infrastructure failure."""

    @property
    def at_once(self) -> int:
        """Trials at a time."""

    def run(
        self, trials: Iterable[Job_contra], work: Callable[[Job_contra], TrialRecord], cancel: Event
    ) -> Generator[TrialRecord]:
        """Records as they end, in any order.

        Ctrl-C, closing the generator, or an exception that leaves `work`, sets `cancel` (which `work` obeys), waits
        for every worker, and is raised again.
        """


class Tracker(Configured, Protocol):
    """A projection of finished records to somewhere people look."""

    def log(self, sweep: Path) -> str:
        """Log the sweep in this folder; returns what to tell the user (command and link). Raises `TrackingError`."""

    def open(self, outputs: Path, port: int) -> None:
        """Show what is logged: become its user interface on this port of the loopback, or say where it is.

        Raises `ConfigError` when there is nothing to show.
        """
