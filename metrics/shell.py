"""The commands of a shell script, as its size and the use of a terminal count them.

Split at `&&`, `||`, `;`, `|` and line ends (ExecutionAgent, section 3.1.2), and where a subshell begins or ends. What
stands in quotes, in a here-document or in `$(…)` is part of the command around it, and so is what follows a single
`&`. An assignment is a command without a name. Comments, blanks and what only gives structure are none: `if`, `then`,
`done`, `for x in …`, `case x in`, a pattern of it, the name of a function that is defined.

No grammar of bash: a text that no shell would take is split as far as it goes, in time linear in its length, since it
is an agent's and may be anything.
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
"""One part of a word. A word is as many of them as follow each other. The parts are matched one by one, and no pattern
here is possessive or atomic: those of Python 3.11.2, which Debian 12 ships, match the empty string instead."""
_STRUCTURE = {
    **dict.fromkeys(("if", "then", "elif", "else", "fi", "while", "until", "do", "done"), 1),
    **dict.fromkeys(("esac", "time", "!", "{", "}"), 1),
    "function": 2,
}
"""Word -> how many words, itself included, stand before a command that it leads."""
_HEADS = frozenset({"for", "case", "select"})
_REDIRECTION = re.compile(r"[\d&]*[<>]")
_ASSIGNMENT = re.compile(r"\w+(?:\[[^]]*\])?\+?=")
_WRAPPERS = frozenset({"sudo", "env", "exec", "nohup", "command"})
"""Commands that run the command after them."""


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command in their order, as they are written; none is empty."""
    for words in _pieces(text):
        at = 0
        while at < len(words) and words[at] in _STRUCTURE:
            at += _STRUCTURE[words[at]]
        own = words[at:]
        if own and own[0] not in _HEADS and not _REDIRECTION.match(own[0]):
            yield own


def called(command: Sequence[str]) -> Sequence[str]:
    """What a command runs and with what: its words without assignments before it and without `sudo` and its like."""
    wrapped = False
    for at, word in enumerate(command):
        if word in _WRAPPERS:
            wrapped = True
        elif not _ASSIGNMENT.match(word) and not (wrapped and word.startswith("-")):
            return command[at:]
    return ()


def _pieces(text: str) -> Iterator[list[str]]:
    """The words between two places where the text is split."""
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
    """Where the word that begins at `at` is over; a character that belongs to no word is one by itself."""
    end = at
    while part := _PART.match(text, end):
        end = part.end()
    return end if end > at else at + 1


def _after_documents(text: str, at: int, ends: list[str]) -> int:
    """Where the here-documents that begin at `at` are over; one that never ends takes the rest."""
    for end in ends:
        found = re.compile(rf"^\t*{re.escape(end)}\r?$", re.MULTILINE).search(text, at)
        at = found.end() if found else len(text)
    return at
