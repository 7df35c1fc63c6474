"""Ask a tool for its help pages, level by level, and read a schema from them (section 2.2.1).

The tool is a stranger's program: its pages may be endless, binary, coloured, or the same at every level.
"""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Callable
from typing import Literal

from pydantic import Field

from runner.benchmarks.cli_tool_bench.construction.help.page_text import PageParts, read_page
from runner.benchmarks.cli_tool_bench.construction.schema import (
    COMMAND_NAME,
    DEPTH,
    NODES,
    Command,
    Path,
    Schema,
)
from runner.records import Record
from runner.records.cases import CaseResult

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
_OPTION = re.compile(r"^[ \t]+-\w", re.MULTILINE)
_LOOKS = re.compile(r"\b(?:usage|options|commands|arguments)\b", re.IGNORECASE)

How = Literal["--help", "-h", "help"]


class HelpLimits(Record):
    """Limits on what is asked of a tool and on what is kept of its answers."""

    depth: int = Field(default=DEPTH, ge=0)
    """Levels of subcommands below the tool itself."""
    nodes: int = Field(default=NODES, ge=1)
    """Number of commands that are asked for help, successfully or not."""
    page_bytes: int = Field(default=64 << 10, ge=1)
    """Bytes kept of a page; the rest is cut."""


class HelpPage(Record):
    """One help page, as plain text."""

    path: Path
    text: str
    how: How
    cut: bool = False

    def command(self, tool: str) -> str:
        """Return the command that printed the page."""
        words = ("help", *self.path) if self.how == "help" else (*self.path, self.how)
        return " ".join((tool, *words))


class RejectedNode(Record):
    """A word that a page lists as a command, but that has no help page."""

    path: Path
    reason: str


class HelpTree(Record):
    """All help pages of a tool. The tool's own page comes first; without it there is none."""

    tool: str = Field(min_length=1)
    pages: tuple[HelpPage, ...] = ()
    rejected: tuple[RejectedNode, ...] = ()
    skipped: int = Field(default=0, ge=0)
    """Number of listed commands that were left out because of a limit."""

    def texts(self) -> dict[Path, str]:
        """Return the text of each page by its subcommand."""
        return {page.path: page.text for page in self.pages}


class ReadPages(Record):
    """Result of reading the pages without a model."""

    schema_read: Schema | None
    """The schema; None if the tool has no page of its own, or if the schema breaks a rule of schemas (`fault`)."""
    unread: int = Field(ge=0)
    """Number of lines of all pages that were not understood."""
    fault: str = ""


def explore(run: Callable[[str], CaseResult], tool: str, limits: HelpLimits | None = None) -> HelpTree:
    """Return the help pages of a tool and its subcommands, breadth first. `run` runs a command in a sandbox."""
    limits = limits or HelpLimits()
    waiting: deque[Path] = deque([()])
    listed: set[Path] = {()}
    pages: dict[Path, HelpPage] = {}
    rejected: list[RejectedNode] = []
    while waiting and len(pages) + len(rejected) < limits.nodes:
        path = waiting.popleft()
        known = {page.text: " ".join((tool, *page.path)) for page in pages.values()}
        page = _ask(run, tool, path, known, limits)
        if isinstance(page, RejectedNode):
            rejected.append(page)
            continue
        pages[path] = page
        for name, _ in read_page(page.text, (tool, *path)).commands:
            if len(path) < limits.depth and (*path, name) not in listed:
                listed.add((*path, name))
                waiting.append((*path, name))
    return HelpTree(tool=tool, pages=tuple(pages.values()), rejected=tuple(rejected), skipped=len(waiting))


def is_help(result: CaseResult) -> bool:
    """Return whether a command succeeded and printed something that looks like a help page."""
    return not _fault(result)


def read_pages(tree: HelpTree) -> ReadPages:
    """Return the schema that the pages show, as far as their layout is known."""
    parts = {page.path: read_page(page.text, (tree.tool, *page.path)) for page in tree.pages}
    unread = sum(len(part.unread) for part in parts.values())
    if () not in parts:
        return ReadPages(schema_read=None, unread=unread, fault="The tool has no help page.")
    try:
        command = _command(tree.tool, (), "", parts, frozenset())
        schema = Schema(written_by="help pages", command=command)
    except ValueError as error:
        return ReadPages(schema_read=None, unread=unread, fault=str(error)[:2_000])
    return ReadPages(schema_read=schema, unread=unread)


def page_text(result: CaseResult, page_bytes: int) -> tuple[str, bool]:
    """Return a command's output as plain text, cut to `page_bytes`, and whether it was cut.

    The output is stdout, or stderr if stdout is empty, or both if only stderr lists options, as with Go's flag library.
    """
    printed, names = _printed(result)
    raw = printed.encode(errors="replace")
    text = raw[:page_bytes].decode(errors="ignore")
    return plain(text), len(raw) > page_bytes or bool({*names} & {*result.truncated})


def plain(text: str) -> str:
    """Return a text without colours, overstrikes and other control characters, with lines that end in newlines."""
    text = _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = re.sub(r"[^\n]\x08", "", text)
    text = "".join(c for c in text if c in "\n\t" or c.isprintable())
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def _ask(
    run: Callable[[str], CaseResult], tool: str, path: Path, known: dict[str, str], limits: HelpLimits
) -> HelpPage | RejectedNode:
    """Return the help page of a command, from the first way to ask for it that works."""
    words = shlex.join((tool, *path))
    ways: list[tuple[How, str]] = [("--help", f"{words} --help"), ("-h", f"{words} -h")]
    ways.append(("help", shlex.join((tool, "help", *path))))
    reasons: list[str] = []
    for how, command in ways:
        result = run(command)
        if fault := _fault(result):
            reasons.append(f"{command}: {fault}")
            continue
        text, cut = page_text(result, limits.page_bytes)
        if text in known:
            reasons.append(f"{command}: the page of {known[text]}")
            continue
        return HelpPage(path=path, text=text, how=how, cut=cut)
    return RejectedNode(path=path, reason="; ".join(reasons)[:1_000])


def _fault(result: CaseResult) -> str:
    """Return why a command printed no help page; empty if it did."""
    if result.ended != "exited":
        return f"it ended by {result.ended}"
    if result.exit_code != 0:
        return f"exit code {result.exit_code}"
    printed, names = _printed(result)
    if {*names} & {*result.binary}:
        return "it printed bytes that are no text"
    return "" if _LOOKS.search(printed) else "it printed no usage"


def _printed(result: CaseResult) -> tuple[str, tuple[str, ...]]:
    """Return a command's help text, and the names of the streams that it was printed to."""
    if not result.stdout.strip():
        return result.stderr, ("stderr",)
    if _OPTION.search(result.stderr) and not _OPTION.search(result.stdout):
        return f"{result.stdout.rstrip()}\n{result.stderr}", ("stdout", "stderr")
    return result.stdout, ("stdout",)


def _command(
    name: str, path: Path, about: str, parts: dict[Path, PageParts], inherited: frozenset[str]
) -> Command:
    """Return the command at a path with all commands below it that have a page."""
    part = parts[path]
    known = inherited & part.shared
    own = tuple(parameter for parameter in part.parameters if known.isdisjoint(parameter.names))
    names = frozenset(name for parameter in own for name in parameter.names)
    below = tuple(
        _command(word, (*path, word), line, parts, inherited | names)
        for word, line in part.commands
        if (*path, word) in parts and COMMAND_NAME.fullmatch(word)
    )
    kept = tuple(constraint for constraint in part.constraints if names.issuperset(constraint.parameters))
    return Command(
        name=name,
        about=about or part.about,
        runnable=part.runnable or not below,
        parameters=own,
        constraints=kept,
        subcommands=below,
    )
