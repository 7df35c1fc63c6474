"""The two files in which tests of Harbor's format say what a rollout is worth, read as hostile input."""

from __future__ import annotations

import json
import math
import re
import tarfile
from typing import TYPE_CHECKING, Final

from runner.errors import VerifierError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

JSON, TEXT = "reward.json", "reward.txt"
NAMES: Final = (JSON, TEXT)
"""Files below `/logs/verifier`; the first that is there counts."""
REWARD_BYTES = 65536
"""Longest reward file that is read."""
ROUNDING = 1e-9
"""A mean of many numbers may miss 0 or 1 by so much."""
MOST_COMPONENTS = 1000
"""Numbers of one `reward.json`: each is a column of the trials table."""
NAME_CHARACTERS = 200
"""Longest name of such a number."""
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def read_reward(files: Mapping[str, bytes], key: str = "reward") -> tuple[float, dict[str, float]]:
    """Reward in [0, 1] and all components from a verifier's files, by Harbor's rules (`reward.json` wins).

    `reward.json` is a flat object of finite numbers; its reward is `key`, or its only entry. Raises `VerifierError`
    for none, empty, not a number, not finite, not UTF-8, several without `key`, or out of [0, 1].
    """
    if JSON in files:
        components = _components(_decoded(files[JSON], JSON))
        if key not in components and len(components) != 1:
            message = f"reward.json has {sorted(components)[:20]} and none is {key!r}; set dataset.verifier.reward_key."
            raise VerifierError(message)
        reward = components.get(key, next(iter(components.values())))
    elif TEXT in files:
        text = _decoded(files[TEXT], TEXT).strip()
        if not NUMBER.fullmatch(text):
            raise VerifierError(f"reward.txt holds {text[:80]!r}, which is not a number.")
        reward = float(text)
        components = {key: reward}
    else:
        raise VerifierError("The tests wrote neither reward.json nor reward.txt to /logs/verifier.")
    if not -ROUNDING <= reward <= 1.0 + ROUNDING:  # nor is what is not finite
        raise VerifierError(f"The reward {reward} is not in [0, 1].")
    return min(max(reward, 0.0), 1.0) + 0.0, components  # the sum makes 0 of -0


def only_file(tar: Path) -> bytes:
    """The content of the one file in a tar. Raises `VerifierError` for anything but a small regular file."""
    with tarfile.open(tar) as archive:
        member = archive.next()
        name = member.name if member else tar.stem
        if member is None or not member.isreg():
            raise VerifierError(f"{name} is not a regular file.")
        if member.size > REWARD_BYTES:
            raise VerifierError(f"{name} is {member.size} bytes long; a reward is a number.")
        handle = archive.extractfile(member)
        return handle.read() if handle else b""


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise VerifierError(f"{name} is not UTF-8: {error}.") from error


def _components(text: str) -> dict[str, float]:
    try:
        parsed = json.loads(text, parse_int=float)  # some integers are too large for any other number
    except (ValueError, RecursionError) as error:
        raise VerifierError(f"reward.json is not JSON: {error}.") from error
    numbers = isinstance(parsed, dict) and all(isinstance(value, int | float) for value in parsed.values())
    if not numbers or not parsed or not all(math.isfinite(value) for value in parsed.values()):
        raise VerifierError("reward.json must be a flat, non-empty object of finite numbers.")
    if len(parsed) > MOST_COMPONENTS:
        raise VerifierError(f"reward.json has {len(parsed)} numbers; at most {MOST_COMPONENTS} are read.")
    if not all(len(name) <= NAME_CHARACTERS and _is_text(name) for name in parsed):
        raise VerifierError(
            f"reward.json has a name that is not text, or longer than {NAME_CHARACTERS} characters."
        )
    return {str(name): float(value) for name, value in parsed.items()}


def _is_text(name: str) -> bool:
    """Whether any file can hold a name: JSON can spell halves of characters, of which no record could be read again."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)
