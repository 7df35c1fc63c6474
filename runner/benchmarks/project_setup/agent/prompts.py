"""Prompts in our own words: the seven sections of the command prompt (ExecutionAgent, section 2.4.1), the question for
an attempt's lessons, and the one question of the variant without feedback.

Raise the agent's `version` with every change to a text that the model reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from runner.benchmarks.project_setup.agent.ingredients import Hint, Ingredients
from runner.benchmarks.project_setup.agent.response import FORM
from runner.benchmarks.project_setup.deliverables import DOCKERFILE, PROJECT, RESULTS, SCRIPT, WORKSPACE
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
MACHINE: Final = f"""\
You are root in {WORKSPACE}; the project is in {WORKSPACE}/{PROJECT}. This machine is a container itself: there is no \
Docker in it. What you install here is not in the image that your {DOCKERFILE} makes, so write it there too. The image \
is built, and the script run in it on an untouched copy of the project, when you call task_done."""
TOOLS: Final = """\
linux_terminal {"command": "..."}
  Runs a command in one shell that lives on: its folder, variables and background jobs are still there with the next \
command. You get all that it printed and its exit code. It has no sudo and no pager, and needs none.
linux_terminal {"action": "wait"}, {"action": "write", "text": "y"} or {"action": "terminate"}
  Only for a command that has passed its time limit and still runs: wait for it once more, type a line into it, or end \
it.
read_file {"path": "..."}
  The text of a file.
write_file {"path": "...", "content": "..."}
  Writes a text file, with the folders above it; what was there is replaced.
task_done {"reason": "..."}
  Says that all goals are reached, and why. That is checked: the files are there, the image is built, the script runs \
in it, and tests were executed. What is missing is told to you."""
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
    result: str

    def __str__(self) -> str:
        thoughts = [f"Thoughts: {_cut(self.thoughts, THOUGHT_CHARACTERS)}"] if self.thoughts else []
        call = [f"Tool: {_cut(self.call, CALL_CHARACTERS)}"] if self.call else []
        return "\n".join([*thoughts, *call, f"Result: {self.result}"])


def command_prompt(
    task: Task, ingredients: Ingredients, lessons: Sequence[str], steps: Sequence[Step], left: int
) -> list[dict[str, str]]:
    """Return the seven sections. Those that stay the same in an attempt come first, for the providers' caches.

    `lessons` are those of earlier attempts; `left` is the number of commands that this attempt still has.
    """
    known = _sections(
        {
            "1. Your role": ROLE,
            "2. Goals": f"{GOALS}\n\nThe task, as it was given:\n{task.instruction}",
            "3. Tools": f"{MACHINE}\n\n{TOOLS}",
            "4. Guidelines": _guidelines(ingredients),
            "5. Installation hints": _hints(ingredients, lessons),
        }
    )
    commands = f"{left} commands are left of this attempt, the next one included."
    now = _sections({"6. What was done so far": history(steps), "7. Next step": f"{commands} {NEXT}"})
    return [{"role": "system", "content": known}, {"role": "user", "content": now}]


def lessons_prompt(steps: Sequence[Step]) -> list[dict[str, str]]:
    """Return the question for the lessons of a failed attempt (Algorithm 1, line 30)."""
    return [{"role": "user", "content": LESSONS.format(history=history(steps))}]


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


def history(steps: Sequence[Step]) -> str:
    """Return all steps of an attempt, numbered from 1."""
    numbered = [f"--- {number} ---\n{step}" for number, step in enumerate(steps, start=1)]
    return "\n".join(numbered) or "Nothing yet."


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
