"""Folders for logs in the agent's machine, and what of them comes to this one."""

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

LEAVES = """
    echo log > /logs/agent/trajectory && cd /logs/artifacts && mkdir charts && echo report > charts/report.txt
    ln -s charts/report.txt latest; ln -s /etc/shadow shadow; ln -s / root; mkfifo pipe; chmod u+s charts/report.txt
    touch /app/done
"""
FOUND = """
    test -e /app/done -a -e /logs/agent/trajectory -a -e /logs/artifacts/charts/report.txt
    echo $((! $?)) > /logs/verifier/reward.txt
"""


@pytest.mark.docker
def test_the_folders_of_harbors_logs_were_missing(tmp_path: Path) -> None:
    """Whoever the agent is finds them; what it publishes is kept, without what could do harm on this machine.

    The workspace was kept as large as it was: 1.9 GB for 38 trials.
    """
    record = trial(tmp_path, LEAVES, user="1000", test=FOUND)
    assert (record.status, record.reward) == (Status.COMPLETED, 1.0)
    assert "artifacts_not_kept" in record.flags
    folder = tmp_path / "outputs" / "trials" / record.key[:2] / record.key
    with tarfile.open(folder / f"{KEPT}.gz") as archive:
        kept = {member.name.removeprefix("logs/artifacts"): member for member in archive}
    assert set(kept) == {"", "/charts", "/charts/report.txt", "/latest"}
    assert kept["/latest"].linkname == "charts/report.txt"
    assert kept["/charts/report.txt"].mode & 0o7000 == 0
    assert not list(folder.rglob("*.tar"))
    with tarfile.open(folder / "workspace.tar.gz") as archive:
        assert "app/done" in archive.getnames()


def test_too_much_to_keep_is_not_kept_and_nothing_is_no_file(tmp_path: Path) -> None:
    spec = SandboxSpec(name="made", image=Image(id="", reference="", origin="none"), open_dirs=(PUBLISHED,))
    task = Task(name="made", dataset="made", directory=tmp_path, open_dirs=(PUBLISHED,))
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
