"""Untrusted archives: none writes outside its folder, through a link, or more than the limits."""

from __future__ import annotations

import gzip
import io
import os
import random
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.archives import LIMITS, Limits, unpack, unpacked_size
from runner.archives.readers import PATH_BYTES
from runner.benchmarks.project_setup import given_project
from runner.benchmarks.project_setup.projects import digest_of
from runner.errors import ConfigError
from runner.resources import ROOT
from tests.support.project_factory import make_project, project_bench

DEBIANS = Path("/usr/bin/python3")
"""Python 3.11.2 on Debian 12, whose `tarfile` has no filter."""
UNPACK = "import sys, pathlib; from runner.archives import unpack; unpack(*map(pathlib.Path, sys.argv[1:]))"
LINK, HARD, FOLDER = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
Entry = tuple[str, bytes, str]
"""Name, type, and the target of a link or else the content."""


def file(name: str, content: str = "overwritten") -> Entry:
    return name, tarfile.REGTYPE, content


def tar(place: Path, entries: list[Entry], mode: str = "w", **about: Any) -> Path:
    """Make a tar file of these entries, whatever they are."""
    with tarfile.open(place, mode) as archive:  # type: ignore[call-overload]
        for name, kind, text in entries:
            entry = tarfile.TarInfo(name)
            entry.type = kind
            content = text.encode() if kind == tarfile.REGTYPE else b""
            entry.size, entry.linkname = len(content), "" if content else text
            for key, value in about.items():
                setattr(entry, key, value)
            archive.addfile(entry, io.BytesIO(content))
    return place


def zipped(place: Path, entries: list[tuple[str, int, str]]) -> Path:
    """Make a zip file of these entries: name, Unix mode, content."""
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, mode, content in entries:
            entry = zipfile.ZipInfo()
            entry.filename = name  # the constructor would cut some names
            entry.external_attr = mode << 16
            archive.writestr(entry, content)
    return place


def long_links(victim: Path) -> list[Entry]:
    """Return the links of CVE-2025-4517. Their real path exceeds PATH_MAX, so it was not resolved."""
    name, steps, path = "d" * 247, "abcdefghijklmnop", ""
    entries: list[Entry] = []
    for step in steps:
        entries += [(f"{path}{name}", FOLDER, ""), (f"{path}{step}", LINK, name)]
        path = f"{path}{name}/"
    up = "/".join([*steps, "l" * 254])
    entries += [(up, LINK, "../" * len(steps))]
    entries += [("escape", LINK, f"{up}/{'../' * 12}{victim.parent.as_posix().lstrip('/')}")]
    return [*entries, ("flag", HARD, f"escape/{victim.name}"), file("flag")]


OUTSIDE = "victim/flag"
"""Path beside the folder of the unpacked files. Every attack below tries to write or read it."""
EVIL: dict[str, list[Entry]] = {
    "a parent": [file("../victim/flag")],
    "a parent behind a folder": [file("tree/a/../../../victim/flag")],
    "a parent in the middle": [("a", FOLDER, ""), file("a/../b")],
    "an absolute path": [file("{outside}")],
    "an absolute path with two slashes": [file("//{outside}")],
    "a folder above": [("../victim/new", FOLDER, "")],
    "a link to a folder outside, and a file beneath it": [("out", LINK, "../victim"), file("out/flag")],
    "a link to a file outside, and a file in its place": [("out", LINK, "../victim/flag"), file("out")],
    "an absolute link": [("out", LINK, "{outside}")],
    "an absolute link, and a file beneath it": [("out", LINK, "{folder}"), file("out/flag")],
    "a link to nothing": [("out", LINK, "")],
    "a link to itself, and a file beneath it": [("out", LINK, "."), file("out/flag")],
    "a link inside, and a file beneath it": [("a", FOLDER, ""), ("out", LINK, "a"), file("out/flag")],
    "a link that a name behind it turns around": [
        ("a/b/up", LINK, "../.."),
        ("out", LINK, "a/b/up/../victim"),
    ],
    "a link by a name and back": [("a", FOLDER, ""), ("out", LINK, "a/../../victim/flag")],
    "links that lead outside together": [
        ("a/up", LINK, ".."),
        ("b", LINK, "a/up"),
        ("out", LINK, "b/../victim"),
        file("out/flag"),
    ],
    "a link that hides its parents behind dots": [("a/out", LINK, "./../././../victim/flag")],
    "a link with a newline": [("out", LINK, "a\n../victim")],
    "a folder that becomes a link": [("a", FOLDER, ""), ("a", LINK, "../victim"), file("a/flag")],
    "a folder that becomes a link inside": [("a", FOLDER, ""), ("b", FOLDER, ""), ("a", LINK, "b")],
    "a link that becomes a folder": [("a", LINK, "b"), ("a", FOLDER, ""), file("a/flag")],
    "a link that becomes a file": [("a", LINK, "../victim/flag"), file("a")],
    "a file that becomes a link": [file("a"), ("a", LINK, "b")],
    "a file that becomes a folder": [file("a"), ("a", FOLDER, "")],
    "a folder that becomes a file": [("a", FOLDER, ""), file("a")],
    "a file beneath a file": [file("a"), file("a/b")],
    "a folder beneath a file": [file("a"), ("a/b/c", FOLDER, "")],
    "a hard link to outside": [("a", HARD, "../victim/flag")],
    "a hard link to an absolute path": [("a", HARD, "{outside}")],
    "a hard link to a link": [("a", LINK, "b"), ("b2", HARD, "a")],
    "a hard link through a link": [("a", LINK, "../victim"), ("b", HARD, "a/flag"), file("b")],
    "a hard link to what comes later": [("a", HARD, "b"), file("b")],
    "a hard link to itself": [("a", HARD, "a")],
    "a hard link to a folder": [("b", FOLDER, ""), ("a", HARD, "b")],
    "a hard link of a file to itself": [file("a"), ("a", HARD, "a")],
    "a pipe": [("a", tarfile.FIFOTYPE, "")],
    "a character device": [("a", tarfile.CHRTYPE, "")],
    "a block device": [("a", tarfile.BLKTYPE, "")],
    "an escape sequence in a name": [file("a\x1b]0;title\x07")],
    "a newline in a name": [file("a\nb")],
    "a name of 300 characters": [file("n" * 300)],
    "a path that is longer than any": [file("/".join(["n" * 200] * 12))],
    "folders without end": [file("/".join("n" * 500))],
    "a file that is the archive's top": [file(".")],
    "a link that is the archive's top": [("./", LINK, "../victim"), file("flag")],
}


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Make a file that nobody may touch."""
    place = tmp_path / OUTSIDE
    place.parent.mkdir()
    place.write_text("kept")
    return place


def written(entries: list[Entry], victim: Path) -> list[Entry]:
    """Return the entries with paths of this machine filled in."""
    paths = {"{outside}": str(victim), "{folder}": str(victim.parent)}

    def put(text: str) -> str:
        for word, value in paths.items():
            text = text.replace(word, value)
        return text

    return [(put(name), kind, put(content)) for name, kind, content in entries]


def unharmed(victim: Path) -> bool:
    return victim.read_text() == "kept" and [path.name for path in victim.parent.iterdir()] == ["flag"]


@pytest.mark.parametrize("kind", ["w", "w:gz"])
@pytest.mark.parametrize("attack", EVIL)
def test_an_evil_tar_file_is_refused_and_writes_nothing_outside(
    tmp_path: Path, victim: Path, attack: str, kind: str
) -> None:
    packed = tar(tmp_path / "evil.tar", written(EVIL[attack], victim), kind)
    for without_top in (False, True):
        with pytest.raises(ConfigError, match=r"^evil\.tar cannot be unpacked: .*\.$"):
            unpack(packed, tmp_path / f"tree{without_top}", without_top=without_top)
    with pytest.raises(ConfigError):
        unpacked_size(packed)
    assert unharmed(victim)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["evil.tar", "flag"]


FILE, RUN, SYMLINK = stat.S_IFREG | 0o644, stat.S_IFREG | 0o755, stat.S_IFLNK | 0o777


@pytest.mark.parametrize(
    "entries",
    [
        pytest.param([("../victim/flag", FILE, "x")], id="a parent"),
        pytest.param([("a/../../victim/flag", FILE, "x")], id="a parent behind a folder"),
        pytest.param([("/tmp/x", FILE, "x")], id="an absolute path"),
        pytest.param([("out", SYMLINK, "../victim/flag")], id="a link outside"),
        pytest.param([("out", SYMLINK, "../victim"), ("out/flag", FILE, "x")], id="a file beneath a link"),
        pytest.param([("out", SYMLINK, "/etc/passwd")], id="an absolute link"),
        pytest.param([("out", SYMLINK, "n" * (PATH_BYTES + 1))], id="a link of endless length"),
        pytest.param([("a", stat.S_IFIFO | 0o644, "x")], id="a pipe"),
        pytest.param([("a", stat.S_IFCHR | 0o644, "x")], id="a device"),
        pytest.param([("a", FILE, "x"), ("a/b", FILE, "x")], id="a file beneath a file"),
        pytest.param([("a", FILE, "x"), ("a", SYMLINK, "b")], id="a file that becomes a link"),
        pytest.param([("a\x00b", FILE, "x")], id="a NUL in a name"),
        pytest.param([("a\x1b[2Jb", FILE, "x")], id="an escape sequence in a name"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_evil_zip_file_is_refused_and_writes_nothing_outside(
    tmp_path: Path, victim: Path, entries: list[tuple[str, int, str]]
) -> None:
    packed = zipped(tmp_path / "evil.zip", entries)
    with pytest.raises(ConfigError, match=r"evil\.zip cannot be unpacked"):
        unpack(packed, tmp_path / "tree")
    assert unharmed(victim)
    assert not (tmp_path / "tree").exists()


@pytest.mark.parametrize("python", [sys.executable, pytest.param(DEBIANS, id="python3 of Debian")])
def test_links_longer_than_a_path_write_nothing_outside(
    tmp_path: Path, victim: Path, python: str | Path
) -> None:
    """`extractall(filter="data")` overwrote the file on Python 3.11.7, and ended with a TypeError on 3.11.2."""
    if not Path(python).exists():
        pytest.skip("this machine has no Python of Debian's")
    packed = tar(tmp_path / "evil.tar", long_links(victim))
    ended = subprocess.run(
        [python, "-B", "-c", UNPACK, packed, tmp_path / "tree"],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ConfigError: evil.tar cannot be unpacked: its member" in ended.stderr
    assert unharmed(victim)


@pytest.mark.skipif(not DEBIANS.exists(), reason="this machine has no Python of Debian's")
def test_the_python_of_debian_unpacks_by_the_same_rules(tmp_path: Path) -> None:
    honest = tar(
        tmp_path / "honest.tar", [file("a/run", "x"), ("a/link", LINK, "run"), ("a/hard", HARD, "a/run")]
    )
    command: list[str | Path] = [DEBIANS, "-B", "-c", UNPACK, honest, tmp_path / "tree"]
    subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, check=True)
    assert (tmp_path / "tree/a/link").read_text() == (tmp_path / "tree/a/hard").read_text() == "x"


def test_job_environment_refuses_an_evil_archive_before_anything_is_written(
    tmp_path: Path, victim: Path
) -> None:
    packed = tar(tmp_path / "evil.tar", long_links(victim))
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        given_project.described(str(packed), 1e9)
    bench = project_bench(tmp_path / "tasks", tmp_path / "cache")
    folder = make_project(bench.root, source="archive", package=str(packed), digest=digest_of(packed))
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        bench.make(folder, None, lambda _: None)
    assert unharmed(victim)


# --- too much --------------------------------------------------------------------------------------------------------


def zeros(place: Path, size: int) -> Path:
    """Make a small tar file that holds this many zeros."""
    entry = tarfile.TarInfo("zeros")
    entry.size = size
    with gzip.open(place, "wb", compresslevel=1) as packed:
        packed.write(entry.tobuf())
        for _ in range(size >> 20):
            packed.write(bytes(1 << 20))
    return place


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    packed = zeros(tmp_path / "bomb.tar.gz", 100 << 20)
    with pytest.raises(ConfigError, match=r"holds more than \d+ MiB, packed in \d+ KiB"):
        unpack(packed, tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(7):
            archive.writestr(f"zeros{number}", bytes(10 << 20))
    with pytest.raises(ConfigError, match="holds more than"):
        unpack(tmp_path / "bomb.zip", tmp_path / "tree")


def test_a_claimed_terabyte_is_refused_without_looking_for_its_end(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("huge")
    entry.size = 1 << 40
    (tmp_path / "huge.tar").write_bytes(entry.tobuf() + bytes(1024))
    with pytest.raises(ConfigError, match="holds more than"):
        unpack(tmp_path / "huge.tar", tmp_path / "tree")


def test_hard_links_count_as_the_copies_that_they_become(tmp_path: Path) -> None:
    entries = [file("a", "x" * 1000), *((f"b{number}", HARD, "a") for number in range(100))]
    packed = tar(tmp_path / "links.tar", entries)
    with pytest.raises(ConfigError, match="holds more than"):
        unpack(packed, tmp_path / "tree", limits=LIMITS._replace(size=50_000))


@pytest.mark.parametrize("name", ["{}", "{}/a", "a/b/c/{}/d"], ids=["files", "implied folders", "deep"])
def test_the_number_of_members_is_limited(tmp_path: Path, name: str) -> None:
    packed = tar(tmp_path / "many.tar", [file(name.format(number), "") for number in range(100)])
    with pytest.raises(ConfigError, match="more than 99 files, folders and links"):
        unpack(packed, tmp_path / "tree", limits=LIMITS._replace(members=99))
    unpack(packed, tmp_path / "tree", limits=LIMITS._replace(members=300))


def raw(**about: Any) -> bytes:
    """Return the header of a member."""
    entry = tarfile.TarInfo("x")
    for key, value in about.items():
        setattr(entry, key, value)
    return entry.tobuf(tarfile.GNU_FORMAT)


def pax(size: int, content: bytes = b"") -> bytes:
    """Return an extended header that claims this length."""
    return raw(type=tarfile.XHDTYPE, size=size) + content


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(pax(1 << 33), id="an extended header of 8 GiB"),
        pytest.param(raw(type=tarfile.GNUTYPE_LONGNAME, size=1 << 33), id="a name of 8 GiB"),
        pytest.param(raw(type=tarfile.GNUTYPE_LONGLINK, size=1 << 33), id="a target of 8 GiB"),
        pytest.param(
            pax(512, b"16 path=../flag\n".ljust(512, b"\0")) * 3000, id="extended headers without end"
        ),
        pytest.param(raw(type=tarfile.XHDTYPE, size=-512) * 4, id="an extended header of negative size"),
        pytest.param(raw(type=tarfile.REGTYPE, size=-1024) * 4, id="a file of negative size (CVE-2025-8194)"),
        pytest.param(raw(type=tarfile.GNUTYPE_LONGNAME, size=-1024) * 4, id="a name of negative size"),
        pytest.param(
            raw() + pax(20, b"20 path=/etc/passwd\n".ljust(512, b"\0")) + raw(),
            id="an extended absolute name",
        ),
        pytest.param(
            pax(17, b"17 path=../victim\n".ljust(512, b"\0")) + raw(), id="an extended name that leaves"
        ),
        pytest.param(
            pax(20, b"20 linkpath=/etc/ab\n".ljust(512, b"\0")) + raw(type=LINK),
            id="an extended absolute target",
        ),
        pytest.param(b"", id="nothing"),
        pytest.param(b"not packed at all", id="a text"),
        pytest.param(b"\x1f\x8b\x08\x00 and no more", id="broken gzip"),
        pytest.param(b"BZh9 and no more", id="broken bzip2"),
        pytest.param(b"\xfd7zXZ\x00 and no more", id="broken xz"),
        pytest.param(b"PK\x05\x06" + bytes(18), id="an empty zip with nothing"),
    ],
)
@pytest.mark.timeout(20)
def test_odd_headers_are_refused_in_little_time_and_memory(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "odd.tar").write_bytes(content)
    try:
        unpack(tmp_path / "odd.tar", tmp_path / "tree")
    except ConfigError:
        pass
    else:  # some readers take it for an archive's end
        assert not [path for path in (tmp_path / "tree").rglob("*") if path.name != "x"]
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.timeout(60)
def test_changed_bytes_end_in_a_sentence_or_inside(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    entries = [file("a/b", "x" * 700), ("a/c", LINK, "b"), ("d", HARD, "a/b"), file("e" * 150, "y")]
    honest = [
        tar(tmp_path / "honest.tar", entries).read_bytes(),
        tar(tmp_path / "honest.tar.gz", entries, "w:gz").read_bytes(),
        zipped(tmp_path / "honest.zip", [("a/b", RUN, "x" * 700), ("a/c", SYMLINK, "b")]).read_bytes(),
    ]
    for number in range(60):
        content = bytearray(chance.choice(honest))
        for _ in range(chance.choice([1, 3, 20])):
            content[chance.randrange(len(content))] = chance.randrange(256)
        (tmp_path / "changed").write_bytes(
            content[: chance.randrange(len(content))] if number % 5 == 0 else content
        )
        try:
            unpack(tmp_path / "changed", tmp_path / f"tree{number}")
        except ConfigError:
            continue
    names = {path.name.rstrip("0123456789") for path in tmp_path.iterdir()}
    assert names == {"honest.tar", "honest.tar.gz", "honest.zip", "changed", "tree"}


# --- what is honest --------------------------------------------------------------------------------------------------


def test_modes_and_owners_are_ours_and_times_are_kept(tmp_path: Path) -> None:
    packed = tar(tmp_path / "modes.tar", [file("run"), file("b/run")], mode="w:xz", uid=12345)
    with tarfile.open(packed, "w:bz2") as archive:
        for name, mode, when in (("run", 0o6777, 1e9), ("data", 0o4000, 1e9), ("odd", 0o644, float("inf"))):
            entry = tarfile.TarInfo(name)
            entry.mode, entry.pax_headers = mode, {"mtime": str(when)}
            entry.uid = 12345
            archive.addfile(entry)
    unpack(packed, tmp_path / "tree")
    found = {path.name: path.stat() for path in (tmp_path / "tree").iterdir()}
    assert {name: about.st_mode & 0o7777 for name, about in found.items()} == {
        "run": 0o755,
        "data": 0o644,
        "odd": 0o644,
    }
    assert {about.st_uid for about in found.values()} == {os.getuid()}
    assert found["run"].st_mtime == 1e9


@pytest.mark.parametrize("pack", [tar, zipped])
def test_honest_links_are_kept(tmp_path: Path, pack: Callable[..., Path]) -> None:
    kinds = (LINK, tarfile.REGTYPE) if pack is tar else (SYMLINK, FILE)
    entries = [
        ("top/docs/up", kinds[0], "../src/code"),
        ("top/cur", kinds[0], "src"),
        ("top/src/code", kinds[1], "x"),
    ]
    unpack(pack(tmp_path / "packed", entries), tmp_path / "tree", without_top=True)
    assert (tmp_path / "tree/docs/up").read_text() == (tmp_path / "tree/cur/code").read_text() == "x"
    assert (tmp_path / "tree/cur").readlink() == Path("src")


def test_a_link_may_not_leave_the_top_folder_that_is_left_out(tmp_path: Path) -> None:
    packed = tar(tmp_path / "links.tar", [file("top/a"), ("top/up", LINK, "..")])
    unpack(packed, tmp_path / "whole")
    with pytest.raises(ConfigError, match="is a link that leads outside"):
        unpack(packed, tmp_path / "tree", without_top=True)


def test_the_last_of_two_files_of_a_name_counts(tmp_path: Path) -> None:
    unpack(tar(tmp_path / "twice.tar", [file("a", "1"), file("./a", "2")]), tmp_path / "tree")
    assert (tmp_path / "tree/a").read_text() == "2"


def test_a_machines_archive_replaces_existing_files_and_is_never_written_through_a_link(
    tmp_path: Path, victim: Path
) -> None:
    root = tmp_path / "machine"
    root.mkdir()
    (root / "a").symlink_to(victim)
    (root / "b").symlink_to(victim.parent)
    (root / "c").mkdir()
    (root / "c/old").touch()
    packed = tar(tmp_path / "back.tar", [file("a"), file("b/flag"), ("c", LINK, "/anywhere")])
    unpack(packed, root, machine=True)
    assert unharmed(victim)
    assert (root / "a").read_text() == (root / "b/flag").read_text() == "overwritten"
    assert (root / "c").readlink() == Path("/anywhere")


def test_limits_are_more_than_honest_projects_need() -> None:
    assert Limits() == LIMITS
    assert LIMITS.members >= 100_000
    assert LIMITS.size >= 2 << 30


def test_a_tar_file_that_ends_with_a_zip_file_is_a_tar_file(tmp_path: Path) -> None:
    """A wheel at the end of a workspace: the wheel's content was unpacked in the workspace's place."""
    wheel = zipped(tmp_path / "tool.whl", [("inner.py", stat.S_IFREG | 0o644, "print()")])
    with tarfile.open(tmp_path / "w.tar", "w") as archive:
        archive.add(wheel, "workspace/tool.whl")
    unpack(tmp_path / "w.tar", tmp_path / "tree")
    assert (tmp_path / "tree" / "workspace" / "tool.whl").read_bytes() == wheel.read_bytes()
    assert not (tmp_path / "tree" / "inner.py").exists()
