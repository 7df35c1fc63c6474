"""Call model providers through litellm. Errors become values that say whether another try may help."""

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

from runner.gateway import shortcuts
from runner.gateway.answer_checks import api_of, check
from runner.gateway.api import Api, Json
from runner.gateway.dropped_parts import SENT, lost, note
from runner.gateway.scripted import SCRIPT, Script, handler
from runner.gateway.transport import FLIGHT, Flight, install
from runner.heavy_imports import uncollected
from runner.records import ApiName, ErrorInfo, Model, Record
from runner.records.base import SECRET
from runner.records.servers import CHAT_PROVIDER

log = logging.getLogger(__name__)
ATTEMPTS = 4
BACK_OFF_SECONDS = 1.0
"""Pause before the second attempt, doubled each time. A longer Retry-After is obeyed."""
LONGEST_WAIT_SECONDS = 600.0
"""Longest Retry-After that is obeyed. If a provider asks for more, the agent gets its failure at once."""
PATIENCE_SECONDS = 1800.0
"""Longest silence tolerated within one attempt, which is longer than that of the slowest reasoning answers. The gateway
keeps the deadlines itself: litellm caches clients by their timeout, so a timeout per call would create a client for
each."""
PASSING = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which another attempt may help."""
BAD_GATEWAY = 502
CONNECTOR_LIMITS = ("AIOHTTP_CONNECTOR_LIMIT", "AIOHTTP_CONNECTOR_LIMIT_PER_HOST")
UNSENT_CHARACTERS = 300
"""Limit on the first line of litellm's error about a request, which may repeat the request and add a traceback."""
NO_KEY = "none"
"""Key of a model that names none, so that litellm does not send one from the runner's environment."""
SECRET_LENGTH = 16
"""Shortest real key. Shorter ones (`none`, `EMPTY`) are placeholders of local servers and words of ordinary answers."""
KEEPS_RETRYING = frozenset({"zai"})
"""Providers for which litellm 1.106.2 drops `max_retries`, so that the client beneath retries twice unseen. Naming the
argument as allowed prevents that; for other providers it would put the argument into the request's body."""
MOST_CLIENTS, CLIENT_SECONDS = 100_000, 10**9
"""Size and lifetime, in seconds, of litellm's cache of clients (one per model, key and loop). Its defaults are 200 and
600."""
DROPPED_REQUEST = r"coroutine .*(acompletion|async_)\w*. was never awaited"
"""Warning about a request that litellm created in a thread and dropped unsent because its call was cancelled."""


class Reply(Record):
    """The result of a call to the provider."""

    response: Json | None = None
    status_code: int = 200
    """Status for the agent: the provider's own for its 4xx, 502 if it failed to the end."""
    error: ErrorInfo | None = None
    code: str | None = None
    """Code of the error body. Agents compact when they see `context_length_exceeded`."""
    dropped: tuple[str, ...] = ()
    """Names that litellm left out for this provider; known once it answered."""
    unsent: bool = False
    """True if the agent's request cannot be translated for the provider."""
    late: bool = False
    """True if the deadline passed during the call."""
    overlong: bool = False
    """True if that deadline is the one up to which the budget pays for the server's time."""
    retry_after: float | None = None
    """Seconds to wait before another attempt; None if none would help."""


def load_litellm() -> ModuleType:
    """Import litellm (2 s of CPU), quiet and offline, and register the scripted model and the wire."""
    # litellm reads these at its import. No price list from the network. No search for secrets in errors, which takes
    # seconds per megabyte: we remove the only one ourselves. No limit on connections: the gates limit calls, and only
    # there the time of waiting is measured.
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
    # It would report each success to callbacks that we do not have, through a queue that belongs to one loop.
    logging_worker.GLOBAL_LOGGING_WORKER.ensure_initialized_and_enqueue = lambda async_coroutine: (
        async_coroutine.close()
    )
    litellm.custom_provider_map = [{"provider": "scripted", "custom_handler": handler()}]
    # `unload_litellm` closes the clients of a loop. Nobody would close those that litellm drops before that for their
    # age or number.
    clients = litellm.in_memory_llm_clients_cache
    clients.max_size_in_memory, clients.default_ttl = MOST_CLIENTS, CLIENT_SECONDS
    warnings.filterwarnings("ignore", DROPPED_REQUEST, RuntimeWarning)
    for name in ("LiteLLM", "httpx"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # they raise everything that they log
    return cast("ModuleType", litellm)


async def unload_litellm(litellm: ModuleType) -> None:
    """Close litellm's clients of the running event loop. Its own function would also close those of other loops."""
    cache = litellm.in_memory_llm_clients_cache
    ours = f"-{id(asyncio.get_running_loop())}"  # end of litellm's names for a loop's clients
    for name in [name for name in cache.cache_dict if name.endswith(ours)]:
        await cache.cache_dict[name].close()
        cache.delete_cache(name)


class Provider:
    """The backend of one trial's model: a provider, or a script in its place."""

    def __init__(self, model: Model, key: str | None, script: Script | None, litellm: ModuleType) -> None:
        """`key` is the provider's; only scripted models have a `script`."""
        self._model, self._key, self._script, self._litellm = model, key or NO_KEY, script, litellm
        named = (os.environ.get(name, "").strip() for name in model.more_env if SECRET.search(name))
        self._shortcuts: dict[asyncio.AbstractEventLoop, shortcuts.Shortcuts] = {}
        self._secrets = [value for value in (self._secret, *named) if len(value) >= SECRET_LENGTH]

    @property
    def vendor(self) -> str:
        """The provider in the model's id, as litellm reads it."""
        return self._model.id.partition("/")[0]

    @property
    def model_name(self) -> str:
        """The model's name for the agent."""
        return self._model.provider_name

    async def close(self) -> None:
        """Close the clients of the running loop."""
        await unload_litellm(self._litellm)

    async def prepare(self, apis: Sequence[Api]) -> None:
        """Let litellm import the modules for calls of this model, without sending anything.

        It would do so at its first call, within a third of a second. If two threads did it at once, one of them would
        fail on a half-imported module, and an agent would read that its request cannot be sent.
        """
        with uncollected():
            for api in apis:
                await self._try_shortest(api)

    async def call(self, api: Api, fields: Json, flight: Flight) -> Reply:
        """Call the provider once, until the flight's deadline. Raises nothing but cancellation."""
        flight.clean, flight.secret = self._clean, self._secret.encode()
        FLIGHT.set(flight)
        try:
            async with flight.limit:
                flight.limit.reschedule(flight.deadline())
                if self._script:
                    await flight.turn()
                return await self._answered(api, fields, flight)
        # The boundary of one gateway call: litellm raises its own errors, those of the clients beneath it, and builtin
        # ones for answers of an unexpected shape. Whatever it raises, the agent gets an answer.
        except Exception as error:  # noqa: BLE001
            if flight.limit.expired():
                info = ErrorInfo.of(error, "gateway")
                return Reply(late=True, overlong=flight.overlong, status_code=403, error=info)
            if not flight.sent:
                return self._unsent(error, by_agent=await self._can_send(api))
            return self._failed(error, flight)

    async def _answered(self, api: Api, fields: Json, flight: Flight) -> Reply:
        """Send without litellm where that is known to be the same, else through it."""
        vendor = route(self._model, api.name)[0].partition("/")[0]
        asked = None if self._script else shortcuts.read(vendor, api, fields)
        known = self._shortcuts.setdefault(asyncio.get_running_loop(), shortcuts.Shortcuts(self._key))
        if asked and (shortcut := known.find(asked)):
            received = await shortcut.send(asked)
            if answer := api.own(flight.whole or {}):
                return Reply(response=self._clean(answer), dropped=shortcut.dropped)
            asked, flight.received = None, received  # a failure or an odd answer, which litellm reads
        # litellm changes what it is given: a copy, since the call may have another try.
        response = await self._sent(api, json.loads(json.dumps(fields)), flight)
        check(response, str(api_of(api.path)))
        sent = SENT.get()
        dropped = lost(fields, sent[-1]) if sent else ()
        if asked and known.learn(asked, flight, dropped) and (answer := api.own(flight.whole or {})):
            response = self._clean(answer)
        return Reply(response=response, dropped=dropped)

    async def _sent(self, api: Api, fields: Json, flight: Flight) -> Json:
        """Send, and once more if that failed before anything was sent.

        An odd request may be the first that makes litellm import a part of itself, which can fail once.
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
        model_id, api_base = route(self._model, api.name)
        arguments = fields | {
            "model": model_id,
            "api_key": self._key,
            "api_base": api_base,
            "timeout": PATIENCE_SECONDS,
            "max_retries": 0,
        }
        # litellm cannot know what a server of one's own takes, and would drop what this model's namesake does not take.
        allowed = list(self._model.params) if self._model.apis else []
        if self.vendor in KEEPS_RETRYING:
            allowed.append("max_retries")
        if allowed:
            arguments["allowed_openai_params"] = allowed
        return self._clean(await api.send(self._litellm, arguments))

    async def _can_send(self, api: Api) -> bool:
        """Return whether the shortest request would be sent. If so, the model's settings are not at fault."""
        return self._script is not None or await self._try_shortest(api)

    async def _try_shortest(self, api: Api) -> bool:
        """Send the shortest request as far as the wire. Returns whether it arrived; a script answers above the wire."""
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
        # As in `call`, litellm raises errors of any kind. Only whether the request arrived matters.
        except Exception:
            log.debug("the shortest request to %s was not sent", self._model.id, exc_info=True)
        finally:
            FLIGHT.reset(before)
        return arrived

    def _unsent(self, error: Exception, *, by_agent: bool) -> Reply:
        """Return the reply to a request that litellm cannot translate: the agent's alone (`by_agent`), or any."""
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
        """Return the value without the provider's keys and without values that JSON in UTF-8 cannot hold.

        A provider may echo a key. The other values are halves of surrogate pairs, NaN and infinities, which occur in
        tokens' probabilities.
        """
        text = json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        cleaned: Json = json.loads(text, parse_constant=lambda _: None)
        return cleaned

    @property
    def _secret(self) -> str:
        return self._key if len(self._key) >= SECRET_LENGTH else ""


def route(model: Model, api: ApiName) -> tuple[str, str | None]:
    """Return litellm's id of the model and the address for a call by this API.

    litellm knows which APIs a provider speaks. It takes a server of one's own for OpenAI, which speaks two, so the
    model says what is spoken there (`apis`); `CHAT_PROVIDER` makes litellm translate everything else to chat.
    """
    if not model.apis:
        return model.id, model.api_base
    name = model.id.partition("/")[2]
    spoken = api if api in model.apis else "chat"
    if spoken == "messages":
        return f"anthropic/{name}", model.api_base and model.api_base.removesuffix(
            "/v1"
        )  # litellm adds it again
    return f"{'openai' if spoken == 'responses' else CHAT_PROVIDER}/{name}", model.api_base


def back_off(reply: Reply, tries: int, deadline: float | None) -> float | None:
    """Return the seconds until the next try, after `tries` of them; None if there is none before the deadline."""
    if reply.retry_after is None or tries >= ATTEMPTS:
        return None
    wait = max(reply.retry_after, BACK_OFF_SECONDS * 2 ** (tries - 1))
    late = deadline is not None and time.monotonic() + wait >= deadline
    return None if late or wait > LONGEST_WAIT_SECONDS else wait


def _seconds(retry_after: str) -> float:
    """Return the seconds in a Retry-After header, which has a number or a date; 0 for anything else."""
    try:
        asked = float(retry_after)
    except ValueError:
        try:
            date = parsedate_to_datetime(retry_after)
            asked = (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
        except (ValueError, OverflowError):
            return 0.0
    return max(0.0, min(asked, 2 * LONGEST_WAIT_SECONDS))  # finite, even for NaN and infinity
