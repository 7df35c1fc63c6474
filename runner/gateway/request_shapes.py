"""Shapes of agents' requests. Values with a known shape are passed on; everything else is left out or refused.

A shape is a function of a value and of the set of names left out so far. It returns the part of the value to pass on
and raises `RequestError` if the value has another shape. Unknown fields of an object are left out and their names
noted; unknown items, parts and media are refused. No error message repeats an agent's data.
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
"""Longest name of a part that is left out, as noted in the ledger, in characters."""
MOST_LABELS = 64
"""Limit on the names noted for one request."""
DEEPEST = 64
"""Limit on the levels of a schema or of a tool's arguments."""
WORD = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
"""A word from a short list that the provider knows, such as a level of effort."""
TOOL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,255}")
"""The name of a tool that an agent runs. Moonshot's own tools have names such as `$web_search`."""
UNPRINTABLE = re.compile(r"[^!-~]")
REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
INLINE = "media are taken inside the request only, as a base64 data: URL"


class RequestError(Exception):
    """The reason for not sending a request."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self._reason, self._path = reason, ""

    def __str__(self) -> str:
        return f"{self._path.removeprefix('.')}: {self._reason}." if self._path else f"{self._reason}."

    def within(self, place: str | int) -> RequestError:
        """Prefix the path of the offending value with a key or an index, and return this error."""
        self._path = (f"[{place}]" if isinstance(place, int) else f".{place}") + self._path
        return self


# --- single values ----------------------------------------------------------------------------------------------------


def _typed(types: type | tuple[type, ...], expected: str) -> Shape:
    """Return the shape of a value of these types. JSON's `true` is not a number."""
    flags = types is bool

    def check(value: Any, _: Left) -> Any:
        if not isinstance(value, types) or isinstance(value, bool) is not flags:
            raise RequestError(f"{expected} is expected")
        return value

    return check


text = _typed(str, "a text")
flag = _typed(bool, "true or false")
integer = _typed(int, "a whole number")
_number = _typed((int, float), "a number")
_object = _typed(dict, "an object")


def number(value: Any, left: Left) -> Any:
    """Accept a finite number."""
    if not math.isfinite(_number(value, left)):
        raise RequestError("a number is expected")
    return value


def _matching(pattern: re.Pattern[str], expected: str) -> Shape:
    def check(value: Any, _: Left) -> Any:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise RequestError(f"{expected} is expected")
        return value

    return check


word = _matching(WORD, "a short word")
tool_name = _matching(TOOL, "a name of letters, digits and -_.:/")


def one_of(*words: str) -> Shape:
    """Return the shape of a text that is one of these words."""
    return _matching(re.compile("|".join(map(re.escape, words))), " or ".join(words))


def short(most: int) -> Shape:
    """Return the shape of a text of at most `most` characters."""
    return _matching(re.compile(f".{{0,{most}}}", re.DOTALL), f"a text of at most {most} characters")


def base64(value: Any, _: Left) -> Any:
    """Accept bytes in base64, without line breaks."""
    try:
        binascii.a2b_base64(text(value, set()), strict_mode=True)
    except (ValueError, RequestError) as error:
        raise RequestError("base64 is expected") from error
    return value


def data_url(kinds: str) -> Shape:
    """Return the shape of a base64 data: URL; `kinds` is a regular expression of media types."""
    head_of = re.compile(rf"data:(?:{kinds});base64,")

    def check(value: Any, left: Left) -> Any:
        head = head_of.match(value) if isinstance(value, str) else None
        if head is None:
            raise RequestError(INLINE)
        base64(value[head.end() :], left)
        return value

    return check


def refused(reason: str) -> Shape:
    """Return a shape that accepts only values asking for nothing (null, false, empty) and passes none on."""

    def check(value: Any, _: Left) -> Any:
        if value:
            raise RequestError(reason)

    return check


# --- containers -------------------------------------------------------------------------------------------------------


def struct(
    name: str,
    required: Mapping[str, Shape],
    optional: Mapping[str, Shape] | None = None,
    *,
    closed: str | None = None,
) -> Shape:
    """Return the shape of an object with these fields. Optional ones may be null.

    Other fields are left out as `name.field`, or refused for the reason `closed`.
    """
    fields = {**required, **(optional or {})}

    def check(value: Any, left: Left) -> Any:
        passed: dict[str, Any] = {}
        for key, inner in _object(value, left).items():
            shape = fields.get(key)
            if inner is None and key not in required:
                if shape:
                    passed[key] = None
            elif shape is None:
                if closed:
                    raise RequestError(closed)
                leave_out(left, f"{name}.{key}" if name else key)
            else:
                passed[key] = _within(key, shape, inner, left)
        for key in required:
            if key not in passed:
                raise RequestError("a value is required").within(key)
        return passed

    return check


def part(
    name: str,
    required: Mapping[str, Shape] | None = None,
    optional: Mapping[str, Shape] | None = None,
    *,
    closed: str | None = None,
) -> Shape:
    """Return the shape of a `struct` that also has a `type`."""
    return struct(name, {"type": word} | dict(required or {}), optional, closed=closed)


def listing(shape: Shape, *, least: int = 0, most: int | None = None) -> Shape:
    """Return the shape of a list whose values have one shape."""

    def check(value: Any, left: Left) -> Any:
        if not isinstance(value, list):
            raise RequestError("a list is expected")
        if len(value) < least or (most is not None and len(value) > most):
            raise RequestError(f"a list of {least} to {most or 'any number of'} values is expected")
        return [_within(index, shape, inner, left) for index, inner in enumerate(value)]

    return check


def mapping(shape: Shape, most: int) -> Shape:
    """Return the shape of an object with any fields, whose values have one shape."""

    def check(value: Any, left: Left) -> Any:
        if not isinstance(value, dict) or len(value) > most:
            raise RequestError(f"an object of at most {most} fields is expected")
        return {key: _within("*", shape, inner, left) for key, inner in value.items()}

    return check


def text_or(shape: Shape, words: Shape = text) -> Shape:
    """Return the shape of either a text (of the shape `words`) or another value (of `shape`)."""

    def check(value: Any, left: Left) -> Any:
        return words(value, left) if isinstance(value, str) else shape(value, left)

    return check


def tagged(key: str, kinds: Mapping[str, Shape], default: str | None = None) -> Shape:
    """Return the shape of an object whose field `key` (`default` if absent) names its kind."""

    def check(value: Any, left: Left) -> Any:
        kind = _object(value, left).get(key)
        kind = default if kind is None else kind
        shape = kinds.get(kind) if isinstance(kind, str) else None
        if shape is None:
            raise RequestError(f"one of {', '.join(kinds)} is expected").within(key)
        return shape(value, left)

    return check


def tools(kinds: Mapping[str, Shape], default: str) -> Shape:
    """Return the shape of a list of tools. Tools of other kinds are left out.

    Those are the provider's own (web search, code interpreter, ...): some providers refuse them, and where they work
    they lead out of the sandbox.
    """
    callable_ = tagged("type", kinds, default)

    def check(value: Any, left: Left) -> Any:
        passed = []
        for index, tool in enumerate(listing(_object)(value, left)):
            kind = _within(index, word, tool.get("type") or default, left)
            if kind in kinds:
                passed.append(_within(index, callable_, tool, left))
            else:
                leave_out(left, f"tools:{kind}")
        return passed

    return check


def anything(value: Any, _: Left) -> Any:
    """Accept any JSON value with at most `DEEPEST` levels, such as a tool's arguments."""
    return _shallow(value, schema=False)


def schema(value: Any, _: Left) -> Any:
    """Accept a JSON schema that refers to nothing outside itself."""
    if not isinstance(value, dict):
        raise RequestError("a JSON schema is expected")
    return _shallow(value, schema=True)


def leave_out(left: Left, label: str) -> None:
    """Note the name of a part that is left out, within bounds, since an agent chooses these names."""
    if len(left) < MOST_LABELS:
        left.add(UNPRINTABLE.sub("?", label[:LONGEST_LABEL]))


def read(shape: Shape, body: Any, ours: AbstractSet[str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields of a body to pass on, and the names of those left out.

    `ours` are fields that the gateway handles itself. Raises `RequestError`.
    """
    left: Left = set()
    passed = shape({key: value for key, value in body.items() if value is not None}, left)
    fields = {key: value for key, value in passed.items() if key not in ours and value is not None}
    if fields.get("tools") == []:
        for name in ("tools", "tool_choice", "parallel_tool_calls"):
            fields.pop(name, None)
    return fields, tuple(sorted(left))


def _within(place: str | int, shape: Shape, value: Any, left: Left) -> Any:
    try:
        return shape(value, left)
    except RequestError as error:
        raise error.within(place) from error.__cause__


def _shallow(value: Any, *, schema: bool) -> Any:
    """Return the value if its depth is bounded. Walks level by level: a recursion over agents' data could fail."""
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


# --- shapes of several APIs -------------------------------------------------------------------------------------------

CACHE_CONTROL = struct("cache_control", {"type": one_of("ephemeral")})
"""A request for the provider's cache with its usual time to live. A longer one (`ttl`) costs more than the one cache
rate of price lists."""
CACHED: dict[str, Shape] = {"cache_control": CACHE_CONTROL}
"""Field of a part that may be cached."""
IMAGE_KINDS = ("image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp", "image/bmp")
IMAGE = data_url("|".join(IMAGE_KINDS))
FILE = data_url("(?:application|text)/[a-z0-9.+-]{1,80}")
AUDIO = struct("input_audio", {"data": base64, "format": word}, closed=INLINE)
JSON_SCHEMA: dict[str, Shape] = {
    "name": short(128),
    "schema": schema,
    "strict": flag,
    "description": text,
}
