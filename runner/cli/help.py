"""Answer questions about the command line: help, version, completion. Reads `conf/` and imports next to nothing."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from runner import __version__
from runner.cli.arguments import (
    added_folders,
    config_folders,
    groups,
    keys_at,
    lineage,
    options,
    scalars,
    split,
    target_of,
)
from runner.errors import ConfigError
from runner.resources import CONF, own_conf
from runner.terminal.escaping import width, wrapped
from runner.terminal.suggestions import suggest

INTRODUCTION = """\
Assay compares coding agents: it runs each agent CLI with each model on each task in a sandbox, judges what is left
there, and scores success, tokens, money and failures together. Without an argument it runs one agent with a scripted
model on nine small tasks."""
SYNOPSIS = "Usage: python -m runner [-m] [GROUP=OPTION ...] [KEY=VALUE ...]"

EXAMPLES = {
    "": "one cell, needs no API key",
    "experiment=quickstart": "agents × models on the quickstart tasks",
    "experiment=quickstart dry_run=true": "what that would run, and the most it may cost",
    "agent=codex model=gpt budget.usd=0.5": "a real model; its key is read from the environment",
    "agent=codex model=openai_compatible model.base_url=http://127.0.0.1:11434 model.id=NAME model.prices=free": (
        "a model on a server of your own: Ollama, vLLM, llama.cpp, ..."
    ),
    "-m agent=codex,mini_swe_agent model=glm,kimi name=mine": "four cells, one leaderboard",
    "dataset=harbor dataset.root=~/tasks": "tasks of your own, in Harbor's format",
    "dataset=cli_tool_bench agent=codex model=gpt": "tools written from scratch",
    "dataset=nl2repo dataset.root=test_files agent=openhands model=glm": "whole repositories, hidden tests",
    "dataset=execution agent=execution_agent model=gpt": "real projects, set up and tested",
    "job=environment project=~/src/mine model=gpt": "a Dockerfile and a test script for any project",
    "agent=oracle attempts=3 fresh=true": "the same tasks three times, finished ones too",
    "job=watch name=quickstart": "what a sweep in another process does now",
    "job=report name=quickstart": "write a sweep's report page and tables from its records",
    "experiment=quickstart job=track": "rebuild tables and tracked runs from the records",
    "job=track name=mine scoring.alpha=0.8": "score finished trials anew, at no cost",
    "experiment=agentmeter_alpha name=mine": "the ranking under other scorings",
    "job=compare left=mine right=other:pass_rate": "how far two rankings agree",
    "job=calibrate inputs=[mine] path=tiers.yaml": "tiers and budgets, for scoring.tiers=tiers.yaml",
    "job=core_set input=mine k=10 path=core.yaml": "few tasks that rank as all do, for dataset.core_set=core.yaml",
    "job=import path=theirs.csv mapping=map.yaml name=theirs": "somebody else's trials as a sweep",
    "dataset=cli_tool_bench_judged job=judge_agreement job.labels=FILE": "whether the judge agrees with people",
    "job=kappa_sample name=mine": "pairs of outputs for two people to label, and then job=kappa_agreement name=mine",
    "job=trajectory job.agent=codex job.model=gpt job.task=logs-to-csv": "one trial, step by step",
    "job=import_cli_tool_bench job.root=DIR job.references=DIR job.path=DIR": "the authors' tasks",
    "dataset=nl2repo dataset.root=test_files job=find_nl2repo_sources": "where upstream's code and tests are",
    "dataset=nl2repo dataset.root=test_files job=verify_ground_truth": "whether upstream passes its own tests",
    "dataset=nl2repo dataset.root=DIR job=make_nl2repo_task job.package=NAME job.version=1.0.0": "a task of your own",
    "job=spec_coverage job.path=PACKAGE job.document=start.md": "what a document leaves out",
    "agent=codex model=cassette model.path=DIR": "replay what a run with record=DIR recorded",
}
"""Words after the program's name -> their effect."""

HINTS = """\
Options of your own are files conf/GROUP/NAME.yaml below the folder where you are; they are found first.
`--config-dir DIR` adds files DIR/GROUP/NAME.yaml, for a run and for its help. The same
command resumes: finished trials are never run again. The keys of a typed job may be written without `job.`.
`--help GROUP` and `--help GROUP=OPTION` show more; `--cfg job` prints the composed configuration. What is
printed fits the terminal; COLUMNS=N sets another width. In bash, this completes words:"""
COMPLETION = ("alias assay='python -m runner'", "complete -o nospace -C 'python -m runner --complete' assay")

EXIT_CODES = {
    "0": "every planned trial was judged",
    "4": "some trials were not judged: their tasks were refused, or something failed on our side; the same command "
    "tries the latter again",
    "5": "sweep_budget was spent before all trials had started; the same command goes on",
    "6": "job=environment: none of the project's tests was executed",
    "2": "what was typed or configured is wrong; nothing was started",
    "3": "the Docker Engine, or MLflow at job=track, is missing or failed",
    "130": "stopped; the same command resumes",
}

OWN = " (your own)"
"""Mark of an option from the `conf/` of the current folder or from a folder of `--config-dir`."""

_WIDEST = 120
"""Widest help, in columns."""
_KEYS = 31
"""Column at which the comment on a key begins."""
_COMMENTED = re.compile(
    r'^(?:  - )?(?:optional )?(?P<key>\w+): "?(?P<value>[^#\n]*?)"? +# (?P<comment>.+)$', re.MULTILINE
)
_NESTED = re.compile(r"^  (?P<key>\w+): (?P<value>[^#\n]*?) +# (?P<comment>.+)$", re.MULTILINE)
_BLOCK = re.compile(r"(?:\n  .*)+")
"""Indented lines below a key."""


def answer(argv: Sequence[str]) -> str | None:
    """Return the answer to a question about the command line itself; None if nothing was asked.

    Raises `ConfigError` if help is asked on something that does not exist.
    """
    if "--version" in argv:
        return f"assay {__version__}"
    if argv and argv[0] == "--complete":
        return "\n".join(complete(os.environ.get("COMP_LINE", "")))
    if asked := {"--help", "-h"}.intersection(argv):
        flags, topics = split([word for word in argv if word not in asked])
        folders = [*config_folders(), *added_folders(flags)]
        return topic(topics[-1], folders) if topics else overview(folders)
    return None


def overview(folders: Sequence[Path]) -> str:
    """Return the whole command line on one page, with the order, defaults and comments of `config.yaml`.

    The options of each group are those of `folders`, or of `config_folders()` if there are none.
    """
    rows, columns = _rows(), _columns()
    lines = [_prose(INTRODUCTION), "", wrapped(SYNOPSIS, columns), "", "Groups (* is the default)"]
    known = groups()
    for group in (key for key in rows if key in known and not _is_derived(rows[key])):
        lines.append(wrapped(f"  {group}: {rows[group]['comment']}", columns))
        marked = {
            f"   {'*' if rows[group]['value'] == option else ' '} {option}": _described(file)
            for option, file in options(group, folders).items()
        }
        lines += _listed(marked, columns)
    lines += ["", "Keys of the run (those of a group: --help GROUP=OPTION)"]
    own = [row for row in rows.values() if not row[0].startswith("  - ")]
    keys = {f"    {key}": comment for row in own for key, comment in _comments(row).items()}
    lines += _listed(keys, columns, _KEYS)
    lines += ["", "Examples", *(line for each in EXAMPLES.items() for line in _example(*each, columns))]
    lines += ["", _prose(HINTS), *(f"  {line}" for line in COMPLETION)]
    lines += ["", "Exit codes", *_listed({f"  {code}": text for code, text in EXIT_CODES.items()}, columns)]
    return "\n".join(lines)


def _columns() -> int:
    return min(width(), _WIDEST)


def _prose(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), _columns(), break_long_words=False, break_on_hyphens=False)


def _listed(entries: Mapping[str, str], columns: int, at: int = 0) -> list[str]:
    """Return lines with each word and, beside it or below a long one, its text."""
    at = min(at or max(map(len, entries)) + 2, columns // 2)
    lines = []
    for word, text in entries.items():
        first = f"{word:<{at - 1}} " if len(word) < at else word
        beside = textwrap.wrap(text, columns - at, break_long_words=False, break_on_hyphens=False) or [""]
        if len(word) >= at:
            lines.append(first)
            first = " " * at
        lines += [f"{first}{beside[0]}".rstrip(), *(f"{'':{at}}{line}" for line in beside[1:])]
    return lines


def _example(words: str, text: str, columns: int) -> list[str]:
    """Return a command, broken into lines that a shell accepts, with its text beside or below it."""
    command = textwrap.wrap(
        f"python -m runner {words}".rstrip(), columns - 4, break_long_words=False, break_on_hyphens=False
    )
    command = [*(f"{line} \\" for line in command[:-1]), command[-1]]
    lines = [f"  {command[0]}", *(f"    {line}" for line in command[1:])]
    at = min(60, columns // 2)
    if len(command) == 1 and len(lines[0]) < at and at + len(text) <= columns:
        return [f"{lines[0]:<{at}}{text}"]
    return [*lines, *textwrap.wrap(text, columns, initial_indent=" " * 8, subsequent_indent=" " * 8)]


def topic(word: str, folders: Sequence[Path] = ()) -> str:
    """Return help on a key of the run, a group, or an option: its file and the keys that the file leaves out.

    The options of each group are those of `folders`, or of `config_folders()` if there are none.
    """
    group, _, option = word.partition("=")
    if group in scalars():
        return "\n".join(f"{key:<26} {comment}" for key, comment in _comments(_rows()[group]).items())
    if group not in groups(folders):
        raise ConfigError(f"no help on '{word}'. {suggest(group, [*groups(folders), *scalars()])}")
    files = options(group, folders)
    if not option and (guide := CONF / group / "README.md").exists():
        return guide.read_text().rstrip()
    if not option:
        return "\n".join(
            _listed({f"{group}={name}": _described(file) for name, file in files.items()}, _columns())
        )
    if option not in files:
        raise ConfigError(f"unknown {group} '{option}'. {suggest(option, files)}")
    file = files[option]
    place = f"# {_place(file, group)}{OWN if _is_own(file) else ''}"
    return f"{place}\n{file.read_text().rstrip()}{_other_keys(file, group, folders)}"


def _place(file: Path, group: str) -> str:
    """Return where an option is: below the `conf/` that people know, or in a folder of `--config-dir`."""
    known = file.is_relative_to(CONF) or file.is_relative_to(own_conf() or CONF)
    return f"conf/{group}/{file.name}" if known else str(file)


def _is_own(file: Path) -> bool:
    return not file.is_relative_to(CONF)


def _described(file: Path) -> str:
    """Return the summary of an option, marked if it is the user's own."""
    return f"{summary(file)}{OWN}".strip() if _is_own(file) else summary(file)


def _rows() -> dict[str, re.Match[str]]:
    """Return the line of each key in `config.yaml`."""
    return {m["key"]: m for m in _COMMENTED.finditer((CONF / "config.yaml").read_text())}


def _is_derived(row: re.Match[str]) -> bool:
    """Return whether a group's option follows from the options of other groups, so that nobody chooses it."""
    return row["value"].startswith("${")


def _comments(row: re.Match[str]) -> dict[str, str]:
    """Return the comment of a key with its default, and of each key that its mapping spells out below."""
    block = _BLOCK.match(row.string, row.end())
    nested = _NESTED.finditer(block[0] if block else "")
    rows = [(row["key"], row), *((f"{row['key']}.{inner['key']}", inner) for inner in nested)]
    return {f"{key}={_short(row['value'])}": row["comment"] for key, row in rows}


def _short(value: str) -> str:
    """Return a default, shortened if it is long."""
    return value if len(value) <= _KEYS else value.partition(",")[0] + ", ...}"


def _other_keys(file: Path, group: str, folders: Sequence[Path]) -> str:
    """Return a comment on the keys that an option takes and its file leaves out; empty if there are none."""
    folders = folders or config_folders()
    kind = target_of(file, group, folders)
    spelled = {key for node in lineage(file, folders) for key in node}
    keys = [key for key in keys_at(kind, ()) or () if key not in spelled] if kind else []
    return (
        f"\n\n# It also takes {', '.join(keys)}: {kind.__module__} says what they are."
        if kind and keys
        else ""
    )


def summary(file: Path) -> str:
    """Return the first comment line of a YAML file that is not a directive."""
    with file.open() as lines:  # the summary is near the beginning of a file that may be long
        found = (line for line in lines if line.startswith("#") and "@package" not in line)
        return next(found, "").lstrip("# ").rstrip("\n")


def complete(line: str) -> list[str]:
    """Return the continuations of the last word of a command line, as bash wants them: what follows its last `=`."""
    word = line[: int(os.environ.get("COMP_POINT", len(line)))].rpartition(" ")[2]
    group, is_option, value = word.partition("=")
    if not is_option:
        return [f"{name}=" for name in [*groups(), *scalars()] if name.startswith(group)]
    before, comma, last = value.rpartition(",")
    return [
        before + comma + name
        for name in (options(group) if group in groups() else ())
        if name.startswith(last)
    ]
