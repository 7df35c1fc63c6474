"""Prompts in our own words: the seven sections of the command prompt (ExecutionAgent, section 2.4.1), the question for
an attempt's lessons, and the one question of the variant without feedback.

Raise the agent's `version` with every change to a text that the model reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from runner.benchmarks.project_setup.agent.ingredients import Hint, Ingredients
from runner.benchmarks.project_setup.agent.response import FORM
from runner.benchmarks.project_setup.agent.summary import CHARACTERS_PER_TOKEN, ends
from runner.benchmarks.project_setup.deliverables import (
    DOCKERFILE,
    PROJECT,
    RESULTS,
    SCRIPT,
    WORKSPACE,
    project_of,
)
from runner.records import Record, Task

ROLE: Final = """\
You are an engineer who sets up software projects. A project that you do not know lies on a Linux machine that you \
work on through tools. You have succeeded when it is built and its whole test suite is executed by scripts that do the \
same for anybody, from scratch."""
GOALS: Final = f"""\
1. Find out what the project needs and how it is built and tested: its documentation, its configuration, its scripts.
2. Write {WORKSPACE}/{DOCKERFILE}, for an image in which it can be built, and {WORKSPACE}/{SCRIPT}, which builds it \
and runs its tests. They must need nobody: no questions, no secrets, nothing that only this machine has.
3. Run what you have written, piece by piece, and mend it until the tests are executed. Tests that fail because the \
project is broken are a result; tests that fail because something is missing are not.
4. Read what the tests did and write {WORKSPACE}/{RESULTS}: one JSON object with the numbers `passed`, `failed` and \
`skipped`.
Run all tests of the project and leave its tests as they are. Results are counted by programs that watch the test \
frameworks, so what the script itself prints or writes counts for nothing."""
NO_HISTORY: Final = """\
The history of the project is not there: `git describe` and tools that ask git for a version find none, and must be \
told one."""
HISTORY: Final = """\
The project is a git checkout with its history and tags, also where your scripts are run: git answers there."""
MACHINE: Final = f"""\
You are root in {WORKSPACE}; the project is in {WORKSPACE}/{PROJECT}. This machine is a container itself: there is no \
Docker in it. {{history}} What you install here is not in the image that your {DOCKERFILE} makes, so write it there \
too. The image is built, and the script run in it on an untouched copy of the project, when you call task_done."""
TOOLS: Final = """\
linux_terminal {"command": "..."}
  Runs a command in one shell that lives on: its folder, variables and background jobs are still there with the next \
command. You get all that it printed and its exit code. It has no sudo and no pager, and needs none.
linux_terminal {"action": "wait"}, {"action": "write", "text": "y"} or {"action": "terminate"}
  Only for a command that has passed its time limit and still runs: wait for it once more, type a line into it, or end \
it.
read_file {"path": "..."}
  The text of a file.{range}
write_file {"path": "...", "content": "..."}
  Writes a text file, with the folders above it; what was there is replaced.
{more}task_done {"reason": "..."}
  Says that all goals are reached, and why. That is checked: the files are there, the image is built, the script runs \
in it, and tests were executed. What is missing is told to you."""
RANGE: Final = """ With "first" and "last", only these lines, counted from 1, with their numbers."""
MORE: Final = f"""\
edit_file {{"path": "...", "old": "...", "new": "..."}}
  Replaces a text that the file has exactly once.
check_scripts {{}}
  Builds the image of {WORKSPACE}/{DOCKERFILE} and runs {WORKSPACE}/{SCRIPT} in it, from scratch, as task_done does. \
You get the end of what was printed and the numbers of tests.
"""
NATIVE: Final = """\
What is the next step? Say in a sentence why, and call a tool. Several calls in one answer are carried out in their \
order, each as a command of its own; an answer without a call does nothing."""
NEXT: Final = f"""\
What is the next step? Answer with exactly one JSON object of this form and nothing else:
{FORM}
For example: {{"thoughts": "I do not know what is in the project.", "tool": {{"name": "linux_terminal", "args": \
{{"command": "ls -la {PROJECT}"}}}}}}"""
LESSONS: Final = """\
An attempt at setting up a project has used up its commands without reaching the goals. Below is what was thought and \
done. Look for what went wrong, for what cost commands and led nowhere, and for what was found out and is worth \
keeping: versions, packages, commands that work. Then say what the next attempt should do from the beginning, and \
what it should not do again. It starts on the same machine, as this attempt has left it, with the files that are there.

Write at most ten short points.

{history}"""
LAST: Final = """\
{why} This is your last answer, and {WORKSPACE} lacks a file that counts. Nothing more is run for you."""
BOTH: Final = f"""\
Write both files now, without trying anything: you cannot run commands. Answer with exactly one JSON object of this \
form and nothing else:
{{"thoughts": "how the project is built and tested", "dockerfile": "content of {DOCKERFILE}", "script": "content of \
{SCRIPT}"}}"""
THOUGHT_CHARACTERS: Final = 1000
"""Number of characters of a step's thoughts that later prompts repeat."""
CALL_CHARACTERS: Final = 1500
"""Number of characters of a step's call that later prompts repeat. The model can read a written file again."""


class Step(Record):
    """One iteration of the inner loop, as later prompts describe it."""

    thoughts: str = ""
    call: str = ""
    """Tool and arguments; empty for an invalid answer."""
    status: str = ""
    """Outcome of the call: exit code, whether it still runs, why it was refused. It is never summarised."""
    output: str = ""
    """Output of the tool."""
    summary: str | None = None
    """Text that later prompts have in the place of a long output; None for one that was not summarised."""

    def shown(self, verbatim: int | None = None) -> str:
        """Return the step as text. With `verbatim`, its output has up to so many tokens and no summary."""
        room = CALL_CHARACTERS if verbatim is None else max(CALL_CHARACTERS, verbatim * CHARACTERS_PER_TOKEN)
        thoughts = [f"Thoughts: {_cut(self.thoughts, THOUGHT_CHARACTERS)}"] if self.thoughts else []
        call = [f"Tool: {_cut(self.call, room)}"] if self.call else []
        output = (
            ends(self.output, verbatim) if verbatim else self.output if self.summary is None else self.summary
        )
        result = "\n".join(part for part in (self.status, output) if part)
        return "\n".join([*thoughts, *call, f"Result: {result}"])

    def __str__(self) -> str:
        return self.shown()


class Shown(NamedTuple):
    """Settings for how the steps of an attempt are shown."""

    skipped: int = 0
    """Number of the first steps that are left out."""
    newest: int = 0
    """Number of the last steps that are shown verbatim."""
    verbatim: int = 0
    """Number of tokens of all of these together."""


class Manner(NamedTuple):
    """Manner in which the model is asked."""

    native: bool = False
    """True if it calls tools by its provider's API instead of by JSON in its words."""
    more_tools: bool = False
    """True if there are the tools that the paper does not have."""
    marked: bool = False
    """True if what stays the same is marked for the provider's cache."""


class View(NamedTuple):
    """Everything that decides how a prompt is written."""

    manner: Manner = Manner()
    shown: Shown = Shown()


ALL: Final = Shown()
"""All steps, none of them verbatim."""
PLAIN: Final = View()


def command_prompt(
    task: Task,
    ingredients: Ingredients,
    lessons: Sequence[str],
    steps: Sequence[Step],
    left: str,
    view: View = PLAIN,
) -> list[dict[str, Any]]:
    """Return the seven sections. Those that stay the same in an attempt come first, for the providers' caches.

    `lessons` are those of earlier attempts; `left` says what this attempt still has.
    """
    marked = view.manner.marked
    known = _sections(
        {
            "1. Your role": ROLE,
            "2. Goals": f"{GOALS}\n\nThe task, as it was given:\n{task.instruction}",
            "3. Tools": f"{_machine(task)}\n\n{_tools(view.manner)}",
            "4. Guidelines": _guidelines(ingredients),
            "5. Installation hints": _hints(ingredients, lessons),
        }
    )
    older, newer = history(steps, view.shown)
    older[0] = f"# 6. What was done so far\n{older[0]}"
    now = _sections({"7. Next step": f"{left} {NATIVE if view.manner.native else NEXT}"})
    return [
        {"role": "system", "content": _content([known], 1, marked=marked)},
        {"role": "user", "content": _content([*older, *newer, now], len(older), marked=marked)},
    ]


def _machine(task: Task) -> str:
    project = project_of(task)
    return MACHINE.format(history=HISTORY if project and (project / ".git").exists() else NO_HISTORY)


def _tools(manner: Manner) -> str:
    more = manner.more_tools
    return TOOLS.replace("{range}", RANGE if more else "").replace("{more}", MORE if more else "")


def _content(parts: Sequence[str], stable: int, *, marked: bool) -> str | list[dict[str, Any]]:
    """Return a message's content: one text or, for a cache that needs marks, parts with a mark at the last stable one.

    The first `stable` parts are the same in the next prompt. Only some providers take parts; the others find by
    themselves what stays the same.
    """
    if not marked:
        return "\n".join(parts)
    mark = {"cache_control": {"type": "ephemeral"}}
    return [
        {"type": "text", "text": text, **(mark if at == stable - 1 else {})} for at, text in enumerate(parts)
    ]


def last_prompt(why: str, task: Task, steps: Sequence[Step], shown: Shown) -> list[dict[str, Any]]:
    """Return the question for both files, for a rollout that has nothing left but one answer."""
    told = _sections(
        {
            "Your role": ROLE,
            "Goals": f"{GOALS}\n\nThe task, as it was given:\n{task.instruction}",
            "What was done so far": "\n".join(chain(*history(steps, shown))),
            "Answer": f"{LAST.format(why=why, WORKSPACE=WORKSPACE)} {BOTH}",
        }
    )
    return [{"role": "user", "content": told}]


def lessons_prompt(steps: Sequence[Step], shown: Shown = ALL) -> list[dict[str, Any]]:
    """Return the question for the lessons of a failed attempt (Algorithm 1, line 30)."""
    return [{"role": "user", "content": LESSONS.format(history="\n".join(chain(*history(steps, shown))))}]


def single_prompt(task: Task, ingredients: Ingredients) -> str:
    """Return the question for both scripts at once (Table 3, without feedback)."""
    return _sections(
        {
            "Your role": ROLE,
            "Goals": f"{GOALS}\n\nThe task, as it was given:\n{task.instruction}",
            "Guidelines": _guidelines(ingredients),
            "Installation hints": _hints(ingredients, ()),
            "Answer": BOTH,
        }
    )


def history(steps: Sequence[Step], shown: Shown = ALL) -> tuple[list[str], list[str]]:
    """Return the steps of an attempt, numbered from 1: those that stay as they are, and the newest, shown verbatim.

    The first list is never empty.
    """
    newest = min(shown.newest, len(steps) - shown.skipped) if shown.verbatim else 0
    numbered = [*enumerate(steps, start=1)][shown.skipped :]
    split = len(numbered) - newest
    before = f"[Steps 1 to {shown.skipped} are left out: there is no room for them.]" if shown.skipped else ""
    each = max(1, shown.verbatim // max(1, newest))
    older = [f"--- {number} ---\n{step.shown()}" for number, step in numbered[:split]]
    newer = [f"--- {number} ---\n{step.shown(each)}" for number, step in numbered[split:]]
    return [before or ("" if steps else "Nothing yet."), *older], newer


def _guidelines(ingredients: Ingredients) -> str:
    languages = ", ".join(ingredients.languages)
    parts = [
        f"The project is written mainly in: {languages}." if languages else "",
        ingredients.language_guidelines,
        ingredients.general_guidelines,
        ingredients.container_guidelines,
    ]
    return _joined(parts, "None.")


def _hints(ingredients: Ingredients, lessons: Sequence[str]) -> str:
    parts = [
        *_quoted("Continuous integration", ingredients.ci_hints),
        *_quoted("Web", ingredients.web_hints),
        *(
            f"Lessons of attempt {number}, which failed:\n{text}"
            for number, text in enumerate(lessons, start=1)
        ),
    ]
    return _joined(parts, "None.")


def _quoted(what: str, hints: Iterable[Hint]) -> list[str]:
    return [f"{what}, {hint.source}:\n{hint.text}" for hint in hints]


def _joined(parts: Iterable[str], otherwise: str) -> str:
    return "\n\n".join(part for part in parts if part) or otherwise


def _sections(parts: dict[str, str]) -> str:
    return "\n\n".join(f"# {title}\n{text}" for title, text in parts.items())


def _cut(text: str, characters: int) -> str:
    left_out = len(text) - characters
    return text if left_out <= 0 else f"{text[:characters]} [... {left_out} characters left out]"
