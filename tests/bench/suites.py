"""Judge workspaces with a hidden suite in real sandboxes, for tests of the verifier and attacks on it."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from runner.benchmarks.nl2repo.dataset import Nl2RepoBench
from runner.benchmarks.nl2repo.suite import SUITE
from runner.benchmarks.nl2repo.verifier import SuiteVerifier
from runner.protocols import Submission
from runner.records import ExecSpec, Image, SandboxSpec, Task, Verdict
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.local import LocalSandboxes
from tests.support.suite_factory import UPSTREAM, add_truth, add_upstream, make_folder, suite_dataset

CODE = {path: text for path, text in UPSTREAM.items() if path.startswith("tally/")}
"""A workspace that passes everything."""


@dataclass(frozen=True)
class SuiteBench:
    """Bench for one task, whose image is built once; workspaces are given as files."""

    root: Path
    sandboxes: DockerSandboxes
    install_network: Literal["none", "open"] = "none"

    @classmethod
    def make(cls, root: Path, sandboxes: DockerSandboxes) -> SuiteBench:
        """Task of `suite_factory`, with everything that it needs."""
        folder = make_folder(root / "tasks")
        add_upstream(folder)
        bench = cls(root, sandboxes)
        add_truth(bench.dataset, folder)
        bench.dataset.prepare(print)
        assert bench.task.refused is None
        return bench

    @property
    def dataset(self) -> Nl2RepoBench:
        """New instance of the dataset, which has no state."""
        verifier = SuiteVerifier(cache=self.root / "cache", install_network=self.install_network)
        return suite_dataset(self.root / "tasks", self.root / "cache", verifier=verifier)

    @property
    def task(self) -> Task:
        """Only task of the dataset."""
        (task,) = self.dataset.tasks()
        return task

    def judge(
        self,
        folder: Path,
        files: Mapping[str, str],
        script: str = "true",
        task: Task | None = None,
        **suite: Any,
    ) -> Verdict:
        """Return the verdict on these files, after a shell script of the agent's; `suite` changes the suite."""
        task = task or self.task
        with tempfile.TemporaryDirectory() as place:
            if suite:
                task = self._other_suite(task, Path(place, "suite"), suite)
            # Judging is what is tested, so the agent needs no container of its own.
            spec = SandboxSpec(name="agent", image=Image(id="", reference=""), environment=task.environment)
            with LocalSandboxes().open(spec) as agent:
                given = {f"/workspace/{path}": text for path, text in files.items()}
                result = agent.exec(ExecSpec(argv=("bash", "-ec", script), files=given))
                assert result.exit_code == 0, result
                return self.dataset.verifier.verify(Submission(task, agent, self.sandboxes, folder))

    def _other_suite(self, task: Task, place: Path, changed: dict[str, Any]) -> Task:
        assert task.verifier.tests
        shutil.copytree(task.verifier.tests, place)
        node = json.loads((place / SUITE).read_text())
        (place / SUITE).write_text(json.dumps(node | changed))
        return task.model_copy(update={"verifier": task.verifier.model_copy(update={"tests": place})})
