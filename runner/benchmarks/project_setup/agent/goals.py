"""Check whether the goals are reached, for the answer to `task_done` (ExecutionAgent, section 2.4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from runner.benchmarks.project_setup.agent.terminal import read_file
from runner.benchmarks.project_setup.deliverables import DOCKERFILE, RESULTS, SCRIPT, WORKSPACE, Outcomes

if TYPE_CHECKING:
    from runner.benchmarks.project_setup.deliverables import Rerun
    from runner.protocols import Bench

ADVICE: Final = {
    DOCKERFILE: "the recipe of an image in which the project can be built",
    SCRIPT: "the script that builds the project and runs its tests",
    RESULTS: "what the tests did, as a JSON object with the numbers passed, failed and skipped",
}


def missing(bench: Bench) -> str:
    """Return what is still to be done, in sentences for the model; empty when the goals are reached.

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
    rerun = bench.rerun()
    for reading in rerun.readings:
        numbers = ", ".join(f"{count} {kind}" for kind, count in reading.outcomes)
        bench.log(f"  {reading.framework}: {numbers}")
    return _lacking(rerun)


def _lacking(rerun: Rerun) -> str:
    """Return why a run from scratch does not reach the goals; empty if it does."""
    if rerun.outcomes and not rerun.error:
        return ""
    reason = rerun.error.message if rerun.error else "No test was executed."
    end = f"The end of what was printed:\n{rerun.output}" if rerun.output.strip() else ""
    step = "The image was built." if rerun.built else "The project could not be built."
    return f"Not done yet. From scratch, on an untouched copy of the project: {step} {reason}\n{end}".rstrip()
