"""Checks that refuse a command before anything is started or paid for. A run and its dry run make the same checks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from runner.errors import ConfigError
from runner.protocols import DrivingAgent
from runner.resources import ROOT
from runner.sandbox.local import LocalSandboxes

if TYPE_CHECKING:
    from runner.protocols import SandboxProvider
    from runner.sweeps.cells import Cell
    from runner.sweeps.plan import PlannedTrial


def absent_keys(cells: Iterable[Cell]) -> dict[str, list[str]]:
    """Return the variables that should hold an API key and are not set, each with the names of the models that need it.

    Both the cells' models and their judges' count.
    """
    absent: dict[str, list[str]] = {}
    for cell in cells:
        judge = cell.dataset.verifier.judge
        for model in (cell.model, *([judge.model] if judge else [])):
            variable = model.api_key_env
            if not variable or os.environ.get(variable, "").strip():
                continue
            if model.name not in absent.setdefault(variable, []):
                absent[variable].append(model.name)
    return absent


def check_model(cell: Cell) -> None:
    """Raise `ConfigError` for an agent that needs a model and has none, or for a script that cannot be read."""
    if cell.agent.uses_model and cell.model.backend == "none":
        raise ConfigError(f"agent {cell.agent.name} needs a model: add model=NAME (--help model lists them).")
    if cell.model.backend != "scripted":
        return
    if cell.model.policy is None:
        raise ConfigError(f"model {cell.model.name}: model.policy is missing, a YAML file of turns.")
    if not cell.model.policy.is_relative_to(ROOT):  # tests read the shipped ones
        from runner.gateway.scripted import load  # noqa: PLC0415 - takes a second

        load(cell.model.policy)


def _check_hosts(trial: PlannedTrial, sandbox: SandboxProvider) -> None:
    """Raise `ConfigError` unless the sandbox gives a task access to its package index, and to nothing else."""
    trusted = trial.task.environment.trusted_hosts
    if trusted and (sandbox.network != "task" or isinstance(sandbox, LocalSandboxes)):
        raise ConfigError(
            f"dataset={trial.cell.dataset.name}: dataset.profile=online needs sandbox=docker and sandbox.network=task, "
            f"where a proxy leads to {', '.join(trusted)} and nowhere else."
        )


def check_trials(trials: Iterable[PlannedTrial], sandbox: SandboxProvider) -> None:
    """Raise `ConfigError` when these trials cannot be run as they are configured.

    Reasons are an agent that cannot work on a task at all, an installation that the sandbox cannot hold, and a scripted
    model without a readable script.
    """
    trials = list(trials)
    for cell in {trial.cell.name: trial.cell for trial in trials}.values():
        check_model(cell)
    for trial in trials:
        agent = trial.cell.agent
        _check_hosts(trial, sandbox)
        if isinstance(agent, DrivingAgent) and (reason := agent.refusal(trial.task)):
            raise ConfigError(f"agent={agent.name} dataset={trial.cell.dataset.name}: {reason}")
    bundles = [trial.cell.agent.bundle for trial in trials]
    sandbox.check(list({bundle.name: bundle for bundle in bundles if bundle}.values()))
