"""Calls without litellm: if a provider speaks the agent's API, the request needs no translation.

What a request becomes is learned from a call that litellm makes: the address, the headers and the translated settings.
If the conversation reached the wire unchanged, the next request with the same settings is written from that call.
litellm may treat messages of another form in another way (it flattens some, and moves pictures), so a shortcut is taken
only if each item of the conversation has a form that has passed unchanged before. Everything else is litellm's, which
also reads failures and any answer that its API does not recognise as its own.

A request that takes a shortcut passes the same transport: it waits for its turn, is counted, and its answer is checked.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx

from runner.gateway.api import Api, Json

if TYPE_CHECKING:
    from runner.gateway.transport import Flight, Wire


class Spoken(NamedTuple):
    """The properties of an API that a shortcut depends on."""

    vendors: frozenset[str]
    """Providers, as litellm names them, to which a shortcut may be learned."""
    field: str
    """Field with the items that grow from call to call. All other fields count as settings."""
    bound: str | None
    """Field with the bound on output, which the budget may change from call to call. None where litellm fits other
    settings to it, so that it counts as a setting."""


SPOKEN: dict[str, Spoken] = {
    "chat": Spoken(frozenset({"openai", "custom_openai"}), "messages", "max_tokens"),
    "messages": Spoken(frozenset({"anthropic"}), "messages", None),
    "responses": Spoken(frozenset({"openai"}), "input", "max_output_tokens"),
}
"""API -> its properties. Other APIs have no shortcuts."""
BOUNDS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""Names of the bound on output at providers."""
LEAST_BOUND = 16
"""Smallest bound that litellm passes on as it is. Smaller ones count as settings."""
MEDIA = frozenset({"image_url", "video_url", "file", "input_audio"})
"""Fields of parts that litellm moves or rewrites depending on their content."""
MOST_LEARNED, MOST_KEPT = 64, 8
"""Limits on the calls of one trial from which something is learned, and on its shortcuts at one time: an agent may vary
its settings and messages forever."""
MOST_FORMS, SETTINGS_CHARACTERS = 256, 128 * 2**10
"""Limits on the forms and on the settings of a request from which something is learned."""
OF_THE_BODY = b"content-length"
KEYED = ("role", "type")
"""Fields whose values, all of them short words, are part of a form."""
OPAQUE = "input"
"""Field with the arguments of a tool's call, in which litellm does not look."""
IDS = frozenset({"id", "call_id", "tool_use_id"})
"""Fields that litellm rewrites, or whose item it leaves out, depending on the id's characters."""
SEALED = frozenset({"signature", "data", "encrypted_content"})
"""Fields with bytes that only their provider can read. By their beginning, litellm recognises what it wrote itself."""
LONGEST_ID, BEGINNING = 256, 64
"""Characters of the longest id that is read, and of the part of sealed bytes that is read."""
OWNERS = ("fc", "ctc", "rs_", "encitem_")
"""Beginnings of ids by which litellm tells who gave them."""
OWN_ID = re.compile(r"rs_.*-", re.DOTALL)
"""An id that litellm gives to a thought of its own making."""
ODD = re.compile(r"[^A-Za-z0-9_]|__")
ODD_SEAL = re.compile(r"[^A-Za-z0-9+/=_-]")


class Asked(NamedTuple):
    """A request as a shortcut sees it."""

    path: str
    """End of the path that the provider's address must have."""
    field: str
    """Name of the field with the conversation."""
    conversation: list[Json]
    settings: str
    """All other fields as canonical JSON, without the value of the bound on output."""
    bound: int | None
    forms: frozenset[object]
    """Form of each item of the conversation."""


class Shortcut(NamedTuple):
    """The request of an earlier call with the same settings, as it was sent."""

    wire: Wire
    url: httpx.URL
    headers: list[tuple[bytes, bytes]]
    extensions: Json
    body: Json
    """The body without the conversation."""
    bound: str | None
    """The provider's name of the bound on output."""
    dropped: tuple[str, ...]
    """Settings that did not reach the provider."""

    async def send(self, asked: Asked) -> httpx.Response:
        """Send a request and return its answer. The try under way is `FLIGHT`. Raises `httpx.RequestError`."""
        body = self.body | {asked.field: asked.conversation}
        if self.bound:
            body[self.bound] = asked.bound
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        request = httpx.Request(
            "POST", self.url, headers=self.headers, content=content, extensions=self.extensions
        )
        return await self.wire.handle_async_request(request)


class Shortcuts:
    """The shortcuts of one trial in one event loop, since the connections of a wire belong to a loop."""

    def __init__(self, key: str) -> None:
        """`key` is the provider's. A request that shows it in another way may be signed, and is not repeated."""
        self._key = key
        self._known: dict[str, Shortcut] = {}
        self._forms: set[object] = set()
        self._learned = 0

    def find(self, asked: Asked) -> Shortcut | None:
        """Return the shortcut for a request, or None if litellm must translate it."""
        return self._known.get(asked.settings) if asked.forms <= self._forms else None

    def learn(self, asked: Asked, flight: Flight, dropped: tuple[str, ...]) -> bool:
        """Learn from a call of litellm's whether it needed litellm; return whether it did not.

        `dropped` names what litellm left out of the request.
        """
        request, wire = flight.request, flight.wire
        if not request or not wire or flight.requests != 1 or self._learned >= MOST_LEARNED:
            return False
        self._learned += 1
        if not request.url.path.endswith(asked.path) or not self._shows_key(request.headers):
            return False
        body = json.loads(request.content)
        if not isinstance(body, dict) or body.pop(asked.field, None) != asked.conversation:
            return False
        names = [name for name in BOUNDS if asked.bound is not None and body.get(name) == asked.bound]
        if len(names) != (asked.bound is not None):
            return False
        headers = [pair for pair in request.headers.raw if pair[0].lower() != OF_THE_BODY]
        extensions = dict(request.extensions)
        self._known[asked.settings] = Shortcut(
            wire, request.url, headers, extensions, body, next(iter(names), None), dropped
        )
        if len(self._known) > MOST_KEPT:
            del self._known[next(iter(self._known))]
        self._forms |= asked.forms
        return True

    def _shows_key(self, headers: httpx.Headers) -> bool:
        shown = headers.get("x-api-key"), headers.get("authorization", "").removeprefix("Bearer ")
        return self._key in shown


def read(vendor: str, api: Api, fields: Json) -> Asked | None:
    """Return a request as a shortcut sees it; None if none may be learned for it."""
    spoken = SPOKEN.get(api.name)
    items = fields.get(spoken.field) if spoken and vendor in spoken.vendors else None
    if not spoken or not isinstance(items, list) or not items:
        return None
    if not all(isinstance(item, dict) for item in items):
        return None
    # litellm leaves out empty fields of messages.
    conversation = [{key: value for key, value in item.items() if value is not None} for item in items]
    forms = frozenset(map(_form, conversation))
    rest = {name: value for name, value in fields.items() if name != spoken.field}
    bound = fields.get(spoken.bound) if spoken.bound else None
    if type(bound) is int and bound >= LEAST_BOUND:
        rest[str(spoken.bound)] = True
    else:
        bound = None
    settings = json.dumps(rest, sort_keys=True)
    if None in forms or len(forms) > MOST_FORMS or len(settings) > SETTINGS_CHARACTERS:
        return None
    return Asked(api.path.removeprefix("/v1"), spoken.field, conversation, settings, bound, forms)


def _form(value: Any, name: str = "") -> object:
    """Return what litellm may look at in the value of a field: fields and types, but not texts. None for a picture."""
    if isinstance(value, str):
        return value if name in KEYED else _form_of_text(value, name)
    if name == OPAQUE or not isinstance(value, list | dict):
        return (type(value), bool(value))
    if isinstance(value, list):
        within = frozenset(map(_form, value))
        return None if None in within else (list, within)
    if not MEDIA.isdisjoint(value):
        return None
    forms = {key: _form(one, key) for key, one in value.items()}
    return None if None in forms.values() else frozenset(forms.items())


def _form_of_text(value: str, name: str) -> object:
    """Return whether a text says anything and, if it is an id or sealed, by whom it may be."""
    if name in IDS:
        if len(value) > LONGEST_ID or OWN_ID.match(value):
            return None
        owner = next((one for one in OWNERS if value.startswith(one)), "")
        return (str, bool(value), owner, frozenset(ODD.findall(value)))
    if name in SEALED:
        return (str, bool(value), bool(ODD_SEAL.search(value[:BEGINNING])))
    return (str, bool(value) and not value.isspace())
