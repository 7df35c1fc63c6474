"""Deliverables hold in the judge's machine what they held in the agent's, or nothing.

Machines are simulated: each attack is a tar as the engine would make it, and the rules are a function of it.
"""

from __future__ import annotations

import tarfile
from pathlib import Path
from posixpath import dirname

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.benchmarks.harbor import artifacts
from tests.security.machines import SECRET, Machine, travel

JUDGES = {
    "/tests/secret": f"file {SECRET}",
    "/tests/deep/secret": f"file {SECRET}",
    "/app/expected/result": f"file {SECRET}",
    "/app/hidden": f"file {SECRET}",
    "/logs/verifier": "folder",
    "/solution/secret": f"file {SECRET}",
    "/root/secret": f"file {SECRET}",
    "/proc/self/root": "link /",
    "/proc/self/cwd": "link /app",
    "/dev/fd": "link /proc/self/fd",
}
"""The judge's machine. The agent's has none of this unless the agent makes it."""

FORGED: dict[str, tuple[dict[str, str], str]] = {
    "an absolute link": ({"/app/out": "link /tests/secret"}, "/app/out"),
    "a relative link": ({"/app/out": "link ../tests/secret"}, "/app/out"),
    "a link above the root": ({"/app/out": "link ../../../../tests/secret"}, "/app/out"),
    "doubled slashes": ({"/app/out": "link //tests///secret"}, "/app/out"),
    "dots on the way": ({"/app/out": "link /tests/./../tests/secret"}, "/app/out"),
    "a way through the workspace": ({"/app/out": "link /app/../tests/secret"}, "/app/out"),
    "a link to a link": ({"/app/out": "link next", "/app/next": "link /tests/secret"}, "/app/out"),
    "a link to a link elsewhere": (
        {"/app/out": "link /home/x/next", "/home/x/next": "link /tests/secret"},
        "/app/out",
    ),
    "a chain that comes back": (
        {"/app/out": "link /home/x", "/home/x": "link /app/next", "/app/next": "link /tests/secret"},
        "/app/out",
    ),
    "a way through a linked folder": (
        {"/app/out": "link door/secret", "/app/door": "link /tests"},
        "/app/out",
    ),
    "a way back through a linked folder": (
        {"/app/out": "link a/b/../../../tests/secret", "/app/a/b": "folder"},
        "/app/out",
    ),
    "a hard link to a link": ({"/app/a": "link /tests/secret", "/app/out": "hard /app/a"}, "/app/out"),
    "a process's root": ({"/app/out": "link /proc/self/root/tests/secret"}, "/app/out"),
    "a process's folder": ({"/app/out": "link /proc/self/cwd/hidden"}, "/app/out"),
    "a link to another hidden file": ({"/app/out": "link /root/secret"}, "/app/out"),
    "the solution": ({"/app/out": "link /solution/secret"}, "/app/out"),
    "a linked folder": ({"/app/out": "link /tests"}, "/app/out/secret"),
    "a linked folder, relative": ({"/app/out": "link ../tests/deep"}, "/app/out/secret"),
    "a linked folder below": ({"/app/out/sub": "link /tests/deep"}, "/app/out/sub/secret"),
    "the root": ({"/app/out": "link /"}, "/app/out/tests/secret"),
    "the root, relative": ({"/app/out": "link .."}, "/app/out/tests/secret"),
    "a file that the agent deleted": ({"/app/out": "link hidden"}, "/app/out"),
    "a file that the agent deleted, absolute": ({"/app/out": "link /app/hidden"}, "/app/out"),
    "a folder that the agent emptied": (
        {"/app/out": "link expected", "/app/expected": "folder"},
        "/app/out/result",
    ),
    "a folder that the agent emptied, by a chain": (
        {"/app/out": "link next", "/app/next": "link /app/expected", "/app/expected": "folder"},
        "/app/out/result",
    ),
    "the workspace in itself": ({"/app/out": "link ."}, "/app/out/hidden"),
    "the workspace in itself, deeper": ({"/app/out/a": "link ../.."}, "/app/out/a/app/hidden"),
    "a link in a folder that is copied": (
        {"/app/out": "link /data", "/data/one": "link /tests/secret"},
        "/app/out/one",
    ),
    "a folder in a folder that is copied": (
        {"/app/out": "link /data", "/data/one": "link /tests"},
        "/app/out/one/secret",
    ),
    "a link out of a copied folder and back": (
        {"/app/out": "link /data", "/data/one": "link ../app/hidden"},
        "/app/out/one",
    ),
}
"""Name -> nodes that the agent makes, and a path of the judge's that must not hold the secret."""


@pytest.fixture
def agent() -> Machine:
    """A machine with a workspace and nothing of the verifier's."""
    return Machine().have({"/app": "folder", "/proc": "folder", "/tests": "folder", "/logs": "folder"})


@pytest.fixture
def judge() -> Machine:
    return Machine().have(JUDGES)


@pytest.mark.parametrize("attack", FORGED)
@pytest.mark.parametrize("whole", [True, False], ids=["of the workspace", "by itself"])
def test_a_link_never_comes_to_name_a_secret(
    agent: Machine, judge: Machine, tmp_path: Path, attack: str, *, whole: bool
) -> None:
    nodes, path = FORGED[attack]
    left_out = travel(agent.have(nodes), judge, "/app" if whole else "/app/out", tmp_path)
    assert judge.read(path) != SECRET
    assert left_out or judge.read(path) is None


SPECIAL = {
    "a pipe": {"/app/out": "pipe"},
    "a device": {"/app/out": "device"},
    "a disk": {"/app/out": "disk"},
    "a member of a kind that nobody knows": {"/app/out": "odd"},
    "a pipe by its second name": {"/app/a": "pipe", "/app/out": "hard /app/a"},
    "a link to a pipe": {"/app/a": "pipe", "/app/out": "link a"},
    "a link to a pipe elsewhere": {"/data/a": "pipe", "/app/out": "link /data/a"},
    "a pipe in a folder that is copied": {"/data/a": "pipe", "/app/out": "link /data"},
    "a link to itself": {"/app/out": "link out"},
    "two links to each other": {"/app/out": "link a", "/app/a": "link out"},
    "a loop elsewhere": {"/data/a": "link /data/b", "/data/b": "link /data/a", "/app/out": "link /data/a"},
    "a second name of nothing": {"/app/out": "hard /app/nothing"},
    "a folder's second name": {"/app/a": "folder", "/app/out": "hard /app/a"},
    "a device of every system": {"/app/out": "link /dev/zero"},
}


@pytest.mark.parametrize("attack", SPECIAL)
@pytest.mark.parametrize("whole", [True, False], ids=["of the workspace", "by itself"])
def test_only_files_folders_and_harmless_links_arrive(
    agent: Machine, judge: Machine, tmp_path: Path, attack: str, *, whole: bool
) -> None:
    travel(agent.have(SPECIAL[attack]), judge, "/app" if whole else "/app/out", tmp_path)
    arrived = {path: node for path, node in judge.nodes.items() if path.startswith("/app")}
    assert {node.partition(" ")[0] for node in arrived.values()} <= {"file", "folder"}
    assert judge.read("/app/out") is None
    assert judge.read("/app/out/a") is None


@pytest.mark.parametrize(
    ("nodes", "at"),
    [
        ({"/logs/verifier/reward.json": 'file {"reward": 1}'}, "/logs"),
        ({"/logs/verifier/reward.json": 'file {"reward": 1}'}, "/logs/verifier"),
        ({"/logs/verifier/reward.json": 'file {"reward": 1}'}, "/logs/verifier/reward.json"),
        ({"/logs/verifier": "link /app", "/app/reward.json": "file 1"}, "/logs"),
        ({"/logs": "link /app", "/app/verifier/reward.json": "file 1"}, "/logs"),
        ({"/logs": "file x"}, "/logs"),
        ({"/tests/test.sh": "file x"}, "/tests"),
        ({"/tests/conftest.py": "file x"}, "/tests/conftest.py"),
        ({"/solution/solve.sh": "file x"}, "/solution"),
        ({"/logs/x": "link verifier", "/logs/verifier/reward.txt": "file 1"}, "/logs"),
        ({"/tests": "file x"}, "/tests"),
        ({"/tests": "link /app"}, "/tests"),
    ],
)
def test_nothing_lands_in_a_folder_of_the_verifiers(
    agent: Machine, judge: Machine, tmp_path: Path, nodes: dict[str, str], at: str
) -> None:
    before = {path: node for path, node in judge.nodes.items() if artifacts.is_reserved(path)}
    for path in nodes:
        agent.nodes.pop(path, None)
    assert travel(agent.have(nodes), judge, at, tmp_path)
    after = {path: node for path, node in judge.nodes.items() if artifacts.is_reserved(path)}
    assert after == before


HONEST: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "a file": ({"/app/out": "file done"}, {"/app/out": "done"}),
    "a link beside it": ({"/app/out": "link real", "/app/real": "file done"}, {"/app/out": "done"}),
    "a link into a folder": ({"/app/out": "link a/b", "/app/a/b": "file done"}, {"/app/out": "done"}),
    "an absolute link within": ({"/app/out": "link /app/a/b", "/app/a/b": "file x"}, {"/app/out": "x"}),
    "a linked folder within": ({"/app/out": "link lib", "/app/lib/m": "file x"}, {"/app/out/m": "x"}),
    "a link out of it": ({"/app/out": "link /data/real", "/data/real": "file x"}, {"/app/out": "x"}),
    "a folder outside": ({"/app/out": "link /data", "/data/a/b": "file x"}, {"/app/out/a/b": "x"}),
    "a link in a folder outside": (
        {"/app/out": "link /data", "/data/a": "link b", "/data/b": "file x"},
        {"/app/out/a": "x", "/app/out/b": "x"},
    ),
    "links outside that end in a file": (
        {"/app/out": "link /data/a", "/data/a": "link ../srv/b", "/srv/b": "file x"},
        {"/app/out": "x"},
    ),
    "a hard link": ({"/app/a": "file x", "/app/out": "hard /app/a"}, {"/app/out": "x", "/app/a": "x"}),
    "a virtual environment": (
        {"/app/v/bin/python": "link /usr/bin/python3", "/usr/bin/python3": "link python3.11",
         "/usr/bin/python3.11": "file elf", "/app/v/lib/m.py": "file x", "/app/v/lib64": "link lib"},
        {"/app/v/bin/python": "elf", "/app/v/lib64/m.py": "x"},
    ),
    "a folder that the agent filled again": (
        {"/app/out": "link expected", "/app/expected/result": "file mine"},
        {"/app/out/result": "mine"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HONEST)
@pytest.mark.parametrize("whole", [True, False], ids=["of the workspace", "by itself"])
def test_what_an_honest_deliverable_holds_arrives(
    agent: Machine, judge: Machine, tmp_path: Path, case: str, *, whole: bool
) -> None:
    nodes, wanted = HONEST[case]
    at = "/app" if whole else "/app/v" if "virtual" in case else "/app/out"
    assert travel(agent.have(nodes), judge, at, tmp_path) == ()
    held = {path: judge.read(path) for path in wanted if whole or path.startswith(at)}
    assert held == {path: wanted[path] for path in held}


def test_a_linked_folder_stays_a_link_where_it_means_the_same(
    agent: Machine, judge: Machine, tmp_path: Path
) -> None:
    """Otherwise workspaces of linked packages would grow without end."""
    agent.have({"/app/a/deps/b": "link ../../b", "/app/b/deps/a": "link ../../a", "/app/a/m": "file x"})
    assert travel(agent, judge, "/app", tmp_path) == ()
    assert judge.nodes["/app/a/deps/b"] == "link ../../b"


def test_rights_are_plain_and_attributes_gone(agent: Machine, judge: Machine, tmp_path: Path) -> None:
    travel(agent.have({"/app/out": "file x", "/app/d": "folder"}), judge, "/app", tmp_path)
    with tarfile.open(tmp_path / "carried.tar") as archive:
        members = list(archive)
    assert {oct(member.mode) for member in members} == {"0o755"}
    assert not any(member.pax_headers for member in members)
    assert {member.uid for member in members} == {1000}


def _raw(path: Path, *names: str) -> Path:
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            tar.addfile(member)
    return path


@pytest.mark.parametrize(
    "name",
    ["app/../tests/x", "app/a/../../../tests/x", "app/./x", "app/" + "n" * 256, "app/" + "d/" * 2000 + "x"],
    ids=["up", "up twice", "dot", "a name too long", "a path too long"],
)
def test_a_name_that_no_file_system_gives_is_left_out(tmp_path: Path, name: str) -> None:
    taken, carried = _raw(tmp_path / "taken.tar", "app/", name), tmp_path / "carried.tar"
    artifacts.carry(taken, "/app", carried, lambda _: None)
    with tarfile.open(carried) as archive:
        assert archive.getnames() == ["app"]


def test_a_name_that_is_not_text_travels(tmp_path: Path) -> None:
    taken, carried = (
        _raw(tmp_path / "taken.tar", "app/", "app/bad\udcff", "app/a\nb"),
        tmp_path / "carried.tar",
    )
    assert artifacts.carry(taken, "/app", carried, lambda _: None) == ()
    with tarfile.open(carried) as archive:
        assert archive.getnames() == ["app", "app/bad\udcff", "app/a\nb"]


def test_copies_are_bounded(agent: Machine, judge: Machine, tmp_path: Path) -> None:
    """Each folder links twice to the next, so copies of a thousand members would be a billion."""
    for depth in range(30):
        agent.have({f"/data/{depth}/{side}": f"link /data/{depth + 1}" for side in "ab"})
    agent.have({"/data/30/f": "file x", **{f"/app/{n}": f"link /data/{n % 31}" for n in range(300)}})
    travel(agent, judge, "/app", tmp_path)
    assert len(judge.nodes) < 2000


def test_a_large_copy_is_left_out(
    agent: Machine, judge: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "COPIED_BYTES", 10)
    agent.have({"/data/big": "file 0123456789a", "/app/out": "link /data/big", "/app/small": "file x"})
    assert travel(agent, judge, "/app", tmp_path) == ("/app/out",)
    assert judge.read("/app/small") == "x"


NAMES = st.sampled_from(["a", "b", "expected", "hidden", "result"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda parts: "/app/" + "/".join(parts))
TEXTS = st.lists(
    st.sampled_from(["..", ".", "a", "b", "expected", "hidden", "tests", "secret", "app"]),
    min_size=1,
    max_size=4,
)
NODES = st.one_of(
    st.just("folder"),
    st.sampled_from(["file one", "file two", "pipe"]),
    TEXTS.map(lambda parts: "link " + "/".join(parts)),
    TEXTS.map(lambda parts: "link /" + "/".join(parts)),
)


@settings(max_examples=150)
@given(st.dictionaries(PATHS, NODES, min_size=1, max_size=8))
def test_whatever_arrives_is_what_it_was(
    tmp_path_factory: pytest.TempPathFactory, nodes: dict[str, str]
) -> None:
    """A path in the artifact of any tree reads as in the agent's machine, as in the judge's before, or not at all."""
    agent = Machine().have({"/app": "folder", "/data/a": "file three"})
    for path, node in sorted(nodes.items()):
        above = dirname(path)
        if all(agent.nodes.get(part, "folder") == "folder" for part in (above, dirname(above))):
            agent.have({path: node})
    before, judge = Machine().have(JUDGES), Machine().have(JUDGES)
    travel(agent, judge, "/app", tmp_path_factory.mktemp("tars"))
    for path in [
        *judge.nodes,
        *(f"{path}/{name}" for path in nodes for name in ("result", "secret", "hidden")),
    ]:
        if path.startswith("/app/") and (found := judge.read(path)) is not None:
            assert found in (agent.read(path), before.read(path)), path
