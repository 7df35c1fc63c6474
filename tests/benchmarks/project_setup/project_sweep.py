"""A made-up sweep of projects to set up: figures of the verifier, and programs that terminals ran."""

from __future__ import annotations

from typing import Any

from metrics.deviations import deviations
from metrics.execution import OUTCOMES
from runner.records import PlannedRow, TrialRecord, Verdict
from tests.report.plans import record, row

PROJECTS = {
    "easy-1": ("python", (95, 0, 5)),
    "easy-2": ("python", (200, 3, 0)),
    "easy-3": ("javascript", (40, 0, 0)),
    "hard-1": ("c", (12, 0, 1)),
    "hard-2": ("c", (7, 0, 0)),
    "hard-3": ("c", (30, 0, 0)),
}
"""Project -> its main language and its truth."""
ENDS = ("same", "near", "far", "built", "nothing", "not run")
"""Ends of the projects, in their order, for an agent of skill 0. An agent of skill n is n projects better."""
WORK = {
    "tool_kinds": ("execute", "read", "edit", "execute", "execute", "finish"),
    "tool_phases": ("setup", "setup", "dependencies", "dependencies", "testing", "other"),
    "programs": ("cd", "ls", "apt update", "apt install", "./file"),
    "own_finish": True,
}


def components(end: str, truth: tuple[int, ...], *, named: bool) -> dict[str, float]:
    """Return the verifier's figures of a project with this end and this truth, and whether its tests have names."""
    passed, failed, skipped = truth
    ran = {
        "same": truth,
        "near": (passed - 1, failed, skipped),
        "far": (passed // 2, failed + 4, skipped),
    }.get(end)
    figures = {
        "built": float(end != "nothing"),
        "tests_executed": float(ran is not None),
        "script_size": 9.0,
        "size_dockerfile": 4.0,
        "size_script": 5.0,
        "tree_tool": 1.0,
        "tree_ci": 2.0,
        "tree_submodules": 0.0,
        "claim_differs": float(end == "far"),
        **{f"truth_{name}": float(count) for name, count in zip(OUTCOMES, truth, strict=True)},
    }
    if ran is None:
        return figures
    found = deviations(truth, ran)
    away = {"deviation": found.mean, "total_deviation": found.total, "close": float(found.close)}
    if named:
        every = float(sum(truth))
        figures |= {"tests_compared": every, "tests_same": every - (end != "same")}
    return figures | away | {f"agent_{name}": float(count) for name, count in zip(OUTCOMES, ran, strict=True)}


def sweep_of_projects(
    agents: dict[str, int] | None = None, **everywhere: Any
) -> tuple[list[PlannedRow], dict[str, TrialRecord]]:
    """Return a sweep of the oracle, and of agents by their skill, on six projects."""
    planned, records = [], {}
    for agent, skill in {"oracle": len(ENDS), **(agents or {"codex": 0, "execution_agent": 1})}.items():
        for at, (task, (language, truth)) in enumerate(PROJECTS.items()):
            model = "none" if agent == "oracle" else "glm"
            trial = row(agent, task, model=model, language=language, dataset="execution")
            planned.append(trial)
            end = ENDS[max(at - skill, 0)]
            if end == "not run":
                continue
            figures = components(end, truth, named=language == "python")
            reward = max(0.0, 1 - figures["total_deviation"] / 100) if figures["tests_executed"] else 0.0
            records[trial.key] = record(
                trial,
                **{
                    "passed": reward >= 0.9,
                    "reward": reward,
                    "verdict": Verdict(reward=reward, components=figures),
                    **({} if agent == "oracle" else WORK),
                    **everywhere,
                },
            )
    return planned, records
