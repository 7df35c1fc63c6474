"""Judge workspaces with a hidden suite in real sandboxes, for tests of the verifier and attacks on it."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from runner.benchmarks.nl2repo.dataset import Nl2RepoBench
from runner.benchmarks.nl2repo.suite import SUITE, WORKSPACE
from runner.benchmarks.nl2repo.suite_results import only_of, read_reports
from runner.benchmarks.nl2repo.verifier import SuiteVerifier, _launch, _lay_out, _open, _verdict, suite_of
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

    def judge_each(
        self, folder: Path, files: Mapping[str, str], commands: Sequence[str], **suite: Any
    ) -> list[Verdict]:
        """Return a verdict on each command by itself; all of them run one after the other in one machine."""
        workspace = folder / "workspace.tar"
        with tarfile.open(workspace, "w") as archive:
            for path, text in files.items():
                entry = tarfile.TarInfo(f"workspace/{path}")
                entry.size = len(text.encode())
                archive.addfile(entry, io.BytesIO(text.encode()))
        with tempfile.TemporaryDirectory() as place:
            task = self._other_suite(self.task, Path(place, "suite"), {"commands": [*commands], **suite})
            judged = suite_of(task)
            image = self.sandboxes.image(task.verifier.environment or task.environment)
            with _open(task, image, self.sandboxes, "none") as machine:
                hidden = _lay_out(task, judged, workspace, machine, folder)
                output = _launch(machine, judged, (0, len(commands)), {}).stdout
        files_of_tests = {f"{WORKSPACE}/{path}" for path in hidden}
        return [
            _verdict(judged, only_of(own, files_of_tests), folder, "")
            for own in (read_reports(_only(output, at), len(commands)) for at in range(len(commands)))
        ]

    def _other_suite(self, task: Task, place: Path, changed: dict[str, Any]) -> Task:
        assert task.verifier.tests
        shutil.copytree(task.verifier.tests, place)
        node = json.loads((place / SUITE).read_text())
        (place / SUITE).write_text(json.dumps(node | changed))
        return task.model_copy(update={"verifier": task.verifier.model_copy(update={"tests": place})})


def _only(output: str, command: int) -> str:
    """Return the lines of the launcher's output that are about this command."""
    return "\n".join(
        line for line in output.split("\n") if json.loads(line or "{}").get("command") == command
    )
