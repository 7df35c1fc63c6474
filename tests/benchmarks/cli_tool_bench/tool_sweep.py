"""An invented sweep of CLI-Tool-Bench: trials with verdicts and usage."""

from __future__ import annotations

import math
from typing import Any

from metrics.differential import Phase
from runner.records import PlannedRow, TrialRecord, Usage, Verdict
from tests.report.plans import record, row

TOOLS = {"easy-1": ("python", 700), "easy-2": ("javascript", 900), "easy-3": ("python", 1400),
         "hard-1": ("python", 4400), "hard-2": ("javascript", 6000), "hard-3": ("go", 9000)}  # fmt: skip
"""Task -> language and lines of its reference."""
CASES = 20


def components(share: float, lines: int, **changed: float) -> dict[str, float]:
    """Return the components of a tool that is right in this share of its cases; with 0 it cannot be installed."""
    right = round(share * CASES)
    built = (
        {"runtime_reference": 0.2, "runtime_candidate": 0.05 + 0.1 * share, "cpu_median": 0.5}
        if share
        else {}
    )
    wrong = Phase.OUTPUT if share else Phase.INSTALL
    ended = dict.fromkeys(Phase, 0.0) | {Phase.PASSED: float(right)} | {wrong: float(CASES - right)}
    return {
        "build": float(share > 0),
        "exec": min(1.0, 1.5 * share),
        "state": min(1.0, 1.25 * share),
        "exact_match": share,
        "fuzzy_match": math.sqrt(share),
        "positive_agreement": share,
        "negative_agreement": share / 2,
        **built,
        **{f"ended_{phase}": count for phase, count in ended.items()},
        "reference_lines": float(lines),
        "reference_files": float(lines // 200),
        "reference_depth": 3.0,
        "workspace_depth": 2.0,
        **changed,
    }


def sweep_of_tools(
    agents: dict[str, float] | None = None, **everywhere: Any
) -> tuple[list[PlannedRow], dict[str, TrialRecord]]:
    """Return trials of agents with these skills, two models and six tools.

    One trial never ran, and one tool cannot be installed.
    """
    planned, records = [], {}
    for agent, skill in (agents or {"oracle": 1.0, "codex": 0.75, "mini_swe_agent": 0.5}).items():
        for model in ("none",) if agent == "oracle" else ("glm", "kimi"):
            for at, (task, (language, lines)) in enumerate(TOOLS.items()):
                trial = row(agent, task, model=model, language=language, dataset="tools")
                planned.append(trial)
                if (agent, model, task) == ("codex", "glm", "easy-1"):
                    continue
                share = 1.0 if agent == "oracle" else 0.0 if task == "hard-3" else max(skill - 0.08 * at, 0.0)
                verdict = Verdict(reward=share, components=components(share, lines))
                usage = Usage(input_tokens=3000 * 4**at, output_tokens=100 * (at + 1))
                records[trial.key] = record(
                    trial,
                    **{
                        "passed": share == 1.0,
                        "reward": share,
                        "verdict": verdict,
                        "usage": usage,
                        "workspace_files": 2 + at * at * 2,
                        "workspace_lines": 90,
                        **everywhere,
                    },
                )
    return planned, records
