"""What the command line says about itself: help, version, completion. Reads `conf/` and imports next to nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from runner import __version__
from runner.door import CONF, groups, keys_at, lineage, options, scalars, suggest, target_of
from runner.errors import ConfigError

INTRODUCTION = """\
Assay measures coding agents: it runs agent CLI × model × dataset in sandboxes, judges what is left in each, and
scores success, tokens, money and failures together. With no argument: one agent, a scripted model, nine small tasks.

Usage: python -m runner [-m] [GROUP=OPTION ...] [KEY=VALUE ...]
"""

EXAMPLES = """\
Examples
  python -m runner                                            one cell, needs no API key
  python -m runner experiment=quickstart                      agents × models on the quickstart tasks
  python -m runner experiment=quickstart dry_run=true         what that would run, and the most it may cost
  python -m runner agent=codex model=gpt budget.usd=0.5       a real model; its key is read from the environment
  python -m runner -m agent=codex,mini_swe_agent model=glm,kimi name=mine       four cells, one leaderboard
  python -m runner dataset=harbor dataset.root=~/tasks        tasks of your own, in Harbor's format
  python -m runner dataset=cli_tool_bench agent=codex model=gpt                 tools written from scratch
  python -m runner dataset=nl2repo dataset.root=test_files agent=openhands model=glm    whole repositories, hidden tests
  python -m runner dataset=execution agent=execution_agent model=gpt            real projects, set up and tested
  python -m runner job=environment project=~/src/mine model=gpt         a Dockerfile and a test script for any project
  python -m runner agent=oracle attempts=3 fresh=true         the same tasks three times, finished ones too
  python -m runner job=report name=quickstart                 write its report page and tables from the records
  python -m runner experiment=quickstart job=track            rebuild tables and tracked runs from the records
  python -m runner job=track name=mine scoring.alpha=0.8                 score finished trials anew, for nothing
  python -m runner experiment=agentmeter_alpha name=mine                the ranking under other scorings
  python -m runner job=compare left=mine right=other:pass_rate          how far two rankings agree
  python -m runner job=calibrate inputs=[mine] path=tiers.yaml          tiers and budgets, for scoring.tiers=tiers.yaml
  python -m runner job=core_set input=mine k=10 path=core.yaml          few tasks that rank as all do, for
                                                                        dataset.core_set=core.yaml
  python -m runner job=import path=theirs.csv mapping=map.yaml name=theirs      somebody else's trials as a sweep
  python -m runner dataset=cli_tool_bench_judged job=judge_agreement job.labels=FILE    does the judge agree with people
  python -m runner job=trajectory job.agent=codex job.model=gpt job.task=logs-to-csv     one trial, step by step
  python -m runner job=import_cli_tool_bench job.root=DIR job.references=DIR job.path=DIR       the authors' tasks
  python -m runner dataset=nl2repo dataset.root=test_files job=verify_ground_truth      does upstream pass its own tests
  python -m runner dataset=nl2repo dataset.root=DIR job=make_nl2repo_task job.package=NAME job.version=1.0.0  your own
  python -m runner job=spec_coverage job.path=PACKAGE job.document=start.md             what a document leaves out
  python -m runner agent=codex model=cassette model.path=DIR            replay what a run with record=DIR kept

The same command resumes: finished trials are never run again. The keys of a typed job go without `job.`. `--help GROUP`
and `--help GROUP=OPTION` show more; `--cfg job` prints the composed configuration. Completion in bash:
alias assay='python -m runner'; complete -o nospace -C 'python -m runner --complete' assay

Exit codes
  0    every planned trial was judged
  4    some were not: refused, or spoiled by a failure of ours; the same command tries the latter again
  5    sweep_budget was spent before all had started; the same command goes on
  6    job=environment: no test of the project was executed
  2    what was typed or configured is wrong; nothing was started
  3    the Docker Engine, or MLflow at job=track, is absent or failed
  130  stopped; the same command resumes
"""

_COMMENTED = re.compile(
    r'^(?:  - )?(?:optional )?(?P<key>\w+): "?(?P<value>[^#\n]*?)"? +# (?P<comment>.+)$', re.MULTILINE
)
_NESTED = re.compile(r"^  (?P<key>\w+): (?P<value>[^#\n]*?) +# (?P<comment>.+)$", re.MULTILINE)
_BLOCK = re.compile(r"(?:\n  .*)+")
"""The indented lines beneath a key."""


def answer(argv: Sequence[str]) -> str | None:
    """The answer to a question about the command line itself; None when it is no such question.

    Raises `ConfigError` when help is asked on something that does not exist.
    """
    if "--version" in argv:
        return f"assay {__version__}"
    if argv and argv[0] == "--complete":
        return "\n".join(complete(os.environ.get("COMP_LINE", "")))
    if asked := {"--help", "-h"}.intersection(argv):
        topics = [word for word in argv if word not in asked and not word.startswith("-")]
        return topic(topics[-1]) if topics else overview()
    return None


def overview() -> str:
    """All of the command line on one page: `config.yaml` gives the order, the defaults and a comment on each."""
    rows = _rows()
    lines = [INTRODUCTION, "Groups (* is the default)"]
    for group in (key for key in rows if key in groups() and options(key)):
        lines.append(f"  {group}: {rows[group]['comment']}")
        files = options(group)
        for option, file in files.items():
            mark = "*" if rows[group]["value"] == option else " "
            lines.append(f"   {mark} {option:<{max(map(len, files))}}  {summary(file)}")
    lines += ["", "Keys of the run (those of a group: --help GROUP=OPTION)"]
    lines += [_key(rows[key]) for key in scalars()]
    return "\n".join([*lines, "", EXAMPLES.rstrip()])


def topic(word: str) -> str:
    """One key of the run, one group with its options, or the file of one option, with the keys it does not spell."""
    group, _, option = word.partition("=")
    if group in scalars():
        return _key(_rows()[group]).strip()
    if group not in groups():
        raise ConfigError(f"no help on '{word}'. {suggest(group, [*groups(), *scalars()])}")
    files = options(group)
    if not files:
        return (CONF / group / "README.md").read_text().rstrip()
    if not option:
        wide = max(map(len, files))
        return "\n".join(f"{group}={name:<{wide}}  {summary(file)}" for name, file in files.items())
    if option not in files:
        raise ConfigError(f"unknown {group} '{option}'. {suggest(option, files)}")
    file = files[option]
    return f"# {file.relative_to(CONF.parent)}\n{file.read_text().rstrip()}{_unspelt(file, group)}"


def _rows() -> dict[str, re.Match[str]]:
    """Key of `config.yaml` -> its line."""
    return {m["key"]: m for m in _COMMENTED.finditer((CONF / "config.yaml").read_text())}


def _key(row: re.Match[str]) -> str:
    """A key of the run with its comment, and beneath it each key that its mapping spells out."""
    nested = _BLOCK.match(row.string, row.end())
    inner = _NESTED.finditer(nested[0] if nested else "")
    rows = [(row["key"], row), *((f"{row['key']}.{m['key']}", m) for m in inner)]
    wide = 26 if nested is None else 34
    return "\n".join(f"    {key + '=' + m['value']:<{wide}} {m['comment']}" for key, m in rows)


def _unspelt(file: Path, group: str) -> str:
    """A line on the keys that an option takes and its file leaves out; empty where there are none."""
    kind = target_of(file, group)
    spelt = {key for node in lineage(file) for key in node}
    keys = [key for key in keys_at(kind, ()) or () if key not in spelt] if kind else []
    return (
        f"\n\n# It also takes {', '.join(keys)}: {kind.__module__} says what they are."
        if kind and keys
        else ""
    )


def summary(file: Path) -> str:
    """First comment line of a YAML file that is no directive."""
    for line in file.read_text().splitlines():
        if line.startswith("#") and "@package" not in line:
            return line.lstrip("# ")
    return ""


def complete(line: str) -> list[str]:
    """Continuations of the last word of a command line, as bash wants them: what follows its last `=` or comma."""
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
