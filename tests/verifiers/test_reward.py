"""What counts as a reward, by Harbor's rules, and what is refused."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from runner.errors import VerifierError
from runner.verifiers.harbor import _reward_files, read_reward

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("files", "reward"),
    [
        ({"reward.txt": b"1\n"}, 1.0),
        ({"reward.txt": b" 0.25 "}, 0.25),
        ({"reward.json": b'{"reward": 0.5, "speed": 3}'}, 0.5),
        ({"reward.json": b'{"score": 0.75}'}, 0.75),
        ({"reward.json": b'{"reward": true}'}, 1.0),
        ({"reward.json": b'{"reward": 0}', "reward.txt": b"1"}, 0.0),
    ],
)
def test_rewards(files: dict[str, bytes], reward: float) -> None:
    assert read_reward(files)[0] == reward


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "wrote neither"),
        ({"reward.txt": b""}, "no number"),
        ({"reward.txt": b"nan"}, "not in"),
        ({"reward.txt": b"1.5"}, "not in"),
        ({"reward.txt": b"-0.1"}, "not in"),
        ({"reward.json": b""}, "no JSON"),
        ({"reward.json": b"{}"}, "non-empty"),
        ({"reward.json": b"[1]"}, "flat"),
        ({"reward.json": b'{"reward": "1"}'}, "flat"),
        ({"reward.json": b'{"reward": Infinity}'}, "finite"),
        ({"reward.json": b'{"reward": 1, "seconds": 1' + b"0" * 400 + b"}"}, "finite"),
        ({"reward.json": b'{"reward": 1e400}'}, "finite"),
        ({"reward.json": b'{"reward":' * 6000}, "no JSON"),
        ({"reward.json": b'{"a": 1, "b": 0}'}, "reward_key"),
        ({"reward.json": b"broken", "reward.txt": b"1"}, "no JSON"),
    ],
)
def test_what_is_no_reward_is_an_error_and_not_a_zero(files: dict[str, bytes], why: str) -> None:
    with pytest.raises(VerifierError, match=why):
        read_reward(files)


def _tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_only_a_regular_file_at_the_top_is_read(tmp_path: Path) -> None:
    link = tarfile.TarInfo("verifier/reward.json")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    deep = tarfile.TarInfo("verifier/deep/reward.txt")
    assert _reward_files(_tar(tmp_path / "t", (link, b""), (deep, b"1"))) == {}
    assert _reward_files(_tar(tmp_path / "t", (tarfile.TarInfo("verifier/reward.txt"), b"1"))) == {
        "reward.txt": b"1"
    }


def test_a_huge_reward_is_refused_unread(tmp_path: Path) -> None:
    with pytest.raises(VerifierError, match="bytes long"):
        _reward_files(_tar(tmp_path / "t", (tarfile.TarInfo("verifier/reward.txt"), b"1" * 100_000)))
