"""What our own side asks of a model: metered, capped and recorded as an agent's calls are, and apart from them."""

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
"""At most, thoughts included; a verdict is short."""


class Asking:
    """The questions of one trial to its judge. A context manager.

    Its session opens with the first question: where all verdicts are known, the judge needs no key.
    """

    def __init__(self, gateway: Gateway, judge: Judge, trial: str, ledger: Path) -> None:
        """`trial` names it in the gateway's log; `ledger` is a JSONL file of its calls."""
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
        """USD of all answers; None when one of them has no price."""
        return self._session.cost_usd if self._session else 0.0

    @property
    def is_cut(self) -> bool:
        """Whether some of it may have been charged that is not in `cost_usd`."""
        return self._session is not None and any(call.cut for call in self._session.calls)

    def ask(self, instruction: str, question: str) -> str:
        """See `protocols.Ask`. Raises `JudgeError`, and `ConfigError` when the model's key is missing."""
        roles = {"system": instruction, "user": question}
        messages = [{"role": role, "content": content} for role, content in roles.items()]
        request = {"messages": messages, "max_completion_tokens": ANSWER_TOKENS}
        answer = self._gateway.ask(self._opened(), request)
        if answer.status_code != HTTPStatus.OK:
            advice = (
                " Raise the judge's usd; its verdicts until then are kept."
                if answer.status_code == HTTPStatus.FORBIDDEN
                else ""
            )
            raise JudgeError(
                f"The judge {self._spec.model.name} did not answer: {reason(answer.body)}{advice}"
            )
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
    """Why there is no answer, of the body that stands in its place."""
    error = body.get("error")
    return str(error["message"]) if isinstance(error, dict) else str(body)
