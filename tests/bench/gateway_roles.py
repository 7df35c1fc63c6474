"""The processes of the gateway's measurement: provider, gateway, bare forwarder, clients and attacker.

Each prints its targets first. `tests.bench.gateway` starts them.

python -m tests.bench.gateway_roles upstream
python -m tests.bench.gateway_roles gateway URL SESSIONS API
python -m tests.bench.gateway_roles forwarder URL
python -m tests.bench.gateway_roles clients SECONDS THOUGHT TARGETS
python -m tests.bench.gateway_roles attacker NAME TARGET
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

CONNECTIONS, DELTAS = 32, 44
"""Connections of an attacker, and words of an answer."""
HOUR = 3600.0
QUESTION = "How much is it? " * 200
WORDS = [f"word{number} " for number in range(DELTAS)]
PATHS = {"chat": "/chat/completions", "messages": "/messages", "responses": "/responses"}
ENDS = {
    "chat": b"data: [DONE]",
    "messages": b"event: message_stop",
    "responses": b"event: response.completed",
}
"""API -> the line that begins the last event of an answer."""
MOST_BYTES = 2**20
"""Limit on the bytes of an answer before that line."""
Target = dict[str, Any]
"""Address that a client asks: `unix` or `port`, and `key`."""


def upstream() -> None:
    """A provider that never pauses: 44 words and one tool call, in events or at once, in three APIs."""
    import uvicorn  # noqa: PLC0415 - each role loads what it needs
    from starlette.applications import Starlette  # noqa: PLC0415
    from starlette.requests import Request  # noqa: PLC0415
    from starlette.responses import Response  # noqa: PLC0415
    from starlette.routing import Route  # noqa: PLC0415

    said = {f"/v1{path}": _said(api) for api, path in PATHS.items()}

    async def answer(request: Request) -> Response:
        # Parsing 15 MB would take it longer.
        streamed = b'"stream":true' in (await request.body()).replace(b": ", b":")
        events, whole = said[request.url.path]
        return Response(
            events if streamed else whole,
            media_type="text/event-stream" if streamed else "application/json",
        )

    app = Starlette(routes=[Route(path, answer, methods=["POST"]) for path in said])
    # Without the protocol's number, asyncio leaves Nagle's algorithm on, and a call takes 40 ms for nothing.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    print(json.dumps([{"port": listening.getsockname()[1], "key": "none"}]), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listening])


def _said(api: str) -> tuple[bytes, bytes]:
    """Return the upstream's answer in events and at once."""
    from runner.gateway.fake_upstream import STREAMS, Behaviour, body  # noqa: PLC0415
    from runner.records import Usage  # noqa: PLC0415

    calls = (("bash", '{"command": "ls"}'),)
    whole = body(
        api, Behaviour(text="".join(WORDS), calls=calls, usage=Usage(input_tokens=1000, output_tokens=60))
    )
    events = STREAMS[api]({"stream_options": {"include_usage": True}}, whole)
    return b"".join(events), json.dumps(whole).encode()


def gateway(url: str, number: int, api: str) -> None:
    """So many sessions, one for each client, as trials have them, before a provider that speaks the API."""
    from runner.gateway import Gateway, SessionSpec  # noqa: PLC0415
    from runner.records import Model, Prices  # noqa: PLC0415

    prices = Prices(input=2.0, output=10.0)
    # litellm adds the version to Anthropic's address.
    base = ("anthropic/x", url.removesuffix("/v1")) if api == "messages" else ("openai/x", url)
    model = Model(name="fake", id=base[0], api_base=base[1], prices=prices)
    with (
        tempfile.TemporaryDirectory() as folder,
        Gateway(Path(folder) / "run") as server,
        ExitStack() as stack,
    ):
        specs = (
            SessionSpec(trial=str(n), task="t", model=model, seconds=HOUR, ledger=Path(folder, str(n)))
            for n in range(number)
        )
        sessions = [stack.enter_context(server.open(spec)) for spec in specs]
        targets = [{"unix": f"{one.socket_dir}/gateway.sock", "key": one.key, "api": api} for one in sessions]
        print(json.dumps(targets), flush=True)
        sys.stdin.read()


def forwarder(url: str) -> None:
    """A server like the gateway's that passes bytes on and does nothing else: what any gateway takes at least."""
    import aiohttp  # noqa: PLC0415
    import uvicorn  # noqa: PLC0415
    from starlette.applications import Starlette  # noqa: PLC0415
    from starlette.requests import Request  # noqa: PLC0415
    from starlette.responses import StreamingResponse  # noqa: PLC0415
    from starlette.routing import Route  # noqa: PLC0415

    async def serve(path: Path) -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def forward(request: Request) -> StreamingResponse:
                headers = {"content-type": "application/json", "authorization": "Bearer none"}
                path = request.url.path.removeprefix("/v1")
                answer = await session.post(f"{url}{path}", data=await request.body(), headers=headers)
                return StreamingResponse(answer.content.iter_any(), media_type="text/event-stream")

            app = Starlette(routes=[Route("/v1/{path:path}", forward, methods=["POST"])])
            listening = listen(path)
            print(json.dumps([{"unix": str(path), "key": "none"}]), flush=True)
            configuration = uvicorn.Config(app, http=H11Protocol, log_level="error", lifespan="off")
            await uvicorn.Server(configuration).serve([listening])

    from uvicorn.protocols.http.h11_impl import H11Protocol  # noqa: PLC0415

    from runner.gateway.sockets import listen  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(serve(Path(folder, "forwarder.sock")))


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
        reader, writer = await connect(**place, limit=MOST_BYTES)
        await _ask(reader, writer, target)
        await ready.wait()
        start = time.monotonic()
        await asyncio.sleep(thought * rng.random())  # trials do not begin at one moment
        while (began := time.monotonic() - start) < seconds:
            await _ask(reader, writer, target)
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
    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))


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


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: Target) -> None:
    """One streamed call, read to its end, with as little work as can be: the clients share the machine."""
    api = target.get("api", "chat")
    head = f"POST /v1{PATHS[api]} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {target['key']}\r\n"
    types = f"Content-Type: application/json\r\nContent-Length: {len(BODIES[api])}\r\n\r\n"
    writer.write((head + types).encode() + BODIES[api])
    answer = await reader.readuntil(b"\r\n\r\n")
    if not answer.startswith(b"HTTP/1.1 200"):
        raise SystemExit((answer + await reader.read(2000)).decode())
    await reader.readuntil(ENDS[api])
    if b"chunked" in answer.lower():
        await reader.readuntil(b"\r\n0\r\n\r\n")
    else:
        await reader.readuntil(b"\n\n")


def _body(**fields: Any) -> bytes:
    return json.dumps({"model": "fake", "stream": True} | fields).encode()


ASKED = [{"role": "user", "content": QUESTION}]
BODIES = {
    "chat": _body(messages=ASKED),
    "messages": _body(messages=ASKED, max_tokens=1000),
    "responses": _body(input=ASKED),
}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["upstream"]:
            upstream()
        case ["gateway", url, number, api]:
            gateway(url, int(number), api)
        case ["forwarder", url]:
            forwarder(url)
        case ["clients", seconds, thought, targets]:
            print(json.dumps(asyncio.run(clients(float(seconds), float(thought), json.loads(targets)))))
        case ["attacker", name, target]:
            asyncio.run(attack(name, json.loads(target)))
