"""A sweep of projects to set up."""

from __future__ import annotations

import pytest

from runner.report.findings import Findings
from tests.benchmarks.project_setup.project_sweep import sweep_of_projects
from tests.report.conftest import findings


@pytest.fixture(scope="session")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """Return the findings of a sweep of projects to set up. Tests must not change them."""
    return findings(tmp_path_factory.mktemp("projects"), *sweep_of_projects())
