"""A thread with its own event loop for the large calls of one trial.

litellm and the clients beneath it take up to a millisecond for each message and tool of a request, and block their loop
meanwhile. So a call that is large, or one of many, runs in the lane of its trial. Threads share one interpreter: a
lane rests after its work and leaves most of the time to the loop that serves all trials.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from threading import Thread
from typing import Any, ClassVar, ParamSpec, TypeVar

REST = 3.0
"""Seconds that a lane rests for each second of CPU time."""
LOOK_SECONDS = 0.02
"""Interval of measuring the CPU time."""
SWITCH_SECONDS = 0.001
"""Python's thread switch interval while a lane is open: the default of 5 ms would delay each read and write."""
USUAL_SECONDS = sys.getswitchinterval()
P = ParamSpec("P")
T = TypeVar("T")


class Lane:
    """A lane, which is created and used in the gateway's loop."""

    open: ClassVar[int] = 0
    """Number of open lanes."""

    def __init__(self, closing: Callable[[], Awaitable[None]]) -> None:
        """`closing` runs in the lane before it ends."""
        self._gateways = asyncio.get_running_loop()
        self._loop = asyncio.new_event_loop()
        self._closing = closing
        Lane.open += 1
        sys.setswitchinterval(SWITCH_SECONDS)
        self._thread = Thread(target=self._run, name="gateway-lane", daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run `work` in the lane and return its result. A cancellation is passed on and the end of `work` awaited."""
        ended: asyncio.Future[asyncio.Task[T]] = self._gateways.create_future()
        begun: list[asyncio.Task[T]] = []

        def begin() -> None:
            task = self._loop.create_task(work())
            begun.append(task)
            task.add_done_callback(lambda task: self._gateways.call_soon_threadsafe(ended.set_result, task))

        self._loop.call_soon_threadsafe(begin)
        cancelled: asyncio.CancelledError | None = None
        while not ended.done():
            try:
                await asyncio.wait({ended})
            except asyncio.CancelledError as error:
                cancelled = error
                self._loop.call_soon_threadsafe(lambda: begun[0].cancel())  # noqa: PLW0108 - empty until then
        if cancelled:
            raise cancelled
        return ended.result().result()

    async def call(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in the lane and return its result."""

        async def called() -> T:
            return work(*args, **kwargs)

        return await self.run(called)

    async def back(self, work: Coroutine[Any, Any, None]) -> None:
        """Await, from within the lane, work that runs in the gateway's loop."""
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._gateways))

    def soon(self, work: Callable[[], None]) -> None:
        """Call a function in the lane without waiting for it."""
        self._loop.call_soon_threadsafe(work)

    async def close(self) -> None:
        """End the thread once nothing is under way."""
        await self.run(self._close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        Lane.open -= 1
        if not Lane.open:
            sys.setswitchinterval(USUAL_SECONDS)

    async def _close(self) -> None:
        await self._closing()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        resting = self._loop.create_task(self._rest())
        self._loop.run_forever()
        resting.cancel()
        self._loop.run_until_complete(asyncio.wait({resting}))
        self._loop.close()

    async def _rest(self) -> None:
        """Block this loop in proportion to the CPU time that it has taken."""
        while True:
            worked = time.thread_time()
            await asyncio.sleep(LOOK_SECONDS)
            time.sleep(REST * (time.thread_time() - worked))  # noqa: ASYNC251 - nothing else shall run meanwhile
