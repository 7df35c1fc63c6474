"""Find the command of a published tool among the executables that its installation added (section 2.1.2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from runner.benchmarks.sources.rejections import rejected

LONGEST_NAME = 255
"""Longest name of an executable or a repository, in characters. File systems allow no longer ones."""
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Places within camel case where a word begins: `csvToJson`, `HTTPServer`."""


def match(added: Collection[str], repository: str) -> str:
    """Return the executable that belongs to a repository, by the first of the paper's levels that finds one.

    The levels are: the same name; the same but for case; the initials of the repository's words; the largest
    Levenshtein similarity. Raises `RejectedError` if nothing was added, or if a level finds several.
    """
    # A name that no shell word could hold plainly is never a command that a prompt can mention.
    names = sorted({name for name in added if _is_plain(name)})
    if not names:
        raise rejected("entry", "no command: the installation added no executable.")
    if not _is_plain(repository):
        raise rejected("entry", f"name: {repository[:40]!r} is not the name of a repository.")
    for level, found in _levels(names, repository):
        if len(found) > 1:
            names_found = ", ".join(found[:5])
            reason = f"several commands: {names_found} match {repository!r} equally well ({level}); name the command."
            raise rejected("entry", reason)
        if found:
            return found[0]
    raise AssertionError("the last level always finds something")


def initials(name: str) -> str:
    """Return the first letters of a name's words, in lower case; empty for a name of a single word.

    Words end at `-`, `_` and `.`, and where camel case begins a new one.
    """
    words = [word for part in re.split(r"[-_.]", name) for word in _WORD_START.split(part) if word]
    return "".join(word[0] for word in words).lower() if len(words) > 1 else ""


def _is_plain(name: str) -> bool:
    fits = 0 < len(name) <= LONGEST_NAME and name.isprintable()
    return fits and not name.startswith("-") and not re.search(r"[\s/]", name)


def _levels(names: list[str], repository: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each level with what it finds."""
    acronym = initials(repository)
    exact: list[tuple[str, Callable[[str], bool]]] = [
        ("exact", lambda name: name == repository),
        ("but for case", lambda name: name.casefold() == repository.casefold()),
        ("acronym", lambda name: bool(acronym) and name.casefold() == acronym.casefold()),
    ]
    for level, matches in exact:
        yield level, [name for name in names if matches(name)]
    yield "similarity", _most_similar(names, repository)


def _most_similar(names: list[str], repository: str) -> list[str]:
    from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - only the last level needs it

    wanted = repository.casefold()
    scores = {name: Levenshtein.normalized_similarity(name.casefold(), wanted) for name in names}
    best = max(scores.values())
    return [name for name in names if scores[name] == best]
