"""Names that a sandbox looks up: any bytes of an agent are counted as a name and answered with no address."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.gateway import egress as module
from runner.gateway.egress import Egress
from runner.gateway.name_server import PAUSE_SECONDS, UNREADABLE, answer
from runner.records import EgressAttempt
from runner.sandbox.network import HOST

HEAD = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
"""Header of a query with one question and the recursion flag."""
ADDRESS = b"\x00\x01\x00\x01"
NONE_SUCH, MALFORMED = 3, 1


def query(name: str) -> bytes:
    labels = b"".join(bytes((len(label),)) + label.encode() for label in name.split("."))
    return HEAD + labels + b"\0" + ADDRESS


def attempt(name: str, count: int = 1, *, allowed: bool = False) -> EgressAttempt:
    return EgressAttempt(host=name, port=53, way="dns", allowed=allowed, count=count)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Egress]:
    with Egress(tmp_path, ("*.allowed.example",)) as server:
        yield server


def connection(server: Egress) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(20)
    client.connect(str(server.folder / "dns.sock"))
    return client


def framed(message: bytes) -> bytes:
    return len(message).to_bytes(2) + message


def ask(client: socket.socket, message: bytes) -> bytes:
    client.sendall(framed(message))
    with client.makefile("rb") as answers:
        return answers.read(int.from_bytes(answers.read(2)))


def test_a_name_is_heard_and_there_is_none_such() -> None:
    name, reply = answer(query("Some_Host.Example"))
    assert name == "some_host.example", "a resolver may vary the case to tell answers apart"
    assert reply == b"\x12\x34\x81\x83" + HEAD[4:] + query("Some_Host.Example")[12:]


def test_what_follows_the_question_is_not_answered() -> None:
    extension = b"\0\0\x29\x04\xd0\0\0\0\0\0\0"
    assert answer(query("a.example")[:11] + b"\1" + query("a.example")[12:] + extension) == answer(
        query("a.example")
    )


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x12",
        HEAD,
        query("a.example")[:-1],
        b"\x12\x34\x81" + query("a.example")[3:],  # an answer instead of a question
        HEAD + b"\xc0\x0c" + ADDRESS,  # a pointer to itself
        HEAD + b"\x01a\xc0\x0c" + ADDRESS,
        HEAD + b"\x40" + b"a" * 64 + b"\0" + ADDRESS,  # a label that is too long
        HEAD + b"\x3fcut",
        HEAD + (b"\x3f" + b"a" * 63) * 4 + b"\0" + ADDRESS,  # a name that is too long
        HEAD + b"\x01a" * 30_000 + b"\0" + ADDRESS,
    ],
)
def test_what_is_no_question_is_malformed(message: bytes) -> None:
    name, reply = answer(message)
    assert name == UNREADABLE
    assert reply == message[:2].ljust(2, b"\0") + reply[2:3] + bytes((0x80 | MALFORMED,)) + bytes(8)
    assert reply[2] & 0x80


@pytest.mark.parametrize("label", [b"a\nb", b"\x1b[2J", b"\xff\xfe", b"a b", b"a.b/c"])
def test_a_name_that_no_host_has_does_not_reach_the_record(label: bytes) -> None:
    name, reply = answer(HEAD + bytes((len(label),)) + label + b"\0" + ADDRESS)
    assert (name, reply[3]) == (UNREADABLE, 0x80 | NONE_SUCH)


@given(st.binary(max_size=600) | st.binary(max_size=600).map(HEAD.__add__))
def test_any_bytes_have_one_short_answer(message: bytes) -> None:
    name, reply = answer(message)
    assert name == UNREADABLE or (HOST.fullmatch(name) and len(name) <= 253)
    assert 12 <= len(reply) <= 12 + 255 + 4
    assert reply[2] & 0x80


def test_questions_are_counted_by_name(server: Egress) -> None:
    """The questions come on several connections, some in pieces."""
    before = server.hears_lookups
    with connection(server) as client:
        for message in (query("b.example"), query("A.allowed.example"), os.urandom(3), query("B.example")):
            reply = ask(client, message)
            assert reply[:2] == message[:2]
        *pieces, rest = (bytes((byte,)) for byte in query("c.example"))
        client.sendall((len(pieces) + 1).to_bytes(2))
        for piece in pieces:
            client.sendall(piece)
        client.sendall(rest)
        assert client.recv(100)[5] == 0x80 | NONE_SUCH
    assert (before, server.hears_lookups) == (False, True)
    assert server.attempts[0] == attempt("b.example", 2)
    assert set(server.attempts[1:]) == {
        attempt("a.allowed.example", allowed=True),
        attempt("c.example"),
        attempt(UNREADABLE),
    }


def test_one_that_hangs_up_takes_nothing_along(server: Egress) -> None:
    for piece in (b"", b"\0", b"\0\x20half", b"\xff\xff" + b"x" * 60_000):
        with connection(server) as client:
            client.sendall(piece)
    with connection(server) as client:
        client.sendall(framed(query("a.example")) * 1000)  # it never reads
    with connection(server) as client:
        assert ask(client, query("z.example"))[3] == 0x80 | NONE_SUCH
    assert attempt("z.example") in server.attempts


def test_a_flood_of_questions_is_slowed_on_however_many_connections(server: Egress) -> None:
    clients, each = 8, 50
    began = time.monotonic()
    connections = [connection(server) for _ in range(clients)]
    for client in connections:
        client.sendall(framed(query("a.example")) * each)
    for client in connections:
        with client, client.makefile("rb") as answers:
            assert len(answers.read(each * len(framed(query("a.example"))))) > 0
    assert time.monotonic() - began >= clients * each * PAUSE_SECONDS
    assert server.attempts == (attempt("a.example", clients * each),)


def test_names_without_end_take_no_memory_without_end(server: Egress) -> None:
    with connection(server) as client:
        for number in range(module.ROWS + 20):
            ask(client, query(f"n{number}.example"))
    assert len(server.attempts) == module.ROWS + 1
    assert server.attempts[0] == EgressAttempt(host="(others)", port=0, way="dns", allowed=False, count=20)


def test_the_end_comes_at_once_though_one_still_asks(tmp_path: Path) -> None:
    with Egress(tmp_path, ()) as server:
        client = connection(server)
        ask(client, query("a.example"))
        client.sendall(framed(query("a.example")) * 5000)
        began = time.monotonic()
    assert time.monotonic() - began < 5000 * PAUSE_SECONDS, "not after all"
    client.close()
    assert not (tmp_path / "dns.sock").exists()
