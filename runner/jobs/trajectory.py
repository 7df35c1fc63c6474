"""`job=trajectory`: print one trial's trajectory and verdict, with panels in a terminal and as plain text in a pipe."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from runner.errors import ConfigError, OutputsError
from runner.mirror.opening import open_store
from runner.records import TrialRecord
from runner.records.trial_files import TRAJECTORY
from runner.report.wording import CONTROL
from runner.sweeps import sweep_file
from runner.sweeps.cells import Job, Sweep
from runner.sweeps.store import Store
from runner.terminal.escaping import console as terminal
from runner.terminal.escaping import one_line, printable

if TYPE_CHECKING:
    from pathlib import Path


Json = dict[str, Any]
LISTED = 20
"""Number of trials named when several match."""
WIDTH = 200
"""Longest line of a shortened text, in characters."""
SELECTORS = ("agent", "model", "task", "attempt")


class Trajectory(Job):
    """Prints one trial and changes nothing. Each selector narrows the choice, and exactly one trial must remain.

    A typed `name=` narrows to the trials that this sweep planned.
    """

    reads_trials: ClassVar[bool] = True
    key: str | None = None
    """Beginning of the trial's key."""
    agent: str | None = None
    model: str | None = None
    task: str | None = None
    attempt: int | None = Field(default=None, ge=1)
    lines: int = Field(default=12, ge=0)
    """Number of lines shown of each text; 0 shows all."""

    def run(self, sweep: Sweep) -> int:
        """Print the trial and return 0. Raises `ConfigError` unless exactly one trial matches and it called a model."""
        store = open_store(sweep.settings)
        record = self._one(store, sweep.composed[0].get("name"))
        store.fetch([record.key], archives=True)
        path = store.folder(record.key) / TRAJECTORY
        if not path.exists():
            raise ConfigError(f"{_name(record)} has no trajectory: it called no model.")
        document: Json = json.loads(path.read_text())
        console = terminal(highlight=False, soft_wrap=not terminal().is_terminal)
        verdict = _verdict(record, store.folder(record.key), self.lines)
        for title, body in (*sections(record, document, self.lines), *verdict):
            head = Text(one_line(title), style="bold")
            parts: RenderableType = Group(head, body, Text())
            console.print(Panel(body, title=head, title_align="left") if console.is_terminal else parts)
        return 0

    def _one(self, store: Store, name: str | None) -> TrialRecord:
        """Return the record of the only trial that matches, of the sweep `name` if one was typed."""
        keys = sorted(
            path.parent.name for path in store.outputs.glob(f"trials/??/{self.key or ''}*/record.json")
        )
        if name:
            planned = {row.key for row in sweep_file.read(store.outputs / name).planned}
            keys = [key for key in keys if key in planned]
        wanted = {name: value for name in SELECTORS if (value := getattr(self, name)) is not None}
        matching = [
            record
            for record in _readable(store, keys)
            if all(getattr(record, name) == value for name, value in wanted.items())
        ]
        if len(matching) == 1:
            return matching[0]
        names = [f"{_name(record)}  {_ending(record)}" for record in matching[:LISTED]]
        more = [f"and {len(matching) - LISTED} more"] if len(matching) > LISTED else []
        choose = ", ".join(f"job.{name}" for name in ("key", *SELECTORS))
        message = f"{len(matching)} trials in {store.outputs} match; one is needed. Choose with {choose}."
        raise ConfigError("\n  ".join([message, *names, *more]))


def _readable(store: Store, keys: Sequence[str]) -> Iterator[TrialRecord]:
    """Yield the records of these keys that can be read. Raises `OutputsError` if a single key has one that cannot."""
    for key in keys:
        try:
            if record := store.read(key):
                yield record
        except OutputsError:
            if len(keys) == 1:
                raise


def sections(record: TrialRecord, document: Json, lines: int) -> Iterator[tuple[str, Text]]:
    """Yield title and body of the trial, of each of its steps, and of its end."""
    agent = document["agent"]
    marks = "".join(f" ({mark})" for mark in ("scripted", "replayed") if document["extra"].get(mark))
    yield (
        f"{record.agent} {agent['version']} · {record.model}{marks} · {record.task} #{record.attempt}",
        Text(_short(document["steps"][0]["message"], 0)),
    )
    for step in document["steps"][1:]:
        yield f"step {step['step_id']}{_spent(step.get('metrics'))}", _step(step, lines)
    final = document["final_metrics"]
    total = {
        name: final.get(f"total_{name}") for name in ("prompt_tokens", "completion_tokens", "cached_tokens")
    }
    yield (
        _ending(record),
        Text(f"{record.turns} turns{_spent(total | {'cost_usd': record.cost_usd})}; key {record.key}"),
    )
    for error in (record.error, *record.warnings):
        if error:
            yield f"{error.type} ({error.phase})", Text(_short(error.traceback or error.message, lines))


def _verdict(record: TrialRecord, folder: Path, lines: int) -> Iterator[tuple[str, Text]]:
    """Yield title and body of the verdict: errors, the verifier's output, flags, and the folder of the files."""
    verdict = record.verdict
    errors = [error for error in (record.error, verdict.error if verdict else None) if error]
    body = Text("\n".join(f"{error.type}: {_short(error.message, lines)}" for error in dict.fromkeys(errors)))
    if verdict:
        body.append(f"\n{_short(verdict.output, lines)}")
    if record.flags:
        body.append(f"\nflags: {', '.join(record.flags)}")
    body.append(f"\nfiles: {folder}")
    how = f"verifier ({verdict.mode}), exit code {verdict.exit_code}" if verdict else "not judged"
    yield how, Text(body.plain.strip())


def _ending(record: TrialRecord) -> str:
    reward = "no reward" if record.reward is None else f"reward {record.reward:g}"
    return f"{record.status}, {reward}"


def _step(step: Json, lines: int) -> Text:
    """Return the model's reasoning and words, its tool calls and their results."""
    results = {
        result["source_call_id"]: result["content"]
        for result in step.get("observation", {}).get("results", ())
    }
    body = Text()
    if step.get("reasoning_content"):
        body.append(_short(step["reasoning_content"], lines) + "\n", style="italic dim")
    if step["message"]:
        body.append(_short(step["message"], lines) + "\n")
    for call in step.get("tool_calls", ()):
        body.append(f"> {_short(call['function_name'], 1)} ", style="bold cyan")
        body.append(_short(_arguments(call["arguments"]), lines) + "\n", style="cyan")
        if call["tool_call_id"] in results:
            body.append(_short(results[call["tool_call_id"]], lines) + "\n", style="dim")
    body.rstrip()
    return body


def _arguments(arguments: Json) -> str:
    """Return a single text argument as it is, with its lines; other arguments as JSON."""
    values = list(arguments.values())
    return str(values[0]) if len(values) == 1 and isinstance(values[0], str) else json.dumps(arguments)


def _short(text: str, lines: int) -> str:
    """Return `lines` lines of a text, two thirds from its beginning and the rest from its end; 0 means all."""
    rows = printable(text.translate(CONTROL)).strip().splitlines()
    if not lines:
        return "\n".join(rows)
    rows = [row if len(row) <= WIDTH else f"{row[:WIDTH]} [...]" for row in rows]
    if len(rows) > lines:
        tail = lines // 3
        rows = [*rows[: lines - tail], f"[... {len(rows) - lines} lines]", *rows[len(rows) - tail :]]
    return "\n".join(rows)


def _spent(metrics: Json | None) -> str:
    """Return tokens and USD; a missing cost is a dash."""
    if not metrics:
        return " · no counts"
    cost = metrics.get("cost_usd")
    usd = "-" if cost is None else f"{cost:.4f}"
    prompt, completion, cached = (
        metrics.get(f"{name}_tokens") or 0 for name in ("prompt", "completion", "cached")
    )
    return f" · {prompt} in ({cached} cached), {completion} out, {usd} USD"


def _name(record: TrialRecord) -> str:
    return f"{record.key[:12]}  {record.agent} · {record.model} · {record.task} #{record.attempt}"
