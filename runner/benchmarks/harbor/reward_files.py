"""Take the files in which Harbor's tests write the reward out of the judge's machine, and read them.

They are hostile input.
"""

from __future__ import annotations

import json
import math
import re
import tarfile
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from runner.errors import VerifierError, WorkspaceTooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from runner.protocols import Sandbox
    from runner.records import ExecResult

LOGS = "/logs/verifier"
"""Folder in which tests write the reward."""
JSON, TEXT = "reward.json", "reward.txt"
NAMES: Final = (JSON, TEXT)
"""Names of the files in `LOGS`. The first one that exists counts."""
REWARD_BYTES = 65536
"""Longest reward file that is read, in bytes."""
ROUNDING = 1e-9
"""Largest rounding error of a mean of many numbers that should be 0 or 1."""
MOST_COMPONENTS = 1000
"""Largest number of entries in one `reward.json`. Each becomes a column of the trials table."""
NAME_CHARACTERS = 200
"""Longest name of a component, in characters."""
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def reward_files(result: ExecResult, judge: Sandbox, into: Path) -> dict[str, bytes]:
    """Keep the folder of the reward for people. Return from it the reward file that counts, by name.

    Many tests write a 0 first and the result last. Raises `VerifierError` if the tests did not end by themselves, or
    if that file is not a small regular file.
    """
    kept = into / "verifier.tar"
    kept.unlink(missing_ok=True)
    with suppress(FileNotFoundError, WorkspaceTooLarge):  # the reward can be read without the other files
        judge.get(LOGS, kept)
    if result.ended != "exited":
        raise VerifierError("The tests had not ended: what they had written is not a verdict.")
    if kept.exists() and (files := find_reward(kept, PurePosixPath(LOGS).name)):
        return files
    for name in NAMES:
        with suppress(FileNotFoundError):
            return {name: read_small_file(f"{LOGS}/{name}", judge, into)}
    return {}


def read_small_file(path: str, sandbox: Sandbox, into: Path) -> bytes:
    """Return the content of a small file of a sandbox. Raises as `Sandbox.get` and `only_file` do."""
    tar = into / f"{PurePosixPath(path).name}.tar"
    try:
        sandbox.get(path, tar)
        return only_file(tar)
    finally:
        tar.unlink(missing_ok=True)


def read_reward(files: Mapping[str, bytes], key: str = "reward") -> tuple[float, dict[str, float]]:
    """Return the reward, in [0, 1], and all components by Harbor's rules, in which `reward.json` takes precedence.

    `reward.json` is a flat object of finite numbers, each name once; its reward is the entry `key`, or the only entry.
    Raises `VerifierError` if there is no file, or if it does not hold such a reward.
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
    if not -ROUNDING <= reward <= 1.0 + ROUNDING:  # also refuses NaN and infinity
        raise VerifierError(f"The reward {reward} is not in [0, 1].")
    return min(max(reward, 0.0), 1.0) + 0.0, components  # adding 0 turns -0 into 0


def find_reward(tar: Path, folder: str) -> dict[str, bytes]:
    """Return the reward file that counts, by name, from a tar of the folder with that name.

    The result is empty if there is none, and if it is not a small regular file: `only_file` has the reasons.
    """
    with tarfile.open(tar) as archive:
        found = {member.name: member for member in archive}
        for name in NAMES:
            if member := found.get(f"{folder}/{name}"):
                handle = archive.extractfile(member) if member.isreg() else None
                return {name: handle.read()} if handle and member.size <= REWARD_BYTES else {}
    return {}


def only_file(tar: Path) -> bytes:
    """Return the content of a tar's only file. Raises `VerifierError` unless it is a small regular file."""
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
        # An `int` may be too large for a float.
        parsed = json.loads(text, parse_int=float, object_pairs_hook=_unambiguous)
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


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these entries. Raises `VerifierError` for a name that it has twice.

    JSON's readers let the last one count, so a name of the agent's choice could take the place of the reward.
    """
    if len(found := dict(pairs)) != len(pairs):
        raise VerifierError("reward.json has a name twice, so its numbers are ambiguous.")
    return found


def _is_text(name: str) -> bool:
    """Return whether a name is without lone surrogates, which JSON can spell but no record can hold."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)
