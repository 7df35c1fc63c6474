"""The trials table that `metrics/` reads, from plan and records: one row per *planned* trial, run or not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from runner.records import OwnUsage, PlannedRow, TrialRecord, Verdict

_MOMENTS = ("started_at", "finished_at")
_LONGEST_NAME = 60
"""Number of characters of a tool's name that tables show."""
_TYPES = {
    "passed": "boolean",
    "own_finish": "boolean",
    **dict.fromkeys(
        (
            "input_tokens",
            "cache_creation_tokens",
            "cache_hit_tokens",
            "output_tokens",
            "tokens",
            "turns",
            "cached_calls",
            "interactions",
            "agent_tokens_difference",
            "workspace_files",
            "workspace_lines",
            "memory_mb",
            "retries",
            "file_reads",
            "repeated_reads",
        ),
        "Int64",
    ),
    **dict.fromkeys(
        (
            "reward",
            "second_reward",
            "cost_usd",
            "judge_usd",
            "wall_seconds",
            "agent_seconds",
            "retry_cost_usd",
            "helper_usd",
        ),
        "float64",
    ),
}
"""Columns with missing values, and types that represent them in any file format."""
_MOMENTS = ("started_at", "finished_at")


def trials_table(
    planned: Sequence[PlannedRow],
    records: Mapping[str, TrialRecord],
    not_started: Mapping[str, str] = MappingProxyType({}),
) -> pd.DataFrame:
    """Return one row per planned trial, in the plan's order.

    Columns: those of `metrics/table.py`, and `key`, `budget`, `category`, `language`, `scripted`, `replayed`, `cell`,
    `context_window` (the model's, in tokens), `ran` (whether it has a record), `outcome` and `reason` (for people),
    `flags`, the four token counts,
    `agent_tokens_difference` (input and output as the agent itself says, less what the gateway counted),
    `cached_calls` (answers for which a provider read its cache), `interactions`, `tool_counts` (JSON), `tool_names`,
    `tool_kinds`, `actions`, `tool_phases`, `programs` (`;` between), `file_reads`, `repeated_reads`, `own_finish`,
    `retries`, `retry_cost_usd` (part of `cost_usd`), `judge_usd` (no part of it), `wall_seconds`, `agent_seconds`,
    `seconds_<phase>`, workspace sizes, `memory_mb`, `agent_setting`,
    `helper_usd` (part of `cost_usd`), `verified` (the verdict's mode), `second_reward`,
    `changed_programs` (paths, as on the record), and each component that a verifier reported, under its own name or,
    where a column has that name already, as `verifier_<name>`.

    A trial without a record is `infra_invalid`, with the refusal or "not run" as its reason, and why if it is in
    `not_started`. Missing values are NA, never 0. `planned` must not be empty.
    """
    return _typed(
        pd.DataFrame([_row(row, records.get(row.key), not_started.get(row.key)) for row in planned])
    )


def never_run(identity: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `trials_table` for trials without records; `identity` has the fields of `TrialName` and `cell`."""
    marks = {"scripted": False, "replayed": False, "context_window": None}
    one = _typed(pd.DataFrame([marks | _unmeasured("not run", "not run")]))
    every = one.iloc[np.zeros(len(identity), dtype=int)].set_axis(identity.index)
    return pd.concat([identity, every], axis=1)


def _typed(table: pd.DataFrame) -> pd.DataFrame:
    moments = {name: pd.to_datetime(table[name], utc=True) for name in _MOMENTS}
    return table.assign(**moments).astype({**_TYPES, "context_window": "Int64"})


def _row(planned: PlannedRow, record: TrialRecord | None, not_started: str | None) -> dict[str, Any]:
    identity = planned.model_dump(exclude={"refused"})
    # Not written where they are unknown, and columns all the same:
    identity |= {name: getattr(planned, name) for name in ("cell", "source", "context_window")}
    if planned.refused:  # perhaps only since then: its measurements no longer count
        reason = f"refused: {planned.refused}"
        return identity | _unmeasured(reason, reason)
    if record is None:
        return identity | _unmeasured("not run", f"not run: {not_started}" if not_started else "not run")
    row = identity | _measured(record)
    components = record.verdict.components if record.verdict else {}
    named = {f"verifier_{name}" if name in row else name: value for name, value in components.items()}
    named.pop("verifier_reward", None)  # the row has it
    return {**row, **named}


def _unmeasured(outcome: str, reason: str) -> dict[str, Any]:
    """Return the columns of a trial that was not run."""
    state = {"ran": False, "status": "infra_invalid", "outcome": outcome, "reason": reason}
    return state | dict.fromkeys((*_TYPES, *_MOMENTS))


def _measured(record: TrialRecord) -> dict[str, Any]:
    """Return the measurements of a record, as columns."""
    usage = record.usage
    retried = [retry.cost_usd for retry in record.retries]
    return {
        "ran": True,
        "status": record.status.value,
        "outcome": outcome(record),
        "reason": _reason(record),
        "flags": " ".join(record.flags),
        **_verified(record.verdict),
        "reward": record.reward,
        "passed": record.passed,
        **usage.model_dump(),
        "tokens": usage.input_tokens + usage.output_tokens,
        "agent_tokens_difference": _total(record.usage_difference),
        "cost_usd": record.cost_usd,
        "judge_usd": record.judge_usd,
        "turns": record.turns,
        "cached_calls": record.cached_calls,
        "interactions": record.interactions,
        "tool_counts": _counts(record.tool_calls),
        "tool_names": _sequence(record.tool_names),
        "tool_kinds": " ".join(record.tool_kinds),
        "actions": _sequence(record.actions),
        "tool_phases": " ".join(record.tool_phases),
        "programs": ";".join(record.programs),
        "file_reads": record.file_reads,
        "repeated_reads": record.repeated_reads,
        "own_finish": record.own_finish,
        "started_at": record.started_at,
        "finished_at": record.finished_at,
        "wall_seconds": record.wall_seconds,
        "agent_seconds": record.seconds.agent,
        **{f"seconds_{phase}": seconds for phase, seconds in record.seconds},
        "workspace_files": record.workspace_files,
        "workspace_lines": record.workspace_lines,
        "memory_mb": record.memory_mb,
        "agent_setting": record.agent_setting,
        "helper_usd": record.helper.cost_usd if record.helper else None,
        "retries": len(record.retries),
        "retry_cost_usd": None if None in retried else sum(cost or 0.0 for cost in retried),
    }


def _sequence(words: Sequence[str] | None) -> str | None:
    """Return words separated by spaces; None for what was not recorded."""
    return None if words is None else " ".join(map(_word, words))


def _counts(calls: Mapping[str, int]) -> str:
    """Return the calls by name as a JSON object."""
    counts: Counter[str] = Counter()
    for name, count in calls.items():
        counts[_word(name)] += count
    return json.dumps(counts)


def _word(name: str) -> str:
    """Return a tool's name as one word of bounded length: a model can call a tool anything."""
    return "_".join(name.split())[:_LONGEST_NAME] or "(empty)"


def _verified(verdict: Verdict | None) -> dict[str, Any]:
    """Return the conditions of a verdict, as columns."""
    again, programs = (verdict.again, verdict.programs) if verdict else (None, None)
    unlisted = (programs.count or 0) - len(programs.paths) if programs else 0
    more = f"; and {unlisted} more" if unlisted > 0 else ""
    return {
        "verified": verdict.mode if verdict else "",
        "second_reward": again.reward if again else None,
        "changed_programs": "; ".join(programs.paths) + more if programs else "",
    }


def _total(difference: OwnUsage | None) -> int | None:
    """Return input and output together; None if the agent does not report one of them."""
    if difference is None or difference.input_tokens is None or difference.output_tokens is None:
        return None
    return difference.input_tokens + difference.output_tokens


def outcome(record: TrialRecord) -> str:
    """Return a word or two for people: passed or failed, and the status unless it is completed."""
    if record.passed is None:
        return record.status.value
    word = "passed" if record.passed else "failed"
    return word if record.status == "completed" else f"{word} ({record.status.value})"


def _reason(record: TrialRecord) -> str:
    """Return the error in one line; empty if there is none."""
    error = record.error or (record.verdict.error if record.verdict else None)
    return f"{error.type}: {' '.join(error.message.split())}" if error else ""
