"""Write a page for each trial of a sweep beside its report, a list of all trials, and a page that shows two of them.

A page has the digest of its sources in its head, and is written again only if that has changed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import pandas as pd

from runner.files import code_digest, write_atomically
from runner.records import Prices, TrialRecord
from runner.records.trial_files import GIVEN, LEFT
from runner.report.blocks import Section, TrialSectionMaker, Value
from runner.report.findings import Findings
from runner.report.hostile_text import Redaction
from runner.report.html import render
from runner.report.sections_matrix import PAGES, linked
from runner.report.sections_scores import figure
from runner.report.shown_trials import MOST, shown_trials
from runner.report.trial_page import Sources, headline, sections
from runner.report.trial_states import FAILED, INVALID, PASSED, STATES, states
from runner.report.trial_traces import marked_model
from runner.report.trials_table import outcome
from runner.report.wording import model_name, short, usd
from runner.report.workspace_changes import Changes, Snapshot, compare_with, read_workspace, written_since
from runner.sweeps.store import Store
from runner.sweeps.sweep_file import SweepFile
from runner.terminal.escaping import one_line

UNCHANGING: Final = "nop"
"""Agent that changes nothing, so the workspace that it leaves is the one that every agent was given."""
LIST, BESIDE = "index.html", "side_by_side.html"
REASON: Final = 240
"""Longest reason in the list of trials, in characters."""
_HEAD: Final = 400
"""Bytes at the beginning of a page that hold its digest."""
_MADE_OF: Final = re.compile(rb'<meta name="made-of" content="([0-9a-f]{32})">')
_KEY: Final = re.compile(r"[0-9a-f]{32}")
_MARKS: Final = {
    "scripted": "No language model answered: a script stood in its place, and its dollars were charged to nobody.",
    "replayed": "The model's answers are those of a recorded run; nobody was charged for this one.",
}
_Task = tuple[str, str, str, str]
_JUMPS: Final = (
    *(("instruction", "Instruction"), ("timeline", "Timeline"), ("verdict", "Verdict")),
    *(("workspace", "Workspace"), ("output", "Output"), ("what-ran", "What ran")),
)
"""Sections to which both pages can be moved."""
_HEADS: Final = (
    *(("", True), ("ending", True), ("agent", True), ("model", True), ("budget", True), ("attempt", False)),
    *(
        ("USD", False),
        ("tokens", False),
        ("turns", False),
        ("seconds", False),
        ("flags", True),
        ("reason", True),
    ),
)
"""Heads of the list of trials after the task, and whether the column holds words."""


def write_trial_pages(
    sweep: Path,
    plan: SweepFile,
    records: Mapping[str, TrialRecord],
    store: Store,
    makers: Sequence[TrialSectionMaker] = (),
) -> int:
    """Write the pages of the trials of the sweep in this folder that have records; return how many were written.

    Pages whose trial is as it was are left alone, and those of trials that are gone are removed. `makers` are the
    sections that benchmarks add. Raises `OutputsError`.
    """
    folder = sweep / "report" / PAGES
    wanted = {
        row.key: records[row.key]
        for row in plan.planned
        if row.key in records and not row.refused and _KEY.fullmatch(row.key)
    }
    bases = _bases(wanted.values(), store)
    code, written = _code(makers), 0
    base_of = _kept_last()
    for record in sorted(wanted.values(), key=_task):
        base = None if record.agent == UNCHANGING else bases.get(_task(record))
        prices = plan.prices.get(record.model, Prices())
        sources = Sources(record, store.folder(record.key), prices, plan.name, makers)
        digest = _digest(code, sources, base)
        page = folder / f"{record.key}.html"
        if _made_of(page) != digest:
            changes = _changes(sources, base_of(base) if base else None)
            write_atomically(page, _html(sources, sections(sources, changes), digest).encode(), lasting=False)
            written += 1
    for old in folder.glob("*.html"):
        if old.stem not in wanted and old.name not in (LIST, BESIDE):
            old.unlink()
    return written


def _task(record: TrialRecord) -> _Task:
    """Return the values that trials with the same original workspace share."""
    digests = record.digests
    return (record.dataset, record.task, digests.get("task", ""), digests.get("image", ""))


def _bases(records: Iterable[TrialRecord], store: Store) -> dict[_Task, Path]:
    """Return, for each task, the archive of the workspace that its agents were given, if a trial has one."""
    bases: dict[_Task, Path] = {}
    for record in records:
        folder = store.folder(record.key)
        if (folder / GIVEN).is_file():
            bases[_task(record)] = folder / GIVEN
        elif record.agent == UNCHANGING and record.judged:
            bases.setdefault(_task(record), folder / LEFT)
    return bases


def _kept_last() -> Callable[[Path], Snapshot]:
    """Return a reader of workspaces that remembers the last one, because trials come sorted by task."""
    kept: dict[Path, Snapshot] = {}

    def read(packed: Path) -> Snapshot:
        if packed not in kept:
            kept.clear()
            kept[packed] = read_workspace(packed)
        return kept[packed]

    return read


def _changes(sources: Sources, base: Snapshot | None) -> Changes:
    """Return the agent's changes to its workspace, as far as they are known."""
    record = sources.record
    left = read_workspace(sources.folder / LEFT)
    if not left.files and left.unread:
        return Changes(left.unread)
    redacted = Redaction(record.host_env)
    if record.agent == UNCHANGING:
        return Changes(
            f"This agent changes nothing: the workspace has the {len(left.files):,} files it began with."
        )
    if base is not None and (base.files or not base.unread):
        return compare_with(base, left, redacted)
    # Tar files carry whole seconds, and the phase is timed from here.
    began = record.started_at.timestamp() + record.seconds.environment - 2
    return written_since(began, left, redacted)


@cache
def _templates() -> str:
    """Return the digest of this package and its templates: another version may make another page."""
    here = Path(__file__).parent
    return code_digest([*here.glob("*.py"), *here.glob("templates/*")])


def _code(makers: Sequence[TrialSectionMaker]) -> str:
    """Return the digest of the code that makes pages."""
    return "\n".join([_templates(), *(f"{make.__module__}.{make.__qualname__}" for make in makers)])


def _digest(code: str, sources: Sources, base: Path | None) -> str:
    """Return a digest of all sources of a page. Files count by name, size and time."""
    files = [_stamp(path) for path in (*sorted(sources.folder.glob("*")), *([base] if base else []))]
    parts = (
        code,
        sources.sweep,
        sources.record.model_dump_json(),
        sources.prices.model_dump_json(),
        repr(files),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _stamp(path: Path) -> tuple[str, int, int] | None:
    """Return name, size and time of a file; None if it does not exist."""
    if not path.is_file():
        return None
    stat = path.stat()
    return path.name, stat.st_size, stat.st_mtime_ns


def _made_of(page: Path) -> str:
    """Return the digest in a page's head; empty if there is no such page."""
    try:
        with page.open("rb") as file:
            named = _MADE_OF.search(file.read(_HEAD))
    except OSError:
        return ""
    return named[1].decode() if named else ""


def _html(sources: Sources, made: Sequence[Section], digest: str) -> str:
    record = sources.record
    redacted = Redaction(record.host_env)
    state = INVALID if not record.judged else PASSED if record.passed else FAILED
    error = record.error or (record.verdict.error if record.verdict else None)
    return render(
        "trial.html",
        made_of=digest,
        key=record.key,
        sweep=sources.sweep,
        task=one_line(redacted(record.task)),
        who=one_line(
            redacted(
                f"{record.agent} · {marked_model(record)} · budget {record.budget} · attempt {record.attempt}"
            )
        ),
        state=state,
        outcome=outcome(record),
        facts=headline(record),
        marks=[sentence for mark, sentence in _MARKS.items() if getattr(record, mark)],
        reason=one_line(redacted(f"{error.type}: {error.message}"))[:REASON] if error else "",
        sections=made,
    )


def list_pages(found: Findings, most: int = MOST) -> dict[str, bytes]:
    """Return a list of at most `most` trials and the page that shows two, by their paths in the report's folder."""
    pages = linked(found.folder)
    datasets = found.by_dataset()
    share = most if len(found.trials) <= most else most // len(datasets)
    shown = [shown_trials(own, share) for _, own in datasets]
    several = len(datasets) > 1
    left_out = [
        f"{name}: {part.about}" if several else part.about
        for (name, _), part in zip(datasets, shown, strict=True)
        if part.about
    ]
    trials = pd.concat([part.trials for part in shown])
    trials = trials.sort_values(["dataset", "task", "cell", "attempt"], kind="stable")
    rows = [
        {
            "task": one_line(str(row["task"])),
            "key": row.get("key", ""),
            "link": f"{row['key']}.html" if row.get("key") in pages else "",
            "entries": _values(row, state.sign, state.word),
        }
        for row, state in zip(trials.to_dict("records"), states(trials), strict=True)
    ]
    legend = "; ".join(f"{state.sign} {state.word}: {state.about}" for state in STATES)
    scripts = ("tables.js", "trials.js")
    listed = render(
        "trials.html",
        scripts,
        name=found.plan.name,
        rows=rows,
        heads=_HEADS,
        legend=legend,
        all=len(found.trials),
        left_out=left_out,
    )
    beside = render("side_by_side.html", ("side_by_side.js",), name=found.plan.name, jumps=_JUMPS)
    return {f"{PAGES}/{LIST}": listed.encode(), f"{PAGES}/{BESIDE}": beside.encode()}


def _values(row: Mapping[Any, Any], sign: str, word: str) -> list[Value]:
    """Return the entries of a trial in the list."""
    texts = [str(row["agent"]), model_name(row), str(row["budget"])]
    flags, reason = (str(row.get(name) or "") for name in ("flags", "reason"))
    outcome_word = str(row["outcome"])
    ending = outcome_word if outcome_word.startswith(word) else f"{word}: {outcome_word}"
    amounts: list[tuple[Any, str | Callable[[float], str]]] = [
        (row["cost_usd"], usd),
        (row["tokens"], short),
        (row["turns"], ".0f"),
        (row["wall_seconds"], ".0f"),
    ]
    return [
        Value(sign, word),  # first, so that a phone shows it
        Value(one_line(ending)[:REASON], ending[:REASON]),
        *(Value(one_line(text), text) for text in texts),
        Value(str(row["attempt"]), float(row["attempt"])),
        *(figure(float("nan") if pd.isna(amount) else float(amount), style) for amount, style in amounts),
        Value(one_line(flags), flags or None),
        Value(one_line(reason)[:REASON], reason[:REASON] or None),
    ]
