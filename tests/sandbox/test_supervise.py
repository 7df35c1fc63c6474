"""The supervisor as it runs in sandboxes: a separate program with real processes and sockets."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import randrange
from threading import Thread

import pytest

from runner.records import ExecSpec
from runner.sandbox import inside, supervise

PROGRAM = Path(supervise.__file__)
Handler = Callable[[socket.socket], None]


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(PROGRAM), *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def port() -> int:
    """Return a free port that no system assigns to anybody else before it is used."""
    while True:
        with suppress(OSError), socket.create_server(("127.0.0.1", randrange(10_000, 30_000))) as probe:
            return int(probe.getsockname()[1])


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Callable[[Handler], str]]:
    """Serve a Unix socket, with a thread per connection. The fixture takes the handler and returns the path."""
    with socket.socket(socket.AF_UNIX) as listener:

        def serve(handle: Handler) -> str:
            listener.bind(str(tmp_path / "gateway.sock"))
            listener.listen(64)
            Thread(target=accept, args=(handle,), daemon=True).start()
            return str(tmp_path / "gateway.sock")

        def accept(handle: Handler) -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                Thread(target=handle, args=(connection,), daemon=True).start()

        yield serve
        listener.shutdown(socket.SHUT_RDWR)


def echo(connection: socket.socket) -> None:
    """Send everything back, but only after the other side has finished."""
    with connection:
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
        connection.sendall(received)


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)],
)
def test_exit_code_is_the_commands(script: str, code: int) -> None:
    assert run("--", "sh", "-c", script).returncode == code


@pytest.mark.parametrize(("command", "code"), [("/nowhere/agent", 127), ("/etc/passwd", 126)])
def test_command_that_cannot_start(command: str, code: int) -> None:
    done = run("--", command)
    assert done.returncode == code
    assert f"assay: cannot start {command}" in done.stderr


def test_a_prompt_longer_than_one_argument_may_be_says_so() -> None:
    script = f"import sys; sys.argv = ['', '--', 'true', 'x' * 200_000]; exec(open({str(PROGRAM)!r}).read())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 126
    assert "Argument list too long" in done.stderr


def test_arguments_reach_the_command_unchanged() -> None:
    arguments = ["--deadline", "--", "a b", "", "--socket=x", "é\n"]
    code = "import sys; print(sys.argv[1:])"
    assert run("--", sys.executable, "-c", code, *arguments).stdout == f"{arguments}\n"


def test_stdin_is_empty_unless_a_file_is_named(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt"
    prompt.write_text("x" * 400_000)
    assert run("--", "wc", "-c", stdin="not for the command").stdout.strip() == "0"
    assert run("--stdin", str(prompt), "--", "wc", "-c").stdout.strip() == "400000"


def test_missing_stdin_file_is_a_set_up_failure() -> None:
    done = run("--stdin", "/nowhere", "--", "true")
    assert done.returncode == 125
    assert "/nowhere" in done.stderr


def test_deadline_lets_the_command_end_gently(tmp_path: Path) -> None:
    saved = tmp_path / "trajectory"
    script = f"trap 'echo saved > {saved}; exit 3' TERM; sleep 60 & wait"
    done = run("--deadline", "2", "--", "sh", "-c", script)
    assert done.returncode == inside.DEADLINE_EXIT_CODE
    assert "deadline of 2 s has passed" in done.stderr
    assert saved.read_text() == "saved\n"


def test_deadline_kills_what_ignores_it_and_its_children() -> None:
    script = "trap '' TERM; sleep 61.25 & while true; do sleep 0.1; done"
    started = time.monotonic()
    done = run("--deadline", "2", "--", "sh", "-c", script)
    assert time.monotonic() - started > supervise.TERM_SECONDS
    assert done.returncode == inside.DEADLINE_EXIT_CODE
    assert subprocess.run(["pgrep", "-f", "sleep 61.25"], capture_output=True, check=False).stdout == b""


def test_connections_are_carried_byte_for_byte_in_parallel(
    port: int, gateway: Callable[[Handler], str]
) -> None:
    """This includes half-closed connections: the echo answers only after the client's end of file has come through."""
    client = f"""
import os, socket, threading
equal = []
def call(n):
    data = os.urandom(300_000 + n)
    with socket.create_connection(("127.0.0.1", {port})) as s:
        threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))).start()
        back = b"".join(iter(lambda: s.recv(65536), b""))
    equal.append(back == data)
threads = [threading.Thread(target=call, args=(n,)) for n in range(40)]
[t.start() for t in threads]; [t.join() for t in threads]; print(equal.count(True))
"""
    done = run("--socket", gateway(echo), "--port", str(port), "--", sys.executable, "-c", client)
    assert done.stdout == "40\n"


def test_port_listens_before_the_command_starts(port: int, gateway: Callable[[Handler], str]) -> None:
    path = gateway(lambda connection: connection.close())
    client = f'import socket; socket.create_connection(("127.0.0.1", {port})).close()'
    command = ("--socket", path, "--port", str(port), "--", sys.executable, "-S", "-c", client)
    assert [run(*command).returncode for _ in range(8)] == [0] * 8


def test_events_pass_as_they_come(port: int, gateway: Callable[[Handler], str]) -> None:
    """An SSE stream must not be held back until it is complete: the second event waits for the client to confirm the
    first.
    """

    def stream(connection: socket.socket) -> None:
        with connection:
            connection.sendall(b"data: 1\n\n")
            assert connection.recv(1) == b"!"
            connection.sendall(b"data: 2\n\n")

    client = f"""
import socket
s = socket.create_connection(("127.0.0.1", {port}), timeout=20)
print(s.recv(100)); s.sendall(b"!"); print(s.recv(100), s.recv(100))
"""
    done = run("--socket", gateway(stream), "--port", str(port), "--", sys.executable, "-c", client)
    assert done.stdout == "b'data: 1\\n\\n'\nb'data: 2\\n\\n' b''\n"


def test_gateway_that_hangs_up_ends_the_connection(port: int, gateway: Callable[[Handler], str]) -> None:
    client = f"""
import socket
with socket.create_connection(("127.0.0.1", {port}), timeout=20) as s:
    try: print(s.recv(1))
    except ConnectionError: print(b"")
"""
    path = gateway(lambda connection: connection.close())
    assert run("--socket", path, "--port", str(port), "--", sys.executable, "-c", client).stdout == "b''\n"


def refuse(connection: socket.socket) -> None:
    """Answer a request of which only the beginning was read."""
    with connection:
        connection.recv(10)
        connection.sendall(b"too large")


def test_an_answer_before_the_requests_end_arrives(port: int, gateway: Callable[[Handler], str]) -> None:
    """In one of four large refused requests, the client saw a broken connection instead."""
    code = f"""
import socket
for number in range(40):
    with socket.create_connection(("127.0.0.1", {port})) as client:
        client.settimeout(20)
        client.sendall(bytes(4_000_000))
        client.shutdown(socket.SHUT_WR)
        said = b"".join(iter(lambda: client.recv(100), b""))
        assert said == b"too large", (number, said)
"""
    done = run("--socket", gateway(refuse), "--port", str(port), "--", sys.executable, "-c", code)
    assert (done.returncode, done.stderr) == (0, "")


def test_absent_gateway_closes_connections_and_spares_the_command(port: int, tmp_path: Path) -> None:
    client = f'import socket; print(socket.create_connection(("127.0.0.1", {port}), timeout=20).recv(1))'
    command = (
        "--socket",
        str(tmp_path / "none.sock"),
        "--port",
        str(port),
        "--",
        sys.executable,
        "-c",
        client,
    )
    done = run(*command)
    assert (done.returncode, done.stdout) == (0, "b''\n")
    assert "the gateway does not answer" in done.stderr


def test_port_in_use_stops_before_the_command(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run("--socket", str(tmp_path / "s"), "--port", port, "--", "sh", "-c", "echo ran")
    assert (done.returncode, done.stdout) == (125, "")


def test_idle_connection_does_not_hold_up_the_exit(port: int, gateway: Callable[[Handler], str]) -> None:
    def idle(connection: socket.socket) -> None:
        with connection:
            while connection.recv(1):
                pass

    client = f"""
import os, socket
s = socket.create_connection(("127.0.0.1", {port})); s.sendall(b"x")
os.set_inheritable(s.fileno(), True); os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "20")
"""
    started = time.monotonic()
    command = ["--socket", gateway(idle), "--port", str(port), "--", sys.executable, "-c", client]
    code = subprocess.call([sys.executable, "-I", "-S", str(PROGRAM), *command])
    assert code == 0
    assert time.monotonic() - started < 15


def test_supervised_command_line() -> None:
    spec = ExecSpec(argv=("agent", "--", "x"), env={"A": "1"}, cwd="/app", timeout_seconds=60)
    wrapped = inside.supervised(spec, gateway=True)
    assert wrapped.argv == (
        *("/opt/assay/python/closed/bin/python3", "/opt/assay/python/supervise.py"),
        *("--socket", "/run/assay/gateway/gateway.sock", "--port", "4180", "--deadline", "60"),
        *("--", "agent", "--", "x"),
    )
    assert wrapped == spec.model_copy(update={"argv": wrapped.argv, "timeout_seconds": 70.0})


def test_supervised_without_gateway_and_deadline() -> None:
    spec = ExecSpec(argv=("true",))
    assert inside.supervised(spec, gateway=False).argv == (*inside.SUPERVISOR, "--", "true")


def test_one_supervisor_serves_a_fed_command_too() -> None:
    spec = ExecSpec(argv=inside.fed(("agent", "-"), "/run/assay/agent/prompt.md"), timeout_seconds=0.5)
    assert inside.supervised(spec, gateway=False).argv == (
        *inside.SUPERVISOR,
        *("--deadline", "0.5", "--stdin", "/run/assay/agent/prompt.md", "--", "agent", "-"),
    )


def test_the_way_out_is_a_second_door_of_the_same_supervisor() -> None:
    spec = ExecSpec(argv=("agent",), env={"no_proxy": "mine"}, timeout_seconds=60)
    wrapped = inside.proxied(inside.supervised(spec, gateway=True))
    assert wrapped.argv == (
        *inside.SUPERVISOR,
        *("--egress", "/run/assay/gateway/egress.sock", "--egress-port", "4181"),
        *("--dns", "/run/assay/gateway/dns.sock", "--dns-at", "127.0.0.11:53"),
        *("--socket", "/run/assay/gateway/gateway.sock", "--port", "4180", "--deadline", "60", "--", "agent"),
    )
    assert wrapped.env["https_proxy"] == wrapped.env["HTTP_PROXY"] == "http://127.0.0.1:4181"
    assert (wrapped.env["no_proxy"], wrapped.env["NO_PROXY"]) == ("mine", "localhost,127.0.0.1,::1,0.0.0.0")


def test_a_flood_of_connections_does_not_end_the_forwarding(
    port: int, gateway: Callable[[Handler], str]
) -> None:
    """The forwarder has no descriptor left for a while; afterwards the next connection is carried."""
    client = f"""
import socket, time
held = [socket.create_connection(("127.0.0.1", {port})) for _ in range(100)]
time.sleep(0.3)
for s in held: s.close()
time.sleep(0.3)
with socket.create_connection(("127.0.0.1", {port}), timeout=20) as s:
    s.sendall(b"x"); s.shutdown(socket.SHUT_WR); print(s.recv(1))
"""
    limited = 'ulimit -Sn 60; exec "$@"'
    command = [sys.executable, "-I", "-S", str(PROGRAM), "--socket", gateway(echo), "--port", str(port), "--"]
    restored = ["sh", "-c", 'ulimit -Sn 500; exec "$@"', "sh", sys.executable, "-c", client]
    done = subprocess.run(
        ["sh", "-c", limited, "sh", *command, *restored],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "b'x'\n", done


def shout(connection: socket.socket) -> None:
    """Answer each message, after its length, in capitals."""
    with connection, connection.makefile("rwb") as messages:
        while length := messages.read(2):
            answer = messages.read(int.from_bytes(length)).upper()
            messages.write(len(answer).to_bytes(2) + answer)
            messages.flush()


def test_questions_are_carried_unread_as_datagrams_and_in_a_stream(
    port: int, gateway: Callable[[Handler], str]
) -> None:
    client = f"""
import socket
with socket.socket(type=socket.SOCK_DGRAM) as s:
    s.settimeout(20)
    for question in (b"one", b"", b"x" * 60_000):
        s.sendto(question, ("127.0.0.1", {port})); print(s.recv(65536)[:9])
with socket.create_connection(("127.0.0.1", {port}), timeout=20) as s:
    s.sendall(b"\\0\\3two"); print(s.recv(9))
"""
    done = run("--dns", gateway(shout), "--dns-at", f"127.0.0.1:{port}", "--", sys.executable, "-c", client)
    assert done.stdout.splitlines() == ["b'ONE'", "b''", "b'XXXXXXXXX'", "b'\\x00\\x03TWO'"], done


def test_lookups_fail_at_once_when_our_side_is_gone(port: int, gateway: Callable[[Handler], str]) -> None:
    client = f"""
import socket
with socket.socket(type=socket.SOCK_DGRAM) as s:
    s.settimeout(0.2); s.connect(("127.0.0.1", {port}))
    for _ in range(200):
        try: s.send(b"x"); s.recv(9)
        except TimeoutError: pass
        except ConnectionRefusedError: print("refused"); break
"""
    path = gateway(lambda connection: connection.close())
    done = run("--dns", path, "--dns-at", f"127.0.0.1:{port}", "--", sys.executable, "-c", client)
    assert done.stdout == "refused\n", done


def test_a_task_that_serves_names_itself_is_left_alone(gateway: Callable[[Handler], str]) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run("--dns", gateway(shout), "--dns-at", place, "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "names that the command looks up will not be recorded" in done.stderr


def test_outside_deadline_leaves_time_for_the_inside_one() -> None:
    assert inside.GRACE_SECONDS > supervise.TERM_SECONDS
