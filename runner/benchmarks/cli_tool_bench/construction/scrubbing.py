"""De-identification: remove from a prompt everything that identifies the published tool (section 2.2.3)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import cached_property

from runner.records import Record

ADDRESS = re.compile(
    r"\b(?:https?|ftp|git|ssh)(?:\+\w+)?://[^\s<>\"')\]]+|\bwww\.[^\s<>\"')\]]+", re.IGNORECASE
)
EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
REMOVED = "[removed]"
"""Text that replaces a scrubbed address."""
SHORTEST = 3
"""Length of the shortest word that is scrubbed, in characters. A shorter word would match ordinary text."""


class Brand(Record):
    """Names and addresses that identify a published tool."""

    tool: str
    """Name that replaces the published ones."""
    words: tuple[str, ...]
    """Names of package, command, project, owner and authors."""
    emails: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()

    @classmethod
    def of(cls, tool: str, words: Iterable[str], emails: Iterable[str], addresses: Iterable[str]) -> Brand:
        """Return the brand of a tool. Words in several parts (`@owner/name`, `First Last`) count in all spellings."""
        found = {spelling for word in words for spelling in _spellings(word)}
        found = {word for word in found if len(word) >= SHORTEST and word.lower() != tool.lower()}
        return cls(
            tool=tool,
            words=tuple(sorted(found, key=lambda word: (-len(word), word))),
            emails=tuple(sorted({*emails} - {""})),
            addresses=tuple(sorted({*addresses} - {""})),
        )

    def find(self, text: str) -> list[str]:
        """Return the parts of the brand that occur in a text, in order. Only whole words count, in any case."""
        return [match[0] for match in self._pattern.finditer(text)] if self._has_any else []

    def scrub(self, text: str) -> str:
        """Return the text with `tool` in place of the published names, and without web and e-mail addresses.

        Examples of addresses that a tool's own documentation needs survive only below reserved names (`.example`).
        """
        text = ADDRESS.sub(lambda match: match[0] if _is_reserved(match[0]) else REMOVED, text)
        text = EMAIL.sub(lambda match: match[0] if _is_reserved(match[0]) else REMOVED, text)
        return self._pattern.sub(self.tool, text) if self._has_any else text

    @property
    def _has_any(self) -> bool:
        return bool(self.words or self.emails or self.addresses)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        texts = sorted({*self.words, *self.emails, *self.addresses}, key=len, reverse=True)
        whole = "|".join(re.escape(text) for text in texts)
        return re.compile(rf"(?<![A-Za-z0-9])(?:{whole})(?![A-Za-z0-9])", re.IGNORECASE)


def changes(name: str, before: str, after: str) -> str:
    """Return the unified diff of a text before and after it was scrubbed, for people; empty if nothing changed."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"{name}, published", f"{name}, scrubbed", lineterm="", n=1
    )
    return "".join(f"{line}\n" for line in lines)


def _spellings(word: str) -> set[str]:
    """Return a name in its usual spellings: as it is, without its scope, and with separators replaced or removed."""
    name = word.strip()
    scope, slash, bare = name.rpartition("/")
    names = {name, bare, scope.lstrip("@")} if slash else {name}
    return {
        spelling
        for one in names
        for spelling in (one, *(re.sub(r"[-_. ]+", joint, one) for joint in ("-", "_", " ", "")))
        if spelling
    }


def _is_reserved(address: str) -> bool:
    """Return whether an address lies below a reserved name (RFC 2606), or on the machine itself."""
    host = re.sub(r"^.*?://|^.*@", "", address).partition("/")[0].partition(":")[0].lower()
    names = ("example", "test", "invalid", "localhost", "example.com", "example.org", "example.net")
    return any(host == name or host.endswith(f".{name}") for name in names)
