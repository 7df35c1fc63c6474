"""Check whether the goals are reached, for the answer to `task_done` (ExecutionAgent, section 2.4.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pydantic import ValidationError

from runner.benchmarks.project_setup.agent.shell_session import read_file
from runner.benchmarks.project_setup.deliverables import (
    DOCKERFILE,
    RESULTS,
    SCRIPT,
    WORKSPACE,
    Outcomes,
    Rerun,
)
from runner.benchmarks.project_setup.rerun import rerun, taken_from
from runner.protocols import Bench
from runner.records import Task

FromScratch = Callable[[Task, Bench], Rerun]
"""Function that runs the scripts in the workspace from scratch."""

ADVICE: Final = {
    DOCKERFILE: "the recipe of an image in which the project can be built",
    SCRIPT: "the script that builds the project and runs its tests",
    RESULTS: "what the tests did, as a JSON object with the numbers passed, failed and skipped",
}


def run_from_scratch(task: Task, bench: Bench) -> Rerun:
    """Run the two scripts that are in the workspace now, in a new sandbox. Raises `Stopped` and `EngineError`."""
    bench.check()
    delivered = taken_from(bench.sandbox)
    found = rerun(task, delivered, bench.sandboxes, bench.seconds_left, lambda: bench.is_over)
    bench.check()
    return found


def missing(task: Task, bench: Bench, from_scratch: FromScratch = run_from_scratch) -> str:
    """Return the remaining work, in sentences for the model; empty when the goals are reached.

    The scripts are run from scratch only when all files exist. Raises `Stopped`, `EngineError`, and what the rerun
    raises.
    """
    texts = {name: read_file(bench.sandbox, f"{WORKSPACE}/{name}", WORKSPACE) for name in ADVICE}
    absent = [
        f"{WORKSPACE}/{name} is missing: {ADVICE[name]}." for name, read in texts.items() if read.failed
    ]
    if absent:
        return "Not done yet. " + " ".join(absent)
    try:
        Outcomes.model_validate_json(texts[RESULTS].text)
    except ValidationError:
        return f"Not done yet. {WORKSPACE}/{RESULTS} does not say {ADVICE[RESULTS]}."
    bench.log("  running the scripts from scratch ...")
    found = from_scratch(task, bench)
    for reading in found.readings:
        numbers = ", ".join(f"{count} {kind}" for kind, count in reading.outcomes)
        bench.log(f"  {reading.framework}: {numbers}")
    return _lacking(found)


def _lacking(found: Rerun) -> str:
    """Return why a run from scratch does not reach the goals; empty if it does."""
    if found.outcomes and not found.error:
        return ""
    reason = found.error.message if found.error else "No test was executed."
    end = f"The end of what was printed:\n{found.output}" if found.output.strip() else ""
    step = "The image was built." if found.built else "The project could not be built."
    return f"Not done yet. From scratch, on an untouched copy of the project: {step} {reason}\n{end}".rstrip()
