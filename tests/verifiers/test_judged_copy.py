"""The copy of a workspace that is judged, made of a tar that an agent had a hand in."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from runner.suites import packaging
from runner.verifiers.judged_copy import write_copy


def test_a_hard_link_to_a_symbolic_link_to_nowhere_spoils_no_judging(tmp_path: Path) -> None:
    """It raised, which made the trial our failure, and so gave the agent another try."""
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
