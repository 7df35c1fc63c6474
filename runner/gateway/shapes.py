"""Shapes of what agents may send: what has a shape is passed on, and everything else is left out by name or refused.

A shape is a function of a value and of the set of names left out so far. It returns what of the value is passed on and
raises `RequestError` for what has another shape. Fields that a record does not know are left out and named; items,
parts and media that are not known are refused. No error repeats what the agent sent.
"""

from __future__ import annotations

import binascii
import math
import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

Left = set[str]
Shape = Callable[[Any, Left], Any]

LONGEST_LABEL = 64
"""Characters of a name that is left out, as it stands in the ledger."""
MOST_LABELS = 64
"""Names left out of one request that are told apart."""
DEEPEST = 64
"""Levels of a schema, or of a tool's arguments."""
WORD = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
"""A value that is one of a few which the provider knows, such as a level of effort."""
TOOL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,255}")
"""Name of a tool that an agent runs. Moonshot sells its own under names such as `$web_search`."""
UNPRINTABLE = re.compile(r"[^!-~]")
REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
INLINE = "media are taken inside the request only, as a base64 data: URL"


class RequestError(Exception):
    """Why a request is not sent."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self._reason, self._path = reason, ""

    def __str__(self) -> str:
        return f"{self._path.removeprefix('.')}: {self._reason}." if self._path else f"{self._reason}."

    def within(self, place: str | int) -> RequestError:
        """The same error, of a value that stands at this key or index."""
        self._path = (f"[{place}]" if isinstance(place, int) else f".{place}") + self._path
        return self


# --- single values ----------------------------------------------------------------------------------------------------


def text(value: Any, _: Left) -> Any:
    """Any text."""
    if not isinstance(value, str):
        raise RequestError("a text is expected")
    return value


def flag(value: Any, _: Left) -> Any:
    """True or false."""
    if not isinstance(value, bool):
        raise RequestError("true or false is expected")
    return value


def number(value: Any, _: Left) -> Any:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RequestError("a number is expected")
    return value


def integer(value: Any, _: Left) -> Any:
    """A whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise RequestError("a whole number is expected")
    return value


def word(value: Any, _: Left) -> Any:
    """A short text without blanks, for values of which the provider knows a few."""
    if not isinstance(value, str) or not WORD.fullmatch(value):
        raise RequestError("a short word is expected")
    return value


def one_of(*words: str) -> Shape:
    """Exactly one of these words."""

    def check(value: Any, _: Left) -> Any:
        if not isinstance(value, str) or value not in words:
            raise RequestError(f"{' or '.join(words)} is expected")
        return value

    return check


def tool_name(value: Any, _: Left) -> Any:
    """The name of a tool that the agent runs."""
    if not isinstance(value, str) or not TOOL.fullmatch(value):
        raise RequestError("a name of letters, digits and -_.:/ is expected")
    return value


def short(most: int) -> Shape:
    """A text of at most so many characters."""

    def check(value: Any, _: Left) -> Any:
        if not isinstance(value, str) or len(value) > most:
            raise RequestError(f"a text of at most {most} characters is expected")
        return value

    return check


def base64(value: Any, _: Left) -> Any:
    """Bytes in base64, without line breaks."""
    try:
        binascii.a2b_base64(text(value, set()), strict_mode=True)
    except (ValueError, RequestError) as error:
        raise RequestError("base64 is expected") from error
    return value


def data_url(kinds: str) -> Shape:
    """A base64 data: URL whose kind of media matches a regular expression; no other address."""
    head_of = re.compile(rf"data:(?:{kinds});base64,")

    def check(value: Any, left: Left) -> Any:
        head = head_of.match(value) if isinstance(value, str) else None
        if head is None:
            raise RequestError(INLINE)
        base64(value[head.end() :], left)
        return value

    return check


def refused(reason: str) -> Shape:
    """Nothing; what asks for nothing (null, false, empty) is taken for it."""

    def check(value: Any, _: Left) -> Any:
        if value:
            raise RequestError(reason)

    return check


# --- what holds others ------------------------------------------------------------------------------------------------


def record(
    name: str,
    required: Mapping[str, Shape],
    optional: Mapping[str, Shape] | None = None,
    *,
    closed: str | None = None,
) -> Shape:
    """An object of these fields, of which the optional ones may be null.

    Others are left out as `name.field`, or refused if `closed` says why.
    """
    known = {**required, **(optional or {})}

    def check(value: Any, left: Left) -> Any:
        if not isinstance(value, dict):
            raise RequestError("an object is expected")
        kept: dict[str, Any] = {}
        for key, inner in value.items():
            shape = known.get(key)
            if inner is None and key not in required:
                if shape:
                    kept[key] = None
            elif shape is None:
                if closed:
                    raise RequestError(closed)
                leave_out(left, f"{name}.{key}" if name else key)
            else:
                kept[key] = _within(key, shape, inner, left)
        for key in required:
            if key not in kept:
                raise RequestError("a value is required").within(key)
        return kept

    return check


def listing(shape: Shape, *, least: int = 0, most: int | None = None) -> Shape:
    """A list of values of one shape."""

    def check(value: Any, left: Left) -> Any:
        if not isinstance(value, list):
            raise RequestError("a list is expected")
        if len(value) < least or (most is not None and len(value) > most):
            raise RequestError(f"a list of {least} to {most or 'any number of'} values is expected")
        return [_within(index, shape, inner, left) for index, inner in enumerate(value)]

    return check


def mapping(shape: Shape, most: int) -> Shape:
    """An object of any fields, all of one shape."""

    def check(value: Any, left: Left) -> Any:
        if not isinstance(value, dict) or len(value) > most:
            raise RequestError(f"an object of at most {most} fields is expected")
        return {key: _within("*", shape, inner, left) for key, inner in value.items()}

    return check


def text_or(shape: Shape, words: Shape = text) -> Shape:
    """A text, or a value of this shape."""

    def check(value: Any, left: Left) -> Any:
        return words(value, left) if isinstance(value, str) else shape(value, left)

    return check


def by(key: str, kinds: Mapping[str, Shape], default: str | None = None) -> Shape:
    """An object whose shape is named by its field `key`, or is `default` where it has no such field."""

    def check(value: Any, left: Left) -> Any:
        if not isinstance(value, dict):
            raise RequestError("an object is expected")
        kind = default if value.get(key) is None else value[key]
        shape = kinds.get(kind) if isinstance(kind, str) else None
        if shape is None:
            raise RequestError(f"one of {', '.join(kinds)} is expected").within(key)
        return shape(value, left)

    return check


def tools(kinds: Mapping[str, Shape], default: str) -> Shape:
    """A list of tools, of which those of other kinds are left out.

    Those are the provider's own (web search, code interpreter, ...): some providers refuse them, and where they work
    they are a way out of the sandbox.
    """
    callable_ = by("type", kinds, default)

    def check(value: Any, left: Left) -> Any:
        kept = []
        for index, tool in enumerate(listing(_object)(value, left)):
            kind = _within(index, word, tool.get("type") or default, left)
            if kind in kinds:
                kept.append(_within(index, callable_, tool, left))
            else:
                leave_out(left, f"tools:{kind}")
        return kept

    return check


def anything(value: Any, _: Left) -> Any:
    """Any JSON, such as a tool's arguments, down to `DEEPEST` levels."""
    return _shallow(value, schema=False)


def schema(value: Any, _: Left) -> Any:
    """A JSON schema, which refers to nothing outside itself."""
    if not isinstance(value, dict):
        raise RequestError("a JSON schema is expected")
    return _shallow(value, schema=True)


def leave_out(left: Left, label: str) -> None:
    """Note what is left out, within bounds: the names are of the agent's choosing."""
    if len(left) < MOST_LABELS:
        left.add(UNPRINTABLE.sub("?", label[:LONGEST_LABEL]))


def read(shape: Shape, body: Any, ours: AbstractSet[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The fields of a body that are passed on, and the names of what is left out.

    `ours` are fields that the gateway answers for itself. Raises `RequestError`.
    """
    left: Left = set()
    kept = shape({key: value for key, value in body.items() if value is not None}, left)
    fields = {key: value for key, value in kept.items() if key not in ours and value is not None}
    if fields.get("tools") == []:
        for name in ("tools", "tool_choice", "parallel_tool_calls"):
            fields.pop(name, None)
    return fields, tuple(sorted(left))


def _object(value: Any, _: Left) -> Any:
    if not isinstance(value, dict):
        raise RequestError("an object is expected")
    return value


def _within(place: str | int, shape: Shape, value: Any, left: Left) -> Any:
    try:
        return shape(value, left)
    except RequestError as error:
        raise error.within(place) from error.__cause__


def _shallow(value: Any, *, schema: bool) -> Any:
    """The value, of bounded depth. A loop over levels, since a recursion over agents' data could fail."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _children(outer, schema=schema)]
        if not level:
            return value
    raise RequestError(f"more than {DEEPEST} levels")


def _children(value: Any, *, schema: bool) -> list[Any]:
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return []
    if schema and any(isinstance(value.get(key), str) and value[key][:1] != "#" for key in REFERENCES):
        raise RequestError("a schema may refer to itself only, by #")
    return list(value.values())


# --- what several APIs have -------------------------------------------------------------------------------------------

CACHE_CONTROL = record("cache_control", {"type": one_of("ephemeral")})
"""Asks for the provider's cache with its usual time to live. To be kept longer (`ttl`) costs more than the one rate
that price lists have for a cache."""
CACHED: dict[str, Shape] = {"cache_control": CACHE_CONTROL}
"""Field of a part that may be cached."""
IMAGE_KINDS = ("image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp", "image/bmp")
IMAGE = data_url("|".join(IMAGE_KINDS))
FILE = data_url("(?:application|text)/[a-z0-9.+-]{1,80}")
JSON_SCHEMA: dict[str, Shape] = {
    "name": short(128),
    "schema": schema,
    "strict": flag,
    "description": text,
}
