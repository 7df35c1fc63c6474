"""The gateway: one thread with one event loop that serves all trials, each on its own socket."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Self

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from runner.errors import ConfigError, GatewayError
from runner.gateway.account import Account, SweepAccount
from runner.gateway.api import Api, Json
from runner.gateway.call import Answer
from runner.gateway.cassette import Cassette
from runner.gateway.http import APIS, CHAT, application
from runner.gateway.provider import Provider, load_litellm, unload_litellm
from runner.gateway.scripted import Script, load
from runner.gateway.session import Session, SessionSpec
from runner.gateway.sockets import GATEWAY_SOCKET, listen
from runner.records import CallLimits, Model

CONNECTIONS = 32
"""Limit on the connections of one trial; further ones are answered 503. With the cap on bodies it bounds our memory."""
IDLE_SECONDS = 600
"""Lifetime of an unused connection, longer than any client's. If the gateway closed it first, a request could be under
way, and an agent without retries would fail."""
PATIENCE_SECONDS = 0.1
"""Interval of asking whether an answer is still wanted."""
BEAT_SECONDS = 0.05
"""Interval of measuring whether the gateway's loop stalled."""
STALL_SECONDS = 0.1
"""Shortest delay that counts as a stall; shorter ones are normal on a busy machine."""
CLOSING_SECONDS = 2
"""Time for the connections of an ended trial to close by themselves."""


class Gateway:
    """The server of all trials' model calls. A context manager; the first `open` starts it.

    All sessions share one thread and its event loop, except for large calls (`lane`). The first `open` waits for the
    import of litellm (seconds): in the background it would race with other users of the process's warning filters.
    """

    def __init__(
        self, runtime_dir: Path, limits: CallLimits | None = None, account: Account | None = None
    ) -> None:
        """`runtime_dir` is created on first use, readable by this user only, with one folder per trial.

        `account` is shared with other gateways; without one, the gateway keeps its own, with these limits.
        """
        self._runtime_dir = runtime_dir
        self.account = SweepAccount(limits or CallLimits())
        """Account of this gateway's sessions, unless these use another account."""
        self._account = account or self.account
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._litellm: ModuleType
        self._preparing: asyncio.Lock
        self._prepared: set[str] = set()
        self._sessions: dict[Session, uvicorn.Server] = {}
        self._servers: set[asyncio.Task[None]] = set()

    def open(self, spec: SessionSpec) -> Session:
        """Open a session for one trial. The caller closes it.

        Raises `ConfigError` if the model's key or policy is missing or its budget cannot be counted, and
        `GatewayError` if the socket cannot be made.
        """
        key, script = provider_key(spec.model), _script(spec)
        helper_key = provider_key(spec.helper) if spec.helper and not spec.cassette else None
        cassette = Cassette(spec.cassette, spec.model) if spec.cassette else None
        self._start()
        provider = cassette or Provider(spec.model, key, script, self._litellm)
        helper = provider
        if spec.helper and spec.cassette:
            helper = Cassette(spec.cassette, spec.helper, cassette)
        elif spec.helper:
            helper = Provider(spec.helper, helper_key, None, self._litellm)
        opening = self._open(spec, (provider, helper))
        return asyncio.run_coroutine_threadsafe(opening, self._loop).result()

    def ask(
        self,
        session: Session,
        request: Json,
        given_up: Callable[[], bool] = lambda: False,
        api: Api = CHAT,
        *,
        helper: bool = False,
    ) -> Answer:
        """Make a call of the runner's own, metered and written to the ledger like an agent's, and return its answer.

        `helper` asks the session's helper model, if it has one. Raises `CancelledError` once `given_up` returns true;
        the call then ends as if an agent had hung up.
        """

        async def served() -> Answer:
            return await session.start(api, request, streamed=False, helper=helper).task

        answer = asyncio.run_coroutine_threadsafe(served(), self._loop)
        while not wait((answer,), PATIENCE_SECONDS).done:
            if given_up():
                answer.cancel()
        return answer.result()

    @property
    def spent(self) -> Counter[str]:
        """Kind of budget -> spend in this gateway's account as caps count it. Scripts and cassettes are free."""
        return self.account.spent

    @property
    def waiting(self) -> int:
        """Number of sessions of this gateway's account with a call that is waiting for the limits on calls."""
        return self.account.waiting

    def close(self) -> None:
        """End all sessions and the thread. Idempotent."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread:
            self._loop.call_soon_threadsafe(self._stop.set)
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _start(self) -> None:
        with self._lock:
            if self._thread:
                return
            started: Future[None] = Future()
            thread = threading.Thread(
                target=lambda: asyncio.run(self._run(started)), name="gateway", daemon=True
            )
            thread.start()
            started.result()
            self._thread = thread

    async def _run(self, started: Future[None]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._preparing = asyncio.Lock()
        try:
            self._litellm = load_litellm()
        except ImportError as error:
            message = f"litellm cannot be imported ({error}): run `make setup`."
            started.set_exception(GatewayError(message))
            return
        started.set_result(None)
        self._beat(time.monotonic())
        await self._stop.wait()
        await asyncio.gather(*(self._end(session) for session in tuple(self._sessions)))
        await asyncio.gather(*self._servers)
        await unload_litellm(self._litellm)

    def _beat(self, due: float) -> None:
        """Give the time of a stall back to the trials. Their timers that fell due meanwhile run after this one."""
        late = time.monotonic() - due
        if late > STALL_SECONDS:
            for session in self._sessions:
                session.stalled(late)
        self._loop.call_later(BEAT_SECONDS, self._beat, time.monotonic() + BEAT_SECONDS)

    async def _prepare(self, provider: Provider) -> None:
        """Prepare each vendor once, before the first session that may call it."""
        async with self._preparing:
            if provider.vendor not in self._prepared:
                await provider.prepare(APIS)
                self._prepared.add(provider.vendor)

    async def _open(
        self, spec: SessionSpec, providers: tuple[Provider | Cassette, Provider | Cassette]
    ) -> Session:
        for provider in providers:
            if isinstance(provider, Provider):
                await self._prepare(provider)
        try:
            with ExitStack() as undo:
                folder, listening = _listen(self._runtime_dir, undo)
                session = Session(spec, folder, providers, self._close, self._account)
                undo.pop_all()
        except OSError as error:
            raise GatewayError(
                f"The gateway cannot open a socket below {self._runtime_dir} or write {spec.ledger}: {error}."
            ) from error
        server = uvicorn.Server(_configuration(session))
        self._sessions[session] = server
        task = asyncio.create_task(server.serve(sockets=[listening]))
        self._servers.add(task)
        task.add_done_callback(self._servers.discard)
        return session

    def _close(self, session: Session) -> None:
        if not self._loop.is_closed():
            asyncio.run_coroutine_threadsafe(self._end(session), self._loop).result()

    async def _end(self, session: Session) -> None:
        server = self._sessions.pop(session, None)
        await session.die()
        if server:
            server.should_exit = True  # ends within a tick or two; key and socket are dead already


def provider_key(model: Model) -> str | None:
    """Return the provider's key from the environment variable that the model names; None if it names none.

    Raises `ConfigError`, naming the variable, if it is not set.
    """
    if model.api_key_env is None:
        return None
    key = os.environ.get(model.api_key_env, "").strip()
    if not key:
        raise ConfigError(
            f"Model {model.name!r} needs an API key: set the environment variable {model.api_key_env}."
        )
    return key


def _script(spec: SessionSpec) -> Script | None:
    if spec.model.backend == "none":
        raise ConfigError(
            f"Model {spec.model.name!r} is for agents that use no model; choose another with model=NAME."
        )
    if spec.model.backend != "scripted":
        return None
    if spec.model.policy is None:
        raise ConfigError(f"Scripted model {spec.model.name!r} has no model.policy, a YAML file of turns.")
    return Script(load(spec.model.policy), spec.task)


def _listen(runtime_dir: Path, undo: ExitStack) -> tuple[Path, socket.socket]:
    """Create a folder with a socket for a sandbox to mount. Other users of the host cannot reach it."""
    runtime_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=runtime_dir, prefix=""))
    undo.callback(shutil.rmtree, folder)
    folder.chmod(0o755)
    return folder, undo.enter_context(listen(folder / GATEWAY_SOCKET))


class Connection(H11Protocol):
    """A connection that is aborted if there are twice as many as allowed. An idle one is never answered 503."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept or abort the connection. Called by the event loop."""
        super().connection_made(transport)
        if len(self.connections) > 2 * CONNECTIONS:
            transport.abort()


def _configuration(session: Session) -> uvicorn.Config:
    return uvicorn.Config(
        application(session),
        http=Connection,
        log_config=None,
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=CLOSING_SECONDS,
    )
