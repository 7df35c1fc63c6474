"""Commit messages, shared by the generators of this tool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fuzz import EVIL, Case, Draw, quote

TYPES = ("feat", "fix", "docs", "chore", "perf", "refactor", "test", "Build")
ACTIONS = (
    "close",
    "closes",
    "closed",
    "fix",
    "fixes",
    "fixed",
    "resolve",
    "resolves",
    "resolved",
    "Closes",
    "FIXES",
)
SCISSORS = "# ------------------------ >8 ------------------------"
SEPARATORS = ("===", "+++", "%%", "@@@", "~~~~", "END", " || ", "\n\n", "<<>>", "\n--\n", ";", "§")


@dataclass(frozen=True)
class Words:
    """Words that messages use."""

    actions: Sequence[str] = ACTIONS
    prefixes: Sequence[str] = ("#",)
    notes: Sequence[str] = ("BREAKING CHANGE", "BREAKING-CHANGE", "breaking change", "Breaking Change")
    fields: Sequence[str] = ("-{}-",)


def issue(draw: Draw, words: Words) -> str:
    """Return a text that names an issue."""
    place = draw.choice(
        ("", "", "", draw.word(), f"{draw.word()}/{draw.word()}", f"{draw.word()}/{draw.word()}.js", "a/b/c")
    )
    number = draw.choice(
        (str(draw.integer(1, 9999)), str(draw.integer(1, 99)), f"{draw.word()}-{draw.integer(1, 9)}")
    )
    return f"{place}{draw.choice(words.prefixes)}{number}"


def reference(draw: Draw, words: Words) -> str:
    """Return a line with references."""
    parts = [f"{draw.choice(words.actions)} {issue(draw, words)}" for _ in range(draw.integer(1, 3))]
    if draw.chance(0.3):
        parts.append(issue(draw, words))
    line = draw.choice((", ", " and ", " ", "; ")).join(parts)
    return draw.choice((line, line, f"{draw.word()} {line}", f"{line}.", f"see {issue(draw, words)}"))


def header(draw: Draw, words: Words) -> str:
    """Return the first line of a message."""
    kind = draw.choice(TYPES)
    scope = draw.choice(
        (
            "",
            "",
            f"({draw.word()})",
            f"({draw.word()}-{draw.word()})",
            f"({draw.word()}/*)",
            "(a b)",
            "($x.y)",
        )
    )
    subject = " ".join(draw.words(draw.integer(1, 5)))
    if draw.chance(0.2):
        subject += draw.choice(
            (f" ({issue(draw, words)})", f", {reference(draw, words)}", f" by @{draw.word()}", " größe")
        )
    return draw.choice(
        (f"{kind}{scope}: {subject}",) * 6 + (subject, f"{kind}{scope}!: {subject}", f"{kind}:{subject}")
    )


def message(draw: Draw, words: Words = Words(), lines: int = 5) -> str:
    """Return a message with up to so many paragraphs."""
    found = [header(draw, words)]
    for _ in range(draw.integer(0, lines)):
        if draw.chance(0.7):
            found.append("")
        kind = draw.integer(0, 7)
        if kind <= 1:
            found += [draw.sentence() for _ in range(draw.integer(1, 3))]
        elif kind <= 3:
            found.append(reference(draw, words))
        elif kind == 4:
            note = draw.choice(words.notes)
            found.append(
                f"{draw.choice(('', '', '* ', '  '))}{note}{draw.choice((': ', ' ', ':', ' : '))}{draw.sentence()}"
            )
            found += draw.choice(([], [draw.sentence()], ["", draw.sentence()]))
        elif kind == 5:
            found.append(
                f"{draw.word()} @{draw.word()}{draw.choice(('', '-' + draw.word(), '_x'))}: {draw.word()}"
            )
        elif kind == 6 and draw.chance(0.5):
            found += [draw.choice(words.fields).format(draw.word()), draw.sentence()]
        else:
            found.append(
                draw.choice(
                    (
                        "- item",
                        f"Signed-off-by: {draw.word()} <{draw.email()}>",
                        "gpg: Signature made",
                        "  indented",
                    )
                )
            )
    if draw.chance(0.1):
        found += [SCISSORS, draw.sentence()]
    return "\n".join(found)


def reverting(draw: Draw) -> str:
    """Return a message that takes another one back."""
    commit = draw.letters(draw.choice((7, 12, 40)), "0123456789abcdef")
    old = draw.choice((header(draw, Words()), 'say "hi"'))
    return f'Revert "{old}"\n\nThis reverts commit {commit}.\n' + draw.choice(
        ("", "", reference(draw, Words()))
    )


def log(draw: Draw, messages: Sequence[str], options: str) -> Case:
    """Return a case that reads these messages."""
    separator = draw.choice(SEPARATORS) if draw.chance(0.25) else "\n\n\n"
    argument = "" if separator == "\n\n\n" else f" {quote(separator)}"
    text = separator.join(one.strip("\n") for one in messages) + draw.choice(
        ("", "\n", separator) if separator == "\n\n\n" else ("", separator)
    )
    name = f"{draw.word()}.{draw.choice(('txt', 'log', 'md'))}"
    kind = draw.integer(0, 4)
    if kind == 0:
        return Case(f"cat {name} | {draw.tool} {options}{argument}", {name: text})
    if kind == 1:
        return Case(f"{draw.tool}{argument} {options} < {name}", {name: text})
    return Case(f"{draw.tool} {options}{argument} < {name}", {name: text})


def ordinary(draw: Draw, options: str, words: Words = Words(), least: int = 1) -> Case:
    """Return a case with some ordinary messages."""
    return log(draw, [message(draw, words) for _ in range(draw.integer(least, 3))], options)


def odd(draw: Draw, options: str, words: Words = Words()) -> Case:
    """Return a case with strange messages, or none."""
    kind = draw.integer(0, 6)
    if kind == 0:
        return Case(f"{draw.tool} {options} < /dev/null")
    if kind == 1:
        evil = draw.choice([text for text in EVIL if text.strip()])
        return log(draw, [f"{header(draw, words)} {evil}\n\n{evil}"], options)
    if kind == 2:
        return log(draw, [message(draw, words).replace("\n", "\r\n")], options)
    if kind == 3:
        return Case(f"{draw.tool} {options} x.txt < a.txt", {"a.txt": f"\n\n{message(draw, words)}\n\n"})
    if kind == 4:
        line = " ".join(reference(draw, words) for _ in range(draw.integer(3, 6)))
        return log(draw, [f"{header(draw, words)}\n\n{line}\n{line}"], options)
    if kind == 5:
        rare = (
            "fix: ",
            "feat(): x",
            ": x",
            "a(b)c: d",
            "merge: #",
            "@",
            "@@a",
            "closes",
            "fix #1",
            "#1",
            "fix(a)(b): c",
            "-a-",
            "-- x",
        )
        return log(
            draw,
            [
                draw.choice(rare)
                + draw.choice(("", "\n\n-x-\n-y-\nz", "\n\n@a@b", "\nBREAKING CHANGE:", "\n#2"))
            ],
            options,
        )
    return log(draw, [message(draw, words, 12)], options)


def failing(draw: Draw, options: str, broken: Sequence[str] = ()) -> Case:
    """Return a case with an empty message, or with one of these broken options."""
    if broken and draw.chance(0.5):
        option = draw.choice(broken)
        return Case(f"{draw.tool} {option} < a.txt", {"a.txt": message(draw)})
    kind = draw.integer(0, 3)
    blank = draw.choice(("\n", " ", "\n \n", "\t", " \n\t\n"))
    if kind == 0:
        return Case(f"{draw.tool} {options} < a.txt", {"a.txt": blank * draw.integer(1, 2)})
    if kind == 1:
        separator = draw.choice([one for one in SEPARATORS if one.strip()])
        parts = [message(draw, lines=2) for _ in range(draw.integer(1, 2))]
        parts.insert(draw.integer(0, len(parts)), blank)
        return Case(f"{draw.tool} {options} {quote(separator)} < a.txt", {"a.txt": separator.join(parts)})
    if kind == 2:
        return Case(
            f"{draw.tool} {options} < a.txt",
            {"a.txt": f"{message(draw, lines=1)}\n\n\n\n\n\n{message(draw, lines=1)}"},
        )
    twice = draw.choice(("-p '^x'", "--note-keywords NOTE", "-r ends", "-i gh-"))
    return Case(f"{draw.tool} {options} {twice} {twice} < a.txt", {"a.txt": message(draw)})
