"""The isolation of containers: attacks on our own defences."""

from __future__ import annotations

import gc
import hashlib
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from runner.errors import EngineError, ImageError, WorkspaceTooLarge
from runner.records import Environment, ExecResult, ExecSpec, SandboxSpec
from runner.sandbox.docker import base_image
from runner.sandbox.docker.container import DockerSandbox
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.inside import AGENT_DIR, GATEWAY_DIR, PYTHON, SOCKET_PATH

pytestmark = pytest.mark.docker
Start = Callable[..., DockerSandbox]
Bash = Callable[..., ExecResult]

ROOTS = {
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
}
NUMBERS = {
    "CHOWN": 0,
    "DAC_OVERRIDE": 1,
    "FOWNER": 3,
    "FSETID": 4,
    "KILL": 5,
    "SETGID": 6,
    "SETUID": 7,
    "SETPCAP": 8,
    "NET_BIND_SERVICE": 10,
    "SYS_CHROOT": 18,
}
"""Bits of linux/capability.h."""


BUSY = "while :; do :; done"


def capabilities(sandbox: DockerSandbox, bash: Bash, **spec: object) -> dict[str, int]:
    lines = bash(sandbox, "grep ^Cap /proc/self/status", **spec).stdout.splitlines()
    return {name: int(value, 16) for name, value in (line.split(":\t") for line in lines)}


def built(tmp_path: Path, dockerfile: str) -> Environment:
    """Return an environment with this Dockerfile on the base image."""
    (tmp_path / "Dockerfile").write_text(f"ARG BASE\nFROM $BASE\n{dockerfile}\n")
    digest = hashlib.sha256(dockerfile.encode()).hexdigest()
    return Environment(context=tmp_path, build_args={"BASE": "assay-base"}, digest=digest)


def test_root_has_the_capabilities_that_package_managers_need_and_no_other(
    plain: DockerSandbox, bash: Bash
) -> None:
    has = capabilities(plain, bash)
    expected = sum(1 << NUMBERS[name] for name in ROOTS)
    assert has["CapEff"] == has["CapPrm"] == has["CapBnd"] == expected


def test_another_user_has_none_and_cannot_get_any(start: Start, bash: Bash) -> None:
    sandbox = start(user="1000:1000")
    assert set(capabilities(sandbox, bash).values()) == {0}
    assert set(capabilities(sandbox, bash, user="root").values()) == {0}
    assert "NoNewPrivs:\t1" in bash(sandbox, "cat /proc/self/status").stdout


def test_the_image_decides_who_is_root(
    provider: DockerSandboxes, tmp_path: Path, start: Start, bash: Bash
) -> None:
    environment = built(tmp_path, 'USER 1000\nWORKDIR /srv\nENTRYPOINT ["false"]\nHEALTHCHECK CMD false')
    sandbox = start(environment=environment, image=provider.image(environment), user=None)
    assert set(capabilities(sandbox, bash).values()) == {0}
    assert sandbox.workdir == "/srv"
    assert bash(sandbox, "id -u; pwd").stdout == "1000\n/srv\n"


def test_no_network_means_loopback_only(plain: DockerSandbox, start: Start, bash: Bash) -> None:
    assert bash(plain, "ls /sys/class/net").stdout.split() == ["lo"]
    assert bash(start(network="open"), "ls /sys/class/net").stdout.split() == ["eth0", "lo"]


def test_nothing_of_this_machine_is_mounted(plain: DockerSandbox, bash: Bash) -> None:
    assert bash(plain, "ls /run/docker.sock /var/run/docker.sock").exit_code != 0
    assert bash(plain, "mknod /dev/own b 8 0; mount -t tmpfs none /mnt; unshare -Ur true").exit_code != 0
    assert bash(plain, "ls /run/assay").exit_code != 0


@pytest.mark.parametrize(
    "plant",
    [
        "rm -rf /tests /logs; ln -s /tests /tests; echo x > /solution; ln -s /usr/bin /logs",
        "mkdir -p /logs /evil; ln -s /evil /tests; ln -s /proc/self /logs/verifier; touch /evil/reward.json",
        "mkdir -p /logs; mkfifo /tests; ln -s ../../../../etc /solution; touch /logs/verifier",
        "rm /etc/passwd /etc/group; mkfifo /etc/passwd; ln -s passwd /etc/group",
    ],
)
def test_what_an_agent_plants_at_the_verifiers_paths_neither_shows_nor_stops_it(
    start: Start, bash: Bash, plant: str
) -> None:
    """Links, loops and files there made the engine refuse the mount, mount over `/usr/bin`, or hang forever."""
    agent = start()
    assert bash(agent, plant).exit_code == 0
    fresh = ("/tests", "/solution", "/logs/verifier")
    judge = start(image=agent.snapshot(), fresh_dirs=fresh)
    listed = bash(judge, f"stat -c '%F %a %u' {' '.join(fresh)}; ls -A {' '.join(fresh)} | grep -v :").stdout
    assert listed.split("\n") == ["directory 700 0"] * 3 + [""] * 3


@pytest.mark.parametrize(
    "plant",
    [
        "echo 203.0.113.1 localhost > /etc/hosts; chmod 0 /etc/hosts",
        "rm /etc/hosts; mkdir -p /etc/hosts/x; ln -sf /etc/resolv.conf /etc/resolv.conf",
        "rm /etc/hosts; mkfifo /etc/hosts; ln -sf /logs/verifier/x /etc/resolv.conf",
        "ln -f /usr/bin/bash /etc/hosts; ln -f /usr/bin/getent /etc/resolv.conf; rm -rf /etc/nsswitch.conf",
    ],
)
def test_a_sealed_machine_knows_itself_whatever_an_agent_left(start: Start, bash: Bash, plant: str) -> None:
    agent = start()
    bash(agent, plant)
    judge = start(image=agent.snapshot())
    for name in ("localhost", "sandbox"):
        assert bash(judge, f"getent hosts {name}", user="1000").exit_code == 0, name
    assert bash(judge, "grep nameserver /etc/resolv.conf").stdout == "nameserver 127.0.0.11\n"


@pytest.mark.parametrize(
    "break_it",
    [
        "rm /bin/sleep",
        "cd /; rmdir workspace; touch workspace",
        "cd /; rmdir workspace; ln -s workspace workspace",  # the engine calls these two failures of its own
        "rm /sbin; ln -s sbin /sbin",
        # its name is in the engine's message, which was taken for that of a removed bundle
        "cd /; touch 'No such container: assay-bundle-x'; rm sbin; ln -s 'No such container: assay-bundle-x' sbin",
    ],
)
def test_a_machine_that_an_agent_broke_is_no_fault_of_the_engine(
    start: Start, bash: Bash, break_it: str
) -> None:
    agent = start()
    bash(agent, break_it)
    with pytest.raises(ImageError, match=r"does not start|no `sleep`"):
        bash(start(image=agent.snapshot()), BUSY)


def test_volumes_of_an_image_go_with_its_snapshot(
    provider: DockerSandboxes, tmp_path: Path, start: Start, bash: Bash
) -> None:
    """A commit leaves out the content of volumes, where databases usually keep their data.

    Volumes at the verifier's own places stay out: with two mounts at one path the machine did not start, which cost the
    agent its reward.
    """
    environment = built(
        tmp_path, "RUN mkdir /data && echo old > /data/f\nVOLUME /data/ /tests /logs/verifier/"
    )
    agent = start(environment=environment, image=provider.image(environment))
    bash(agent, "echo new | tee /data/f /tests/f /logs/verifier/f")
    judge = start(image=agent.snapshot(), environment=environment, fresh_dirs=("/tests", "/logs/verifier"))
    assert bash(judge, "cat /data/f; ls /tests /logs/verifier").stdout == "new\n/logs/verifier:\n\n/tests:\n"


@pytest.mark.bundle
def test_an_agents_sandbox_has_runtime_gateway_and_a_folder_of_its_own(
    provider: DockerSandboxes, start: Start, bash: Bash, tmp_path: Path
) -> None:
    provider.prepare((), print)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "gateway.sock"))
        server.listen()
        (tmp_path / "gateway.sock").chmod(0o666)
        tmp_path.chmod(0o755)
        sandbox = start(gateway_dir=tmp_path, user="1000")
        script = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({SOCKET_PATH!r}); print('connected')"
        files = {f"{AGENT_DIR}/home/.config/settings.json": "{}"}
        result = sandbox.exec(ExecSpec(argv=(PYTHON, "-c", script), files=files))
    assert (result.stdout, result.stderr) == ("connected\n", "")
    assert bash(sandbox, f"touch {GATEWAY_DIR}/x || touch /opt/assay/python/x").exit_code != 0
    assert (
        bash(sandbox, f"cd {AGENT_DIR}/home/.config && echo '[]' > settings.json && touch more").exit_code
        == 0
    )
    assert (
        bash(sandbox, f"head -c 1G /dev/zero > {AGENT_DIR}/big; stat -c %s {AGENT_DIR}/big").stdout
        < "536870913"
    )


def test_100_mb_of_output_cost_no_memory(plain: DockerSandbox, bash: Bash) -> None:
    tracemalloc.start()
    result = bash(plain, "head -c 100000000 /dev/zero")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (result.output_bytes, len(result.stdout)) == (100_000_000, 10 << 20)
    assert peak < 50 << 20


BOMB = """
import os, time
while True:
    try:
        os.fork()
    except OSError:
        print(1, flush=True)
        open("full", "w")
        time.sleep(60)
"""


@pytest.mark.parametrize("limits", [{"pids": 32}])
def test_a_fork_bomb_stays_small_and_dies(start: Start, tmp_path: Path) -> None:
    sandbox = start()

    began = time.monotonic()

    def until_full() -> float:
        if time.monotonic() - began < 3:  # a container that is being read starts no command
            return 60.0
        with suppress(FileNotFoundError):
            return float(sandbox.get("/workspace/full", tmp_path / "full.tar") - 1)
        return 60.0

    result = sandbox.exec(ExecSpec(argv=("python3", "-c", BOMB), timeout_seconds=1), extension=until_full)
    assert result.ended == "deadline"
    assert result.seconds < 50
    assert 0 < len(result.stdout.splitlines()) <= 32


@pytest.mark.parametrize("limits", [{"disk_mb": 64}])
def test_a_full_disk_ends_the_command_and_the_rest_can_be_read(
    start: Start, bash: Bash, tmp_path: Path
) -> None:
    sandbox = start()
    fill = "mkdir /fill; while :; do i=$((i + 1)); head -c 5M /dev/zero > /fill/$i; sleep 0.05; done"
    result = bash(sandbox, f"echo kept > result; {fill}", timeout_seconds=60)
    assert (result.ended, result.exit_code) == ("disk", None)
    assert sandbox.get("/workspace", tmp_path / "workspace.tar") == 1


def test_what_is_dead_is_packed_once_unless_something_is_put_there(
    start: Start, bash: Bash, tmp_path: Path
) -> None:
    """A trial once packed its workspace for the record, and again for the judge."""
    sandbox = start()
    bash(sandbox, "echo one > one")
    assert sandbox.get("/workspace", tmp_path / "alive.tar") == 1
    bash(sandbox, "echo two > two")
    sandbox.kill()
    assert sandbox.get("/workspace", tmp_path / "first.tar") == 2
    assert sandbox.get("/workspace/one", tmp_path / "first.tar") == 1, (
        "another path in the place of the first"
    )
    assert sandbox.get("/workspace", tmp_path / "same.tar") == 2
    (tmp_path / "same.tar").unlink()
    assert sandbox.get("/workspace", tmp_path / "again.tar") == 2, "packed anew, as nobody has kept it"
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "three").write_text("three")
    sandbox.put(tmp_path / "new", "/workspace/put")
    assert sandbox.get("/workspace", tmp_path / "second.tar") == 3
    connect().api.remove_container(sandbox._id)
    assert sandbox.get("/workspace", tmp_path / "third.tar") == 3
    assert (tmp_path / "third.tar").read_bytes() == (tmp_path / "second.tar").read_bytes()
    with pytest.raises(EngineError, match="No such container"):
        sandbox.get("/workspace/put", tmp_path / "other.tar")


@pytest.mark.parametrize("limits", [{"disk_mb": 64}])
def test_one_file_cannot_be_larger_than_the_disk(start: Start, bash: Bash) -> None:
    assert bash(start(), "head -c 200M /dev/zero > big; stat -c %s big").stdout == f"{64 << 20}\n"


@pytest.mark.parametrize("limits", [{"memory_mb": 64}])
def test_memory_is_limited(start: Start, bash: Bash) -> None:
    sandbox = start()
    assert bash(sandbox, "true").exit_code == 0
    assert sandbox.counted().memory_kills == 0
    assert bash(sandbox, "python3 -c 'x = bytearray(200 << 20)'").exit_code == 137
    assert sandbox.counted().memory_kills == 1, "which its exit code alone does not say"
    sandbox.kill()
    assert sandbox.counted().memory_kills == 1


def test_a_task_may_ask_for_more_cores_than_there_are(start: Start, bash: Bash) -> None:
    environment = Environment(image=base_image.tag(), cpus=1000.0, memory_mb=300)
    assert bash(start(environment=environment), "true").exit_code == 0


def test_a_workspace_of_too_many_files_is_refused(start: Start, bash: Bash, tmp_path: Path) -> None:
    sandbox = start()
    bash(sandbox, "python3 -c 'for i in range(20_001): open(str(i), \"w\")'")
    with pytest.raises(WorkspaceTooLarge, match="workspace_files"):
        sandbox.get("/workspace", tmp_path / "workspace.tar")


def test_a_container_that_dies_under_its_command_is_lost(start: Start, bash: Bash) -> None:
    sandbox = start()
    killer = threading.Timer(0.5, lambda: connect().api.kill(sandbox._id))
    killer.start()
    result = bash(sandbox, "sleep 60")
    killer.join()
    assert (result.ended, result.exit_code) == ("lost", None)
    assert bash(sandbox, "true").ended == "lost"


def test_an_image_without_bash_gives_126_and_one_without_sleep_an_error(
    provider: DockerSandboxes, tmp_path: Path, start: Start, bash: Bash
) -> None:
    environment = built(tmp_path, "RUN rm /bin/bash")
    result = bash(start(environment=environment, image=provider.image(environment)), "true")
    assert (result.exit_code, result.ended) == (126, "exited")
    assert '"bash": executable file not found' in result.stdout
    environment = built(tmp_path, "RUN rm /bin/sleep")
    sandbox = start(environment=environment, image=provider.image(environment))
    with pytest.raises(ImageError, match="no `sleep`"):
        bash(sandbox, BUSY)


def test_an_unknown_user_or_directory_is_a_result(plain: DockerSandbox, bash: Bash) -> None:
    assert bash(plain, "true", user="nobody-knows").exit_code == 126
    assert bash(plain, "true", cwd="/no/where").exit_code == 126


def test_no_engine_is_an_error_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing.sock")
    with pytest.raises(EngineError, match="make docker"):
        DockerSandboxes().image(Environment(image="x"))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_engine_that_goes_away_under_a_command_is_an_error(
    provider: DockerSandboxes, monkeypatch: pytest.MonkeyPatch, cable: Cable
) -> None:
    image = provider.image(Environment(image=base_image.tag()))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{cable.path}")
    sandbox = DockerSandboxes().open(SandboxSpec(name="cut", image=image)).__enter__()
    try:
        threading.Timer(0.5, cable.cut).start()
        began = time.monotonic()
        with pytest.raises(EngineError, match="docker info"):
            sandbox.exec(ExecSpec(argv=("sleep", "60")))
        assert time.monotonic() - began < 20
    finally:
        monkeypatch.delenv("DOCKER_HOST")
        connect().api.remove_container(sandbox._id, force=True, v=True)  # type: ignore[attr-defined]
        gc.collect()  # the client forgets to close a socket that could not be connected


class Cable:
    """A cable that carries bytes between its own socket and the engine's until it is cut."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Refuse new connections and end the existing ones."""
        self.path.unlink(missing_ok=True)
        for end in (self._listener, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, engine = self._listener.accept()[0], socket.socket(socket.AF_UNIX)
                self._ends += [client, engine]
                engine.connect("/var/run/docker.sock")
                for source, target in ((client, engine), (engine, client)):
                    threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    @staticmethod
    def _carry(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def cable(tmp_path: Path) -> Iterator[Cable]:
    cable = Cable(tmp_path / "cable.sock")
    yield cable
    cable.cut()
