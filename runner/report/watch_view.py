"""The view of `job=watch`: the state of a sweep as lines of a terminal. Pure: it reads and writes nothing.

Names, commands and errors are other people's. Each passes `one_line` before it becomes part of a line, and each line is
cut to the width of the terminal, by the columns that its signs take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from runner.records import LiveSweep, LiveTrial, PlannedRow, SpendLimits
from runner.report.watched_sweep import Ended, Kind, Life, SweepNow
from runner.report.wording import MARKS, counted, short, usd
from runner.terminal.escaping import clock, one_line

SIGNS: dict[Kind, tuple[str, str]] = {
    "passed": ("■", "green"),
    "failed": ("x", "red"),
    "invalid": ("!", "bold yellow"),
    "running": (">", "bold cyan"),
    "planned": ("·", "dim"),
    "refused": ("-", "dim"),
}
"""State of a trial -> its sign, which differs without colour too, and its colour."""
WIDE = 150
"""Columns from which a running trial takes one line instead of two."""
BAR = 30
"""Columns of the bar."""
TITLE = 2
"""Lines of a title, with the empty one before it."""
LAST = 5
"""Largest number of ended trials that are shown."""
DAY_SECONDS = 86_400
TENS = 10
"""Number of boxes between two blanks, where each task has one box."""
_LIVES: dict[Life, tuple[str, str]] = {
    "ended": ("has ended", ""),
    "silent": ("is silent", "bold yellow"),
    "died": ("is gone without having ended", "bold yellow"),
    "absent": ("is not running", ""),
}
"""State of a process that is not known to run -> words about the sweep, and their style."""


class Names(NamedTuple):
    """The parts of a name that distinguish the cells and trials of a sweep."""

    dataset: bool
    budget: bool
    attempts: bool

    def cell(self, row: PlannedRow) -> str:
        """Return the name of the row's cell."""
        marks = "".join(f" ({mark})" for mark in MARKS if getattr(row, mark))
        parts = [row.agent, f"{row.model}{marks}"]
        parts += [row.dataset] if self.dataset else []
        parts += [f"budget {row.budget}"] if self.budget else []
        return one_line(" · ".join(parts))

    def trial(self, row: PlannedRow) -> str:
        """Return the name of the row's trial."""
        attempt = f" #{row.attempt}" if self.attempts else ""
        return f"{self.cell(row)} · {one_line(row.task)}{attempt}"


def names_of(rows: Sequence[PlannedRow]) -> Names:
    """Return how the cells of these rows are named."""
    return Names(
        len({row.dataset for row in rows}) > 1,
        len({row.budget for row in rows}) > 1,
        any(row.attempt > 1 for row in rows),
    )


def view(now: SweepNow, width: int, height: int | None = None) -> list[Text]:
    """Return the lines of the view; at most `height` of them, if there is a limit.

    Where they do not fit, the cells lose their boxes first, then cells and running trials are left out and counted.
    """
    names = names_of(now.rows)
    head = [*_head(now), Text()]
    running = [_trial(now, names, trial, width) for trial in _longest_first(now)]
    if height is None:
        cells = [line for lines in _cells(now, names, width) for line in lines]
        last = _last(now, names, LAST)
        return _cut([*head, *cells, *_titled("Running", _flat(running)), *_titled("Ended last", last)], width)
    room = max(height - len(head), 0)
    least = 0
    if running:
        least = TITLE + min(len(_flat(running)), max(room // 3, *map(len, running)))
    cells = _fitting_cells(_cells(now, names, width), room - least)
    room -= len(cells)
    shown = _titled("Running", _fitting_trials(running, room - TITLE))
    last = _titled("Ended last", _last(now, names, min(LAST, room - len(shown) - TITLE)))
    return _cut([*head, *cells, *shown, *last][:height], width)


def summary(now: SweepNow) -> str:
    """Return the state in one line, for a log."""
    phases = Counter(trial.phase for trial in now.running)
    at_work = f" ({', '.join(f'{count} {one_line(phase)}' for phase, count in sorted(phases.items()))})"
    counts = now.counts
    done = sum(counts[kind] for kind in ("passed", "failed", "invalid"))
    parts = [
        f"{done}/{len(now.rows) - counts['refused']} done",
        _total(now),
        now.live.left if now.live and not now.is_over else "",
        f"{counts['running']} running{at_work if phases else ''}",
        *(f"{counts[kind]} {kind}" for kind in ("passed", "failed", "invalid") if counts[kind]),
    ]
    return ", ".join(filter(None, parts))


def ending(now: SweepNow) -> str:
    """Return a sentence on the sweep's process."""
    live = now.live
    if now.life == "absent" or live is None:
        return "No process is at work on this sweep, and none has said anything."
    process = f"process {live.pid} on {one_line(live.host)}"
    if now.life == "ended" and live.ended:
        return f"The sweep's command has ended ({process}, {live.ended.astimezone():%Y-%m-%d %H:%M:%S})."
    heard = clock(max(0.0, (now.moment - live.written).total_seconds()))
    if now.life == "silent":
        return f"Nothing was heard for {heard} of {process}, whose lock cannot be seen from here."
    if now.life == "died":
        left = f", with {counted(len(live.running), 'trial')} under way" if live.running else ""
        return f"The sweep's {process} is gone and did not say that it ended{left}. The same command resumes."
    return f"The sweep's {process} is alive."


def _head(now: SweepNow) -> Iterator[Text]:
    """Yield the lines on the whole sweep."""
    counts, live = now.counts, now.live
    yield Text.assemble((one_line(now.name), "bold"), "  ", _life(now))
    done = sum(counts[kind] for kind in ("passed", "failed", "invalid"))
    planned = len(now.rows) - counts["refused"]
    filled = BAR * done // planned if planned else BAR
    bar = Text.assemble(("━" * filled, "green"), ("╌" * (BAR - filled), "dim"))
    left = f"  {live.left}" if live and live.left and not now.is_over else ""
    yield Text.assemble(bar, f"  {done}/{planned} done", (left, "bold"))
    yield Text("  ").join(
        Text.assemble((sign, style), f" {counts[kind]} {kind}")
        for kind, (sign, style) in SIGNS.items()
        if counts[kind] or kind in ("passed", "failed")
    )
    yield Text(f"Spent {_total(now)}")
    if live and not now.is_over and (caps := _caps(now, live)):
        yield Text(f"This command: {caps}")
    if live and live.waiting and not now.is_over:
        yield Text(f"{live.waiting} trials wait for the limits on calls")


def _life(now: SweepNow) -> Text:
    live = now.live
    if now.life == "runs" and live:
        since = clock((now.moment - live.began).total_seconds())
        doing = f": {one_line(live.doing)}" if live.doing else ""
        return Text(f"has run for {since} (process {live.pid} on {one_line(live.host)}){doing}")
    return Text(*_LIVES[now.life])


def _total(now: SweepNow) -> str:
    """Return the spend of all planned trials, including the known spend of those that run."""
    ended, acts = now.ended.values(), [trial.activity for trial in now.running]
    shown = [each for each in ended if now.kinds.get(each.row.key) != "running"]
    costs = [*(each.cost_usd for each in shown), *(act.cost_usd for act in acts)]
    tokens = sum(each.tokens for each in shown) + sum(act.input_tokens + act.output_tokens for act in acts)
    turns = sum(each.turns for each in shown) + sum(act.turns for act in acts)
    judges = [each.judge_usd for each in shown if each.judge_usd != 0.0]
    paid = f", {_usd(judges)} for judges" if judges else ""
    return f"{_usd(costs)}{paid}, {short(tokens)} tokens, {counted(turns, 'call')}"


def _usd(costs: Sequence[float | None]) -> str:
    known = [cost for cost in costs if cost is not None]
    return f"{'>=' if len(known) < len(costs) else ''}{usd(sum(known))} USD"


def _caps(now: SweepNow, live: LiveSweep) -> str:
    """Return the spend of this command beside each limit of the sweep; empty if it has none."""
    spent = {**live.spent, "wall_seconds": (now.moment - live.began).total_seconds()}
    return ", ".join(_against(spent, live.limits))


def _against(spent: Mapping[str, float], limits: SpendLimits) -> Iterator[str]:
    """Yield `spent of limit` for each limit."""
    for kind, limit in limits:
        if limit is None:
            continue
        had = spent.get(kind, 0.0)
        if kind == "wall_seconds":
            yield f"{clock(had)} of {clock(limit)}"
        elif kind == "usd":
            yield f"{usd(had)} of {limit:g} USD"
        else:
            word = "calls" if kind == "turns" else kind.replace("_", " ")
            yield f"{short(had)} of {short(limit)} {word}"


class _Cell(NamedTuple):
    """A cell as it is shown."""

    name: str
    counts: Text
    groups: Sequence[Text]
    """Boxes in groups: of ten tasks, or of the attempts at one task."""


def _cells(now: SweepNow, names: Names, width: int) -> list[list[Text]]:
    """Return the lines of each cell: its name with counts, and its boxes, on the same line if they fit."""
    of_cell: dict[str, list[PlannedRow]] = {}
    for row in now.rows:
        of_cell.setdefault(row.cell, []).append(row)
    cells = [_cell(now, names, rows) for rows in of_cell.values()]
    wide = max((cell_len(cell.name) for cell in cells), default=0)
    boxes = [Text(" ").join(cell.groups) for cell in cells]
    most = max((each.cell_len for each in boxes), default=0)
    found = []
    for cell, strip in zip(cells, boxes, strict=True):
        name = cell.name + " " * (wide - cell_len(cell.name))
        if wide + most + max(each.counts.cell_len for each in cells) + 4 <= width:
            strip.pad_right(most - strip.cell_len)
            found.append([Text.assemble(name, "  ", strip, "  ", cell.counts)])
        else:
            found.append([Text.assemble(name, "  ", cell.counts), *_folded(cell.groups, width)])
    return found


def _cell(now: SweepNow, names: Names, rows: Sequence[PlannedRow]) -> _Cell:
    kinds = Counter(now.kinds[row.key] for row in rows)
    counts = Text(" ").join(
        Text.assemble((sign, style), str(kinds[kind])) for kind, (sign, style) in SIGNS.items() if kinds[kind]
    )
    acts = {trial.key: trial.activity for trial in now.running}
    costs = [
        acts[row.key].cost_usd if row.key in acts else now.ended[row.key].cost_usd
        for row in rows
        if row.key in acts or row.key in now.ended
    ]
    counts.append(f"  {_usd(costs)}")
    attempts = Counter((row.dataset, row.task) for row in rows)
    size = max(attempts.values()) if names.attempts else TENS
    ordered = sorted(rows, key=lambda row: (row.task, row.attempt)) if names.attempts else rows
    boxes = [SIGNS[now.kinds[row.key]] for row in ordered]
    groups = [Text.assemble(*boxes[at : at + size]) for at in range(0, len(boxes), size)]
    return _Cell(names.cell(rows[0]), counts, groups)


def _folded(groups: Sequence[Text], width: int) -> list[Text]:
    """Return groups of boxes in as many lines as they need."""
    lines: list[Text] = []
    for group in groups:
        if not lines or lines[-1].cell_len + 1 + group.cell_len > width:
            lines.append(Text(" "))
        lines[-1].append(" ").append_text(group)
    return lines


def _fitting_cells(cells: Sequence[Sequence[Text]], room: int) -> list[Text]:
    """Return the cells with their boxes, or without them, or as many as fit."""
    if sum(map(len, cells)) <= room:
        return _flat(cells)
    if len(cells) <= room:
        return [first for first, *_ in cells]
    shown = max(room - 1, 0)
    return [*(first for first, *_ in cells[:shown]), Text(f"and {len(cells) - shown} more cells", "dim")]


def _fitting_trials(trials: Sequence[Sequence[Text]], room: int) -> list[Text]:
    """Return as many trials as fit, and how many more run."""
    if not trials or sum(map(len, trials)) <= room:
        return _flat(trials)
    shown = max(room - 1, 0) // max(map(len, trials))
    return [*_flat(trials[:shown]), Text(f"and {len(trials) - shown} more", "dim")]


def _longest_first(now: SweepNow) -> list[LiveTrial]:
    """Return the running trials; those that began first may be stuck, and come first."""
    return sorted(now.running, key=lambda trial: trial.started_at)


def _trial(now: SweepNow, names: Names, trial: LiveTrial, width: int) -> list[Text]:
    """Return the lines of a running trial."""
    row = now.by_key.get(trial.key)
    name = names.trial(row) if row else one_line(trial.key[:12])
    phase = Text.assemble(
        (">", SIGNS["running"][1]), f" {one_line(trial.phase)} {_since(now, trial.phase_since)}"
    )
    limit = trial.limits.wall_seconds
    if trial.phase == "agent" and limit is not None:
        phase.append(f" of {clock(limit)}")
    money = _money(trial)
    doing = _doing(now, trial)
    if width >= WIDE:
        phase.pad_right(max(0, 24 - phase.cell_len))
        return [Text("  ").join([phase, Text(name, "bold"), *map(Text, filter(None, (money, doing)))])]
    more = "  ".join(filter(None, (money, doing)))
    return [Text("  ").join([phase, Text(name, "bold")]), *([Text(f"  {more}")] if more else [])]


def _money(trial: LiveTrial) -> str:
    """Return the spend of a trial, beside its limits if it has any; empty before its first call."""
    act, limits = trial.activity, trial.limits.model_copy(update={"wall_seconds": None})
    if not act.turns:
        return ""
    spent: dict[str, float] = {
        "usd": act.cost_usd or 0.0,
        "input_tokens": act.input_tokens,
        "output_tokens": act.output_tokens,
        "turns": act.turns,
    }
    rest = {
        "usd": _usd([act.cost_usd]),
        "turns": counted(act.turns, "call"),
        "input_tokens": f"{short(act.input_tokens + act.output_tokens)} tokens",
    }
    unlimited = [text for kind, text in rest.items() if getattr(limits, kind) is None]
    return ", ".join([*_against(spent, limits), *unlimited])


def _doing(now: SweepNow, trial: LiveTrial) -> str:
    """Return the present action of a trial in words, with the time since it began."""
    act, since = trial.activity, _since(now, trial.activity_since)
    text = one_line(act.text)
    if trial.image:
        return one_line(trial.image)
    if act.doing == "model":
        return f"waits for its model {since}" + (f", after {text}" if text else "")
    if act.doing == "tool":
        return f"{since} {text}"
    if trial.phase == "agent" and not act.turns:
        return "no model call yet"
    return f"after {text}" if text else ""


def _since(now: SweepNow, moment: datetime) -> str:
    return clock(max(0.0, (now.moment - moment).total_seconds()))


def _last(now: SweepNow, names: Names, most: int) -> list[Text]:
    """Return the trials that ended last, the latest first."""
    if most < 1:
        return []
    own = [each for each in now.ended.values() if now.kinds.get(each.row.key) == each.kind]
    latest = sorted(own, key=lambda each: each.finished_at, reverse=True)[:most]
    return [_ended(now, names, each) for each in latest]


def _ended(now: SweepNow, names: Names, each: Ended) -> Text:
    sign, style = SIGNS[each.kind]
    status = "" if each.status == "completed" else f" ({each.status})"
    reason = f"  {one_line(each.reason)}" if each.reason and each.kind == "invalid" else ""
    seconds = (now.moment - each.finished_at).total_seconds()
    days = int(seconds // DAY_SECONDS)
    ago = counted(days, "day") if days else clock(max(0.0, seconds))
    figures = f"{ago} ago, after {clock(each.seconds)}, {_usd([each.cost_usd])}"
    return Text.assemble(
        (sign, style), f" {each.kind}{status} {figures}  ", (names.trial(each.row), "bold"), reason
    )


def _titled(title: str, lines: Sequence[Text]) -> list[Text]:
    return [Text(), Text(title, "bold"), *lines] if lines else []


def _flat(lines: Iterable[Sequence[Text]]) -> list[Text]:
    return [line for part in lines for line in part]


def _cut(lines: Sequence[Text], width: int) -> list[Text]:
    """Cut lines to the width of the terminal."""
    for line in lines:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return list(lines)
