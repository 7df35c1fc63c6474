"""The files of tests that take longest, which workers begin first. The numbers need not be exact."""

from __future__ import annotations

_BENCHMARKS = "tests/benchmarks"
_TOOLS = f"{_BENCHMARKS}/cli_tool_bench"

SECONDS = {
    "tests/agents/test_every_agent.py": 290,  # it sleeps: its long trials run to a deadline of 240 beside other tests
    "tests/docs/test_commands.py": 120,
    "tests/executors/test_ray.py": 100,
    f"{_TOOLS}/construction/test_seven_tools.py": 17,  # 90 with all tools in make every-case
    f"{_TOOLS}/test_import_options.py": 60,
    f"{_TOOLS}/construction/test_make_checkouts.py": 19,
    f"{_TOOLS}/construction/test_tables_of_tools.py": 54,
    f"{_TOOLS}/construction/test_make_cli_task.py": 53,
    f"{_TOOLS}/test_shipped_tools.py": 52,
    "tests/security/test_answers_in_reach.py": 50,  # 6 once its findings are in the cache of pytest
    "tests/sandbox/docker/test_bundles.py": 48,
    f"{_BENCHMARKS}/harbor/test_quickstart.py": 38,
    "tests/trials/test_run.py": 45,
    "tests/security/test_hostile_machines.py": 44,
    "tests/test_package.py": 43,
    "tests/tracking/test_browser.py": 42,
    "tests/tracking/test_mlflow.py": 75,
    f"{_TOOLS}/test_verifier.py": 40,
    f"{_BENCHMARKS}/nl2repo/test_find_sources.py": 125,  # it waits for uv; 25 of a processor
    f"{_BENCHMARKS}/nl2repo/test_verifier.py": 39,
    "tests/jobs/test_watch.py": 38,
    "tests/conformance/test_cases.py": 37,
    "tests/security/test_cases.py": 36,
    "tests/security/test_suites.py": 35,
    "tests/sandbox/docker/test_provider.py": 34,
    "tests/security/test_voiding.py": 33,
    f"{_TOOLS}/construction/test_looks.py": 32,
    "tests/security/test_disk_at_the_end.py": 31,
    "tests/trials/test_agent_driving.py": 30,
    "tests/trials/test_run_with_models.py": 29,
    "tests/security/test_harbor_shared.py": 28,
    f"{_BENCHMARKS}/project_setup/agent/test_terminal.py": 27,
    "tests/cli/test_config.py": 47,
    "tests/security/test_providers_lie.py": 33,
    "tests/cli/test_typed_keys.py": 16,
    "tests/sweeps/test_scorings.py": 17,
    "tests/security/test_sandbox.py": 22,
    "tests/conformance/test_executor.py": 21,
    "tests/security/test_ray_on_this_machine.py": 20,
}
"""File -> seconds on one of two quiet cores. A file that is not named takes less than these."""
