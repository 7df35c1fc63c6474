"""Sections on what the figures rest on: coverage, invalid trials, versions, prices and digests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from metrics.table import valid
from runner.records import Prices, PriceTier
from runner.report.blocks import Block, Column, Section, Table, Text, Value
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.sections_scores import AGENT, MODEL, about, figure
from runner.report.trial_endings import refused
from runner.report.wording import counted, short, usd
from runner.sweeps.plan_models import price_text

_DIGEST = 12
"""Number of characters of a digest on the page; `lock.json` has them all."""
_AUDITED = 200
"""Number of invalid trials listed; `trials.csv` has them all."""


def coverage(found: Findings) -> Section:
    """Show how much of the plan has a verdict."""
    columns = (
        AGENT,
        MODEL,
        Column("tasks judged", "tasks with a valid trial / tasks planned; the others count 0"),
        Column("coverage", "the same as a share"),
        Column("trials", "planned"),
        Column("valid"),
        Column("spoiled", "ran, and ended by our doing or the user's"),
        Column("not run"),
        Column("refused", "of tasks that cannot be run here"),
        Column("unpriced", "ran, and nobody knows what they cost"),
    )
    kinds = _kinds(found.trials)
    counts = kinds.groupby([found.trials["cell"], kinds]).size().to_dict()
    rows = [
        [*about(cell, found), Value(f"{cell['valid']}/{cell['planned']}", float(cell["valid"])),
         figure(cell["coverage"], ".0%"), figure(cell["trials"], ".0f"),
         *(figure(counts.get((name, kind), 0), ".0f") for kind in ("valid", "spoiled", "not run", "refused")),
         figure(cell["unpriced"], ".0f")]
        for name, cell in lines(found.cells).items()
    ]  # fmt: skip
    return Section("coverage", "Coverage", [Table("Trials planned, and what became of them", columns, rows)])


def audit(found: Findings) -> Section | None:
    """Show the trials that are left out of every conclusion, with reason and spend."""
    kinds = _kinds(found.trials)
    spoiled = found.trials[kinds == "spoiled"]
    if not len(found.trials[kinds != "valid"]):
        return None
    blocks: list[Block] = []
    if len(spoiled):
        cells, known = lines(found.cells), spoiled["cost_usd"].sum()
        unknown = int(spoiled["cost_usd"].isna().sum())
        more = f" and that of {unknown} unpriced ones" if unknown else ""
        columns = (
            AGENT,
            MODEL,
            *(Column(name, text=True) for name in ("task", "attempt", "status", "reason")),
            Column("USD"),
        )
        rows = [
            [*about(cells[line["cell"]], found), Value(line["task"], line["task"]),
             Value(str(line["attempt"]), float(line["attempt"])), Value(line["status"], line["status"]),
             Value(line["reason"] or "-", line["reason"]), figure(line["cost_usd"], usd)]
            for line in spoiled.sort_values("cost_usd", ascending=False).head(_AUDITED).to_dict("records")
        ]  # fmt: skip
        part = f", {len(rows)} of them shown" if len(rows) < len(spoiled) else ""
        caption = f"{len(spoiled)} of {len(found.trials)} trials{part}; they spent {usd(known)} USD{more}"
        blocks.append(Table(caption, columns, rows))
    held = found.trials["reason"].str.startswith("not run: ")
    labels = kinds.mask(kinds.eq("not run") & held, found.trials["reason"])
    for label, idle in found.trials[kinds.isin(["refused", "not run"])].groupby(labels):
        kind, _, why = str(label).partition(": ")
        tasks = idle.drop_duplicates(["task", "reason"])
        names = "; ".join(
            f"{task}: {reason.removeprefix('refused: ')}" if kind == "refused" else task
            for task, reason in zip(tasks["task"], tasks["reason"], strict=True)
        )
        sentence = (
            f"{counted(len(idle), 'trial')} {kind}, of {counted(tasks['task'].nunique(), 'task')}: {names}."
        )
        blocks.append(Text(f"{sentence} {why}" if why else sentence))
    return Section("audit", "Invalid trials", blocks)


def what_ran(found: Findings) -> Section:
    """Show scoring, versions, prices and digests."""
    scoring, plan = found.scoring, found.plan
    facts = {
        "last planned": f"{plan.created:%Y-%m-%d %H:%M} UTC",
        "first trial began": _moment(found.trials["started_at"].min()),
        "last trial ended": _moment(found.trials["finished_at"].max()),
        "scoring": f"{scoring.title}, alpha {scoring.alpha:g}, attempts {scoring.attempts}, cbq {scoring.cbq}",
        "intervals": f"{scoring.confidence:.0%}, {scoring.resamples} resamples, seed {scoring.seed}",
        "prices": "; ".join(_prices(found.ran["cells"])) or "brought by the models themselves, or none",
        **{f"version of {name}": version for name, version in plan.versions.items()},
        **({"imported": plan.imported.text} if plan.imported else {}),
    }
    table = Table(
        "The sweep",
        (Column("what", text=True), Column("value", text=True)),
        [_texts(pair) for pair in facts.items()],
    )
    return Section(
        "what-ran",
        "What was run",
        [
            table,
            *_rates(plan.prices),
            _digests("Cells", found.ran["cells"]),
            _digests("Tasks", found.ran["tasks"]),
        ],
    )


def _kinds(trials: pd.DataFrame) -> pd.Series[str]:
    """Return the kind of each trial: valid, spoiled, refused or not run."""
    kinds = pd.Series("spoiled", index=trials.index, name="kind")
    return kinds.mask(valid(trials), "valid").mask(~trials["ran"], "not run").mask(refused(trials), "refused")


def _prices(cells: Mapping[str, Mapping[str, Sequence[str]]]) -> list[str]:
    """Return the snapshots that priced the cells, `name@digest` shortened."""
    found = {value for digests in cells.values() for value in digests.get("prices", ()) if value}
    return [
        f"{name} (digest {digest[:_DIGEST]})"
        for name, _, digest in (value.partition("@") for value in sorted(found))
    ]


def _rates(prices: Mapping[str, Prices]) -> Iterator[Table]:
    """Yield a table of rates: a row for each model, and one for each tier of longer calls."""
    columns = [
        Column("model", text=True),
        Column(
            "input", "USD per million tokens: fresh input, output, input written to a cache and read from one"
        ),
        *(Column(kind) for kind in ("output", "cache written", "cache read")),
        Column("source", text=True),
        Column("of", text=True),
    ]
    rows = []
    for name, plain in sorted(prices.items()):
        for rates in (plain, *plain.tiers):
            long = (
                f"calls above {short(rates.above_input_tokens)} input" if isinstance(rates, PriceTier) else ""
            )
            amounts = (rates.input, rates.output, rates.cache_creation, rates.cache_hit)
            figures = [figure(math.nan if rate is None else rate, "g") for rate in amounts]
            by_time = price_text(plain) if plain.per_second is not None else ""
            source = "; ".join(filter(None, (by_time, plain.source))) or "-"
            rows.append([Value(name, name, long), *figures, *_texts([source, plain.date or "-"])])
    if rows:
        yield Table("Prices", columns, rows)


def _digests(title: str, owners: Mapping[str, Mapping[str, Sequence[str]]]) -> Table:
    """Return a table of digests: a row for each owner, a column for each kind."""
    kinds = sorted({kind for digests in owners.values() for kind in digests})
    columns = [Column(title[:-1].lower(), text=True), *(Column(kind, text=True) for kind in kinds)]
    rows = [
        _texts([owner, *(", ".join(map(_shortened, digests.get(kind, ()))) or "-" for kind in kinds)])
        for owner, digests in sorted(owners.items())
    ]
    return Table(
        f"{title}: digests, whole in lock.json; two of one kind mean that it changed midway", columns, rows
    )


def _shortened(digest: str) -> str:
    """Return the beginning of a digest, with the name of `name@digest`."""
    name, at, rest = digest.rpartition("@")
    return f"{name}{at}{rest.removeprefix('sha256:')[:_DIGEST]}"


def _texts(texts: Sequence[Any]) -> list[Value]:
    return [Value(str(text), str(text)) for text in texts]


def _moment(value: Any) -> str:
    return "-" if pd.isna(value) else f"{value:%Y-%m-%d %H:%M} UTC"
