"""Calls of model providers through litellm: arguments, errors as values, and when another try may help."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from types import ModuleType
from typing import cast

import httpx

from runner.gateway.answers import check
from runner.gateway.api import Api, Json
from runner.gateway.bridge import SENT, lost, note
from runner.gateway.heavy_imports import uncollected
from runner.gateway.scripted import SCRIPT, Script, handler
from runner.gateway.wire import FLIGHT, Flight, install
from runner.records import ErrorInfo, Model, Record

log = logging.getLogger(__name__)
ATTEMPTS = 4
BACK_OFF_SECONDS = 1.0
"""Before the second attempt; doubled each time. A Retry-After that asks for longer is obeyed."""
LONGEST_WAIT_SECONDS = 600.0
"""A Retry-After that asks for more is not waited for: the agent gets the provider's failure at once."""
PATIENCE_SECONDS = 1800.0
"""Of silence in one attempt: above the slowest reasoning answers, below for ever. Deadlines are kept by us: litellm
keeps its clients by their timeout, so that a timeout of each call's own would be a new client for each."""
PASSING = frozenset({408, 409, 425, 429})
"""Statuses below 500 that another attempt may cure."""
BAD_GATEWAY = 502
CONNECTOR_LIMITS = ("AIOHTTP_CONNECTOR_LIMIT", "AIOHTTP_CONNECTOR_LIMIT_PER_HOST")
UNSENT_CHARACTERS = 300
"""Of the first line of litellm's complaint about a request, which may repeat all of it and add a traceback."""
NO_KEY = "none"
"""Sent where a model names no key, so that no variable of the runner's environment is sent unnamed."""
SECRET_LENGTH = 16
"""Shorter keys (`none`, `EMPTY`) are placeholders of local servers, and words of ordinary answers."""
KEEPS_RETRYING = frozenset({"zai"})
"""Providers for which litellm 1.106.2 drops `max_retries`, so that the client beneath retries twice unseen. The
argument goes through if it is named as allowed; for other providers that would put it into the request's body."""
MOST_CLIENTS, CLIENT_SECONDS = 100_000, 10**9
"""Clients that litellm keeps (one for each model, key and loop), and for how long; by itself 200 and 600 s."""
DROPPED_REQUEST = r"coroutine .*(acompletion|async_)\w*. was never awaited"
"""litellm makes a request in a thread, and drops it there if the call was cancelled meanwhile: nothing was sent."""


class Reply(Record):
    """How a call of the provider ended."""

    response: Json | None = None
    status_code: int = 200
    """What the agent gets: the provider's own for its 4xx, 502 when it failed to the end."""
    error: ErrorInfo | None = None
    code: str | None = None
    """Of the error body: `context_length_exceeded` is what agents compact upon."""
    dropped: tuple[str, ...] = ()
    """What litellm left out on the way to this provider; known once it answered."""
    unsent: bool = False
    """Nothing could be made of the request that a provider takes."""
    late: bool = False
    """The deadline passed during the call."""
    retry_after: float | None = None
    """Seconds to wait before another attempt; None when none would help."""


def load_litellm() -> ModuleType:
    """Import litellm (2 s of CPU), once, quiet, offline, and with the scripted model known to it."""
    # Read at its import: no price list from the network; no search for secrets in errors, which takes seconds a
    # megabyte, since we take the only one out; as many connections as calls, which the gates limit, where waiting is
    # measured.
    os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_DISABLE_REDACT_SECRETS": "true"}
    os.environ |= dict.fromkeys(CONNECTOR_LIMITS, "1000000")
    with uncollected():
        import litellm  # noqa: PLC0415
        from litellm.litellm_core_utils import logging_worker  # noqa: PLC0415

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.drop_params = True
    litellm.input_callback = [note]
    install(litellm)
    # It would report each success to callbacks that we do not have, by a queue that lives in one loop only.
    logging_worker.GLOBAL_LOGGING_WORKER.ensure_initialized_and_enqueue = lambda async_coroutine: (
        async_coroutine.close()
    )
    litellm.custom_provider_map = [{"provider": "scripted", "custom_handler": handler()}]
    # Its clients are closed with their loop. Those that it drops before, for their age or number, are closed by nobody
    # if their loop ends soon.
    clients = litellm.in_memory_llm_clients_cache
    clients.max_size_in_memory, clients.default_ttl = MOST_CLIENTS, CLIENT_SECONDS
    warnings.filterwarnings("ignore", DROPPED_REQUEST, RuntimeWarning)
    for name in ("LiteLLM", "httpx"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # all that they say comes back as an exception
    return cast("ModuleType", litellm)


async def unload_litellm(litellm: ModuleType) -> None:
    """Close the clients that litellm keeps for the running event loop: another's, which it would close with them, have
    calls under way.
    """
    cache = litellm.in_memory_llm_clients_cache
    ours = f"-{id(asyncio.get_running_loop())}"  # how litellm ends the names of a loop's clients
    for name in [name for name in cache.cache_dict if name.endswith(ours)]:
        await cache.cache_dict[name].close()
        cache.delete_cache(name)


class Provider:
    """One trial's model."""

    def __init__(self, model: Model, key: str | None, script: Script | None, litellm: ModuleType) -> None:
        """`key` is the provider's; `script` is set exactly for scripted models."""
        self._model, self._key, self._script, self._litellm = model, key or NO_KEY, script, litellm

    @property
    def vendor(self) -> str:
        """The provider that litellm takes from the model's id."""
        return self._model.id.partition("/")[0]

    @property
    def told(self) -> str:
        """What the agent is told that the model is called."""
        return self._model.provider_name

    async def close(self) -> None:
        """Close the clients of the running loop."""
        await unload_litellm(self._litellm)

    async def prepare(self, apis: Sequence[Api]) -> None:
        """Have litellm import what calls of this model need, without sending anything.

        litellm does so at its first call, for a third of a second. If two threads did it at once, one of them would
        fail on a module that the other has half imported, and an agent would be told that its request cannot be sent.
        """
        with uncollected():
            for api in apis:
                await self._try_shortest(api)

    async def call(self, api: Api, fields: Json, flight: Flight) -> Reply:
        """Call once, until the flight's deadline. Never raises but for cancellation."""
        flight.clean, flight.secret = self._clean, self._secret.encode()
        FLIGHT.set(flight)
        try:
            async with flight.limit:
                flight.limit.reschedule(flight.deadline())
                if self._script:
                    await flight.turn()
                response = await self._sent(api, fields, flight)
                check(response, api.path.removeprefix("/v1"))
                sent = SENT.get()
                return Reply(response=response, dropped=lost(fields, sent[-1]) if sent else ())
        # The boundary of one gateway call: litellm raises its own errors, those of the clients beneath it, and
        # builtin ones for answers of an unexpected shape. Whatever it is, the agent gets an answer.
        except Exception as error:  # noqa: BLE001
            if flight.limit.expired():
                return Reply(late=True, status_code=403, error=ErrorInfo.of(error, "gateway"))
            if not flight.sent:
                return self._unsent(error, by_agent=await self._can_send(api))
            return self._failed(error, flight)

    async def _sent(self, api: Api, fields: Json, flight: Flight) -> Json:
        """As `_send`. What failed before anything was sent is tried once more and blamed on the request only if it
        fails again: an odd request may be the first for which litellm imports a part of itself.
        """
        try:
            return await self._send(api, fields)
        except Exception:
            if flight.sent or self._script:
                raise
        return await self._send(api, fields)

    async def _send(self, api: Api, fields: Json) -> Json:
        SCRIPT.set(self._script)
        SENT.set([])
        arguments = fields | {
            "model": self._model.id,
            "api_key": self._key,
            "api_base": self._model.api_base,
            "timeout": PATIENCE_SECONDS,
            "max_retries": 0,
        }
        if self.vendor in KEEPS_RETRYING:
            arguments["allowed_openai_params"] = ["max_retries"]
        return self._clean(await api.send(self._litellm, arguments))

    async def _can_send(self, api: Api) -> bool:
        """Whether the shortest request would be sent: then the model's settings are sound, and what was not sent is
        itself at fault.
        """
        return self._script is not None or await self._try_shortest(api)

    async def _try_shortest(self, api: Api) -> bool:
        """Lead the shortest request as far as the wire and no further. Returns whether it arrived there; a script
        answers above the wire.
        """
        arrived = False

        async def turn() -> None:
            nonlocal arrived
            arrived = True
            raise httpx.UnsupportedProtocol("not to be sent")

        flight = Flight(api, turn, lambda: None)
        before = FLIGHT.set(flight)
        try:
            async with flight.limit:
                await self._send(api, api.outbound(api.accept(api.shortest), self._model.params, 16).fields)
        # As in `call`: litellm's errors are of any kind, and whether it arrived is all there is to know.
        except Exception:
            log.debug("the shortest request to %s was not sent", self._model.id, exc_info=True)
        finally:
            FLIGHT.reset(before)
        return arrived

    def _unsent(self, error: Exception, *, by_agent: bool) -> Reply:
        """The reply to what litellm could not make a provider's request of: for the agent's request, or any."""
        reason = str(error).partition("\n")[0][:UNSENT_CHARACTERS]
        message = f"The request cannot be sent to the model's provider: {reason}"
        info = ErrorInfo(type=type(error).__name__, message=message, phase="gateway")
        status = HTTPStatus.BAD_REQUEST if by_agent else BAD_GATEWAY
        return Reply(
            status_code=status,
            error=ErrorInfo.model_validate(self._clean(info.model_dump())),
            unsent=by_agent,
        )

    def _failed(self, error: Exception, flight: Flight) -> Reply:
        status = None if flight.failure else getattr(error, "status_code", None)
        status = status if isinstance(status, int) and status >= HTTPStatus.BAD_REQUEST else BAD_GATEWAY
        passing = status in PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        info = ErrorInfo.of(flight.failure or error, "gateway")
        return Reply(
            status_code=BAD_GATEWAY if passing else status,
            error=ErrorInfo.model_validate(self._clean(info.model_dump())),
            code="context_length_exceeded" if type(error).__name__ == "ContextWindowExceededError" else None,
            retry_after=_seconds(flight.retry_after) if passing and not flight.begun else None,
        )

    def _clean(self, value: Json) -> Json:
        """Without the provider's key, which an upstream may echo, and without what no JSON in UTF-8 can hold: halves of
        surrogate pairs, and numbers that are none or have no end, as those of a token's probability may be.
        """
        text = json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()
        cleaned: Json = json.loads(
            text.replace(self._secret, "[key]") if self._secret else text, parse_constant=lambda _: None
        )
        return cleaned

    @property
    def _secret(self) -> str:
        return self._key if len(self._key) >= SECRET_LENGTH else ""


def back_off(reply: Reply, tries: int, deadline: float | None) -> float | None:
    """Seconds until the next try, after so many; None when there is none, or only one past the deadline."""
    if reply.retry_after is None or tries >= ATTEMPTS:
        return None
    wait = max(reply.retry_after, BACK_OFF_SECONDS * 2 ** (tries - 1))
    late = deadline is not None and time.monotonic() + wait >= deadline
    return None if late or wait > LONGEST_WAIT_SECONDS else wait


def _seconds(retry_after: str) -> float:
    """What a provider asks to wait, in seconds or as a date; 0 when it does not say, or says nothing sensible."""
    try:
        asked = float(retry_after)
    except ValueError:
        try:
            date = parsedate_to_datetime(retry_after)
            asked = (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
        except (ValueError, OverflowError):
            return 0.0
    return max(0.0, min(asked, 2 * LONGEST_WAIT_SECONDS))  # of which neither NaN nor infinity is any
