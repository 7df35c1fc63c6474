"""Questions of the runner itself to a judge model, which are metered, capped and on a ledger apart from the agent's."""

from __future__ import annotations

import threading
from http import HTTPStatus
from typing import TYPE_CHECKING, Self

from runner.errors import JudgeError
from runner.gateway.http import CHAT
from runner.gateway.session import Session, SessionSpec
from runner.records import Budget, Judge

if TYPE_CHECKING:
    from pathlib import Path

    from runner.gateway.server import Gateway

ANSWER_TOKENS = 4096
"""Limit on an answer, including thoughts; a verdict is short."""


class Asking:
    """The questions of one trial to its judge. A context manager.

    The session opens with the first question, so the judge needs no key if all verdicts are known.
    """

    def __init__(self, gateway: Gateway, judge: Judge, trial: str, ledger: Path) -> None:
        """`trial` is the name in the gateway's log; `ledger` is the JSONL file of the calls."""
        self._gateway, self._lock = gateway, threading.Lock()
        self._session: Session | None = None
        model = judge.model
        self._spec = SessionSpec(
            trial=trial,
            task="judge",
            model=model.model_copy(update={"params": model.params | {"temperature": 0}}),
            budget=Budget(name="judge", usd=judge.usd),
            ledger=ledger,
        )

    @property
    def cost_usd(self) -> float | None:
        """USD of all answers; None if one of them has no price."""
        return self._session.meter.cost_usd if self._session else 0.0

    @property
    def is_cut(self) -> bool:
        """Return whether the provider may have charged more than `cost_usd`."""
        return self._session is not None and any(call.cut for call in self._session.calls)

    def ask(self, instruction: str, question: str) -> str:
        """See `protocols.Ask`. Raises `JudgeError`, and `ConfigError` if the model's key is missing."""
        messages = [{"role": "system", "content": instruction}, {"role": "user", "content": question}]
        request = {"messages": messages, "max_completion_tokens": ANSWER_TOKENS}
        answer = self._gateway.ask(self._opened(), request)
        if answer.status_code != HTTPStatus.OK:
            message = f"The judge {self._spec.model.name} did not answer: {reason(answer.body)}"
            if answer.status_code == HTTPStatus.FORBIDDEN:
                message += " Raise the judge's usd; its verdicts until then are kept."
            raise JudgeError(message)
        return CHAT.text(answer.body)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._session:
            self._session.close()

    def _opened(self) -> Session:
        with self._lock:
            if self._session is None:
                self._session = self._gateway.open(self._spec)
            return self._session


def reason(body: dict[str, object]) -> str:
    """Return the reason for a missing answer, from the body in its place."""
    error = body.get("error")
    return str(error["message"]) if isinstance(error, dict) else str(body)
