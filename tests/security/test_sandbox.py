"""Everything that an agent can reach from inside its sandbox, as root and as an ordinary user."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from runner.gateway import Session
from runner.gateway.server import CONNECTIONS
from runner.sandbox.docker.engine import connect
from tests.security.conftest import CANARY, Cell, open_files
from tests.support.serving import bridge_address
from tests.support.waiting import until

pytestmark = pytest.mark.docker


def test_the_only_sockets_there_are_the_trials_own(cell: Cell) -> None:
    """Neither another trial's socket nor the Docker Engine's is there, under any name."""
    found = cell.bash("find / -xdev -type s 2>/dev/null; find /run /var/run/ /tmp /opt -type s 2>/dev/null")
    sockets = {f"/run/assay/gateway/{name}.sock" for name in ("dns", "egress", "gateway")}
    assert set(found.stdout.split()) <= {*sockets, *(f"/var{path}" for path in sockets)}
    assert set(found.stdout.split()) >= sockets
    assert cell.bash("ls /sys/class/net").stdout.split() == ["lo"]
    assert cell.bash("grep -c '@' /proc/net/unix").stdout.strip() == "0"


def test_no_port_of_this_machine_answers(cell: Cell) -> None:
    """Tried directly, and through the proxy in every spelling."""
    with socket.create_server(("0.0.0.0", 0)) as server, socket.socket(type=socket.SOCK_DGRAM) as probe:
        port = server.getsockname()[1]
        probe.connect(("198.51.100.1", 9))
        addresses = ["127.0.0.1", "::1", probe.getsockname()[0], bridge_address()]
        reached = cell.python(
            f"""
reached = []
for address in {addresses!r}:
    try: socket.create_connection((address, {port}), timeout=2); reached.append(address)
    except OSError: pass
    for asked in ({port}, 80, 443):
        name = f"[{{address}}]" if ":" in address else address
        for line in (f"CONNECT {{name}}:{{asked}}", f"GET http://{{name}}:{{asked}}/"):
            answer = ask(line + " HTTP/1.1\\r\\n\\r\\n", "/run/assay/gateway/egress.sock")
            if not answer.startswith("HTTP/1.1 403"): reached.append([line, answer])
print(json.dumps(reached))
"""
        )
    assert reached == []
    assert {attempt.allowed for attempt in cell.egress.attempts} == {False}


def test_connections_to_bare_addresses_are_counted_whatever_is_done_about_it(cell: Cell) -> None:
    """The kernel counts them, in files that only it writes, for a network that no process can leave."""
    before = cell.sandbox.counted().unrouted
    left = cell.python(
        """
left = []
for kind, address in ((socket.SOCK_STREAM, "203.0.113.1"), (socket.SOCK_DGRAM, "198.51.100.1")):
    with socket.socket(type=kind) as s: s.connect_ex((address, 443))
for address in ("::ffff:203.0.113.1", "2001:db8::1"):
    with socket.socket(socket.AF_INET6) as s: s.connect_ex((address, 443))
for file in ("snmp", "netstat"):
    try: os.write(os.open(f"/proc/net/{file}", os.O_WRONLY), b"0"); left.append(file)
    except OSError: pass
for spaces in (os.CLONE_NEWNET, os.CLONE_NEWNET | os.CLONE_NEWUSER):
    try: os.unshare(spaces); left.append("its network")
    except OSError: pass
with socket.socket() as s: s.connect_ex(("203.0.113.1", 443))
with socket.socket() as s: s.connect_ex(("127.0.0.1", 9))
with socket.socket(socket.AF_INET6) as s: s.connect_ex(("::1", 9))
print(json.dumps(left))
"""
    )
    assert left == []
    assert before is not None
    assert cell.sandbox.counted().unrouted == before + 5, "and not what stays inside"


LOOK_UP = """
import time
def look_up(name):
    began = time.monotonic()
    try: socket.getaddrinfo(name, 443); return "found"
    except OSError as error: return str(error), time.monotonic() - began < 20
answers = [look_up("looked-up.example"), look_up("looked-up.allowed.example")]
home = [socket.gethostbyname(name) for name in ("localhost", socket.gethostname())]
flood = socket.socket(type=socket.SOCK_DGRAM)
flood.connect(("127.0.0.11", 53))
for number in range(100_000):
    flood.send(os.urandom(number % 40) if number % 2 else b"\\xc0\\x0c" * 300)
for _ in range(20):  # a resolver gives up after two seconds, and a busy machine works longer on a flood
    last = look_up("after-the-flood.example")
    if "Temporary" not in last[0]: break
answers.append(last)
try: socket.create_connection(("198.51.100.7", 443), timeout=20); refusal = None
except OSError as error: refusal = error.strerror
print(json.dumps([answers, home, refusal]))
"""


def test_names_lead_nowhere_and_are_heard_through_a_flood(cell: Cell) -> None:
    """This machine's resolver is not used. A bare address is unreachable at once, without our noticing."""
    resolver = cell.bash("grep -v ^# /etc/resolv.conf").stdout.splitlines()
    assert {*resolver} - {"", "search ."} == {"nameserver 127.0.0.11", "options timeout:1"}
    answers, home, refusal = cell.python(LOOK_UP, supervised=True)
    assert answers == [["[Errno -2] Name or service not known", True]] * 3
    assert home == ["127.0.0.1", "127.0.0.1"], "its own names are no attempt to leave"
    assert refusal == "Network is unreachable"
    heard = {attempt.host: attempt for attempt in cell.egress.attempts if attempt.way == "dns"}
    assert heard.keys() == {
        "looked-up.example",
        "looked-up.allowed.example",
        "after-the-flood.example",
        "(unreadable)",
    }
    assert heard["looked-up.example"].count == 2, "for both kinds of address"
    assert not any(attempt.allowed for attempt in heard.values())


def test_another_resolver_gains_nothing(cell: Cell) -> None:
    """A root agent may name another resolver, but reaches none, not even ours when no program of ours runs."""
    began = time.monotonic()
    cell.bash("cp /etc/resolv.conf /tmp; echo nameserver 198.51.100.53 > /etc/resolv.conf")
    assert cell.bash("getent hosts elsewhere.example").exit_code == 2
    cell.bash("cat /tmp/resolv.conf > /etc/resolv.conf")
    assert cell.bash("getent hosts elsewhere.example").exit_code == 2
    assert time.monotonic() - began < 40
    assert "elsewhere.example" not in {attempt.host for attempt in cell.egress.attempts}


SEARCH = """
needle = os.environ.pop("BACKWARDS")[::-1].encode()
found = []
def look(path):
    try:
        with open(path, "rb") as file:
            if needle in file.read(): found.append(path)
    except OSError: pass
for folder, folders, files in os.walk("/"):
    if folder == "/": folders[:] = [name for name in folders if name not in ("proc", "sys", "dev")]
    for name in files:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and not os.path.islink(path): look(path)
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline", "mountinfo", "maps"): look(f"/proc/{pid}/{name}")
print(json.dumps(found))
"""


def test_the_providers_key_is_nowhere_inside(cell: Cell) -> None:
    """The search starts after a call that used the key. It finds what the agent planted itself, so it works."""
    answer = cell.python(f"print(json.dumps(call({cell.session.key!r})))")
    assert "200 OK" in answer
    assert "hello" in answer
    assert CANARY not in answer
    assert cell.python(SEARCH, BACKWARDS=CANARY[::-1]) == []
    assert CANARY not in json.dumps(connect().api.inspect_container(cell.sandbox._id))
    assert CANARY not in cell.session.spec.ledger.read_text()
    planted = "planted-0123456789"
    cell.bash(f"echo {planted} > /tmp/planted; {planted[0]}=1; sleep 600 >/dev/null 2>&1 &", SECRET=planted)
    found = cell.python(SEARCH, BACKWARDS=planted[::-1])
    assert "/tmp/planted" in found
    assert any(path.endswith("/environ") for path in found)


def test_another_trials_key_opens_nothing_here(cell: Cell) -> None:
    before = len(cell.session.calls)
    assert "401 Unauthorized" in cell.python(f"print(json.dumps(call({cell.other.key!r})))")
    assert cell.other.calls == ()
    assert len(cell.session.calls) == before


def test_what_is_ours_inside_cannot_be_changed(cell: Cell) -> None:
    for command in (
        "touch /opt/assay/python/x",
        "echo x >> /opt/assay/python/supervise.py",
        "rm -f /opt/assay/python/supervise.py && test ! -e /opt/assay/python/supervise.py",
        "rm -f /run/assay/gateway/gateway.sock && test ! -e /run/assay/gateway/gateway.sock",
        "mv /run/assay/gateway /run/assay/mine",
        "mount -o remount,rw /opt/assay/python",
    ):
        assert cell.bash(command).exit_code != 0, command


def test_the_machine_beneath_is_out_of_reach(cell: Cell) -> None:
    for command in (
        "mount -t tmpfs none /mnt",
        "mknod /tmp/disk b 8 0",
        "unshare -n true",
        "unshare -U true",
        "cat /dev/kmsg",
        "cat /proc/kcore",
        "echo 1 > /proc/sys/kernel/sysrq",
        "echo core > /proc/sys/kernel/core_pattern",
        "echo x > /sys/kernel/uevent_helper",
        "ls /dev | grep -E '^(sd|vd|nvme|xvd|mem$|kmem$|port$)'",
        "dmesg",
    ):
        assert cell.bash(command).exit_code != 0, command
    status = Path("/proc/self/status").read_text()
    assert "NoNewPrivs:\t0" in status, "else the next line shows nothing"
    assert "NoNewPrivs:\t1" in cell.bash("cat /proc/self/status").stdout
    assert "Seccomp:\t2" in cell.bash("cat /proc/self/status").stdout


def test_only_its_own_processes_can_be_traced(cell: Cell) -> None:
    """Only the container's own processes are visible."""
    names = cell.bash("cat /proc/[0-9]*/comm").stdout.split()
    assert {"dockerd", "containerd", "pytest"}.isdisjoint(names)
    assert len(names) < 20


def test_a_key_is_dead_when_its_trial_ends(cell: Cell, sessions: Callable[[str], Session]) -> None:
    """The key is dead on older connections, too."""
    session = sessions("ended")
    with socket.socket(socket.AF_UNIX) as early:
        early.connect(str(session.socket_dir / "gateway.sock"))
        session.close()
        early.settimeout(20)
        early.sendall(
            f"GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {session.key}\r\n\r\n".encode()
        )
        answer = early.recv(65_536)
    assert b"200 OK" not in answer
    assert not session.socket_dir.exists()
    assert "401 Unauthorized" in cell.python(f"print(json.dumps(call({session.key!r})))")


def _after(seconds: float) -> int:
    time.sleep(seconds)
    return open_files()


FLOOD = """
import resource, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
held = []
for number in range(1000):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    try:
        s.connect("/run/assay/gateway/" + ("gateway.sock", "egress.sock")[number % 2])
        s.sendall(b"POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\n")
    except OSError: pass
    held.append(s)
open("/tmp/flooded", "w").close()
while os.path.exists("/tmp/flooded"): time.sleep(0.1)
print(json.dumps(len(held)))
"""


def test_a_flood_of_connections_takes_nothing_from_other_trials(cell: Cell) -> None:
    """The flood is 1,000 connections at once, each with half a request."""
    before = open_files()
    transport = httpx.HTTPTransport(uds=str(cell.other.socket_dir / "gateway.sock"), verify=False)
    head = {"authorization": f"Bearer {cell.other.key}"}
    body = {"model": "fake", "messages": [{"role": "user", "content": "hi"}]}
    cell.bash("rm -f /tmp/flooded")
    with (
        ThreadPoolExecutor(1) as pool,
        httpx.Client(transport=transport, base_url="http://x", headers=head, timeout=30) as client,
    ):
        flood = pool.submit(cell.python, FLOOD)
        until(lambda: cell.bash("test -e /tmp/flooded").exit_code == 0)
        began = time.monotonic()
        answer = client.post("/v1/chat/completions", json=body)
        seconds = time.monotonic() - began
        during = min(_after(0.5) for _ in range(4))
        cell.bash("rm /tmp/flooded")
        assert flood.result() == 1000
    assert answer.status_code == 200
    assert seconds < 20
    assert during - before < 6 * CONNECTIONS, "descriptors of the runner"
