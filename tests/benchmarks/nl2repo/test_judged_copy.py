"""The judged copy of a workspace, made from hostile tar files."""

from __future__ import annotations

import io
import tarfile
import time
from pathlib import Path

import pytest

from runner.benchmarks.nl2repo import judged_copy
from runner.benchmarks.nl2repo.judged_copy import write_copy
from runner.benchmarks.nl2repo.suite import packaging
from runner.errors import WorkspaceTooLarge


def test_a_hard_link_to_a_broken_symbolic_link_does_not_stop_judging(tmp_path: Path) -> None:
    """Copying raised an error, so the trial counted as our failure and the agent got another try."""
    workspace, copy = tmp_path / "workspace.tar", tmp_path / "copy.tar"
    with tarfile.open(workspace, "w") as archive:
        for name, kind, target in (
            ("nowhere", tarfile.SYMTYPE, "/nowhere/at/all"),
            ("again", tarfile.LNKTYPE, "workspace/nowhere"),
            ("itself", tarfile.SYMTYPE, "itself"),
            ("itself_again", tarfile.LNKTYPE, "workspace/itself"),
        ):
            entry = tarfile.TarInfo(f"workspace/{name}")
            entry.type, entry.linkname = kind, target
            archive.addfile(entry)
        entry = tarfile.TarInfo("workspace/code.py")
        entry.size = 1
        archive.addfile(entry, io.BytesIO(b"1"))
    (tmp_path / "hidden").mkdir()
    write_copy(workspace, tmp_path / "hidden", copy, (), packaging, 1000)
    with tarfile.open(copy) as archive:
        found = archive.extractfile("workspace/code.py")
        assert found
        assert found.read() == b"1"


def test_hard_links_multiply_a_file_only_up_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link costs nothing in a tar, but would be a file in the copy: 190 MB and 20,000 links give terabytes."""
    monkeypatch.setattr(judged_copy, "MOST_BYTES", 10_000)
    workspace = tmp_path / "workspace.tar"
    with tarfile.open(workspace, "w") as archive:
        entry = tarfile.TarInfo("workspace/large")
        entry.size = 1000
        archive.addfile(entry, io.BytesIO(bytes(1000)))
        for number in range(10):
            entry = tarfile.TarInfo(f"workspace/{number}")
            entry.type, entry.linkname = tarfile.LNKTYPE, "workspace/large"
            archive.addfile(entry)
    (tmp_path / "hidden").mkdir()
    with pytest.raises(WorkspaceTooLarge):
        write_copy(workspace, tmp_path / "hidden", tmp_path / "copy.tar", (), packaging, 1000)
    assert (tmp_path / "copy.tar").stat().st_size < 50_000


def test_files_have_times_that_builders_of_wheels_accept(tmp_path: Path) -> None:
    """Times were those of 1970, before the first that ZIP can hold: suites installed by flit always failed."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "test_it.py").write_text("")
    write_copy(None, tmp_path / "hidden", tmp_path / "copy.tar", (), packaging, 1000)
    with tarfile.open(tmp_path / "copy.tar") as copy:
        assert {time.gmtime(entry.mtime).tm_year for entry in copy} == {2000}
