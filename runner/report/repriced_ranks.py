"""Scores and ranks of a sweep's cells at other prices, beside those at the original ones: text and table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pandas as pd

from metrics.ranking import agreement
from runner.files import write_atomically
from runner.records import Scoring
from runner.report.competition import left_out
from runner.report.conclusions import ams_text, bound_text
from runner.report.csv_cells import to_csv
from runner.report.leaderboard import lines, standings
from runner.report.repricing import Repriced, Terms, reprice
from runner.report.rescoring import agreement_words
from runner.report.trial_sources import labelled
from runner.report.wording import number, usd
from runner.terminal.escaping import width
from runner.terminal.tables import Column, paragraph, table

REPRICED = "repriced.csv"
"""File with the result, in the sweep's folder."""
_COLUMNS = (
    *(Column(head, is_name=True) for head in ("agent", "model")),
    *(Column(f"{head}\n{when}") for head in ("AMS", "USD\n/pass", "rank") for when in ("then", "now")),
)
_SIDES = ("AMS", "AMS_most", "usd_per_pass", "usd_per_pass_least", "rank", "unpriced")
"""Figures that are shown at both prices."""


def compare_prices(
    sweep: Path, terms: Terms, rescorings: Callable[[Scoring], Sequence[Scoring]], scale: float, path: Path
) -> str:
    """Write the figures of each cell then and now to `path`, best first as ranked then; return the text for people.

    `rescorings` returns the requested scorings of a sweep with a given scoring; both sides take the first. `scale`
    multiplies budgets and thresholds now. Raises as `repricing.reprice` does.
    """
    own, trials, repriced = reprice(sweep, terms)
    scoring = (*rescorings(own), own)[0]
    sides = {
        "then": _standings(trials, scoring),
        "now": _standings(repriced.trials, scoring.scaled(scoring.alpha, scale)),
    }
    cells = sides["then"][["dataset", "agent", "model", "budget", "planned", "passes"]]
    for name, side in sides.items():
        cells = cells.join(side[list(_SIDES)].add_suffix(f"_{name}"))
    cells = cells.assign(
        pricing=terms.pricing.label,
        cny_per_usd=terms.pricing.cny_per_usd if terms.pricing.currency == "CNY" else None,
        cache_hits=terms.cache_hits,
        scale=scale,
        scoring=scoring.title,
    )
    write_atomically(path, to_csv(cells, index=True).encode())
    wide = width()
    texts = [_text(str(name), of, sides, terms, wide) for name, of in cells.groupby("dataset").groups.items()]
    notes = (
        *_notes(sides["now"], repriced, scale),
        *left_out(trials),
        f"Written to {path}; nothing else is changed.",
    )
    return "\n".join([*texts, *(line for note in notes for line in paragraph(note, wide))])


def _standings(trials: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """Return the cells that compete, with the number of their trials of unknown cost."""
    cells = standings(labelled(trials, scoring), scoring)
    unpriced = (trials["ran"] & trials["cost_usd"].isna()).groupby(trials["cell"]).sum()
    return cells.assign(unpriced=unpriced)[cells["rank"].notna()]


def _text(dataset: str, cells: pd.Index, sides: dict[str, pd.DataFrame], terms: Terms, wide: int) -> str:
    """Return the table of one dataset, and how far its ranks agree."""
    then, now = (sides[name].loc[cells] for name in ("then", "now"))
    moved = int((then["rank"] != now["rank"]).sum())
    spearman, kendall, *_ = agreement_words(agreement(then["AMS"], now["AMS"]))
    several = len(set(then["budget"])) > 1
    rows = []
    for old, new in zip(lines(then).values(), lines(now).values(), strict=True):
        pairs = [
            (ams_text(old), ams_text(new)),
            (bound_text(old, "usd_per_pass", usd), bound_text(new, "usd_per_pass", usd)),
            (str(old["rank"]), str(new["rank"])),
        ]
        agent = f"{old['agent']}\nbudget {old['budget']}" if several else str(old["agent"])
        rows.append((agent, str(old["model"]), *(word for pair in pairs for word in pair)))
    assumed = (
        "caches as counted" if terms.cache_hits is None else f"{terms.cache_hits:.0%} of input from caches"
    )
    return "\n".join(
        [
            table(
                _COLUMNS, rows, wide, f"{dataset}: as run, and with pricing={terms.pricing.name}, {assumed}"
            ).text,
            *paragraph(
                f"{moved} of {len(then)} ranks differ. AMS: Spearman {spearman}, Kendall {kendall}.", wide
            ),
        ]
    )


def _notes(now: pd.DataFrame, repriced: Repriced, scale: float) -> Iterator[str]:
    """Yield what a reader must know about the figures."""
    if repriced.kept:
        yield f"Not in the snapshot, so at the prices that they brought along: {', '.join(repriced.kept)}."
    for why, count in sorted(repriced.why.items()):
        yield f"Trials whose cost is unknown now: {count}, because {why}. An unknown cost never helps (>=)."
    for why in sorted(set(now["why"]) - {""}):
        yield f"Missing AMS: {why}."
    stopped = int((repriced.trials["status"] == "budget_exceeded").sum())
    if stopped:
        yield f"{stopped} trials ended at a cap; at other prices a cap in USD would have stopped them elsewhere."
    if scale != 1:
        yield f"Budgets and thresholds of AMS are {number(scale, 'g')} times those of the sweep now."
