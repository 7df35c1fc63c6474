"""The gateway beside litellm's own proxy, in one run: same upstream, same clients, each in a process of its own.

python -m tests.bench.gateway                 measure and print
python -m tests.bench.gateway upstream        the roles, started by the first
python -m tests.bench.gateway gateway URL
python -m tests.bench.gateway clients SECONDS THOUGHT TARGETS
python -m tests.bench.gateway attacker NAME TARGET
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CLIENTS, ROUNDS, SECONDS, DELTAS = 32, 3, 3.0, 44
ATTACK_SECONDS, THOUGHT_SECONDS = 8.0, 3.0
"""Length of one attack, and mean time between two calls of a quiet trial."""
PROXY_KEY = "sk-bench-of-the-proxy"
HOUR = 3600.0
START_SECONDS = 120.0
QUESTION = "How much is it? " * 200
WORDS = [f"word{number} " for number in range(DELTAS)]
TOOL = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
USAGE = {"prompt_tokens": 1000, "completion_tokens": 60, "total_tokens": 1060}
Target = dict[str, Any]
"""Address that a client asks: `unix` or `port`, and `key`."""


def main() -> None:
    """Print the two figures with their bounds."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-bench-")))
        upstream = stack.enter_context(_role("upstream"))
        gateway = stack.enter_context(_role("gateway", f"http://127.0.0.1:{upstream[0]['port']}/v1"))
        added = _median(lambda: _p50(gateway[:1]) - _p50(upstream))
        print(f"gateway: {added:.1f} ms added to one client's p50 (bound 30 ms)")
        _attacked(gateway)
        proxy = stack.enter_context(_proxy(scratch, upstream[0]["port"]))
        if proxy is None:
            rate = _median(lambda: _rate(gateway))
            print(
                f"gateway: {rate:.0f} calls/s with {CLIENTS} streaming clients; no litellm[proxy] to compare with"
            )
            return
        ratios = []
        for number in range(1, ROUNDS + 1):
            theirs, ours = _rate(proxy * CLIENTS), _rate(gateway)
            ratios.append(ours / theirs)
            print(f"  round {number}: proxy {theirs:.1f} calls/s, gateway {ours:.1f} calls/s")
        print(
            f"gateway over litellm's proxy, {CLIENTS} streaming clients: {statistics.median(ratios):.1f} (bound 5)"
        )


def _attacked(gateway: list[Target]) -> None:
    """The worst call of 31 quiet trials, alone and while the last one attacks, attack by attack."""
    *quiet, attacker = gateway
    alone = _worst(quiet)
    print(f"  worst call of {len(quiet)} quiet trials, alone: {alone:.2f} s")
    worst = 0.0
    for name in ATTACKS:
        with _role("attacker", name, json.dumps(attacker)):
            attacked = _worst(quiet)
        worst = max(worst, attacked)
        print(f"  while one sends {name}: {attacked:.2f} s")
    print(f"gateway: worst call of {len(quiet)} quiet trials while one attacks: {worst:.2f} s (bound 1 s)")


def _worst(targets: list[Target]) -> float:
    """Seconds of the longest call of clients that think between their calls, as agents do."""
    calls = _clients(targets, ATTACK_SECONDS, THOUGHT_SECONDS)
    return max(ended - began for began, ended in calls)


def _rate(targets: list[Target]) -> float:
    """Calls per second until the last call that was begun in time has ended."""
    calls = _clients(targets, SECONDS)
    return len(calls) / max(ended for _, ended in calls)


def _p50(targets: list[Target]) -> float:
    """Milliseconds of one streamed call, one after the other."""
    return 1000 * statistics.median(ended - began for began, ended in _clients(targets, 1.0))


def _clients(targets: list[Target], seconds: float, thought: float = 0.0) -> list[tuple[float, float]]:
    """When each call of one client per target began and ended; they make one each before the clock starts."""
    times = [str(seconds), str(thought)]
    command = [sys.executable, "-m", "tests.bench.gateway", "clients", *times, json.dumps(targets)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"a client failed:\n{done.stderr[-2000:]}")
    return [(began, ended) for began, ended in json.loads(done.stdout)]


def _median(measure: Callable[[], float]) -> float:
    return statistics.median(measure() for _ in range(ROUNDS))


@contextmanager
def _role(*arguments: str) -> Iterator[list[Target]]:
    """One of the processes; what it says first are its targets."""
    command = [sys.executable, "-m", "tests.bench.gateway", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


@contextmanager
def _proxy(scratch: Path, upstream: int) -> Iterator[list[Target] | None]:
    """The proxy of litellm, in the version that we pin and an environment of its own; None where it cannot be had."""
    wanted = f"litellm[proxy]=={version('litellm')}"
    uv, venv = str(Path(sys.executable).with_name("uv")), scratch / "venv"
    steps = (
        [uv, "venv", "--quiet", "--python", sys.executable, str(venv)],
        [uv, "pip", "install", "--quiet", "--python", str(venv / "bin/python"), wanted],
    )
    for step in steps:
        ended = subprocess.run(step, capture_output=True, text=True, check=False)
        if ended.returncode:
            print(f"  {wanted} cannot be installed: {ended.stderr.strip().splitlines()[-1:]}")
            yield None
            return
    parameters = {"model": "openai/x", "api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": "none"}
    configuration = {
        "model_list": [{"model_name": "fake", "litellm_params": parameters}],
        "general_settings": {"master_key": PROXY_KEY},
    }
    (scratch / "proxy.json").write_text(json.dumps(configuration))  # which is YAML
    port = _free_port()
    command = [str(venv / "bin/litellm"), "--config", str(scratch / "proxy.json"), "--port", str(port)]
    environment = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with (
        (scratch / "proxy.log").open("w") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            _wait_for(f"http://127.0.0.1:{port}/health/liveliness")
            yield [{"port": port, "key": PROXY_KEY}]
        finally:
            process.terminate()


def _wait_for(url: str) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.5)
    raise SystemExit(f"{url} does not answer")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def upstream() -> None:
    """A provider that never pauses: 44 words and one tool call, in events or at once."""
    import uvicorn  # noqa: PLC0415 - each role loads what it needs
    from starlette.applications import Starlette  # noqa: PLC0415
    from starlette.requests import Request  # noqa: PLC0415
    from starlette.responses import Response  # noqa: PLC0415
    from starlette.routing import Route  # noqa: PLC0415

    from runner.gateway.fake_upstream import Behaviour, body  # noqa: PLC0415

    async def chat(request: Request) -> Response:
        streamed = b'"stream":true' in (await request.body()).replace(
            b": ", b":"
        )  # parsing 15 MB would take it longer
        media = "text/event-stream" if streamed else "application/json"
        return Response(EVENTS if streamed else WHOLE, media_type=media)

    async def responses(request: Request) -> Response:
        await request.body()
        return Response(bridged, media_type="application/json")

    bridged = json.dumps(body("responses", Behaviour(text="".join(WORDS))))
    routes = [("/v1/chat/completions", chat), ("/v1/responses", responses)]
    app = Starlette(routes=[Route(path, answer, methods=["POST"]) for path, answer in routes])
    listening = socket.create_server(("127.0.0.1", 0))
    print(json.dumps([{"port": listening.getsockname()[1], "key": "none"}]), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listening])


def gateway(url: str) -> None:
    """One session for each client, as trials have them."""
    from runner.gateway import Gateway, SessionSpec  # noqa: PLC0415
    from runner.records import Model, Prices  # noqa: PLC0415

    prices = Prices(input=2.0, output=10.0)
    model = Model(name="fake", id="openai/x", api_base=url, prices=prices)
    with (
        tempfile.TemporaryDirectory() as folder,
        Gateway(Path(folder) / "run") as server,
        ExitStack() as stack,
    ):
        specs = (
            SessionSpec(trial=str(n), task="t", model=model, seconds=HOUR, ledger=Path(folder, str(n)))
            for n in range(CLIENTS)
        )
        sessions = [stack.enter_context(server.open(spec)) for spec in specs]
        targets = [{"unix": f"{one.socket_dir}/gateway.sock", "key": one.key} for one in sessions]
        print(json.dumps(targets), flush=True)
        sys.stdin.read()


async def clients(seconds: float, thought: float, targets: list[Target]) -> list[tuple[float, float]]:
    """Each target's client asks again and again, about as long after each answer as it thinks.

    Returns beginning and end of each call, the first ones left out.
    """
    rng = random.Random(0)
    ready = asyncio.Barrier(len(targets))
    done: list[tuple[float, float]] = []

    async def one(target: Target) -> None:
        place = (
            {"path": target["unix"]} if "unix" in target else {"host": "127.0.0.1", "port": target["port"]}
        )
        connect: Any = asyncio.open_unix_connection if "unix" in target else asyncio.open_connection
        reader, writer = await connect(**place)
        await _ask(reader, writer, target["key"])
        await ready.wait()
        start = time.monotonic()
        while (began := time.monotonic() - start) < seconds:
            await _ask(reader, writer, target["key"])
            done.append((began, time.monotonic() - start))
            await asyncio.sleep(thought * (0.5 + rng.random()))
        writer.close()

    await asyncio.gather(*map(one, targets))
    return done


async def attack(name: str, target: Target) -> None:
    """On as many connections as a trial may have, the same again and again; nothing that is answered is read."""
    path, body = ATTACKS[name]()
    content = json.dumps(body, ensure_ascii=False).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {target['key']}\r\n"
    types = f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"

    async def one() -> None:
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_unix_connection(target["unix"])
                while True:
                    writer.write((head + types).encode() + content)
                    await writer.drain()
                    answer = await reader.readuntil(b"\r\n\r\n")
                    length = re.search(rb"content-length: (\d+)", answer)
                    await reader.readexactly(int(length[1]) if length else 0)

    print("[]", flush=True)
    await asyncio.gather(*(one() for _ in range(CLIENTS)))


def _chat(messages: list[Any], **fields: Any) -> tuple[str, dict[str, Any]]:
    return "/v1/chat/completions", {"messages": messages} | fields


def _called() -> list[dict[str, Any]]:
    """A conversation of 3,000 tool calls."""
    call = {
        "type": "function",
        "function": {"name": "bash", "arguments": json.dumps({"command": "z" * 2000})},
    }
    asked = [
        {"role": "assistant", "content": None, "tool_calls": [call | {"id": f"c{n}"}]} for n in range(3000)
    ]
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": "w" * 2000} for n in range(3000)]
    return [
        {"role": "user", "content": "x"},
        *(one for pair in zip(asked, results, strict=True) for one in pair),
    ]


ATTACKS: dict[str, Callable[[], tuple[str, Any]]] = {
    "a text of 15 MB": lambda: _chat([{"role": "user", "content": "lorem ipsum " * (15 * 2**20 // 12)}]),
    "accents, 14 MB": lambda: _chat([{"role": "user", "content": "\u00e9" * (7 * 2**20)}]),
    "10,000 messages": lambda: _chat([{"role": "user", "content": "x" * 1400} for _ in range(10_000)]),
    "3,000 tool calls": lambda: _chat(_called()),
    "4,000 tools": lambda: _chat(
        [{"role": "user", "content": "x"}],
        tools=[
            {"type": "function", "function": {"name": f"t{n}", "description": "d" * 2000, "parameters": {}}}
            for n in range(4000)
        ],
    ),
    "10,000 messages across a bridge": lambda: (
        "/v1/messages",
        {"max_tokens": 9, "messages": [{"role": "user", "content": "x" * 1400} for _ in range(10_000)]},
    ),
    "1.5 MB as the format of the answer": lambda: _chat(
        [{"role": "user", "content": "x"}], response_format="x" * 1_500_000
    ),
    "what is small, on all connections": lambda: _chat([{"role": "user", "content": "x"}]),
    "what is no JSON, 15 MB": lambda: ("/v1/chat/completions", "[" * (15 * 2**20)),
}
"""Name -> path and body of what one trial sends on all of its connections."""


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str) -> None:
    """One streamed call, read to its end, with as little work as can be: the clients share the machine."""
    messages = [{"role": "user", "content": QUESTION}]
    body = json.dumps({"model": "fake", "stream": True, "messages": messages}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
    types = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write((head + types).encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    if not answer.startswith(b"HTTP/1.1 200"):
        raise SystemExit((answer + await reader.read(2000)).decode())
    await reader.readuntil(b"data: [DONE]")
    if b"chunked" in answer.lower():
        await reader.readuntil(b"\r\n0\r\n\r\n")
    else:
        await reader.readuntil(b"\n\n")


def _event(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "x"}
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return f"data: {json.dumps(chunk | {'choices': choices} | more)}\n\n"


EVENTS = "".join(
    (
        *(_event({"role": "assistant", "content": word}) for word in WORDS),
        _event({"tool_calls": [{"index": 0} | TOOL]}),
        _event({}, "tool_calls", usage=USAGE),
        "data: [DONE]\n\n",
    )
)
WHOLE = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "x",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": "".join(WORDS), "tool_calls": [TOOL]},
            }
        ],
        "usage": USAGE,
    }
)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["upstream"]:
            upstream()
        case ["gateway", url]:
            gateway(url)
        case ["clients", seconds, thought, targets]:
            print(json.dumps(asyncio.run(clients(float(seconds), float(thought), json.loads(targets)))))
        case ["attacker", name, target]:
            asyncio.run(attack(name, json.loads(target)))
        case _:
            main()
