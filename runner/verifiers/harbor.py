"""The verifier of Harbor-format tasks: `tests/test.sh` in a container in which no process of the agent's lives.

*Shared* mode judges the whole machine the agent left, from a snapshot of its dead container; *separate* mode judges
only the declared artifacts, in an image that the agent never touched. In both, `/tests`, `/solution` and
`/logs/verifier` are new, empty, root-only mounts: whatever the agent planted at those paths is not there, and the
reward travels on a mount that nothing of the agent's could ever write. What remains in shared mode is that the tests
run with the snapshot's own programs (a root agent can have replaced `python3`); the record says which mode was used.
"""

from __future__ import annotations

import json
import math
import tarfile
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Literal

from runner.errors import ImageError, VerifierError, WorkspaceTooLarge
from runner.records import ErrorInfo, ExecResult, ExecSpec, Record, SandboxSpec, Verdict
from runner.sandbox.inside import proxied
from runner.sandbox.network import allowed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from runner.protocols import Ask, Sandbox, SandboxProvider
    from runner.records import Image, Task

LOGS = "/logs/verifier"
LIVE_FRESH = ("/tests", LOGS)
"""Mounted new and root-only in the agent's own container, when the task is judged live in it."""
FRESH = (*LIVE_FRESH, "/solution")
"""Mounted new and root-only in the verifier's container."""
Mode = Literal["shared", "separate", "live"]
REWARD_BYTES = 65536
"""A reward file larger than this is refused unread."""


class HarborVerifier(Record):
    """Runs `/tests/test.sh` and reads `/logs/verifier/reward.json` (first) or `reward.txt`."""

    reward_key: str = "reward"
    """Which key of `reward.json` is the reward when there are several."""

    @property
    def judge(self) -> None:
        """Tests decide, and no model."""

    def verify(
        self,
        task: Task,
        sandbox: Sandbox,
        sandboxes: SandboxProvider,
        into: Path,
        ask: Ask | None = None,  # noqa: ARG002 - a verifier's signature
    ) -> Verdict:
        """See `protocols.Verifier`."""
        began = time.monotonic()
        verdict = self._verdict(task, sandbox, sandboxes, into)
        return verdict.model_copy(update={"seconds": time.monotonic() - began})

    def _verdict(self, task: Task, sandbox: Sandbox, sandboxes: SandboxProvider, into: Path) -> Verdict:
        if task.verifier.keep_processes:
            return self._judge(_test_commands(task), sandbox, into, "live")
        hosts = allowed(sandboxes, task.verifier.environment or task.environment)
        commands = _test_commands(task, proxy=bool(hosts))
        if task.verifier.mode == "shared":
            try:
                with _opened(task, sandbox.snapshot(), sandboxes, hosts) as judge:
                    return self._judge(commands, judge, into, "shared")
            except ImageError as error:
                # The agent left a machine that cannot even start: its doing, or it could void a trial it is losing.
                return Verdict(reward=0.0, mode="shared", error=ErrorInfo.of(error, "verify"))
        image = sandboxes.image(task.verifier.environment or task.environment)
        with _opened(task, image, sandboxes, hosts) as judge:
            try:
                _carry_artifacts(task, sandbox, judge, into)
            except WorkspaceTooLarge as error:
                # The deliverable itself breaks the limits: that is the agent's doing, so it is worth nothing.
                return Verdict(reward=0.0, mode="separate", error=ErrorInfo.of(error, "verify"))
            return self._judge(commands, judge, into, "separate")

    def _judge(self, commands: Sequence[ExecSpec], judge: Sandbox, into: Path, mode: Mode) -> Verdict:
        *before, test = commands
        for command in before:
            judge.exec(command)
        result = judge.exec(test)
        (into / "verifier.stdout").write_text(result.stdout + result.stderr)
        components: dict[str, float] = {}
        error = None
        reward = None
        try:
            with suppress(FileNotFoundError):
                judge.get(LOGS, into / "verifier.tar")
            reward, components = _reward_of(result, into / "verifier.tar", self.reward_key)
        except (VerifierError, WorkspaceTooLarge) as problem:
            error = _with_ending(problem, result, test)
        return Verdict(
            reward=reward,
            components=components,
            exit_code=result.exit_code,
            mode=mode,
            image=judge.image.id,
            output=(result.stdout + result.stderr)[-4000:],
            error=error,
        )


def read_reward(files: Mapping[str, bytes], key: str = "reward") -> tuple[float, dict[str, float]]:
    """Reward in [0, 1] and all components from a verifier's files, by Harbor's rules (`reward.json` wins).

    `reward.json` is a flat object of finite numbers; its reward is `key`, or its only entry. Raises `VerifierError`
    for none, empty, not a number, not finite, several without `key`, or out of [0, 1].
    """
    if "reward.json" in files:
        components = _components(files["reward.json"])
        if key not in components and len(components) != 1:
            message = (
                f"reward.json has {sorted(components)} and none is {key!r}; set dataset.verifier.reward_key."
            )
            raise VerifierError(message)
        reward = components.get(key, next(iter(components.values())))
    elif "reward.txt" in files:
        text = files["reward.txt"].decode(errors="replace").strip()
        try:
            reward = float(text)
        except ValueError as error:
            raise VerifierError(f"reward.txt holds {text[:80]!r}, which is no number.") from error
        components = {key: reward}
    else:
        raise VerifierError("The tests wrote neither reward.json nor reward.txt to /logs/verifier.")
    if not (math.isfinite(reward) and 0.0 <= reward <= 1.0):
        raise VerifierError(f"The reward {reward} is not in [0, 1].")
    return reward, components


def _components(content: bytes) -> dict[str, float]:
    try:
        parsed = json.loads(content, parse_int=float)  # some integers are too large for any other number
    except (ValueError, RecursionError) as error:
        raise VerifierError(f"reward.json is no JSON: {error}.") from error
    numbers = isinstance(parsed, dict) and all(isinstance(value, int | float) for value in parsed.values())
    if not numbers or not parsed or not all(math.isfinite(value) for value in parsed.values()):
        raise VerifierError("reward.json must be a flat, non-empty object of finite numbers.")
    return {str(name): float(value) for name, value in parsed.items()}


@contextmanager
def _opened(
    task: Task, image: Image, sandboxes: SandboxProvider, hosts: tuple[str, ...] | None
) -> Iterator[Sandbox]:
    """The judge's sandbox: an open network where `hosts` is None, else none but a proxy to them."""
    with ExitStack() as stack:
        sockets = None
        if hosts:
            from runner.gateway.egress import egress  # noqa: PLC0415 - loads a server, which few verifiers need

            sockets = stack.enter_context(egress(hosts)).folder
        spec = SandboxSpec(
            name=f"{task.name}-verifier",
            image=image,
            environment=task.verifier.environment or task.environment,
            user="root",  # of the container; the tests' own user is the command's
            gateway_dir=sockets,
            fresh_dirs=FRESH,
            network="open" if hosts is None else "none",
        )
        yield stack.enter_context(sandboxes.open(spec))


def _test_commands(task: Task, *, proxy: bool = False) -> tuple[ExecSpec, ...]:
    """What runs in the judge's sandbox; the last one is `test.sh`.

    Its output comes to our side of the wall, where it is capped, and not into a file of the sandbox. A user of the
    verifier's own is first given the tests and the place of the reward, which are root's.
    """
    tests, user = task.verifier.tests, task.verifier.user or "root"
    judge = ExecSpec(
        argv=("bash", "-c", "chmod +x /tests/test.sh; exec /tests/test.sh"),
        env=task.verifier.env,
        user=user,
        timeout_seconds=task.verifier.timeout_seconds,
    )
    judge = proxied(judge) if proxy else judge
    uploads = {"/tests": tests} if tests else {}
    if user in ("root", "0"):
        return (judge.model_copy(update={"uploads": uploads}),)
    give = ExecSpec(
        argv=("chown", "-R", user, *LIVE_FRESH), user="root", uploads=uploads, timeout_seconds=60.0
    )
    return give, judge


def _carry_artifacts(task: Task, sandbox: Sandbox, judge: Sandbox, into: Path) -> None:
    """Copy each declared artifact, and `/logs/artifacts`, to its own path in the judge's sandbox."""
    for number, path in enumerate(dict.fromkeys((*task.artifacts, "/logs/artifacts"))):
        tar = into / f"artifact-{number}.tar"
        with suppress(FileNotFoundError):  # an artifact that the agent did not make is for the tests to miss
            sandbox.get(path, tar)
            judge.put(tar, path.rstrip("/").rpartition("/")[0] or "/")


def _reward_of(result: ExecResult, tar: Path, key: str) -> tuple[float, dict[str, float]]:
    """As `read_reward`, of tests that ended by themselves: many scripts write a 0 first, and the truth last."""
    if result.ended != "exited":
        raise VerifierError("The tests had not ended: what they had written is no verdict.")
    return read_reward(_reward_files(tar), key)


def _reward_files(tar: Path) -> dict[str, bytes]:
    """The two reward files at the top of `/logs/verifier`, if regular and small; nothing is ever extracted."""
    if not tar.exists():
        return {}
    found = {}
    with tarfile.open(tar) as archive:
        for member in archive:
            name = member.name.rpartition("/")[2]
            depth = member.name.strip("/").count("/")
            if name in ("reward.json", "reward.txt") and depth == 1 and member.isreg():
                if member.size > REWARD_BYTES:
                    raise VerifierError(f"{name} is {member.size} bytes long; a reward is a number.")
                handle = archive.extractfile(member)
                found[name] = handle.read() if handle else b""
    return found


def _with_ending(problem: Exception, result: ExecResult, test: ExecSpec) -> ErrorInfo:
    """The error, with what the script's own ending says about its cause."""
    if result.ended == "deadline":
        limit = f"The tests did not end within {test.timeout_seconds:g} s."
        return ErrorInfo(type="VerifierTimeout", message=limit, cause=str(problem), phase="verify")
    ending = f"test.sh ended with exit code {result.exit_code} ({result.ended}): {result.stderr[-500:]}"
    return ErrorInfo(type=type(problem).__name__, message=str(problem), cause=ending, phase="verify")
