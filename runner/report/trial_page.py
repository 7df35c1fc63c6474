"""The page of one trial: instruction, timeline, verdict, changes of the workspace, network, digests and commands.

Everything on it is plain values of `report.blocks`; the template escapes them. All texts of agents, tasks and verifiers
are freed of secrets and shortened first.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from runner.records import EgressAttempt, ErrorInfo, Prices, TrialRecord, Verdict
from runner.report.blocks import (
    Block,
    Code,
    Column,
    DiffBlock,
    Section,
    Table,
    Text,
    Timeline,
    TimelineStep,
    TrialFolder,
    TrialSectionMaker,
    Value,
)
from runner.report.hostile_text import GAP, Redaction, shortened
from runner.report.trace_steps import Extent
from runner.report.traces import Step, Trace
from runner.report.trial_traces import trial_trace
from runner.report.wording import short, usd
from runner.report.workspace_changes import Changes

EXTENT: Final = Extent(steps=300, last=80, texts=60_000, texts_per_call=1_500, longest=6_000, markdown=False)
"""Extent of the timeline: at most about half a million characters."""
OUTPUT: Final = 12_000
"""Most characters of an output. `Redaction` reads more than that from either end, so no secret is cut."""
READ: Final = 64 << 10
"""Number of bytes that are read from either end of a file."""
VALUE: Final = 1_000
"""Longest text in a table, in characters."""
LISTED: Final = 100
"""Most rows of a table."""
INLINE: Final = 80
"""Longest text of a step that stands in its line, in characters."""
_TYPED: Final = re.compile(r"[\w][\w.@+-]*")
"""Names that can be typed into a list on the command line."""


class Sources(NamedTuple):
    """The sources of a trial's page."""

    record: TrialRecord
    folder: Path
    """Folder of the trial."""
    prices: Prices
    sweep: str
    """Name of the sweep."""
    makers: Sequence[TrialSectionMaker] = ()
    """Sections that benchmarks add."""


def sections(sources: Sources, changes: Changes) -> list[Section]:
    """Return the sections of a trial's page."""
    record = sources.record
    redacted = Redaction(record.host_env)
    trace = trial_trace(record, sources.folder, sources.prices, EXTENT)
    trial = TrialFolder(record, sources.folder, redacted)
    return [
        _instruction(trace),
        _timeline(trace),
        _verdict(trial, trace),
        *(section for make in sources.makers if (section := make(trial))),
        Section("workspace", "Workspace", [Text(changes.basis), DiffBlock(changes)]),
        _outputs(trial),
        _network(record, redacted),
        _what_ran(record, redacted),
        _again(record, sources.sweep),
    ]


def _instruction(trace: Trace) -> Section:
    told = next((step.inputs for step in trace.steps if step.kind == "AGENT" and step.inputs), {})
    text = str(told.get("instruction", ""))
    missing = Text(
        "No instruction is kept: a trial that called no model has no trajectory. Trials of other cells at the same "
        "task show it."
    )
    return Section("instruction", "Instruction", [Code("as given to the agent", text)] if text else [missing])


def _timeline(trace: Trace) -> Section:
    """Return every step with its time, tokens, USD and texts, and its place on the trial's clock as a bar."""
    whole, *rest = trace.steps
    length = max(whole.ended - whole.started, 1)
    steps = [_step(step, whole.started, length) for step in rest]
    note = Text(
        "Nobody measures tools: each has the time from the model's answer to its next call. Long texts are shortened; "
        "the trajectory has them whole."
    )
    return Section("timeline", "Timeline", [Timeline(steps), note])


def _step(step: Step, began: int, length: int) -> TimelineStep:
    texts = [
        (name, ", ".join(map(str, value)) if isinstance(value, list) else str(value))
        for name, value in (*step.inputs.items(), *step.outputs.items())
        if name != "instruction"
    ]
    if step.kind == "EVALUATOR":
        texts = []  # the section on the verdict has them
    low, high = ((moment - began) / length for moment in (step.started, step.ended))
    low = min(max(low, 0.0), 1.0)
    return TimelineStep(
        name=step.name,
        kind=step.kind.lower(),
        began=f"{(step.started - began) / 1e9:.1f} s",
        lasted=f"{(step.ended - step.started) / 1e9:.1f} s",
        spent=_spent(step),
        bar=(low, min(max(high, low), 1.0)),
        error=step.error,
        texts=[(name, text) for name, text in texts if "\n" in text or len(text) > INLINE],
        facts=[(name, text) for name, text in texts if text and "\n" not in text and len(text) <= INLINE],
    )


def _spent(step: Step) -> str:
    """Return tokens and USD; a missing cost is a dash."""
    if step.usage is None:
        return ""
    use = step.usage
    cached = f", {use.cache_hit_tokens:,} cached" if use.cache_hit_tokens else ""
    price = "-" if step.cost is None else usd(step.cost.total)
    return f"{use.input_tokens:,} tokens in{cached}; {use.output_tokens:,} out; {price} USD"


def _verdict(trial: TrialFolder, trace: Trace) -> Section:
    verdict = trial.record.verdict
    if verdict is None:
        error = trial.record.error
        reason = Text(
            "The verifier did not judge this trial, so it has no reward. This is not a reward of 0."
        )
        return Section("verdict", "Verdict", [reason, *_error(error, trial.redacted)])
    blocks: list[Block] = [*_judged(verdict, trial)]
    output = read_output(trial.folder / "verifier.stdout", trial.redacted)
    blocks.append(
        Code("output of the verifier", output or _text(verdict.output, trial.redacted) or "(no output)")
    )
    if verdict.again:
        blocks.append(Text("A second verdict was asked for; it is never a part of the reward."))
        blocks += _judged(verdict.again, trial)
        blocks.append(Code("output of the second verdict", _text(verdict.again.output, trial.redacted)))
    for judgement in trace.judgements:
        if judgement.is_model:
            blocks.append(Code(f"{judgement.source} answered: {judgement.value}", judgement.rationale))
    return Section("verdict", "Verdict", blocks)


def _judged(verdict: Verdict, trial: TrialFolder) -> Iterator[Block]:
    facts = [
        ("reward", "none" if verdict.reward is None else f"{verdict.reward:g}"),
        ("tests ran in", f"a machine of kind {verdict.mode}"),
        ("exit code", "none" if verdict.exit_code is None else str(verdict.exit_code)),
        ("left out", ", ".join(verdict.left_out)),
        ("changed programs", ", ".join(verdict.programs.paths) if verdict.programs else ""),
    ]
    yield pairs("Verdict", [(name, value) for name, value in facts if value], trial.redacted)
    yield from _error(verdict.error, trial.redacted)
    named = [(name, f"{value:g}") for name, value in verdict.components.items()]
    if named:
        yield pairs("Components", named, trial.redacted)


def _error(error: ErrorInfo | None, redacted: Callable[[str], str]) -> Iterator[Code]:
    if error:
        where = f" in the phase {error.phase}" if error.phase else ""
        cause = f"\ncaused by {error.cause}" if error.cause else ""
        text = error.traceback or f"{error.message}{cause}"
        yield Code(shortened(redacted(f"{error.type}{where}"), VALUE), _text(text, redacted))


def _outputs(trial: TrialFolder) -> Section:
    blocks: list[Block] = []
    for stream in ("stdout", "stderr"):
        text = read_output(trial.folder / f"agent.{stream}", trial.redacted)
        if text:
            blocks.append(Code(f"agent.{stream}", text, is_open=False))
    return Section("output", "Output of the agent", blocks or [Text("The agent printed nothing.")])


def _network(record: TrialRecord, redacted: Callable[[str], str]) -> Section:
    used: list[tuple[str, EgressAttempt]] = [("agent", each) for each in record.egress]
    if record.verdict:
        used += [("installation", each) for each in record.verdict.egress]
    if not used:
        text = (
            "No use of the network beyond the model was noticed. A sandbox without a proxy notices nothing."
        )
        return Section("network", "Network", [Text(text)])
    columns = [Column(name, text=True) for name in ("whose", "host", "port", "way", "allowed", "count")]
    rows = []
    for whose, each in used[:LISTED]:
        words = (
            whose,
            each.host,
            str(each.port),
            each.way,
            "yes" if each.allowed else "no",
            f"{each.count:,}",
        )
        rows.append([Value(shortened(redacted(word), VALUE)) for word in words])
    table = Table(f"{len(used)} hosts, {len(rows)} of them shown", columns, rows, "trial_table.html")
    return Section("network", "Network", [table])


def _cache_use(record: TrialRecord) -> str:
    """Return the use of the provider's cache over a trial, in words; empty without input."""
    use = record.usage
    if not use.input_tokens:
        return ""
    shares = (use.cache_hit_tokens / use.input_tokens, use.cache_creation_tokens / use.input_tokens)
    read, written = (f"{share:.1%}" for share in shares)
    calls = (
        ""
        if record.cached_calls is None
        else f"; {record.cached_calls} of {record.turns} answers read from it"
    )
    return f"{read} of the input read from it, {written} written to it{calls}"


def _helped(record: TrialRecord) -> str:
    """Return the helper model's part of a trial's spend; empty without one."""
    if (helper := record.helper) is None:
        return ""
    cost = "-" if helper.cost_usd is None else usd(helper.cost_usd)
    use = helper.usage
    return f"{helper.model}: {helper.turns} calls, {use.input_tokens:,} in, {use.output_tokens:,} out; {cost} USD"


def _what_ran(record: TrialRecord, redacted: Callable[[str], str]) -> Section:
    use = record.usage
    facts = [
        ("status", record.status.value),
        ("flags", " ".join(record.flags) or "none"),
        ("agent's setting", record.agent_setting),
        ("agent's exit code", "none" if record.agent_exit_code is None else str(record.agent_exit_code)),
        ("began", f"{record.started_at:%Y-%m-%d %H:%M:%S} UTC"),
        ("seconds", ", ".join(f"{phase} {seconds:.1f}" for phase, seconds in record.seconds if seconds)),
        ("tokens", f"{use.input_tokens:,} in, {use.cache_hit_tokens:,} of them from caches; {use.output_tokens:,} out"),
        ("helper model, of all that", _helped(record)),
        ("provider's cache", _cache_use(record)),
        ("tools", ", ".join(f"{name} {count}" for name, count in list(record.tool_calls.items())[:LISTED])),
        ("tier, category, language", f"{record.tier}, {record.category}, {record.language}"),
        ("variables of this machine", ", ".join(record.host_env)),
    ]  # fmt: skip
    warnings = [block for warning in record.warnings for block in _error(warning, redacted)]
    return Section(
        "what-ran",
        "What ran",
        [
            pairs("Facts of the record", [(name, value) for name, value in facts if value], redacted),
            *warnings,
            pairs("Digests", list(record.digests.items()), redacted),
        ],
    )


def _again(record: TrialRecord, sweep: str) -> Section:
    """Return the commands that show the whole trial, and that run one like it again."""
    read = f"python -m runner job=trajectory job.key={record.key[:12]} job.lines=0"
    words = {axis: getattr(record, axis) for axis in ("agent", "model", "dataset", "budget")}
    typed = [*words.values(), record.task]
    blocks: list[Block] = [Code("read it whole in a terminal", read)]
    if all(_TYPED.fullmatch(word) for word in typed):
        keys = [f"{axis}={word}" for axis, word in words.items() if word != "none"]
        keys += [f"dataset.include=[{record.task}]", f"attempts={record.attempt}", "fresh=true", "name=again"]
        blocks.append(Code("run it again, and pay again", shlex.join(["python", "-m", "runner", *keys])))
    else:
        blocks.append(Text("Its names cannot be typed as they are; choose its cell and task in a preset."))
    note = (
        f"The trial's key is {record.key}, and its files are in trials/{record.key[:2]}/{record.key} of the folder of "
        "outputs. If that is not ./outputs, add outputs=DIR to both commands. Other keys that were typed for the sweep "
        f"are in config.yaml of the sweep {sweep}; with all of them, dry_run=full shows the same key."
    )
    return Section("again", "Read it whole, run it again", [*blocks, Text(note)])


def pairs(caption: str, named: Sequence[tuple[str, str]], redacted: Callable[[str], str]) -> Table:
    """Return a table of names and values, at most `LISTED` of them."""
    rows = [[Value(shortened(redacted(text), VALUE)) for text in pair] for pair in named[:LISTED]]
    part = f", {LISTED} of {len(named)}" if len(named) > LISTED else ""
    columns = (Column("name", text=True), Column("value", text=True))
    return Table(f"{caption}{part}", columns, rows, "trial_table.html")


def read_output(path: Path, redacted: Callable[[str], str]) -> str:
    """Return beginning and end of a file; empty if it is missing. However large it is, little is read."""
    try:
        with path.open("rb") as file:
            content = file.read(READ)
            size = file.seek(0, 2)
            if size > len(content):
                file.seek(max(size - READ, len(content)))
                gap = GAP.encode() if size > 2 * READ else b""
                content += gap + file.read(READ)
    except OSError:
        return ""
    return _text(content.decode(errors="replace"), redacted)


def _text(text: str, redacted: Callable[[str], str]) -> str:
    return shortened(redacted(text), OUTPUT, from_end=True).strip("\n")


def headline(record: TrialRecord) -> list[tuple[str, str]]:
    """Return the figures at the top of a trial's page, each with its title. What is missing is a dash."""
    return [
        ("reward", "-" if record.reward is None else f"{record.reward:g}"),
        ("USD", "-" if record.cost_usd is None else usd(record.cost_usd)),
        ("tokens", short(record.usage.input_tokens + record.usage.output_tokens)),
        ("turns", str(record.turns)),
        ("seconds", f"{record.wall_seconds:.0f}"),
        *([("earlier tries", str(len(record.retries)))] if record.retries else []),
    ]
