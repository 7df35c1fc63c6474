"""Make projects to set up: a library that counts, with a pytest suite of nine tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from runner.benchmarks.project_setup.dataset import SOLUTION, TASK, ProjectSetupBench
from runner.benchmarks.project_setup.deliverables import TRUTH, Outcomes, Truth
from runner.benchmarks.project_setup.projects import digest_of
from runner.benchmarks.project_setup.verifier import ProjectSetupVerifier
from runner.resources import ROOT
from tests.support.suite_factory import UPSTREAM, write

OUTCOMES = Outcomes(passed=7, skipped=2)
"""Outcomes of its tests. One is skipped, and one is expected to fail and does."""
DOCKERFILE = """\
ARG BASE
FROM ${BASE}
RUN apt-get update && apt-get install --yes --no-install-recommends python3-pytest && rm -rf /var/lib/apt/lists/*
COPY project /workspace/project
"""
"""The `RUN` line is that of shipped projects, so the engine has its layer already."""
SCRIPTS = {"Dockerfile": DOCKERFILE, "run_tests.sh": "python3 -m pytest\n"}


def make_project(root: Path, name: str = "tally", **changed: Any) -> Path:
    """Make a task's folder, with its project but without a ground truth. `changed` are keys of `task.yaml`."""
    folder = root / name
    write(folder / "upstream", UPSTREAM)
    write(folder / SOLUTION, SCRIPTS)
    task = {
        "source": "folder",
        "package": "upstream",
        "digest": digest_of(folder / "upstream"),
        "license": "MIT",
        "language": "python",
        "category": "plain",
        "tier": "easy",
    }
    (folder / TASK).write_text(json.dumps({k: v for k, v in (task | changed).items() if v is not None}))
    return folder


def project_bench(root: Path, cache: Path, **changed: Any) -> ProjectSetupBench:
    """Return the dataset of `conf/dataset/execution.yaml`, except for `changed`."""
    options = {
        "name": "execution",
        "root": root,
        "image": ROOT / "tasks" / "execution" / "image",
        "npm": ROOT / "tasks" / "cli_tool_bench" / "images",
        "cache": cache,
        "build_args": {"BASE": "assay-base"},
        "verifier": ProjectSetupVerifier(),
    }
    return ProjectSetupBench.model_validate(options | changed)


def add_truth(bench: ProjectSetupBench, folder: Path, outcomes: Outcomes = OUTCOMES) -> None:
    """Write what `job=verify_ground_truth` would write."""
    truth = Truth(outcomes=outcomes, origin="a test", digest=bench.truth_digest(folder))
    (folder / TRUTH).write_text(truth.model_dump_json())
