"""The three questions to a model: schema, context, and a generator per class. README and help are data only."""

from __future__ import annotations

from collections.abc import Mapping

from runner.benchmarks.cli_tool_bench.construction.classes import CommandClass
from runner.benchmarks.cli_tool_bench.construction.drawing import LIBRARY
from runner.benchmarks.sources.answers import Question
from runner.benchmarks.sources.fences import RULE, enclosed, token_of

LONGEST_README = 20_000
LONGEST_HELP = 60_000
"""Longest README, and longest help of all levels together, that a model sees, in characters."""
SCHEMA = """\
You describe the interface of a command-line tool from its README and the help of all its levels.
{fenced}
Answer with one JSON object and nothing else: {{"written_by": "", "command": COMMAND}}.
COMMAND: {{"name", "about", "runnable", "parameters": [PARAMETER], "constraints": [CONSTRAINT],
"subcommands": [COMMAND]}}; runnable is false for a command that only groups subcommands.
PARAMETER: {{"names": ["-k", "--keep"], "kind": "flag", "option" or "argument", "type": "boolean", "string", "path",
"integer", "number" or "choice", "required", "repeatable", "choices": [], "about"}}. A flag is boolean and takes no
value; an argument has one name without dashes; choices belong to the type choice alone. about is one line.
CONSTRAINT: {{"kind": "requires", "excludes" or "one_of", "parameters": ["--a", "--b"]}}; with requires the first
needs the others.
List every flag and option that the help shows, as it is spelt there, and none that it does not show. The most
important parameters of a command come first.
"""
CONTEXT = """\
You describe what a command-line tool does, for somebody who will write it again without seeing it. Say in 120 to 400
words of your own what it reads, computes and writes: formats, defaults, rules, errors and exit codes, as far as the
README says it and the help does not. Call the tool `{tool}`, and name no package, project, person, company, repository
or address.
{fenced}
Answer with plain Markdown without headings, and nothing else.
"""
GENERATOR = """\
You write a generator of test cases for one class of commands of the command-line tool `{tool}`: {wanted}.
What it is about stands in the text `about`.
The file is Python 3.11 and has three functions, each of which returns one Case: `common(draw)`, normal usage that must
end with exit code 0; `boundary(draw)`, empty and extreme inputs, Unicode and evil strings; `error(draw)`, which must
end with another exit code: missing files, invalid values, unknown options. They are called many times and take
everything random from `draw`; at least 60 cases must be distinct. Commands start in the folder of the case's files, on
a machine without a network. Output must not depend on time, chance, or the machine. Every command calls `{tool}` and,
unless it is an error, uses what the class is about; an implementation that passes all cases should have that right.
{fenced}
The library that your file imports from:
BEGIN library {token}
{library}
END library {token}
Answer with the Python file and nothing else.
"""


def schema_question(readme: str, pages: Mapping[str, str]) -> Question:
    """Return the question for a tool's schema (section 2.2.1)."""
    texts = _texts(readme, pages)
    token = token_of(**texts)
    return Question(
        file="schema.json",
        step="schema",
        instruction=SCHEMA.format(fenced=RULE.format(token=token)),
        material=enclosed(token, **texts),
    )


def context_question(tool: str, readme: str, pages: Mapping[str, str]) -> Question:
    """Return the question for the prompt's description of a tool (section 2.2.3)."""
    texts = _texts(readme, pages)
    token = token_of(**texts)
    return Question(
        file="context.md",
        step="prompt",
        instruction=CONTEXT.format(tool=tool, fenced=RULE.format(token=token)),
        material=enclosed(token, **texts),
    )


def generator_question(tool: str, wanted: CommandClass, readme: str, pages: Mapping[str, str]) -> Question:
    """Return the question for the generator of a class (section 2.2.2).

    The words of a class are names of commands and options. Its description is an untrusted text.
    """
    texts = {"about": wanted.description, **_texts(readme, pages)}
    token = token_of(**texts)
    instruction = GENERATOR.format(
        tool=tool,
        wanted=f"{wanted.name}, `{' '.join((*wanted.words, *wanted.exercised))}`",
        fenced=RULE.format(token=token),
        token=token,
        library=LIBRARY["fuzz.py"],
    )
    return Question(
        file=f"generators/{wanted.name}.py",
        step="generator",
        instruction=instruction,
        material=enclosed(token, **texts),
    )


def _texts(readme: str, pages: Mapping[str, str]) -> dict[str, str]:
    """Return README and help, by name and in the form that a model sees."""
    joined = "\n\n".join(f"$ {command}\n{page.rstrip()}" for command, page in pages.items())
    return {"readme": readme[:LONGEST_README], "help": joined[:LONGEST_HELP]}
