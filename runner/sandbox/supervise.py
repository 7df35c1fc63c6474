"""Run one command inside a sandbox, with ports to the gateway and out, a deadline and an exit code.

    python3 supervise.py [--socket PATH [--port N]] [--egress PATH [--egress-port N]] [--dns PATH [--dns-at HOST:PORT]]
                         [--deadline SECONDS] [--stdin FILE] -- COMMAND ARGUMENT...

A copy of this file lies in the `python` bundle and runs on the bundle's closed interpreter, so it imports nothing but
the standard library. Exit code: the command's own; 128 + n when signal n ended it; 124 after the deadline; 125 when the
supervisor could not be set up; 126 or 127 when the command could not be started.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time

TERM_SECONDS = 5.0
"""Time from asking the command's process group to end until it is killed."""
FLOODED_SECONDS = 0.05
"""Pause before accepting the next connection when there was no room for one."""
CHUNK = 65_536
GIVEN = {name[1:]: value for name, value in os.environ.items() if name[0] == "+"} or dict(os.environ)
"""Environment of the command. The bundle's closed interpreter receives every variable with a `+` before its name, so
that none affects it; other interpreters receive them unchanged."""


def main(arguments: list[str]) -> int:
    """Set up the ports and the input, run the command, and return its exit code."""
    split = arguments.index("--")
    options, command = _options(arguments[:split]), arguments[split + 1 :]
    try:
        for path, port in (("--socket", "--port"), ("--egress", "--egress-port")):
            if options[path]:
                _listen(("127.0.0.1", int(options[port])), options[path])
        stdin = os.open(options["--stdin"], os.O_RDONLY)
    except OSError as error:
        _say(f"cannot set up the sandbox's supervisor: {error}")
        return 125
    if options["--dns"]:
        host, _, port = options["--dns-at"].rpartition(":")
        _hear((host, int(port)), options["--dns"])
    return _run(command, stdin, float(options["--deadline"]))


def _options(arguments: list[str]) -> dict[str, str]:
    """Return option -> value. All command lines are our own, and argparse would double the start's time."""
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    ports = {"--socket": "", "--port": "4180", "--egress": "", "--egress-port": "4181"}
    defaults = {**ports, "--dns": "", "--dns-at": "127.0.0.11:53", "--deadline": "inf", "--stdin": os.devnull}
    if unknown := given.keys() - defaults:
        raise ValueError(f"unknown options: {sorted(unknown)}")
    return defaults | given


def _run(command: list[str], stdin: int, deadline: float) -> int:
    """Run the command in its own process group until it ends or the deadline passes."""
    try:
        child = subprocess.Popen(command, env=GIVEN, stdin=stdin, process_group=0)
    except OSError as error:
        _say(f"cannot start {command[0]}: {error.strerror}")
        return 127 if isinstance(error, FileNotFoundError) else 126
    try:
        code = child.wait(deadline if math.isfinite(deadline) else None)
    except subprocess.TimeoutExpired:
        _say(f"the deadline of {deadline:g} s has passed; ending the command")
        _end(child)
        return 124
    return code if code >= 0 else 128 - code


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the command's whole process group; kill what still runs after TERM_SECONDS."""
    os.killpg(child.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(TERM_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _listen(address: tuple[str, int], path: str) -> None:
    """Start carrying connections from an address inside to one of the gateway's sockets."""
    listener = socket.create_server(address, backlog=128)
    threading.Thread(target=_forward, args=(listener, path), daemon=True).start()


def _hear(address: tuple[str, int], path: str) -> None:
    """Start passing name lookups on to our side, which records them. A task's own name server is left alone."""
    try:
        questions = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        questions.bind(address)
        ours = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.connect(path)
        _listen(address, path)  # a TCP lookup already has the format that our side takes
    except OSError as error:
        _say(f"names that the command looks up will not be recorded: {error}")
        return
    threading.Thread(target=_ask, args=(questions, ours), daemon=True).start()


def _ask(questions: socket.socket, ours: socket.socket) -> None:
    """Carry datagrams one by one as messages of a stream, and the answers back, until the stream breaks."""
    with contextlib.suppress(OSError), questions, ours, ours.makefile("rb") as answers:
        while True:
            question, asker = questions.recvfrom(CHUNK)
            ours.sendall(len(question).to_bytes(2) + question)
            questions.sendto(answers.read(int.from_bytes(answers.read(2))), asker)


def _forward(listener: socket.socket, path: str) -> None:
    while True:
        try:
            client, _ = listener.accept()
            threading.Thread(target=_carry, args=(client, path), daemon=True).start()
        except (OSError, RuntimeError):  # no descriptor or thread left: the command floods it
            time.sleep(FLOODED_SECONDS)


def _carry(client: socket.socket, path: str) -> None:
    """Carry bytes between one connection and one of the gateway's sockets until both directions have ended."""
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with client, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gateway:
        try:
            gateway.connect(path)
        except OSError as error:
            _say(f"the gateway does not answer: {error}")
            return
        back = threading.Thread(target=_answer, args=(gateway, client), daemon=True)
        back.start()
        _request(client, gateway)
        back.join()


def _request(client: socket.socket, gateway: socket.socket) -> None:
    """Copy until end of file and pass that on.

    A gateway that has already answered may stop reading. The rest is read anyway, or the client would see a broken
    connection instead of that answer.
    """
    hears = True
    try:
        while data := client.recv(CHUNK):
            try:
                if hears:
                    gateway.sendall(data)
            except OSError:
                hears = False
    except OSError:
        _break(client, gateway)
        return
    with contextlib.suppress(OSError):
        gateway.shutdown(socket.SHUT_WR)


def _answer(gateway: socket.socket, client: socket.socket) -> None:
    """Copy until end of file and pass that on. A client that stops reading ends both directions at once."""
    try:
        while data := _received(gateway):
            client.sendall(data)
        client.shutdown(socket.SHUT_WR)
    except OSError:
        _break(client, gateway)


def _received(gateway: socket.socket) -> bytes:
    """Return the next bytes; empty at the end. A gateway that ends with unread input resets the connection."""
    try:
        return gateway.recv(CHUNK)
    except ConnectionResetError:
        return b""


def _break(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _say(sentence: str) -> None:
    print(f"assay: {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    # A thread that still carries bytes must not hold up the exit.
    os._exit(main(sys.argv[1:]))
