"""Divide a help page into its sections: usage, options, commands, arguments and the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from runner.benchmarks.cli_tool_bench.construction.help.option_lines import (
    LONGEST_LINE,
    SHORT_STANDARD,
    OptionLine,
    read_option_line,
)

SectionKind = Literal["about", "usage", "options", "arguments", "commands", "group", "skipped"]
_BOX_TOP = re.compile(r"[╭┌┏+] ?[─━-]+ ?(?P<title>\w[^─━╮┐┓]{0,60}?) ?[─━-]+[╮┐┓+]?")
_BOX_EDGE = "│┃|"
_BOX_BOTTOM = ("╰", "└", "┗")
_USAGE = re.compile(r"(?P<head>usage(?: of [^\s:]{1,200})?|or):? *(?P<form>.*)", re.IGNORECASE)
_USED = re.compile(r"(?<![\w-])--?[^\W_][\w-]*")
_LONGEST_TITLE = 70
_TITLE_INDENT = 2
"""Largest indentation of a heading, in spaces."""
_TITLES: tuple[tuple[SectionKind, re.Pattern[str]], ...] = (
    (
        "skipped",
        re.compile(r"\b(?:examples?|alias(?:es)?|environment|see also|exit (?:codes?|status)|notes?)\b"),
    ),
    (
        "commands",
        re.compile(r"\b(?:sub-?)?commands?$|\bcommands are$|\bcommands\b(?!.*\b(?:options|flags)\b)"),
    ),
    ("options", re.compile(r"\b(?:options?|flags?|switches|optional arguments)\b")),
    ("arguments", re.compile(r"\b(?:arguments?|args|positionals?)$")),
)


@dataclass
class Section:
    """A heading and the lines below it."""

    kind: SectionKind
    title: str = ""
    columns: bool = False
    """True if names and values stand in columns of their own, as Typer prints them in boxes."""
    lines: list[str] = field(default_factory=list)


def divide(text: str) -> list[Section]:
    """Return the sections of a page in their order. The first one holds the text before any heading."""
    sections = [Section("about")]
    for line, boxed in _unboxed(text):
        current = sections[-1]
        usage = _usage_form(line, current)
        if usage is not None and line.strip().lower().startswith("usage of "):  # Go's flag package
            sections.append(Section("options", line.strip().lower()))
        elif usage is not None:
            sections.append(Section("usage", line.strip()[:_LONGEST_TITLE], lines=[usage] if usage else []))
        elif kind := _heading(line, boxed=boxed):
            title = line.strip().strip(":").lower()
            sections.append(Section(kind, title, columns=boxed))
        elif current.kind == "usage" and _ends_usage(line, current):
            sections.append(Section("about", lines=[line]))
        else:
            current.lines.append(line)
    return sections


def usage_forms(section: Section, tool: str) -> list[str]:
    """Return the usage lines of a section, each joined with its continuation lines."""
    forms: list[str] = []
    program = ""
    for line in section.lines:
        words = line.split(None, 1)
        if not words:
            continue
        if words[0] in {"or:", "or"}:
            words = words[1].split(None, 1) if len(words) > 1 else []
            forms.append(line.strip().removeprefix("or").lstrip(": "))
        elif not forms or words[0] in {program, tool, "$"}:
            forms.append(line.strip().removeprefix("$ ").partition("   ")[0])
        else:
            forms[-1] += f" {line.strip()}"
        program = program or forms[0].split(None, 1)[0]
    return forms


def defined(page: str) -> list[OptionLine]:
    """Return the options that a page certainly defines, then those that only its usage lines mention."""
    sections = [section for section in divide(page) if section.kind != "skipped"]
    found = [
        option
        for section in sections
        for line in section.lines
        if section.kind != "usage"
        and (option := read_option_line(_without_star(line), columns=section.columns))
        and option.sure
    ]
    known = {name for option in found for name in (*option.names, *option.opposite)}
    usage = " ".join(line for section in sections if section.kind == "usage" for line in section.lines)
    for name in dict.fromkeys(_USED.findall(usage)):
        if name not in known and not name.endswith("-"):
            about = "help or version" if name in SHORT_STANDARD else ""
            found.append(OptionLine((name,), (), "", about, 0, 0, sure=True))
    return found


def _ends_usage(line: str, section: Section) -> bool:
    """Return whether a line ends the usage lines: an empty line, prose without indentation, or an option's line."""
    if not any(map(str.strip, section.lines)):
        return False
    if not line.strip():
        return True
    words = section.lines[0].split(None, 1)
    if not line.startswith(" "):
        return not (words and line.startswith(words[0]))
    option = read_option_line(line)
    return option is not None and option.sure and bool(option.about)


def _without_star(line: str) -> str:
    """Return a line of a frame without the star that marks a required parameter."""
    return line.replace("* ", "  ", 1) if line.lstrip(" ").startswith("* ") else line


def _unboxed(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line without Rich's frame around it, and whether the line is the title of a frame."""
    for raw in text.splitlines():
        line = raw.replace("\t", "    ").rstrip()
        body = line.strip()
        if len(body) > LONGEST_LINE:
            yield body, False
        elif top := _BOX_TOP.match(body):
            yield f"{top['title']}:", True
        elif body.startswith(_BOX_BOTTOM):
            yield "", False
        elif len(body) > 1 and body[0] in _BOX_EDGE and body[-1] == body[0]:
            yield body[1:-1].rstrip(), False
        else:
            yield line, False


def _usage_form(line: str, current: Section) -> str | None:
    """Return the text after `usage:`, or None for any other line."""
    if len(line) - len(line.lstrip(" ")) > _TITLE_INDENT or len(line) > LONGEST_LINE:
        return None
    found = _USAGE.fullmatch(line.strip())
    if not found or (found["head"].lower() == "or" and current.kind != "usage"):
        return None
    if found["head"].lower().startswith("usage of"):
        return ""
    plain = ":" not in line and found["form"]
    return None if plain and not line.startswith(("Usage", "usage", "USAGE")) else found["form"]


def _heading(line: str, *, boxed: bool) -> SectionKind | None:
    """Return the kind of section that a line begins, or None."""
    title = line.strip()
    if (
        not title
        or len(title) > _LONGEST_TITLE
        or len(line) - len(line.lstrip(" ")) > _TITLE_INDENT
        or title[0] in "-<[{"
    ):
        return None
    bare = title.rstrip(":").strip()
    plain = not title.endswith(":")
    if plain and (line.startswith(" ") or not (title.isupper() or title in _PLAIN_TITLES)):
        return None
    lowered = re.sub(r" *\([^()]*\)$", "", bare.lower())
    kind = next((kind for kind, pattern in _TITLES if pattern.search(lowered)), None)
    if kind or boxed:
        return kind or "group"
    return "group" if not line.startswith("  ") and not plain else None


_PLAIN_TITLES = frozenset(
    {"Options", "Flags", "Commands", "Subcommands", "Arguments", "Examples", "Positionals"}
)
