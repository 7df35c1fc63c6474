"""Verify Harbor tasks: `tests/test.sh` runs after the rollout and writes the reward into a file.

*Separate* mode judges the declared artifacts in an image that the agent never touched; `artifacts` has the rules by
which they travel. *Shared* mode judges the whole machine that the agent left, from a snapshot of its stopped container.
In both modes no process of the agent's is alive, and `/tests`, `/solution` and `/logs/verifier` are new, empty mounts
that only root can read, so nothing that the agent planted is there. *Beside* mode is for tasks whose result is a
running service: the tests run in a snapshot as in shared mode, and there they reach the TCP ports of the agent's
machine, which goes on running (ADR 27). *Live* mode judges the agent's running container.

What each mode cannot exclude:

* Separate: tests that run the agent's code with their own rights give it access to the reward file.
* Shared: the tests run with the programs, libraries and start-up files that the agent left. `Verdict.programs` lists
  those that it changed. `again: pristine` asks for a second verdict, in the task's own image with the agent's work laid
  over it (`overlay`). A link from the agent into `/tests` leads to the tests' own file, as in Harbor.
* Beside: what shared mode cannot. The service itself is the agent's, and may answer the tests as it likes.
* Live: everything that shared mode cannot. A process of root's that survives the rollout also sees the tests, and can
  write the reward while they run. Earlier files in `/tests` and `/logs/verifier` do not count: right before the tests
  begin, both folders are seen from outside to be empty and closed. All processes are ended before the reward is read.

An image's ENTRYPOINT runs in the agent's machine and in a verifier's, as in Harbor. Harbor judges shared tasks in the
machine where it still runs. A snapshot has no processes, so the ENTRYPOINT is started again there, from the files that
the agent left and with the rights of the agent or of the tests, whichever are fewer. If it ends, the tests decide
without it and the verdict has the flag `entrypoint_ended`. A task whose ENTRYPOINT must not run twice, or needs root
while the agent is another user, belongs in `dataset.beside`, where the agent's own ENTRYPOINT runs on.

A machine that cannot be judged counts against the agent (reward 0, with an error): it does not start, or its tests do
not end or give no usable reward. The agent can bring about each of these, and an agent that is losing a trial would do
so if the trial then did not count. A broken task shows in `agent=oracle`, which then gets 0 as well.
"""

from __future__ import annotations

import tarfile
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from runner.benchmarks.harbor.artifact_transfer import carry_artifacts, save_published
from runner.benchmarks.harbor.artifacts import PUBLISHED, RESERVED
from runner.benchmarks.harbor.machine_changes import changed_programs, clip_paths
from runner.benchmarks.harbor.overlay import overlay_work
from runner.benchmarks.harbor.reward_files import LOGS, read_reward, read_small_file, reward_files
from runner.errors import EngineError, ImageError, SpoiledMachine, VerifierError, WorkspaceTooLarge
from runner.records import Beside, ErrorInfo, ExecResult, ExecSpec, Record, SandboxSpec, Verdict
from runner.sandbox.inside import proxied
from runner.sandbox.network import allowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from runner.protocols import Sandbox, Submission
    from runner.records import Changes, Environment, Image, Service, Task

LIVE_FRESH = ("/tests", LOGS)
"""Folders that are mounted new, and open to root only, in the agent's container if the task is judged live there."""
Mode = Literal["shared", "separate", "beside", "live", "pristine"]
EMPTY_FOLDERS = """
for folder in {folders}; do
    folder=$ASSAY_ROOT$folder
    rm -rf -- $folder/..?* $folder/.[!.]* $folder/*
    chown 0:0 $folder
    chmod 700 $folder
done
"""
COMMAND_SECONDS = 60.0
"""Time limit of each of our own commands in a machine."""
SETTINGS_READ = 20
"""Number of changed settings files that are searched for the word pytest. Further ones count as programs unread."""
CLOSED = 0o700
"""Permission bits of a folder that only root may enter."""
NO_VERDICT = "no_verdict"
"""Flag of a reward of 0 that no test gave."""
BLAME = (
    "This counts as failed, since what the agent left can bring it about. If it also happens with agent=oracle, the "
    "task is broken."
)


class HarborVerifier(Record):
    """Verifier that runs `/tests/test.sh` and reads `/logs/verifier/reward.json` or, without one, `reward.txt`."""

    reward_key: str = "reward"
    """Key of `reward.json` that is the reward if there are several."""
    again: Literal["pristine"] | None = None
    """Second verdict on tasks that are judged in shared mode. It does not change the reward. pristine: in the task's
    own image, with the agent's changes outside of system paths laid over it. The setting is part of a trial's key,
    since the machine of a finished trial is gone and cannot be judged again."""

    @property
    def judge(self) -> None:
        """Return None, because tests decide and not a model."""

    def collect(self, submission: Submission) -> tuple[str, ...]:
        """Save what the agent published in `/logs/artifacts`. See `protocols.CollectingVerifier`."""
        has_folder = PUBLISHED in submission.task.open_dirs
        if has_folder and not save_published(submission.sandbox, submission.folder):
            return ("artifacts_not_kept",)
        return ()

    def verify(self, submission: Submission) -> Verdict:
        """See `protocols.Verifier`."""
        began, task = time.monotonic(), submission.task
        judge = {
            "live": self._live,
            "beside": self._beside,
            "shared": self._shared,
            "separate": self._separate,
        }[task.verifier.judged_in]
        verdict = _unless_the_engine_fails(submission, judge)
        return verdict.model_copy(update={"seconds": time.monotonic() - began})

    def _separate(self, submission: Submission) -> Verdict:
        image = submission.sandboxes.image(_environment(submission.task))
        hosts = _allowed(submission)
        with _open_judge(submission, image, hosts) as judge:  # without services, as in Harbor
            try:
                left_out = carry_artifacts(submission.task, submission.sandbox, judge, submission.folder)
            except WorkspaceTooLarge as error:
                return Verdict(reward=0.0, mode="separate", error=ErrorInfo.of(error, "verify"))
            verdict = self._judge(submission, judge, hosts, "separate")
        if not left_out:
            return verdict
        return verdict.model_copy(
            update={"left_out": clip_paths(left_out), "flags": (*verdict.flags, "artifacts_left_out")}
        )

    def _shared(self, submission: Submission) -> Verdict:
        sandbox, hosts = submission.sandbox, _allowed(submission)
        user, services = _lesser_user(submission.task), submission.services
        changes = sandbox.changes()
        try:
            with _open_judge(submission, sandbox.snapshot(), hosts, user, services) as judge:
                verdict = self._judge(submission, judge, hosts, "shared")
        except ImageError as error:  # the agent left a machine that cannot even start
            verdict = Verdict(reward=0.0, mode="shared", error=ErrorInfo.of(error, "verify"))
        verdict = _with_programs(verdict, changes, sandbox, submission.folder)
        if self.again is None:
            return verdict
        again = self._again(replace(submission, folder=submission.folder / "again"), changes)
        flags = ("verdicts_differ",) if verdict.reward != again.reward else ()
        return verdict.model_copy(update={"again": again, "flags": (*verdict.flags, *flags)})

    def _again(self, submission: Submission, changes: Changes | None) -> Verdict:
        """Return the second verdict, on a machine of the task's image."""
        submission.folder.mkdir(exist_ok=True)
        began, hosts, image = time.monotonic(), _allowed(submission), submission.sandbox.image
        with _open_judge(submission, image, hosts, services=submission.services) as judge:
            try:
                left_out = overlay_work(changes, submission.sandbox, judge, submission.folder)
                verdict = self._judge(submission, judge, hosts, "pristine")
            except (VerifierError, WorkspaceTooLarge) as error:
                left_out = ()
                verdict = Verdict(reward=0.0, mode="pristine", error=ErrorInfo.of(error, "verify"))
        seconds = time.monotonic() - began
        return verdict.model_copy(update={"left_out": clip_paths(left_out), "seconds": seconds})

    def _beside(self, submission: Submission) -> Verdict:
        """Judge a copy of the agent's machine, from which the services of the running one can be reached."""
        sandbox, services = submission.sandbox, submission.services
        hosts, beside = _allowed(submission), submission.task.verifier.beside or Beside()
        changes = sandbox.changes()
        try:
            snapshot = sandbox.snapshot(alive=True)
            with (
                _open_judge(submission, snapshot, hosts, entrypoint_user=False, services=services) as judge,
                sandbox.lend(judge, beside.ports) as ports,
            ):
                verdict = self._judge(submission, judge, hosts, "beside")
        except (ImageError, WorkspaceTooLarge) as error:  # no machine starts, or its volumes cannot be copied
            verdict = Verdict(reward=0.0, mode="beside", error=ErrorInfo.of(error, "verify"))
        else:
            unlisted = ("ports_unlisted",) if beside.ports is None else ()
            verdict = verdict.model_copy(update={"ports": ports, "flags": (*verdict.flags, *unlisted)})
        sandbox.kill()
        return _with_programs(verdict, changes, sandbox, submission.folder)

    def _live(self, submission: Submission) -> Verdict:
        sandbox, folder = submission.sandbox, submission.folder
        changes = sandbox.changes()
        empty = EMPTY_FOLDERS.format(folders=" ".join(LIVE_FRESH))
        sandbox.exec(ExecSpec(argv=("sh", "-c", empty), user="root", timeout_seconds=COMMAND_SECONDS))
        if not all(_is_new(path, sandbox, folder) for path in LIVE_FRESH):
            message = f"{' and '.join(LIVE_FRESH)} could not be emptied: something in the agent's machine fills them."
            verdict = Verdict(
                reward=0.0, mode="live", error=_error("VerifierError", message), flags=(NO_VERDICT,)
            )
        else:
            verdict = self._judge(submission, sandbox, None, "live")
        return _with_programs(verdict, changes, sandbox, folder)

    def _judge(
        self, submission: Submission, judge: Sandbox, hosts: tuple[str, ...] | None, mode: Mode
    ) -> Verdict:
        """Run the tests, end all processes, and read the reward. `hosts` are those of `_open_judge`."""
        into = submission.folder
        task = submission.task
        services = () if mode == "separate" else task.environment.services
        *before, test = _test_commands(task, services, proxy=bool(hosts))
        if mode == "live":  # the machine was there before the tests
            before = [_uploading(path, folder) for path, folder in _tests(task)] + before
        for command in before:
            judge.exec(command)
        result = judge.exec(test)
        judge.kill()  # a process could change files while they are read
        (into / "verifier.stdout").write_text(result.stdout + result.stderr, "utf-8")
        components: dict[str, float] = {}
        error: ErrorInfo | None = None
        try:
            reward, components = read_reward(reward_files(result, judge, into), self.reward_key)
        except (VerifierError, WorkspaceTooLarge) as problem:
            reward, error = 0.0, _explain(problem, result, test)
        return Verdict(
            reward=reward,
            components=components,
            exit_code=result.exit_code,
            mode=mode,
            image=judge.image.id,
            output=(result.stdout + result.stderr)[-4000:],
            error=error,
            flags=(
                *([NO_VERDICT] if error else []),
                *(["entrypoint_ended"] if judge.entrypoint_ended else []),
            ),
        )


def _environment(task: Task) -> Environment:
    return task.verifier.environment or task.environment


def _allowed(submission: Submission) -> tuple[str, ...] | None:
    """Return the hosts that the judge reaches; None stands for all."""
    return allowed(submission.sandboxes, _environment(submission.task))


def _unless_the_engine_fails(submission: Submission, judge: Callable[[Submission], Verdict]) -> Verdict:
    """Return a verdict, from a second try if the engine fails on the first one.

    If the engine fails twice on what the agent left, and works with the task's own image, the agent made it fail: the
    reward is 0. Raises `EngineError` if it does not even start that image.
    """
    with suppress(EngineError):
        return judge(submission)
    try:
        return judge(submission)
    except EngineError as error:
        message = str(error)
    task = submission.task
    with _open_judge(submission, submission.sandboxes.image(task.environment), None) as sandbox:
        sandbox.exec(ExecSpec(argv=("true",), timeout_seconds=COMMAND_SECONDS))
    return Verdict(reward=0.0, mode=task.verifier.judged_in, error=_error(SpoiledMachine.__name__, message))


@contextmanager
def _open_judge(
    submission: Submission,
    image: Image,
    hosts: tuple[str, ...] | None,
    entrypoint_user: str | Literal[False] | None = None,
    services: str | None = None,
) -> Iterator[Sandbox]:
    """Open the judge's sandbox. Its network is open if `hosts` is None, else there is only a proxy to these hosts.

    In either case it reaches the services of the trial whose network is `services`, as the agent's machine did. The
    ENTRYPOINT runs as `entrypoint_user`, or as the image's user if that is None, or not at all if it is False.
    """
    task = submission.task
    with ExitStack() as stack:
        sockets = None
        if hosts:
            from runner.gateway.egress import egress  # noqa: PLC0415 - loads a server, which few verifiers need

            sockets = stack.enter_context(egress(hosts)).folder
        spec = SandboxSpec(
            name=f"{task.name}-verifier",
            image=image,
            environment=_environment(task),
            user="root",  # the command that runs the tests has its own user
            gateway_dir=sockets,
            fresh_dirs=RESERVED,
            uploads=_tests(task),
            entrypoint=entrypoint_user is not False,
            entrypoint_user=entrypoint_user or None,
            network="open" if hosts is None else "none",
            services=services,
        )
        yield stack.enter_context(submission.sandboxes.open(spec))


def _lesser_user(task: Task) -> str | None:
    """Return the user for the ENTRYPOINT of the agent's machine: the agent's or the tests' user that is not root.

    The ENTRYPOINT may be, or load, what the agent has written. As the image's user it could do more than the tests.
    """
    users = (task.agent_user, task.verifier.user)
    return next((user for user in users if user not in (None, "root", "0")), None)


def _tests(task: Task) -> tuple[tuple[str, Path], ...]:
    """Return the folders of the tests, each with its place in the judge's sandbox; the task's own come last."""
    folders = (task.verifier.shared_tests, task.verifier.tests)
    return tuple(("/tests", folder) for folder in folders if folder)


def _uploading(path: str, folder: Path) -> ExecSpec:
    return ExecSpec(argv=("true",), user="root", uploads={path: folder}, timeout_seconds=COMMAND_SECONDS)


def _test_commands(task: Task, services: Sequence[Service], *, proxy: bool) -> tuple[ExecSpec, ...]:
    """Return the commands for the judge's sandbox; the last one runs `test.sh`, with a proxy if `proxy`.

    Its output is streamed to this machine, where it is capped, and is not written to a file in the sandbox. If the
    tests run as another user than root, that user first becomes the owner of the tests and of the reward's folder.
    """
    user = task.verifier.user or "root"
    judge = ExecSpec(
        argv=("bash", "-c", "chmod +x /tests/test.sh; exec /tests/test.sh"),
        env=task.verifier.env,
        user=user,
        timeout_seconds=task.verifier.timeout_seconds,
    )
    judge = proxied(judge, services) if proxy else judge
    if user in ("root", "0"):
        return (judge,)
    chown = ("chown", "-R", user, *LIVE_FRESH)
    return ExecSpec(argv=chown, user="root", timeout_seconds=COMMAND_SECONDS), judge


def _is_new(folder: str, sandbox: Sandbox, into: Path) -> bool:
    """Return whether a folder of a running sandbox is empty and closed, as seen from outside."""
    tar = into / "live.tar"
    try:
        sandbox.get(folder, tar)
        with tarfile.open(tar) as archive:
            (root, *others) = archive
        return not others and root.isdir() and root.mode & 0o777 == CLOSED
    except (FileNotFoundError, WorkspaceTooLarge):
        return False
    finally:
        tar.unlink(missing_ok=True)


def _with_programs(verdict: Verdict, changes: Changes | None, sandbox: Sandbox, into: Path) -> Verdict:
    """Add to a verdict the programs that the agent changed and its tests may have run."""
    found = changed_programs(changes, sandbox.workdir, _pytest_reader(sandbox, into))
    flag = "programs_unknown" if found.count is None else "programs_changed" if found.count else ""
    return verdict.model_copy(update={"programs": found, "flags": (*verdict.flags, *filter(None, [flag]))})


def _pytest_reader(sandbox: Sandbox, into: Path) -> Callable[[str], bool]:
    """Return a function that returns whether a file mentions pytest; true if the file cannot be read."""
    left = iter(range(SETTINGS_READ))

    def mentions_pytest(path: str) -> bool:
        if next(left, None) is None:
            return True
        try:
            return b"pytest" in read_small_file(path, sandbox, into)
        except (FileNotFoundError, WorkspaceTooLarge, VerifierError):
            return True

    return mentions_pytest


def _explain(problem: Exception, result: ExecResult, test: ExecSpec) -> ErrorInfo:
    """Return the error of a missing verdict, with the way in which the script ended as its cause."""
    if result.ended == "deadline":
        limit = f"The tests did not end within {test.timeout_seconds:g} s."
        return _error("VerifierTimeout", limit, str(problem))
    ending = f"test.sh ended with exit code {result.exit_code} ({result.ended}): {result.stderr[-500:]}"
    return _error(type(problem).__name__, str(problem), ending)


def _error(kind: str, message: str, cause: str | None = None) -> ErrorInfo:
    return ErrorInfo(type=kind, message=f"{message} {BLAME}", cause=cause, phase="verify")
