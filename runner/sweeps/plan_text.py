"""Print a plan: its price, cells and tiers, what is missing, and on request every trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from runner.protocols import EstimatingAgent
from runner.records import SpendLimits
from runner.records.base import SECRET
from runner.sweeps import preflight
from runner.sweeps.plan import PlannedTrial, counted
from runner.sweeps.plan_models import model_lines
from runner.sweeps.refusals import absent_keys
from runner.terminal.escaping import WIDTH, one_line
from runner.terminal.tables import Column, paragraph, table

if TYPE_CHECKING:
    from runner.records import Scoring
    from runner.sweeps.cells import Settings
    from runner.sweeps.plan import Plan

_COLUMNS = (
    Column("cell", is_name=True),
    *map(Column, ("to do", "finished", "refused", "most USD")),
)
_NO_LIMIT = "without limit"
Counted = Sequence[tuple[PlannedTrial, int]]
"""Trials of a cell at a task, and their number (`plan.counted`)."""


def plan_text(plan: Plan, settings: Settings, took: Sequence[float] = (), width: int = WIDTH) -> str:
    """Return the plan as text of this width; with `dry_run=full`, also every trial with its key, and every image.

    `took` are the wall seconds of finished trials, from which the duration of the others is estimated.
    """
    planned, todo = counted(plan.trials), counted(plan.todo)
    cells = len({trial.cell.name for trial, _ in planned})
    done = len(plan.trials) - len(plan.todo) - sum(trial.task.refused is not None for trial in plan.trials)
    before = [
        f"{cells} cells, {len(plan.trials)} trials planned: {done} finished, {len(plan.todo)} to do.",
        *_price(plan, settings.sweep_budget),
        *model_lines(trial.cell.model for trial, _ in planned),
        *(preflight.plan_lines(preflight.routes(plan.todo)) if settings.gateway.preflight else ()),
        *_missing_keys(planned),
        *_expected(todo),
    ]
    after = [
        *_tiers(planned, settings.scoring),
        *_takes(todo, settings, took),
        *_cut(todo),
        *_memory(planned),
        *_skills(planned),
        *_images(todo),
        *(f"  refused: {task.name}: {task.refused}" for task in plan.refused),
    ]
    flagged = {trial.task.name: trial.task.flags for trial, _ in planned if trial.task.flags}
    after += [f"  flagged: {name}: {', '.join(flags)}" for name, flags in flagged.items()]
    if settings.dry_run == "full":
        after += ["", "Trials:", *(f"  {trial.key[:12]}  {trial.name}" for trial in plan.todo)]
        after += ["", "Images:", *(f"  {name}" for name in sorted({_image(trial) for trial, _ in todo}))]
    elif plan.todo:
        after += ["", "dry_run=full lists each trial with its key, and each image."]
    return "\n".join([*_fitted(before, width), "", _cells(planned, todo, width), "", *_fitted(after, width)])


def _fitted(lines: Sequence[str], width: int) -> Iterator[str]:
    for line in lines:
        yield from paragraph(line, width) or [""]


def _price(plan: Plan, cap: SpendLimits) -> Iterator[str]:
    most, nominal = plan.most_usd(nominal=False), plan.most_usd(nominal=True)
    bound = f"{most:.2f} USD" if most is not None else f"{_NO_LIMIT} (budget.usd is null)"
    again = "each repetition after a failure of ours may spend a trial's budget again"
    yield f"The most it may cost: {bound}{'' if most == 0.0 else f'; {again}'}."
    for kind, limit in cap:
        if limit is not None:
            yield (
                f"No new trial starts once {limit:g} {kind} are spent (sweep_budget); those that run then end."
            )
    if nominal:
        yield f"Scripted and replayed models: up to {nominal:.2f} nominal USD, charged to nobody."


def _missing_keys(planned: Counted) -> Iterator[str]:
    """Yield a line for each variable of an API key, or of a provider's setting, that the run needs and is not set."""
    for variable, names in absent_keys(trial.cell for trial, _ in planned).items():
        kind = "the API key of" if SECRET.search(variable) else "a setting that litellm reads for"
        yield f"Not set: {variable}, {kind} {', '.join(names)}. No trial starts without it."


def _expected(todo: Counted) -> Iterator[str]:
    """Yield the expected cost of a long trial of each cell whose agent knows its usage and whose model has prices."""
    cells = {trial.cell.name: trial.cell for trial, _ in todo}
    for name, cell in cells.items():
        prices = cell.model.prices
        if not isinstance(cell.agent, EstimatingAgent) or prices.input is None or prices.output is None:
            continue
        usage, fresh = cell.agent.expected_usage, prices.cache_creation or prices.input
        hit = prices.input if prices.cache_hit is None else prices.cache_hit
        cached, written = usage.cache_hit_tokens * hit, usage.output_tokens * prices.output
        usd = ((usage.input_tokens - usage.cache_hit_tokens) * fresh + cached + written) / 1e6
        yield f"A trial of {name} that uses all its attempts is expected to cost {usd:.2f} USD."


def _cells(planned: Counted, todo: Counted, width: int) -> str:
    """Return a table with a row per cell: trials to do, finished and refused, and the highest cost of those to do."""
    waiting, every = _by_cell(todo), _by_cell(planned)
    refused = _by_cell((trial, number) for trial, number in planned if trial.task.refused)
    usd = {trial.cell.name: trial.most_usd for trial, _ in planned}
    rows = []
    for name, count in every.items():
        left, one = waiting[name], usd[name]
        price = "0.00" if not left else _NO_LIMIT if one is None else f"{left * one:.2f}"
        rows.append((one_line(name), str(left), str(count - left - refused[name]), str(refused[name]), price))
    return table(_COLUMNS, rows, width).text


def _by_cell(trials: Iterable[tuple[PlannedTrial, int]]) -> Counter[str]:
    """Return the number of trials by the name of their cell."""
    counts: Counter[str] = Counter()
    for trial, number in trials:
        counts[trial.cell.name] += number
    return counts


def _tiers(planned: Counted, scoring: Scoring) -> Iterator[str]:
    """Yield the number of tasks in each tier of each dataset, in the scoring's order."""
    labels, order = scoring.labels, list(scoring.tiers)
    tasks = {
        (trial.cell.dataset.name, trial.task.name): labels.get(trial.task.name, trial.task.tier)
        for trial, _ in planned
    }
    for dataset in dict.fromkeys(name for name, _ in tasks):
        counts = Counter(tier for (name, _), tier in tasks.items() if name == dataset)
        known = sorted(counts, key=lambda tier: (order.index(tier) if tier in order else len(order), tier))
        tiers = ", ".join(f"{tier} {counts[tier]}" for tier in known)
        yield f"{dataset}: {counts.total()} tasks ({tiers})"


def _takes(todo: Counted, settings: Settings, took: Sequence[float]) -> Iterator[str]:
    """Yield lines on the time and disk space that the limits allow, and on the time that finished trials suggest."""
    if not todo:
        return
    workers, trials = settings.executor.at_once, sum(number for _, number in todo)
    limits = [(trial.seconds, number) for trial, number in todo]
    known = sum(limit * number for limit, number in limits if limit is not None)
    unlimited = any(limit is None for limit, _ in limits)
    most = f"rollouts {_NO_LIMIT}" if unlimited else f"rollouts at most {_hours(known / workers)}"
    before = ""
    if took:
        mean = sum(took) / len(took)
        before = f"; if each takes what the {len(took)} finished ones did: {_hours(mean * trials / workers)}"
    yield f"Time, {workers} trials at once: {most}{before}."
    own = settings.sandbox.model_dump()
    disk = max(trial.task.environment.storage_mb or own.get("disk_mb") or 0 for trial, _ in todo)
    workspace = own.get("workspace_mb")
    if disk and workspace:
        at_work, afterwards = workers * disk / 1000, trials * workspace / 1000
        yield (
            f"Disk, at most: {at_work:.1f} GB in sandboxes at work, {afterwards:.1f} GB of workspaces kept; images "
            "beside that."
        )


def _cut(todo: Counted) -> Iterator[str]:
    """Yield a line for each budget that gives tasks less time than they set themselves."""
    cut: dict[str, dict[str, PlannedTrial]] = {}
    for trial, _ in todo:
        if trial.is_cut:
            cut.setdefault(trial.cell.budget.name, {})[trial.task.name] = trial
    for budget, trials in cut.items():
        longest = max(trial.task.agent_timeout_seconds or 0 for trial in trials.values())
        limit = next(iter(trials.values())).seconds
        tasks = "1 task's time limit is" if len(trials) == 1 else f"{len(trials)} tasks' time limits are"
        yield (
            f"{tasks} cut from up to {longest:g} s to {limit:g} s by budget={budget}; budget.wall_seconds=null keeps "
            "the tasks' own (flag time_limit_cut)."
        )


def _memory(planned: Counted) -> Iterator[str]:
    """Yield a line for each agent that gets more memory than its tasks allow."""
    raised: Counter[tuple[str, str, int | None]] = Counter()
    for trial, number in planned:
        if trial.memory_raised:
            raised[trial.cell.agent.name, trial.cell.dataset.name, trial.memory_mb] += number
    for (agent, dataset, memory_mb), count in raised.items():
        yield (
            f"Memory: {agent} needs {memory_mb} MiB (agent.memory_mb) and gets it in {count} trials of {dataset}, "
            "whose tasks allow less; they are flagged memory_raised. sandbox.task_memory_mb sets one limit for all."
        )


def _skills(planned: Counted) -> Iterator[str]:
    """Yield a line for each agent that reads no skills, if images of its tasks may bring some."""
    unread: Counter[tuple[str, str]] = Counter()
    for trial, number in planned:
        agent = trial.cell.agent
        if trial.task.skills == "present" and agent.uses_model and not agent.skills:
            unread[agent.name, trial.cell.dataset.name] += number
    for (agent_name, dataset), count in unread.items():
        yield (
            f"Skills: {agent_name} reads none. The instruction lists those of an image, and the trial is flagged "
            f"skills_unsupported: at most {count} trials of {dataset}."
        )


def _hours(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{max(minutes, 1)} min"  # noqa: PLR2004


def _images(todo: Counted) -> Iterator[str]:
    images = {_image(trial) for trial, _ in todo}
    pulled = sum(name.startswith("pull") for name in images)
    yield f"Images: {pulled} to find or pull, {len(images) - pulled} to find or build."


def _image(trial: PlannedTrial) -> str:
    environment = trial.task.environment
    if environment.image:
        return f"pull   {environment.image}"
    return f"build  {trial.task.name} (recipe {environment.digest.removeprefix('sha256:')[:12]})"
