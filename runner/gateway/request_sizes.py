"""The worst case of a request's input, in tokens, before a provider has counted it.

Two bytes per token is a compromise. A token has at least one byte, but tokens of code and prose have four and more: at
one byte per token, a first request of 100 kB would not fit into a cap of 0.25 USD. Encoded data come close to two.
Pictures may need more tokens than that, so each counts for a minimum. A file with many pages in few bytes remains
undercounted.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter

from runner.gateway.api import Json

BYTES_PER_NEW_TOKEN = 2
"""Worst case for the JSON of a request that no provider has counted yet."""
PICTURE = re.compile(
    rb'"type":"(?:image|image_url|input_image|document|file|input_file|video_url|input_audio)"'
)
PICTURE_BYTES = 10_000
"""Bytes added for each picture, document or film, since 500 bytes of one may cost thousands of tokens."""


def pieces(fields: Json) -> tuple[bytes, ...]:
    """Split a request, as it is sent on, into pieces of JSON: its settings, then each text and each item of a list."""
    settings = {name: value for name, value in fields.items() if not isinstance(value, str | list)}
    lists = {name: [value] if isinstance(value, str) else value for name, value in fields.items()}
    read = [[name, item] for name in lists.keys() - settings for item in lists[name]]
    return tuple(
        json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode() for one in (settings, *read)
    )


def weight(piece: bytes) -> int:
    """Return the bytes that a piece of a request counts for."""
    return len(piece) + PICTURE_BYTES * len(PICTURE.findall(piece))


def new_tokens(request: tuple[bytes, ...], known: tuple[bytes, ...], weights: dict[bytes, int]) -> int:
    """Return the most tokens in those `pieces` of `request` that are not in `known`; in all if the settings differ.

    With other settings, the provider may not have read some of the same pieces.
    """
    new = Counter(request) - Counter(known if request[:1] == known[:1] else ())
    return math.ceil(sum(weights[piece] * times for piece, times in new.items()) / BYTES_PER_NEW_TOKEN)
