"""Commands of a shell script, for counting its size and the programs that a terminal ran.

A script is split at `&&`, `||`, `;`, `|` and line ends (ExecutionAgent, section 3.1.2), and where a subshell begins or
ends. Text in quotes, in a here-document or in `$(…)` belongs to the command around it, and so does text after a single
`&`. An assignment is a command without a name. Comments, blanks and structure are not commands: `if`, `then`, `done`,
`for x in …`, `case x in`, a pattern of `case`, the name of a function that is defined.

This is not a grammar of bash. The text comes from an agent and may be anything: text that no shell accepts is split as
far as possible, in time linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_TOKEN = re.compile(
    r"""
      (?P<blank>   [ \t\r\f\v]+ | \\\r?\n | \#[^\n]* )
    | (?P<line>    \n )
    | (?P<stop>    && | \|[|&]? | ;[;&]* )
    | (?P<open>    \((?!\([^()]*\)\)) )
    | (?P<close>   \) )
    | (?P<heredoc> <<-?[ \t]*["'\\]?(?P<end>[\w.-]+)["']? )
    """,
    re.VERBOSE,
)
_PART = re.compile(
    r"""
      \\. | '[^']*'? | "[^"\\]*(?:\\.[^"\\]*)*"? | `[^`]*`?
    | \$\{[^{}]+\} | \$\([^()]*(?:\([^()]*\)[^()]*)*\) | (?:(?<==)|[<>])\([^()]*\)
    | \(\([^()]*\)\) | >[&|]? | &> | <<< | <&?(?!<) | [^\s;|&()<>'"`\\$]+ | \$
    """,
    re.VERBOSE | re.DOTALL,
)
"""One part of a word; a word is a run of parts. Parts are matched one by one instead of by a possessive or atomic
pattern, because those match the empty string in Python 3.11.2, which Debian 12 ships."""
_STRUCTURE = {
    **dict.fromkeys(("if", "then", "elif", "else", "fi", "while", "until", "do", "done"), 1),
    **dict.fromkeys(("esac", "time", "!", "{", "}"), 1),
    "function": 2,
}
"""Word that may stand before a command -> number of words to skip, itself included."""
_HEADS = frozenset({"for", "case", "select"})
_REDIRECTION = re.compile(r"[\d&]*[<>]")
_ASSIGNMENT = re.compile(r"\w+(?:\[[^]]*\])?\+?=")
_WRAPPERS = frozenset({"sudo", "env", "exec", "nohup", "command"})
"""Commands that run the command after them."""


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command, as written and in order; no command is empty."""
    for words in _pieces(text):
        at = 0
        while at < len(words) and words[at] in _STRUCTURE:
            at += _STRUCTURE[words[at]]
        own = words[at:]
        if own and own[0] not in _HEADS and not _REDIRECTION.match(own[0]):
            yield own


def called(command: Sequence[str]) -> Sequence[str]:
    """Return the words of a command without leading assignments and wrappers such as `sudo`; it may be empty."""
    wrapped = False
    for at, word in enumerate(command):
        if word in _WRAPPERS:
            wrapped = True
        elif not _ASSIGNMENT.match(word) and not (wrapped and word.startswith("-")):
            return command[at:]
    return ()


def _pieces(text: str) -> Iterator[list[str]]:
    """Yield the words between each two places where the text is split."""
    pipeline: list[list[str]] = [[]]
    ends: list[str] = []
    depth = at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        kind = token.lastgroup if token else "word"
        start, at = at, token.end() if token else _end_of_word(text, at)
        if text[start:at] in ("|", "|&"):
            pipeline.append([])
        elif kind in ("line", "stop", "open", "close"):
            if kind == "open":
                pipeline.pop()  # the name of a function, or nothing
            elif kind == "close" and depth == 0:
                pipeline.clear()  # a pattern of `case`
            yield from pipeline
            pipeline = [[]]
            depth = max(0, depth + {"open": 1, "close": -1}.get(kind, 0))
        elif token and kind == "heredoc":
            ends.append(token["end"])
        elif kind == "word":
            pipeline[-1].append(text[start:at])
        if kind == "line":
            at = _after_documents(text, at, ends)
            ends = []
    yield from pipeline


def _end_of_word(text: str, at: int) -> int:
    """Return the end of the word that begins at `at`; a character that fits no word is a word by itself."""
    end = at
    while part := _PART.match(text, end):
        end = part.end()
    return end if end > at else at + 1


def _after_documents(text: str, at: int, ends: list[str]) -> int:
    """Return the end of the here-documents that begin at `at`; one without an end takes the rest of the text."""
    for end in ends:
        found = re.compile(rf"^\t*{re.escape(end)}\r?$", re.MULTILINE).search(text, at)
        at = found.end() if found else len(text)
    return at
