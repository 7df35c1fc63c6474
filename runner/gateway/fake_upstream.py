"""A fake model provider: a real HTTP server that speaks the four APIs and misbehaves on demand."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
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
"""Interval of checking whether a client has left and whether the server should end."""
LAST_SECONDS = 1.0
"""Time for open requests at the server's end."""
IDLE_SECONDS = 300
"""Lifetime of an idle connection. A client that uses one just as the server closes it must send once more."""
PATHS = {
    "/v1/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
    "/anthropic/v1/messages": "messages",  # DeepSeek's path
    "/v1/models/{model}:generateContent": "gemini",
    "/v1/models/{model}:streamGenerateContent": "gemini",
}
"""Path -> API that it serves."""
DEFAULT_USAGE = Usage(input_tokens=1000, cache_hit_tokens=400, output_tokens=50)


class Behaviour(Record):
    """One answer of the fake provider."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    """(tool name, arguments) of each of the parallel tool calls."""
    texts: tuple[tuple[str, str], ...] = ()
    """(tool name, text) of each call of a tool that takes any text, which only the responses API has."""
    usage: Usage | None = DEFAULT_USAGE
    """Counts in the answer; None leaves them out."""
    status_code: int = 200
    message: str = "The fake was told to fail."
    """Message of the error body, if `status_code` is not 200."""
    code: str | None = None
    """Code of the error body."""
    retry_after: float | str | None = None
    """Retry-After header, in seconds or as any text."""
    cut: bool = False
    """True if the connection is closed in the middle of the body."""
    cut_after: int | None = None
    """Number of events in a streamed answer after which the connection is closed."""
    error_after: int | None = None
    """Number of events in a streamed answer after which an error ends it."""
    failed: bool = False
    """True if that error is sent as a `response.failed` of the responses API."""
    streams: bool = True
    """True if a request for a stream is answered with one."""
    seconds: float = 0.0
    """Delay of the answer."""
    held: Literal["answer", "end"] | None = None
    """Part that is held back until `FakeUpstream.release`: the whole answer, or the last event of a streamed one."""


class FakeUpstream:
    """A server of behaviours in order, the last one repeatedly. A context manager with its own thread."""

    def __init__(
        self,
        *behaviours: Behaviour,
        apis: Sequence[ApiName] = ("chat", "responses", "messages", "gemini"),
        host: str = "127.0.0.1",
        policy: Callable[[dict[str, Any]], Behaviour] | None = None,
    ) -> None:
        """Serve at least one behaviour, or a policy. The paths of other APIs than `apis` are not found (404).

        `policy` chooses the behaviour for a request by its body.
        """
        self._behaviours: Sequence[Behaviour] = behaviours
        self._policy = policy
        self.requests: list[dict[str, Any]] = []
        """Received bodies, in order."""
        self.keys: list[str] = []
        """Received headers with a key, in order."""
        self.served: list[Usage] = []
        """Usage in each sent answer."""
        self.hung_up = 0
        """Number of requests whose client left before the end of the answer."""
        self.ended = 0
        """Number of streamed answers sent to the end."""
        self.at_once, self.most_at_once = 0, 0
        """Number of requests under way, now and at most."""
        self._released = threading.Event()
        self._socket = socket.create_server((host, 0))
        self._server = _Server(self._settings(apis))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def _settings(self, apis: Sequence[ApiName]) -> uvicorn.Config:
        routes = [
            Route(path, partial(self._answer, api), methods=["POST"])
            for path, api in PATHS.items()
            if api in apis
        ]
        return uvicorn.Config(
            Starlette(routes=routes),
            log_config=None,
            log_level="critical",
            lifespan="off",
            timeout_keep_alive=IDLE_SECONDS,
        )

    @property
    def url(self) -> str:
        """The `api_base` for a model."""
        return "http://{}:{}/v1".format(*self._socket.getsockname())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()
        self._server.should_exit = True
        self._thread.join()

    def release(self) -> None:
        """Hold no answer any longer, now and in the future."""
        self._released.set()

    async def _answer(self, api: str, request: Request) -> Response:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._behave(api, request)
        finally:
            self.at_once -= 1

    async def _behave(self, api: str, request: Request) -> Response:
        number = len(self.requests)
        asked = await request.json()
        self.requests.append(asked)
        if self._policy:
            now = await asyncio.to_thread(self._policy, asked)
        else:
            now = self._behaviours[min(number, len(self._behaviours) - 1)]
        named = (request.headers.get(name) for name in ("authorization", "x-api-key", "x-goog-api-key"))
        self.keys.append(next(filter(None, named), ""))
        if (now.seconds or now.held == "answer") and await self._left(request, now):
            return Response()
        if now.cut:
            return _Cut()
        if now.status_code != HTTPStatus.OK:
            headers = {"retry-after": str(now.retry_after)} if now.retry_after is not None else {}
            error = {"message": now.message, "type": "fake", **({"code": now.code} if now.code else {})}
            return JSONResponse({"error": error}, now.status_code, headers)
        if now.usage:
            self.served.append(now.usage)
        whole = body(api, now, number, asked.get("model") or request.path_params.get("model", ""))
        streamed = asked.get("stream") or request.url.path.endswith(":streamGenerateContent")
        if not streamed or not now.streams:
            return JSONResponse(whole)
        sent = self._paced(list(STREAMS[api](asked, whole)), now)
        return StreamingResponse(sent, media_type="text/event-stream")

    async def _paced(self, events: list[bytes], behaviour: Behaviour) -> AsyncIterator[bytes]:
        """Yield the events one by one, up to the one at which the behaviour ends the stream."""
        end = behaviour.cut_after if behaviour.error_after is None else behaviour.error_after
        try:
            for one in events[:end]:
                if one is events[-1] and behaviour.held == "end":
                    await asyncio.to_thread(self._released.wait)
                yield one
                await asyncio.sleep(0)  # sends each by itself
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
        """Delay or hold the answer, and return whether the client left meanwhile."""
        end = asyncio.get_running_loop().time() + behaviour.seconds
        held = behaviour.held == "answer"
        while asyncio.get_running_loop().time() < end or (held and not self._released.is_set()):
            if await request.is_disconnected():
                self.hung_up += 1
                return True
            await asyncio.sleep(POLL_SECONDS)
        return False


def body(api: str, behaviour: Behaviour, number: int = 0, model: str = "x") -> dict[str, Any]:
    """Return the whole answer to request number `number` of an API."""
    return BODIES[api](behaviour, number, model)


class _Server(uvicorn.Server):
    """A server that ends within milliseconds instead of tenths of a second, since tests start many."""

    async def main_loop(self) -> None:
        """Check more often whether to end."""
        while not await self.on_tick(0):  # noqa: ASYNC110 - another thread ends it
            await asyncio.sleep(POLL_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close idle connections at once and let open requests end."""
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=LAST_SECONDS)


class _Cut(Response):
    """A response that sends only the beginning of its body."""

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
    return {
        "id": f"chat_{number}",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
    } | _openai_usage(behaviour.usage, "prompt_tokens", "completion_tokens")


def _openai_usage(usage: Usage | None, read: str, written: str) -> dict[str, Any]:
    if usage is None:
        return {}
    counts = {
        read: usage.input_tokens,
        f"{read}_details": {"cached_tokens": usage.cache_hit_tokens},
        written: usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    return {"usage": counts}


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
    done = {"status": "completed"}
    output: list[dict[str, Any]] = []
    if behaviour.reasoning:
        summary = [{"type": "summary_text", "text": behaviour.reasoning}]
        output.append({"type": "reasoning", "id": f"rs_{number}", "summary": summary})
    if behaviour.text:
        content = [{"type": "output_text", "text": behaviour.text, "annotations": []}]
        message = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}
        output.append(message | done)
    for index, (name, arguments) in enumerate(behaviour.calls):
        ids = {"id": f"fc_{number}_{index}", "call_id": f"call_{number}_{index}"}
        output.append({"type": "function_call", "name": name, "arguments": arguments} | ids | done)
    for index, (name, text) in enumerate(behaviour.texts):
        ids = {"id": f"ctc_{number}_{index}", "call_id": f"text_{number}_{index}"}
        output.append({"type": "custom_tool_call", "name": name, "input": text} | ids | done)
    body: dict[str, Any] = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "model": model,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    } | done
    body |= _openai_usage(behaviour.usage, "input_tokens", "output_tokens")
    if behaviour.usage:
        body["usage"]["output_tokens_details"] = {"reasoning_tokens": 0}
    return body


def _gemini_body(behaviour: Behaviour, number: int, model: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if behaviour.reasoning:
        parts.append({"text": behaviour.reasoning, "thought": True})
    if behaviour.text:
        parts.append({"text": behaviour.text})
    parts += [
        {"functionCall": {"name": name, "args": json.loads(arguments)}, "thoughtSignature": f"signed{number}"}
        for name, arguments in behaviour.calls
    ]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    body: dict[str, Any] = {
        "candidates": [candidate],
        "modelVersion": model,
        "responseId": f"gemini_{number}",
    }
    if usage := behaviour.usage:
        body["usageMetadata"] = {
            "promptTokenCount": usage.input_tokens,
            "cachedContentTokenCount": usage.cache_hit_tokens,
            "candidatesTokenCount": usage.output_tokens,
            "totalTokenCount": usage.input_tokens + usage.output_tokens,
        }
    return body


BODIES = {
    "chat": _chat_body,
    "responses": _responses_body,
    "messages": _messages_body,
    "gemini": _gemini_body,
}
STREAMS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Iterator[bytes]]] = {
    "chat": fake_stream.chat,
    "responses": fake_stream.responses,
    "messages": fake_stream.messages,
    "gemini": fake_stream.gemini,
}
