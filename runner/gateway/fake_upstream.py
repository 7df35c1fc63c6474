"""A fake of a model provider: a real HTTP server that speaks the three APIs and misbehaves on demand."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Sequence
from http import HTTPStatus
from typing import Any, Literal, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from runner.gateway import fake_stream
from runner.records import ApiName, Record, Usage

POLL_SECONDS = 0.02
"""Between two looks whether a client has left, and whether the server's end is wanted."""
LAST_SECONDS = 1.0
"""For what is being answered at the server's end."""
IDLE_SECONDS = 300
"""For which an idle connection is kept. A client that uses one just as the server closes it must send once more."""
DEFAULT_USAGE = Usage(input_tokens=1000, cache_hit_tokens=400, output_tokens=50)


class Behaviour(Record):
    """One answer of the fake."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    """(tool name, arguments) of the tool calls made, several of them in parallel."""
    texts: tuple[tuple[str, str], ...] = ()
    """(tool name, text) of the calls of tools that take any text, which only the responses API has."""
    usage: Usage | None = DEFAULT_USAGE
    """None leaves the counts out of the answer."""
    status_code: int = 200
    message: str = "The fake was told to fail."
    """Of the error body, when `status_code` is not 200."""
    retry_after: float | str | None = None
    """Seconds, or whatever else is to stand there."""
    cut: bool = False
    """Close the connection in the middle of the body."""
    cut_after: int | None = None
    """Close it after so many events of a streamed answer."""
    error_after: int | None = None
    """Send an error after so many events of a streamed answer, and no more."""
    failed: bool = False
    """Send `error_after` as `response.failed`, as the responses API has it."""
    streams: bool = True
    """Whether it streams when asked to."""
    seconds: float = 0.0
    """Wait before answering."""
    held: Literal["answer", "end"] | None = None
    """What waits for `FakeUpstream.release`: the whole answer, or the last event of a streamed one."""


class FakeUpstream:
    """Serves behaviours in order, the last one for ever. A context manager; the server lives in its own thread."""

    def __init__(
        self, *behaviours: Behaviour, apis: Sequence[ApiName] = ("chat", "responses", "messages")
    ) -> None:
        """At least one behaviour is needed. The paths of other `apis` are not found (404)."""
        self._behaviours: Sequence[Behaviour] = behaviours
        self.requests: list[dict[str, Any]] = []
        """Bodies received, in order."""
        self.keys: list[str] = []
        """`Authorization` or `x-api-key` headers received, in order."""
        self.served: list[Usage] = []
        """Usage of each answer sent."""
        self.hung_up = 0
        """Requests whose client left before the answer, or before its end."""
        self.ended = 0
        """Streamed answers sent to the end."""
        self.at_once, self.most_at_once = 0, 0
        """Requests under way, now and at most."""
        self._released = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        served = {
            "/v1/chat/completions": ("chat", self._chat),
            "/v1/responses": ("responses", self._responses),
            "/v1/messages": ("messages", self._messages),
            "/anthropic/v1/messages": ("messages", self._messages),  # where DeepSeek has it
        }
        app = Starlette(
            routes=[
                Route(path, serve, methods=["POST"]) for path, (api, serve) in served.items() if api in apis
            ]
        )
        self._server = _Server(
            uvicorn.Config(
                app, log_config=None, log_level="critical", lifespan="off", timeout_keep_alive=IDLE_SECONDS
            )
        )
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    @property
    def url(self) -> str:
        """What a model's `api_base` is set to."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()
        self._server.should_exit = True
        self._thread.join()

    def release(self) -> None:
        """Let what is held go, now and from now on."""
        self._released.set()

    async def _chat(self, request: Request) -> Response:
        return await self._answer(request, _chat_body, fake_stream.chat)

    async def _responses(self, request: Request) -> Response:
        return await self._answer(request, _responses_body, fake_stream.responses)

    async def _messages(self, request: Request) -> Response:
        return await self._answer(request, _messages_body, fake_stream.messages)

    async def _answer(self, request: Request, shape: Any, events: Any) -> Response:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._behave(request, shape, events)
        finally:
            self.at_once -= 1

    async def _behave(self, request: Request, shape: Any, events: Any) -> Response:
        now = self._behaviours[min(len(self.requests), len(self._behaviours) - 1)]
        number = len(self.requests)
        self.requests.append(await request.json())
        self.keys.append(request.headers.get("authorization", request.headers.get("x-api-key", "")))
        if (now.seconds or now.held == "answer") and await self._left(request, now):
            return Response()
        if now.cut:
            return _Cut()
        if now.status_code != HTTPStatus.OK:
            headers = {"retry-after": str(now.retry_after)} if now.retry_after is not None else {}
            return JSONResponse({"error": {"message": now.message, "type": "fake"}}, now.status_code, headers)
        if now.usage:
            self.served.append(now.usage)
        asked = self.requests[number]
        body = shape(now, number, asked.get("model"))
        if not asked.get("stream") or not now.streams:
            return JSONResponse(body)
        sent = self._paced(list(events(asked, body)), now)
        return StreamingResponse(sent, media_type="text/event-stream")

    async def _paced(self, events: list[bytes], behaviour: Behaviour) -> AsyncIterator[bytes]:
        """Events one after the other."""
        try:
            for one in events[
                : behaviour.cut_after if behaviour.error_after is None else behaviour.error_after
            ]:
                if one is events[-1] and behaviour.held == "end":
                    await asyncio.to_thread(self._released.wait)
                yield one
                await asyncio.sleep(0)  # each leaves by itself
        except asyncio.CancelledError:
            self.hung_up += 1
            raise
        if behaviour.error_after is not None:
            yield (fake_stream.failed if behaviour.failed else fake_stream.error)(behaviour.message)
            return
        if behaviour.cut_after is not None:
            raise ConnectionAbortedError  # the server closes a connection whose body it cannot finish
        self.ended += 1

    async def _left(self, request: Request, behaviour: Behaviour) -> bool:
        """Wait; whether the client left meanwhile."""
        end = asyncio.get_running_loop().time() + behaviour.seconds
        held = behaviour.held == "answer"
        while asyncio.get_running_loop().time() < end or (held and not self._released.is_set()):
            if await request.is_disconnected():
                self.hung_up += 1
                return True
            await asyncio.sleep(POLL_SECONDS)
        return False


def body(api: str, behaviour: Behaviour, number: int = 0) -> dict[str, Any]:
    """A whole answer of an API."""
    shapes = {"chat": _chat_body, "responses": _responses_body, "messages": _messages_body}
    return shapes[api](behaviour, number, "x")


class _Server(uvicorn.Server):
    """One that has ended within milliseconds, where uvicorn takes two or three tenths of a second: tests start many."""

    async def main_loop(self) -> None:
        """Look more often whether the end is wanted."""
        while not await self.on_tick(0):  # noqa: ASYNC110 - another thread wants it
            await asyncio.sleep(POLL_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close what is idle at once; what is being answered may end."""
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=LAST_SECONDS)


class _Cut(Response):
    """Promises a body and sends its beginning only."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"id": ', "more_body": True})


def _chat_body(behaviour: Behaviour, number: int, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": behaviour.text}
    if behaviour.reasoning:
        message["reasoning_content"] = behaviour.reasoning
    if behaviour.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for index, (name, arguments) in enumerate(behaviour.calls)
        ]
    choice = {"index": 0, "finish_reason": "tool_calls" if behaviour.calls else "stop", "message": message}
    body = {
        "id": f"chat_{number}",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
    }
    usage = behaviour.usage
    if usage is None:
        return body
    counts = {"cached_tokens": usage.cache_hit_tokens}
    return body | {
        "usage": {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
            "prompt_tokens_details": counts,
        }
    }


def _messages_body(behaviour: Behaviour, number: int, model: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if behaviour.reasoning:
        content.append({"type": "thinking", "thinking": behaviour.reasoning, "signature": f"signed_{number}"})
    if behaviour.text:
        content.append({"type": "text", "text": behaviour.text})
    content += [
        {"type": "tool_use", "id": f"call_{number}_{index}", "name": name, "input": json.loads(arguments)}
        for index, (name, arguments) in enumerate(behaviour.calls)
    ]
    usage = behaviour.usage or Usage()
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if behaviour.calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input_tokens - usage.cache_hit_tokens - usage.cache_creation_tokens,
            "cache_creation_input_tokens": usage.cache_creation_tokens,
            "cache_read_input_tokens": usage.cache_hit_tokens,
            "output_tokens": usage.output_tokens,
        },
    }


def _responses_body(behaviour: Behaviour, number: int, model: str) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if behaviour.reasoning:
        summary = [{"type": "summary_text", "text": behaviour.reasoning}]
        output.append({"type": "reasoning", "id": f"rs_{number}", "summary": summary})
    if behaviour.text:
        part = {"type": "output_text", "text": behaviour.text, "annotations": []}
        output.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    for index, (name, arguments) in enumerate(behaviour.calls):
        ids = {"id": f"fc_{number}_{index}", "call_id": f"call_{number}_{index}"}
        output.append(
            {"type": "function_call", "status": "completed", "name": name, "arguments": arguments} | ids
        )
    for index, (name, text) in enumerate(behaviour.texts):
        ids = {"id": f"ctc_{number}_{index}", "call_id": f"text_{number}_{index}"}
        output.append({"type": "custom_tool_call", "status": "completed", "name": name, "input": text} | ids)
    body: dict[str, Any] = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    usage = behaviour.usage
    if usage is None:
        return body
    return body | {
        "usage": {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cached_tokens": usage.cache_hit_tokens},
            "output_tokens": usage.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens + usage.output_tokens,
        }
    }
