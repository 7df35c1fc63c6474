"""Ask a model for the answers of a construction, through the gateway: metered, capped, recorded and replayable.

Each answer has its own session, and so its own ledger and tape, `<task>/<file>.jsonl`: a replay of one task, or of one
answer, needs no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from runner.errors import ConfigError, JudgeError
from runner.gateway import cassette
from runner.gateway.http import CHAT
from runner.gateway.judge_calls import reason
from runner.gateway.session import SessionSpec
from runner.records import Budget, Model
from runner.records.trial_files import LEDGER

if TYPE_CHECKING:
    from runner.benchmarks.sources.answers import Question, Talk
    from runner.gateway.server import Gateway
    from runner.gateway.session import Session

DETERMINISTIC = {"temperature": 0}
"""Parameters of every question (section 2.2.1)."""
ANSWER_TOKENS = 8192
"""Limit on one answer, including thoughts."""


class ConstructionModel:
    """A model that writes the answers of one task. See `answers.AskModel`."""

    def __init__(
        self, gateway: Gateway, model: Model, task: str, ledgers: Path, usd: float, record: Path | None = None
    ) -> None:
        """`ledgers` is the folder of the calls, `usd` the limit on the cost, `record` the folder of a new cassette."""
        self._gateway, self._model, self._task = gateway, model, task
        self._ledgers, self._usd, self._record = ledgers, usd, record
        self.cost_usd: float | None = 0.0
        """USD of all answers so far; None if one of them has no price."""

    @cached_property
    def name(self) -> str:
        """Identity of the model, also of a recorded one; a scripted model's says that it is not a language model."""
        found = self._recorded() if self._model.backend == "cassette" else self._model.id
        return f"{found} (no language model)" if found.startswith("scripted/") else found

    def _recorded(self) -> str:
        """Return the identity of the model whose answers are replayed. Raises `ConfigError` if there are none."""
        tapes = sorted(self._tape(self._model.path, "x").parent.glob("*.jsonl"))
        if not tapes:
            raise ConfigError(f"model.path: {self._model.path} has no recording of {self._task}.")
        return cassette.recorded_model(tapes[0])

    @contextmanager
    def conversation(self, question: Question) -> Iterator[Talk]:
        """See `answers.AskModel`. The talk raises `JudgeError` when there is no answer or the cap is reached."""
        if self.cost_usd is None:
            raise JudgeError(
                f"{self._task}: an answer has no price, so job.usd={self._usd:g} cannot hold. Give all rates of the "
                "model: model.prices.input, output, cache_hit, cache_creation."
            )
        left = self._usd - self.cost_usd
        if left <= 0:
            raise JudgeError(
                f"{self._task}: job.usd={self._usd:g} is spent. Raise it; what is written is kept."
            )
        folder = self._ledgers / f"{question.file.replace('/', '-')}-{question.digest[:8]}"
        spec = SessionSpec(
            trial=f"{self._task} {question.file}",
            task=f"{self._task}/{question.file}",
            model=self._model.model_copy(update={"params": self._model.params | DETERMINISTIC}),
            budget=Budget(name="construction", usd=left),
            ledger=folder / LEDGER,
            cassette=self._tape(self._model.path, question.file)
            if self._model.backend == "cassette"
            else None,
        )
        with self._gateway.open(spec) as session:
            try:
                yield partial(self._say, session, question.file)
            finally:
                cost = session.meter.cost_usd
                self.cost_usd = None if cost is None or self.cost_usd is None else self.cost_usd + cost
        if self._record is not None:
            tape = self._tape(self._record, question.file)
            cassette.write_tape(folder, tape)
            # A question quotes texts of strangers, which a cassette that is passed on must not spread.
            cassette.keep_digests(tape, CHAT, DETERMINISTIC)

    def _say(self, session: Session, file: str, messages: Sequence[dict[str, str]]) -> str:
        request = {"messages": list(messages), "max_completion_tokens": ANSWER_TOKENS}
        answer = self._gateway.ask(session, request)
        if answer.status_code != HTTPStatus.OK:
            raise JudgeError(f"{self._task}: {self.name} did not write {file}: {reason(answer.body)}")
        return CHAT.text(answer.body)

    def _tape(self, folder: Path | None, file: str) -> Path:
        if folder is None:
            raise ConfigError("model.path: name the folder of the cassette.")
        return folder / self._task / f"{file.replace('/', '-')}.jsonl"


def most_usd(model: Model, question_tokens: int) -> float:
    """Return what one answer costs at most: a question of so many tokens read, and a full answer written."""
    rates = model.prices
    return (question_tokens * (rates.input or 0) + ANSWER_TOKENS * (rates.output or 0)) / 1e6
