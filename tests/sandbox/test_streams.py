"""The engine's framed output and tar streams, without an engine."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import EngineError
from runner.sandbox.command_output import Output
from runner.sandbox.docker.command_stream import Frames
from runner.sandbox.inside import AGENT_DIR
from runner.sandbox.limits import Caps
from runner.sandbox.tar_streams import Owner, Packer, numeric, save


@given(st.lists(st.tuples(st.booleans(), st.binary(max_size=40))), st.lists(st.integers(1, 30), min_size=1))
def test_frames_come_out_whole_however_they_arrive(
    written: list[tuple[bool, bytes]], sizes: list[int]
) -> None:
    wire = b"".join(bytes([1 + err, 0, 0, 0]) + len(data).to_bytes(4, "big") + data for err, data in written)
    frames, read = Frames(), {False: b"", True: b""}
    while wire:
        for size in sizes:
            for stderr, payload in frames.split(wire[:size]):
                read[stderr] += payload
            wire = wire[size:]
    for stream in (False, True):
        assert read[stream] == b"".join(data for err, data in written if err == stream)


@given(st.lists(st.binary(max_size=20)), st.integers(0, 50))
def test_output_keeps_the_beginning_and_counts_all(pieces: list[bytes], cap: int) -> None:
    output = Output(cap)
    for piece in pieces:
        output.add(piece, stderr=True)
    whole = b"".join(pieces)
    assert (output.stderr, output.stdout) == (whole[:cap].decode(errors="replace"), "")
    assert output.total == len(whole)


@pytest.mark.parametrize(
    ("user", "owner"),
    [
        (None, Owner(0, 0)),
        ("", Owner(0, 0)),
        ("root", Owner(0, 0)),
        ("1000", Owner(1000, 0)),
        ("1000:50", Owner(1000, 50)),
        ("agent", None),
        ("1000:staff", None),
    ],
)
def test_owners(user: str | None, owner: Owner | None) -> None:
    assert numeric(user) == owner


def packed(pack: Packer) -> list[tuple[str, int, int]]:
    with tarfile.open(fileobj=pack.stream()) as tar:
        return [(member.name, member.mode, member.uid) for member in tar]


def test_new_folders_below_the_agents_own_belong_to_it() -> None:
    """If root owned them, the agent could not write beside its own configuration."""
    inside = AGENT_DIR.lstrip("/")
    with Packer() as pack:
        pack.file(f"{AGENT_DIR}/home/.x/f", "", "1000")
        assert packed(pack) == [
            (f"{inside}/home", 0o755, 1000),
            (f"{inside}/home/.x", 0o755, 1000),
            (f"{inside}/home/.x/f", 0o644, 1000),
        ]
    with Packer() as pack:
        pack.file("/etc/x/f", "", "agent")
        assert packed(pack) == [("etc/x/f", 0o666, 0)]


def test_what_is_uploaded_is_roots_readable_and_no_device(tmp_path: Path) -> None:
    (tmp_path / "run").touch(mode=0o700)
    (tmp_path / "text").touch(mode=0o600)
    (tmp_path / "link").symlink_to("text")
    os.mkfifo(tmp_path / "pipe")
    with Packer() as pack:
        pack.folder("/tests", tmp_path)
        assert packed(pack) == [("tests/link", 0o755, 0), ("tests/run", 0o755, 0), ("tests/text", 0o644, 0)]


def test_a_stream_that_breaks_off_is_the_engines_fault(tmp_path: Path) -> None:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        entry = tarfile.TarInfo("f")
        entry.size = 4000
        tar.addfile(entry, io.BytesIO(bytes(4000)))
        tar.addfile(tarfile.TarInfo("g"))
    with pytest.raises(EngineError, match="broke off"):
        save([whole.getvalue()[:2000]], tmp_path / "workspace.tar", Caps())
    assert not (tmp_path / "workspace.tar").exists()
