"""A sweep of projects that were set up."""

from __future__ import annotations

import pytest

from runner.report.findings import Findings
from tests.benchmarks.project_setup.project_sweep import sweep_of_projects
from tests.report.conftest import findings


@pytest.fixture(scope="session")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """What is found of a sweep of projects to be set up; for tests that only look."""
    return findings(tmp_path_factory.mktemp("projects"), *sweep_of_projects())
