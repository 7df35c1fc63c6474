"""Fixtures for sweeps of generated tools."""

from __future__ import annotations

import pytest

from runner.report.findings import Findings
from tests.benchmarks.cli_tool_bench.tool_sweep import sweep_of_tools
from tests.report.conftest import findings


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """Return the findings of a sweep of CLI-Tool-Bench, for tests that only read them."""
    return findings(tmp_path_factory.mktemp("tools"), *sweep_of_tools())
