"""The steps of one trial: the agent works and is judged several times, each time on the machine that it left.

Between two steps the machine is copied, as for its judge: files live on, processes do not, and nothing of a judge's is
in the machine of the next step.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from runner.errors import HealthError, ImageError, SpoiledMachine
from runner.records import ErrorInfo, ExecSpec, Verdict
from runner.trials.health import wait_until_healthy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from runner.protocols import Sandbox
    from runner.records import ExecResult, Image, Step
    from runner.trials.context import TrialRun

    Attempt = Callable[[TrialRun, Sandbox, Path], Verdict | None]
    Reopen = Callable[[TrialRun, Image], Sandbox]

FOLDER = "steps"
"""Folder of a trial's folder with one folder a step."""
SETUP = "setup.sh"
SETUP_SECONDS = 600.0
"""Time limit of a step's own preparation."""
ABSENT = float("-inf")
"""Value that `min_reward` is compared with if the tests did not write the key."""


def of_step(run: TrialRun, step: Step, used: float = 0.0) -> TrialRun:
    """Return the try as one step sees it. The steps share the trial's time limit, of which `used` seconds are gone."""
    whole, own = run.trial.seconds, step.task.agent_timeout_seconds
    left = [limit for limit in (own, whole - used if whole is not None else None) if limit is not None]
    task = step.task.model_copy(update={"agent_timeout_seconds": max(0.1, min(left)) if left else None})
    return replace(run, trial=run.trial.model_copy(update={"task": task}))


def run_steps(run: TrialRun, sandbox: Sandbox, attempt: Attempt, reopen: Reopen) -> Verdict | None:
    """Run the steps in their order until one ends the trial. Return the verdict on all; None if none was judged.

    `attempt` lets the agent work and judges what it left. `reopen` opens a machine of a snapshot.
    """
    verdicts: dict[str, Verdict] = {}
    results: list[ExecResult] = []
    for step in run.trial.task.steps:
        ours = of_step(run, step, sum(result.seconds for result in results))
        folder = run.state.folder / FOLDER / step.name
        folder.mkdir(parents=True)
        try:
            if results:
                sandbox = reopen(ours, sandbox.snapshot())
            _prepare(step, sandbox)
        except (SpoiledMachine, ImageError, HealthError) as error:
            if not results:  # no agent had been in the machine
                raise
            verdicts[step.name] = Verdict(
                reward=0.0, error=ErrorInfo.of(error, "collect"), flags=("no_verdict",)
            )
            break
        verdict = attempt(ours, sandbox, folder)
        if run.state.result:
            results.append(run.state.result)
        if verdict is None:
            break
        verdicts[step.name] = verdict
        if _ends(step, verdict):
            break
    run.state.result = _whole(results)
    for name in ("stdout", "stderr"):
        texts = (getattr(result, name) for result in results)
        (run.state.folder / f"agent.{name}").write_text("".join(texts), "utf-8")
    return _combined(verdicts, run.trial.task.step_reward)


def _prepare(step: Step, sandbox: Sandbox) -> None:
    """Lay the step's files over the working directory, run its set-up and wait for its health check.

    Raises `HealthError` if one of them fails.
    """
    if step.workdir:
        sandbox.put(step.workdir, sandbox.workdir)
        if (step.workdir / SETUP).is_file():
            script = f"{sandbox.workdir.rstrip('/')}/{SETUP}"
            spec = ExecSpec(argv=("bash", script), user=step.task.agent_user, timeout_seconds=SETUP_SECONDS)
            result = sandbox.exec(spec)
            if result.exit_code != 0:
                end = (result.stderr or result.stdout)[-500:]
                raise HealthError(f"{SETUP} of step {step.name} ended with {result.exit_code}: {end}")
    wait_until_healthy(step.healthcheck, sandbox, f"step {step.name}")


def _ends(step: Step, verdict: Verdict) -> bool:
    """Return whether a step's rewards are too low for the trial to go on."""
    rewards = {"reward": ABSENT if verdict.reward is None else verdict.reward, **verdict.components}
    return any(rewards.get(key, ABSENT) < least for key, least in step.min_reward.items())


def _whole(results: list[ExecResult]) -> ExecResult | None:
    """Return how the steps ended together: as the first one that did not end well, else as the last one."""
    if not results:
        return None
    ending = next((result for result in results if result.exit_code != 0), results[-1])
    return ending.model_copy(
        update={
            "seconds": sum(result.seconds for result in results),
            "output_bytes": sum(result.output_bytes for result in results),
            "output_cut": any(result.output_cut for result in results),
        }
    )


def _combined(verdicts: Mapping[str, Verdict], how: str) -> Verdict | None:
    """Return one verdict: the mean of the steps that were judged, or the last one's reward. Keys name their step."""
    if not verdicts:
        return None
    every = list(verdicts.values())
    rewards = [verdict.reward or 0.0 for verdict in every]
    components = {
        f"{name}.{key}": value
        for name, verdict in verdicts.items()
        for key, value in {"reward": verdict.reward or 0.0, **verdict.components}.items()
    }
    return every[-1].model_copy(
        update={
            "reward": rewards[-1] if how == "final" else sum(rewards) / len(rewards),
            "components": components,
            "error": next((verdict.error for verdict in every if verdict.error), None),
            "flags": tuple(dict.fromkeys(flag for verdict in every for flag in verdict.flags)),
            "seconds": sum(verdict.seconds for verdict in every),
        }
    )
