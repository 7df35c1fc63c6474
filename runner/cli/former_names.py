"""Earlier names of classes that moved, which configurations and sweeps of version 0.1 may still use."""

from __future__ import annotations

from collections.abc import Mapping

MOVED: Mapping[str, str] = {
    "runner.agents.execution.agent": "runner.benchmarks.project_setup.agent.agent",
    "runner.agents.execution.web": "runner.benchmarks.project_setup.agent.web",
    "runner.agents.llm_scripts": "runner.benchmarks.project_setup.llm_scripts",
    "runner.datasets.cli_tool_bench": "runner.benchmarks.cli_tool_bench.dataset",
    "runner.datasets.execution": "runner.benchmarks.project_setup.dataset",
    "runner.datasets.harbor": "runner.benchmarks.harbor.dataset",
    "runner.datasets.nl2repo": "runner.benchmarks.nl2repo.dataset",
    "runner.jobs.environment": "runner.benchmarks.project_setup.jobs.environment",
    "runner.jobs.importing": "runner.jobs.import_trials",
    "runner.jobs.import_cli_tool_bench": "runner.benchmarks.cli_tool_bench.jobs.import_cli_tool_bench",
    "runner.jobs.judge_agreement": "runner.benchmarks.cli_tool_bench.jobs.judge_agreement",
    "runner.jobs.make_nl2repo_task": "runner.benchmarks.nl2repo.jobs.make_task",
    "runner.jobs.specification": "runner.benchmarks.nl2repo.jobs.specification",
    "runner.sandbox.docker": "runner.sandbox.docker.provider",
    "runner.sweeps.executors.threads": "runner.executors.threads",
    "runner.tracking": "runner.tracking.mlflow",
    "runner.verifiers.differential": "runner.benchmarks.cli_tool_bench.verifier",
    "runner.verifiers.execution": "runner.benchmarks.project_setup.verifier",
    "runner.verifiers.nl2repo": "runner.benchmarks.nl2repo.verifier",
    "runner.datasets.execution.ExecutionBench": "runner.benchmarks.project_setup.dataset.ProjectSetupBench",
    "runner.jobs.environment.SetUp": "runner.benchmarks.project_setup.jobs.environment.MakeEnvironment",
    "runner.verifiers.execution.ExecutionVerifier": "runner.benchmarks.project_setup.verifier.ProjectSetupVerifier",
}
"""Earlier name of a module, or of a class that was also renamed -> its name today."""


def present_name(target: str) -> str:
    """Return today's name of the class that a `_target_` names."""
    module, _, name = target.rpartition(".")
    return MOVED.get(target) or f"{MOVED.get(module, module)}.{name}"
