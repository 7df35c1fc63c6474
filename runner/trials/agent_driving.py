"""Rollouts of agents in our process: the `protocols.Bench` of one trial.

An agent in our process can do no more to a trial than a command in the sandbox. Its calls are metered, its deadline
holds, and it ends as an `ExecResult`, like a command.
"""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import CancelledError
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from pydantic import ValidationError

from runner.errors import ConfigError, ModelFailed, RequestRefused, Stopped
from runner.protocols import helper_of
from runner.records import ExecResult, ExecSpec, Left, ModelCall, ModelReply, ToolCall
from runner.records.trial_files import LEDGER, SHARED
from runner.sandbox.inside import EGRESS_PORT, PYTHON, proxied, proxy_env

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from runner.protocols import CacheEntry, DrivingAgent, Machine, Sandbox, SandboxProvider
    from runner.records import Model, Service
    from runner.trials.context import TrialRun

LOG = "agent.stdout"
"""Name of the file in the trial's folder to which the agent's log is written while it works."""
_OPEN = f"""
import os, socket, subprocess, sys, time
given = {{name[1:]: value for name, value in os.environ.items() if name[0] == "+"}}
null = subprocess.DEVNULL
subprocess.Popen(sys.argv[1:], env=given, stdin=null, stdout=null, stderr=null, start_new_session=True)
for _ in range(600):
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", {EGRESS_PORT})) == 0:
            break
    time.sleep(0.05)
"""
"""Program that starts the given command, waits until it listens, and leaves it running."""


OF_THE_REQUEST = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, 422})
"""HTTP statuses with which a provider refuses the request itself."""
_LENGTH = re.compile(
    r"context.{0,20}(?:length|window|limit)|too (?:long|many tokens)|maximum.{0,30}tokens", re.IGNORECASE
)
"""Words in the refusal of a request that is too long, for providers without a code for that."""


Ended = Literal["exited", "deadline", "disk", "files", "cancelled", "lost"]
"""Ending of a rollout, as in `ExecResult`."""


class Clock:
    """The end of one rollout: its deadline, or the user's request to stop."""

    def __init__(
        self, seconds: float | None, waited: Callable[[], float], cancelled: Callable[[], bool]
    ) -> None:
        """Count `seconds` from now, without those that `waited` returns: the time spent waiting for limits on calls."""
        self._seconds, self._waited, self._cancelled = seconds, waited, cancelled
        self._began = time.monotonic()
        self.ended: Ended = "exited"
        """Cause that has stopped the rollout; `exited` if it has not been stopped."""

    @property
    def seconds(self) -> float:
        """Seconds since the beginning of the rollout."""
        return time.monotonic() - self._began

    @property
    def left(self) -> float | None:
        """Seconds until the deadline, 0 once that has passed; None without a deadline."""
        if self._seconds is None:
            return None
        return max(0.0, self._seconds + self._waited() - self.seconds)

    @property
    def over(self) -> bool:
        """Return whether the deadline has passed or the user has stopped the run."""
        return self._cancelled() or self.left == 0

    def check(self) -> None:
        """See `protocols.Bench`."""
        if self._cancelled():
            self.stop("cancelled", "The user stopped the run.")
        if self.left == 0:
            self.stop("deadline", f"The deadline of {self._seconds:g} s has passed.")

    def stop(self, ended: Ended, reason: str) -> NoReturn:
        """End the rollout by raising `Stopped`."""
        self.ended = ended
        raise Stopped(reason)


class DrivenMachine:
    """The task's sandbox, in which a command cannot outlive the rollout. See `protocols.Machine`."""

    def __init__(
        self, sandbox: Sandbox, clock: Clock, services: Sequence[Service], *, behind_proxy: bool
    ) -> None:
        """Open the proxy to allowed hosts if `behind_proxy`. It stays open for all commands."""
        self._sandbox, self._clock = sandbox, clock
        self._env = proxy_env(services) if behind_proxy else {}
        if behind_proxy:
            held = proxied(ExecSpec(argv=("sleep", "infinity")), services)
            sandbox.exec(ExecSpec(argv=(PYTHON, "-c", _OPEN, *held.argv)))

    def exec(
        self,
        spec: ExecSpec,
        cancelled: Callable[[], bool] = lambda: False,
        extension: Callable[[], float] = lambda: 0.0,
    ) -> ExecResult:
        """Run one command. Raises `Stopped` when the rollout ends during it."""
        self._clock.check()
        limits = [limit for limit in (self._clock.left, spec.timeout_seconds) if limit is not None]
        bounds = {"timeout_seconds": min(limits, default=None), "env": self._env | spec.env}
        bounded = spec.model_copy(update=bounds)
        result = self._sandbox.exec(bounded, lambda: cancelled() or self._clock.over, extension)
        if result.ended != "exited":
            self._clock.check()
            # The machine is gone, and the rollout's deadline is not the reason.
            self._clock.stop(
                result.ended if result.ended in ("disk", "files") else "lost",
                f"The machine ended ({result.ended}).",
            )
        return result

    @property
    def workdir(self) -> str:
        """See `protocols.Machine`."""
        return self._sandbox.workdir

    def get(self, path: str, target: Path) -> int:
        """See `protocols.Machine`."""
        return self._sandbox.get(path, target)


@dataclass
class Workbench:
    """The bench of one trial. See `protocols.Bench`."""

    run: TrialRun
    sandbox: Machine
    clock: Clock
    asked: int = 0
    """Number of model calls so far."""
    logged: str = ""
    """Latest line of the log."""

    @property
    def helper(self) -> Workbench:
        """See `protocols.Bench`."""
        return HelperBench(self) if helper_of(self.run.trial.cell.agent) else self

    @property
    def sandboxes(self) -> SandboxProvider:
        """See `protocols.Bench`."""
        return self.run.context.sandboxes

    def cached(self, name: str) -> AbstractContextManager[CacheEntry]:
        """See `protocols.Bench`."""
        return self.run.context.store.cached(name, self.check)

    @property
    def key(self) -> str:
        """See `protocols.Bench`."""
        return self.run.trial.key

    @property
    def model(self) -> Model:
        """See `protocols.Bench`."""
        return self.run.trial.cell.model

    @property
    def seconds_left(self) -> float | None:
        """See `protocols.Bench`."""
        return self.clock.left

    @property
    def is_over(self) -> bool:
        """See `protocols.Bench`."""
        return self.clock.over

    def check(self) -> None:
        """See `protocols.Bench`."""
        self.clock.check()

    def ask(self, messages: Sequence[dict[str, str]]) -> str:
        """See `protocols.Bench`."""
        return self.converse(messages, {}).text

    def converse(self, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> ModelReply:
        """See `protocols.Bench`."""
        return self.reply_of(self.model, messages, fields)

    def reply_of(
        self,
        model: Model,
        messages: Sequence[Mapping[str, Any]],
        fields: Mapping[str, Any],
        *,
        helper: bool = False,
    ) -> ModelReply:
        """Ask like `converse`. `helper` says that `model` is the helper."""
        from runner.gateway.http import CHAT  # noqa: PLC0415
        from runner.gateway.judge_calls import reason  # noqa: PLC0415 - its libraries load only when a model is used

        session = self.run.state.session
        if session is None:
            agent = self.run.trial.cell.agent.name
            raise ConfigError(f"agent {agent} needs a model: choose one with model=...")
        self.clock.check()
        self.asked += 1
        try:
            request = {"messages": list(messages), **fields}
            answer = self.run.context.gateway.ask(session, request, lambda: self.clock.over, helper=helper)
        except CancelledError:
            self.clock.check()
            raise
        if answer.status_code == HTTPStatus.OK:
            usage = CHAT.usage(answer.body)
            return ModelReply(
                text=CHAT.text(answer.body),
                calls=CHAT.tool_calls(answer.body),
                input_tokens=usage.input_tokens if usage else None,
            )
        if session.meter.refusal:
            raise Stopped(reason(answer.body))
        message = f"The model {model.name} did not answer: {reason(answer.body)}"
        if answer.status_code in OF_THE_REQUEST:
            raise RequestRefused(message, too_long=_is_too_long(answer.body, message))
        raise ModelFailed(message)

    @property
    def left(self) -> Left:
        """See `protocols.Bench`."""
        session, budget = self.run.state.session, self.run.trial.cell.budget
        if session is None:
            return Left(seconds=self.clock.left)
        charged = session.meter.charged
        rest = {
            kind: None if limit is None else max(0.0, limit - charged[kind])
            for kind, limit in budget.model_dump(include=set(charged)).items()
        }
        counts = {kind: None if left is None else int(left) for kind, left in rest.items() if kind != "usd"}
        return Left(usd=rest["usd"], seconds=self.clock.left, **counts)

    def calls(self, question: str) -> tuple[str, ...]:
        """See `protocols.Bench`."""
        ledger = self.run.state.folder / LEDGER
        lines = ledger.read_text().split("\n") if ledger.exists() else ()
        return tuple(line for line in lines if _asks(line, question))

    def share(self, calls: Sequence[str]) -> None:
        """See `protocols.Bench`."""
        with (self.run.state.folder / SHARED).open("a") as file:
            file.writelines(f"{line}\n" for line in calls)

    def use(self, name: str, arguments: Mapping[str, Any]) -> None:
        """See `protocols.Bench`."""
        number = self.asked - 1
        calls = self.run.state.used.setdefault(number, [])
        call = ToolCall(id=f"{number}.{len(calls)}", name=name, arguments=json.dumps(dict(arguments)))
        calls.append(call)
        if reporting := self.run.state.reporting:
            reporting.using(call)

    def returned(self, result: str) -> None:
        """See `protocols.Bench`."""
        calls = self.run.state.used[self.asked - 1]
        calls[-1] = calls[-1].model_copy(update={"result": result})

    def log(self, text: str) -> None:
        """See `protocols.Bench`."""
        self.logged = text.strip()
        with (self.run.state.folder / LOG).open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"{text}\n")


class HelperBench(Workbench):
    """The bench of one trial whose questions go to the helper model."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__(bench.run, bench.sandbox, bench.clock)
        self._bench = bench

    @property
    def helper(self) -> Workbench:
        """See `protocols.Bench`."""
        return self

    @property
    def model(self) -> Model:
        """See `protocols.Bench`."""
        return helper_of(self.run.trial.cell.agent) or self._bench.model

    def converse(self, messages: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]) -> ModelReply:
        """See `protocols.Bench`. The call counts among the bench's own, by whose number tools are recorded."""
        return self._bench.reply_of(self.model, messages, fields, helper=True)

    def use(self, name: str, arguments: Mapping[str, Any]) -> None:
        """See `protocols.Bench`."""
        self._bench.use(name, arguments)

    def returned(self, result: str) -> None:
        """See `protocols.Bench`."""
        self._bench.returned(result)

    def log(self, text: str) -> None:
        """See `protocols.Bench`."""
        self._bench.log(text)


def drive(agent: DrivingAgent, bench: Workbench) -> ExecResult:
    """Run the agent to the end. Return its ending as if it had been one command in the sandbox.

    A model that failed, or a stop, is an ending too. Raises `EngineError`, and whatever else the agent raises.
    """
    log, clock, reason, exit_code = bench.run.state.folder / LOG, bench.clock, "", 1
    log.touch()
    try:
        exit_code = agent.run(bench.run.trial.task, bench)
        reason = bench.logged if exit_code else ""  # why it gave up
    except (Stopped, ModelFailed) as error:
        reason = str(error)
    return ExecResult(
        exit_code=exit_code if clock.ended == "exited" else None,
        stdout=log.read_text(encoding="utf-8"),
        stderr=reason,
        seconds=clock.seconds,
        ended=clock.ended,
    )


def _is_too_long(body: Mapping[str, object], message: str) -> bool:
    """Return whether a provider refused a request for its length."""
    error = body.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    return code == "context_length_exceeded" or _LENGTH.search(message) is not None


def _asks(line: str, question: str) -> bool:
    """Return whether a line of a ledger holds a conversation that begins with this question."""
    try:
        request = ModelCall.model_validate_json(line).request
        return bool(request and request["messages"][0]["content"] == question)
    except ValidationError:
        return False  # the line is being written
