"""Hold back the trials of a model whose provider refuses one trial after another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from runner.terminal.escaping import Say, one_line
from runner.trials.outcome import REFUSED

if TYPE_CHECKING:
    from runner.records import TrialRecord
    from runner.sweeps.plan import PlannedTrial


class Breaker:
    """Counts the provider's refusals by model and API, since a server may speak one API and not another."""

    def __init__(self, trials: Iterable[PlannedTrial], limit: int | None) -> None:
        """`limit` is the number of refused trials in a row after which no more are started; None for no limit."""
        self._routes = {trial.key: (trial.cell.model.name, trial.cell.agent.api) for trial in trials}
        self._limit = limit
        self._refused: Counter[tuple[str, str]] = Counter()
        self._open: dict[tuple[str, str], str] = {}
        self.held: dict[str, str] = {}
        """Key of a trial that was not started -> the reason."""

    def holds(self, trial: PlannedTrial) -> bool:
        """Return whether a trial must not be started; if so, note the reason in `held`."""
        reason = self._open.get(self._routes[trial.key])
        if reason:
            self.held[trial.key] = reason
        return reason is not None

    def watching(self, records: Iterable[TrialRecord], note: Say) -> Iterator[TrialRecord]:
        """Yield trials as they end, and pass news about their models to `note`."""
        for record in records:
            if news := self._news(record):
                note(one_line(news))
            yield record

    def _news(self, record: TrialRecord) -> str:
        """Count an ended trial and return what to tell the user; empty if there is nothing new."""
        route = self._routes[record.key]
        error = record.error
        if error is None or error.type != REFUSED:
            self._refused[route] = 0
            return ""
        self._refused[route] += 1
        news = []
        if self._refused[route] == 1:
            news.append(f"{record.agent} · {record.model} · {record.task}: {error.message}")
        if self._refused[route] == self._limit:
            self._open[route] = f"{self._limit} trial(s) before it were refused. {error.message}"
            news.append(
                f"No more trials of {' by '.join(route)} are started (gateway.refusals={self._limit})."
            )
        return " ".join(news)
