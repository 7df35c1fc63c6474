"""Log folders on the agent's machine, and the files that are copied from them."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from runner.benchmarks.harbor.artifacts import PUBLISHED
from runner.benchmarks.harbor.carrying import KEPT
from runner.benchmarks.harbor.verifier import HarborVerifier
from runner.benchmarks.project_setup.verifier import ProjectSetupVerifier
from runner.protocols import CollectingVerifier, Submission
from runner.records import ExecSpec, Image, SandboxSpec, Status, Task
from runner.sandbox.local import LocalSandboxes
from tests.security.harbor_trials import trial

AGENT = """
    echo log > /logs/agent/trajectory && cd /logs/artifacts && mkdir charts && echo report > charts/report.txt
    ln -s charts/report.txt latest; ln -s /etc/shadow shadow; ln -s / root; mkfifo pipe; chmod u+s charts/report.txt
    touch /app/done
"""
TEST = """
    test -e /app/done -a -e /logs/agent/trajectory -a -e /logs/artifacts/charts/report.txt
    echo $((! $?)) > /logs/verifier/reward.txt
"""


@pytest.mark.docker
def test_log_folders_exist_and_published_files_are_copied(tmp_path: Path) -> None:
    """Any user can write to the folders, and files that could do harm on this machine are left out.

    The workspace is compressed: it once took 1.9 GB for 38 trials.
    """
    record = trial(tmp_path, AGENT, user="1000", test=TEST)
    assert (record.status, record.reward) == (Status.COMPLETED, 1.0)
    assert "artifacts_not_kept" in record.flags
    folder = tmp_path / "outputs" / "trials" / record.key[:2] / record.key
    with tarfile.open(folder / f"{KEPT}.gz") as archive:
        members = {member.name.removeprefix("logs/artifacts"): member for member in archive}
    assert set(members) == {"", "/charts", "/charts/report.txt", "/latest"}
    assert members["/latest"].linkname == "charts/report.txt"
    assert members["/charts/report.txt"].mode & 0o7000 == 0
    assert not list(folder.rglob("*.tar"))
    with tarfile.open(folder / "workspace.tar.gz") as archive:
        assert "app/done" in archive.getnames()


def test_too_large_artifacts_are_dropped_and_without_artifacts_no_file_is_written(tmp_path: Path) -> None:
    spec = SandboxSpec(name="logs", image=Image(id="", reference="", origin="none"), open_dirs=(PUBLISHED,))
    task = Task(name="logs", dataset="logs", directory=tmp_path, open_dirs=(PUBLISHED,))
    sandboxes, verifier = LocalSandboxes(workspace_mb=1), HarborVerifier()
    with sandboxes.open(spec) as sandbox:
        submission = Submission(task, sandbox, sandboxes, tmp_path)
        assert verifier.collect(submission) == ()
        fill = "head -c 2000000 /dev/zero > $ASSAY_ROOT/logs/artifacts/large"
        sandbox.exec(ExecSpec(argv=("sh", "-c", fill)))
        assert verifier.collect(submission) == ("artifacts_not_kept",)
    assert not list(tmp_path.iterdir())


def test_a_trial_asks_only_verifiers_that_collect() -> None:
    assert isinstance(HarborVerifier(), CollectingVerifier)
    assert not isinstance(ProjectSetupVerifier(), CollectingVerifier)
