"""The line of a crew to its desk: messages are fetched by the driver and answered, so the driver alone opens calls."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from concurrent.futures import Future
from threading import Lock
from typing import Any

from runner.errors import GatewayError, OutputsError
from runner.executors.ray.messages import Answer, Message

LONGEST_POLL_SECONDS = 1.0
"""Longest time for which the driver is kept waiting when there is no message. So the driver hears from a crew at least
this often."""


class Line:
    """Messages to the desk, from any thread of a crew."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last = -1
        self._waiting: list[Message] = []
        self._asked: dict[int, Future[Any]] = {}
        self._cut = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._arrival: asyncio.Event
        self.heard = time.monotonic()
        """Time at which the driver last asked for messages."""

    @property
    def last(self) -> int:
        """Number of the last message; -1 if there was none."""
        return self._last

    def tell(self, kind: str, *content: Any) -> None:
        """Send a message that has no answer."""
        with self._lock:
            self._send(kind, content)

    def ask(self, kind: str, *content: Any) -> Future[Any]:
        """Send a message and return its answer's future, which raises `GatewayError` when the desk is gone.

        The future's attribute `number` names the message.
        """
        answer: Future[Any] = Future()
        answer.set_running_or_notify_cancel()  # an answer may arrive after its call was cancelled
        with self._lock:
            answer.number = self._send(kind, content)  # type: ignore[attr-defined]
            if self._cut:
                answer.set_exception(GatewayError(self._cut))
            else:
                self._asked[answer.number] = answer  # type: ignore[attr-defined]
        return answer

    def answer(self, answers: Iterable[Answer]) -> None:
        """Hand the desk's answers to those who asked."""
        for number, value, failure in answers:
            with self._lock:
                asked = self._asked.pop(number, None)
            if asked and failure:
                asked.set_exception(OutputsError(failure))
            elif asked:
                asked.set_result(value)

    def cut(self, why: str) -> None:
        """Let every question under way, and every later one, fail."""
        with self._lock:
            self._cut = why
            asked, self._asked = self._asked, {}
        for answer in asked.values():
            answer.set_exception(GatewayError(why))

    async def messages(self) -> list[Message]:
        """Return the messages to send, waiting up to `LONGEST_POLL_SECONDS` for one. Must be called in one event
        loop.
        """
        if self._loop is None:
            self._arrival, self._loop = asyncio.Event(), asyncio.get_running_loop()
        self.heard = time.monotonic()
        if not self._waiting:
            self._arrival.clear()
            if not self._waiting:
                try:
                    await asyncio.wait_for(self._arrival.wait(), LONGEST_POLL_SECONDS)
                except TimeoutError:
                    return []
        with self._lock:
            sent, self._waiting = self._waiting, []
        return sent

    def _send(self, kind: str, content: tuple[Any, ...]) -> int:
        self._last += 1
        self._waiting.append(Message(self._last, kind, content))
        if self._loop and len(self._waiting) == 1:
            self._loop.call_soon_threadsafe(self._arrival.set)
        return self._last
