"""Hostile files that a root agent puts where the engine reads: none holds up the engine or voids a trial."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from runner.errors import EngineError, SpoiledMachine
from runner.records import Environment, ExecSpec, SandboxSpec
from runner.resources import ROOT
from runner.sandbox.docker import base_image, container_files, reaper, stuck_containers
from runner.sandbox.docker.container import DockerSandbox
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.inside import AGENT_DIR

pytestmark = pytest.mark.docker

BOUND_SECONDS = 45.0
"""Limit in seconds. It is far more than any of this takes, and far less than the ten minutes of a blocked engine."""
FIFO = "rm -rf {0}; mkfifo {0}; "
SOCKET = "rm -rf {0}; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"{0}\")'; "
PLANTS = {
    "pipe for passwd": FIFO.format("/etc/passwd"),
    "pipe for group": FIFO.format("/etc/group"),
    "pipes for both": FIFO.format("/etc/passwd") + FIFO.format("/etc/group"),
    "passwd a link to a pipe": "mkfifo /p; ln -sf /p /etc/passwd",
    "group a chain of links to a pipe": "mkfifo /p; ln -s /p /q; ln -sf ../q /etc/group",
    "passwd a link to itself": "ln -sf passwd /etc/passwd",
    "passwd a link to nowhere": "ln -sf /nowhere/at/all /etc/passwd",
    "passwd a link into proc": "ln -sf /proc/self/fd/0 /etc/passwd; ln -sf /proc/1/fd/1 /etc/group",
    "passwd a link to a terminal": "ln -sf /dev/tty /etc/passwd; ln -sf /dev/zero /etc/group",
    "passwd a folder": "rm /etc/passwd; mkdir -p /etc/passwd/x",
    "passwd a socket": SOCKET.format("/etc/passwd"),
    "passwd a sparse file of a gigabyte": "truncate -s 1G /etc/passwd",
    "no passwd, no group": "rm /etc/passwd /etc/group",
    "etc a link to elsewhere with pipes": "mv /etc /e; ln -s /e /etc; " + FIFO.format("/e/passwd"),
    "etc a link to itself": "mv /etc /e; ln -s etc /etc",
    "etc a pipe": "mv /etc /e; mkfifo /etc",
    "etc a file": "mv /etc /e; touch /etc",
    "pipes for hosts, resolver, names": "".join(
        FIFO.format(f"/etc/{name}")
        for name in ("hosts", "resolv.conf", "hostname", "nsswitch.conf", "localtime")
    ),
    "the workspace a pipe": "cd /; " + FIFO.format("/workspace"),
    "the workspace a socket": "cd /; " + SOCKET.format("/workspace"),
    "the workspace a loop": "cd /; rm -rf /workspace; ln -s workspace /workspace",
    "pipes and sockets in the workspace": "mkfifo a b; " + SOCKET.format("/workspace/s") + "ln -s /proc p",
    "names that are no text": r"printf x > $'\xff\n\x1b[2J'; mkdir $'a\nb'; ln -s $'\xfe' $'c\td'",
    "times beyond reason": "touch -d '1901-01-01' old; touch -d '2446-05-10' new; touch -d @-1 before",
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the waits, so that a failing defence does not hold up the tests, too."""
    monkeypatch.setattr(container_files, "SILENCE_SECONDS", 5.0)
    monkeypatch.setattr(container_files, "STAT_SECONDS", 5.0)
    monkeypatch.setattr(stuck_containers, "KILL_SECONDS", 5.0)


def opened(stack: ExitStack, *, runtime: bool = False) -> DockerSandbox:
    provider = DockerSandboxes()
    environment = Environment(image=base_image.tag(), workdir="/workspace")
    spec = SandboxSpec(
        name="hostile",
        image=provider.image(environment),
        environment=environment,
        user="root",
        runtime=runtime,
    )
    return stack.enter_context(provider.open(spec))  # type: ignore[return-value]


@pytest.fixture
def sandbox() -> Iterator[DockerSandbox]:
    base_image.ensure(connect(), print)
    with ExitStack() as stack:
        yield opened(stack)


def bash(sandbox: DockerSandbox, script: str, seconds: float = 20.0) -> None:
    sandbox.exec(ExecSpec(argv=("bash", "-c", script), timeout_seconds=seconds))


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_nothing_that_was_planted_holds_up_what_is_taken_out(
    sandbox: DockerSandbox, tmp_path: Path, plant: str
) -> None:
    """Files are taken out of the living machine and of the dead one. Then its snapshot is taken and it is removed."""
    bash(sandbox, f"chown 1:1 . ; echo x > file; chown 2:3 file; {plant}")
    began = time.monotonic()
    for moment in ("live", "dead"):
        try:
            sandbox.get("/workspace", tmp_path / f"{moment}.tar")
        except FileNotFoundError:
            assert plant == PLANTS["the workspace a loop"]
        sandbox.kill()
    assert sandbox.snapshot().id
    sandbox.__exit__(None, None, None)
    assert time.monotonic() - began < BOUND_SECONDS
    assert sandbox._id not in {found["Id"] for found in connect().api.containers(all=True)}


RACE = """
import os
if os.fork() == 0:
    os.setsid()
    for fd in range(3): os.close(fd)
    while True:
        for name in ("/etc/passwd", "/etc/group"):
            try: os.mkfifo(name + "~"); os.rename(name + "~", name)
            except OSError: pass
"""


def test_a_process_that_plants_pipes_again_and_again_gains_nothing(
    sandbox: DockerSandbox, tmp_path: Path
) -> None:
    """A file that was just repaired must not be a pipe again when the engine reads it."""
    sandbox.exec(ExecSpec(argv=("python3", "-c", RACE), timeout_seconds=20))
    began = time.monotonic()
    for number in range(4):
        sandbox.get("/workspace", tmp_path / f"{number}.tar")
    (tmp_path / "put").mkdir()
    (tmp_path / "put" / "file").write_text("x")
    sandbox.put(tmp_path / "put", "/etc")
    sandbox.kill()
    sandbox.get("/etc", tmp_path / "etc.tar")
    assert time.monotonic() - began < BOUND_SECONDS


@pytest.mark.parametrize("as_root", [True, False], ids=["root on this machine", "through a container"])
def test_a_command_that_the_engine_cannot_start_ends_at_its_deadline(
    sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch, *, as_root: bool
) -> None:
    """The engine then waits in the container with the container locked: `docker kill` hangs."""
    if as_root and os.geteuid():
        pytest.skip("needs root")
    monkeypatch.setattr(stuck_containers.os, "geteuid", lambda: 0 if as_root else 1000)  # type: ignore[attr-defined]
    bash(sandbox, PLANTS["pipe for passwd"])
    began = time.monotonic()
    result = sandbox.exec(ExecSpec(argv=("true",), timeout_seconds=2))
    assert (result.ended, result.exit_code) == ("deadline", None)
    sandbox.__exit__(None, None, None)
    assert time.monotonic() - began < BOUND_SECONDS
    assert sandbox._id not in {found["Id"] for found in connect().api.containers(all=True)}


def test_folders_too_deep_for_the_engine_are_removed_all_the_same(sandbox: DockerSandbox) -> None:
    """The engine opened one file per level until it could open no more, and the container stayed forever."""
    deep = "import os\nfor n in range(21_000): os.mkdir('d'); os.chdir('d')"
    sandbox.exec(ExecSpec(argv=("python3", "-c", deep), timeout_seconds=60))
    sandbox.kill()
    assert sandbox.excess == "files"
    with pytest.raises(SpoiledMachine, match="nested too deeply"):
        sandbox.snapshot()
    sandbox.__exit__(None, None, None)
    assert sandbox._id not in {found["Id"] for found in connect().api.containers(all=True)}


@pytest.mark.parametrize(
    "attack",
    [
        "kill -STOP 1; kill -STOP -1; true",
        "kill -9 -1",
        "trap '' TERM; (trap '' TERM INT HUP; while :; do sleep 1; done) & disown; kill -TERM 1",
        "for i in $(seq 300); do sleep 600 & done; true",
        "head -c 400M /dev/zero > /run/assay/agent/fill; true",
        "rm -rf /bin /usr/bin/* 2>/dev/null; true",
        "chmod 0 / /etc /workspace; chattr +i /etc 2>/dev/null; true",
        "head -c 3000000 /dev/urandom; head -c 3000000 /dev/urandom >&2",
        r"printf '\xed\xa0\x80\xff\x00\x1b]0;x\x07'",
    ],
    ids=[
        "stops everything",
        "kills everything",
        "refuses to end",
        "leaves a crowd",
        "fills its memory folder",
        "removes every program",
        "closes its root",
        "prints noise",
        "prints halves of characters",
    ],
)
def test_a_machine_that_was_broken_still_ends_and_is_read(
    sandbox: DockerSandbox, tmp_path: Path, attack: str
) -> None:
    began = time.monotonic()
    bash(sandbox, attack, 10)
    sandbox.kill()
    sandbox.get("/workspace", tmp_path / "workspace.tar")
    sandbox.__exit__(None, None, None)
    assert time.monotonic() - began < BOUND_SECONDS


OWNER = """
import sys
from runner.records import Environment, ExecSpec, SandboxSpec
from runner.sandbox.docker import base_image as base
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.docker.engine import connect
provider = DockerSandboxes()
environment = Environment(image=base.tag(), workdir="/workspace")
spec = SandboxSpec(name="stuck", image=provider.image(environment), environment=environment, user="root")
sandbox = provider.open(spec).__enter__()
sandbox.exec(ExecSpec(argv=("bash", "-c", sys.argv[1])))
if sys.argv[2] == "exec":
    run = connect().api.exec_create(sandbox._id, ["true"])["Id"]
    connect().api.exec_start(run, detach=True)
elif sys.argv[2] == "pause":
    connect().api.pause(sandbox._id)
print(sandbox._id, flush=True)
"""


@pytest.mark.parametrize("way", ["exec", "pause", "archive"])
def test_a_dead_owners_stuck_container_does_not_stop_the_next_command(way: str) -> None:
    """`job=clean` hung on it, and a sweep ended at its start with exit code 3."""
    plant = PLANTS["pipe for passwd"] if way != "archive" else "chown 2:3 .; " + PLANTS["pipe for group"]
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, plant, "" if way == "archive" else way],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        try:
            stuck_one = owner.communicate(timeout=6)[0].strip()
        except subprocess.TimeoutExpired:  # it waits for the engine, as its engine does
            owner.kill()
            stuck_one = ""
    api = connect().api
    stuck_one = stuck_one or next(
        found["Id"] for found in api.containers(all=True, filters={"name": "assay-stuck-"})
    )
    if way == "archive":
        url = f"{api.base_url}/v{api.api_version}/containers/{stuck_one}/archive"
        with (
            pytest.raises(Exception, match="timed out"),
            api.get(url, params={"path": "/workspace"}, timeout=2),
        ):
            pass
    began = time.monotonic()
    reaped = reaper.reap(api, seconds=5.0)
    assert time.monotonic() - began < BOUND_SECONDS
    assert not [name for name in reaped.left if name.startswith("assay-stuck-")]
    assert stuck_one not in {found["Id"] for found in api.containers(all=True)}


def test_a_container_that_cannot_be_removed_is_named_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reaper, "is_abandoned", lambda labels: labels.get("assay.test") == "left")
    monkeypatch.setattr(stuck_containers, "remove", lambda *_: False)
    api = connect().api
    left = api.create_container(
        base_image.tag(), ["true"], name="assay-left", labels={"assay.test": "left", reaper.OWNER_PID: "1"}
    )["Id"]
    try:
        reaped = reaper.reap(api)
        assert (reaped.removed, reaped.left) == (0, ("assay-left",))
        assert "assay-left" in reaped.complaint
    finally:
        api.remove_container(left, force=True)


def test_a_hung_call_of_an_unused_container_is_the_engines(
    sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No agent has been there, so no agent is blamed."""
    monkeypatch.setattr(container_files, "SILENCE_SECONDS", 1e-6)
    with pytest.raises(EngineError):
        sandbox.get("/usr", tmp_path / "usr.tar")
    sandbox._was_used = True
    with pytest.raises(SpoiledMachine, match="can no longer be used"):
        sandbox.get("/usr", tmp_path / "usr.tar")
    monkeypatch.setattr(stuck_containers, "works", lambda _: False)
    with pytest.raises(EngineError):
        sandbox.get("/usr", tmp_path / "usr.tar")


def test_an_agent_without_room_for_its_own_next_command_voided_its_trial() -> None:
    """A file could not be written into its folder in memory, and "no space left" was always this machine's fault."""
    base_image.ensure(connect(), print)
    provider = DockerSandboxes()
    provider.prepare((), print)
    with ExitStack() as stack:
        sandbox = opened(stack, runtime=True)
        bash(sandbox, f"head -c 1G /dev/zero > {AGENT_DIR}/big")
        spec = ExecSpec(argv=("true",), files={f"{AGENT_DIR}/next": "x" * 100_000})
        with pytest.raises(SpoiledMachine, match="no space left"):
            sandbox.exec(spec)
