"""A command's stream: all its output arrives, in whatever pieces."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest
from docker import APIClient

from runner.sandbox.command_output import Output
from runner.sandbox.docker.command_stream import Attached, follow

ANSWER = b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
Engine = Callable[..., Attached]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """Serve a socket that answers the start of a command with these packets, and then echoes its input."""
    path = str(tmp_path / "engine")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    api = APIClient(base_url=f"unix://{path}", version="1.41", timeout=5)

    def serve(packets: tuple[bytes, ...]) -> None:
        asking, _ = listening.accept()
        with asking:
            while not asking.recv(1 << 16).endswith(b"}"):
                pass
            for packet in packets:
                asking.sendall(packet)
            while data := asking.recv(1 << 16):
                asking.sendall(data)
                if data == b"end":
                    return

    def attach(*packets: bytes) -> Attached:
        Thread(target=serve, args=[packets], daemon=True).start()
        return Attached(api, "run")

    with listening, closing(api):
        yield attach


def frame(text: bytes, *, stderr: bool = False) -> bytes:
    return bytes([1 + stderr, 0, 0, 0]) + len(text).to_bytes(4, "big") + text


def output_of(stream: Attached) -> tuple[str, str]:
    """Return all that the command prints. The echoed input is too short to be a frame's header."""
    output = Output(1 << 20)
    with closing(stream):
        assert stream.send(memoryview(b"end"), 5) == len("end")
        assert follow(stream, output, lambda: None) is None
    return output.stdout, output.stderr


@pytest.mark.parametrize(
    "early", [b"", frame(b"/wo"), frame(b"/wo")[:3], frame(b"/wo")[:10], frame(b"/wo") + frame(b"rk")]
)
def test_what_comes_in_one_packet_with_the_answer_is_not_lost(engine: Engine, early: bytes) -> None:
    """It once was: on a busy machine one command in sixty lost its output without an error."""
    whole = frame(b"/wo") + frame(b"rk")
    assert output_of(engine(ANSWER + early, whole[len(early) :])) == ("/work", "")


def test_a_long_beginning_is_whole(engine: Engine) -> None:
    """The output is longer than the reader of the answer reads ahead."""
    text = bytes(range(65, 91)) * 2000
    found = output_of(engine(ANSWER + frame(text) + frame(b"!", stderr=True)))
    assert found == (text.decode(), "!")


def test_nothing_in_time_is_not_the_end(engine: Engine) -> None:
    with closing(engine(ANSWER)) as stream:
        assert stream.receive(0.05) is None
        stream.send(memoryview(b"end"), 5)
        assert [stream.receive(5), stream.receive(5)] == [b"end", b""]
