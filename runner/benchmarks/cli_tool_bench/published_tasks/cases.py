"""The treatment of a generator's cases when a class has too few of them, or when some cannot be run."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from runner.benchmarks.cli_tool_bench.construction.recipe import Language
from runner.errors import TaskError
from runner.records import Record
from runner.records.base import first_fault
from runner.records.cases import Case

LANGUAGES: dict[str, Language] = {"python": "python", "node": "javascript", "golang": "go"}
"""The authors' image -> language."""
CLONE = re.compile(r"git clone (?:-\S+ )*([\w.:/@~+-]+)")
INSIDE = re.compile(r"cd /repo/repo_to_be_tested(?:/(\S+))? *&& *(.+)", re.DOTALL)
"""Script of an installation. Groups: the folder below the workspace, and the command."""


class Generated(Record):
    """Untrusted output of one generator."""

    image: str
    reference: tuple[str, ...]
    """Commands that install the human-written tool."""
    candidate: tuple[str, ...]
    """Commands that install an agent's tool, from `/repo/repo_to_be_tested`."""
    classes: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$")], str]
    """Command class -> its command in general form."""
    cases: tuple[dict[str, Any], ...]
    """Lines of `cases.jsonl`, unchecked."""

    @property
    def language(self) -> Language:
        """Language of the image. Raises `TaskError` if it is unknown."""
        name = self.image.partition(":")[0].rpartition("/")[2]
        if name not in LANGUAGES:
            raise TaskError(f"its image {self.image!r} is for none of {', '.join(LANGUAGES)}.")
        return LANGUAGES[name]

    @property
    def install(self) -> str:
        """Shell command that installs a workspace from within. Raises `TaskError` if it is not understood."""
        scripts = [_script(command) for command in self.candidate]
        inside = [match for script in scripts if (match := INSIDE.fullmatch(script))]
        bare = " && ".join(f"(cd {match[1]} && {match[2]})" if match[1] else match[2] for match in inside)
        if not bare or "/repo" in bare:
            raise TaskError(f"its installation is not understood: {'; '.join(scripts) or 'it runs nothing'}.")
        return bare

    @property
    def address(self) -> str:
        """Address of the human-written tool's repository, for a message."""
        match = CLONE.search(" ".join(self.reference))
        return match[1] if match else "an address that its install_oracle does not give"

    @property
    def lines(self) -> str:
        """Content of `cases.jsonl`."""
        return "".join(f"{json.dumps(case)}\n" for case in self.cases)


class CasePolicy(Record):
    """The number of cases that a class needs, and the treatment of other classes."""

    cases_per_class: int
    short_classes: Literal["refuse", "keep"] = "refuse"
    """Treatment of a class with too few cases, which may be its author's intention or the result of an exception that
    the generator swallows."""
    bad_cases: Literal["refuse", "drop"] = "refuse"
    """Treatment of a case that cannot be run: a command with a NUL byte, a file outside of `/test_data`."""

    def apply(self, generated: Generated, messages: str) -> tuple[Generated, list[str]]:
        """Return the output with the remaining cases, and remarks for the user.

        `messages` is the printed output of the generator. Raises `TaskError` for a class that has no case, or too many,
        and for what is refused.
        """
        remarks = self._check_counts(generated, messages)
        left, dropped = self._runnable(generated)
        for name, count in dropped.items():
            if not any(case.get("class") == name for case in left.cases):
                raise TaskError(f"class {name}: none of its {count} cases can be run.")
            remarks.append(f"class {name}: {count} cases that cannot be run are left out")
        return left, remarks

    def _check_counts(self, generated: Generated, messages: str) -> list[str]:
        counts = Counter(str(case.get("class")) for case in generated.cases)
        remarks = []
        for name in generated.classes:
            found = f"class {name}: {counts[name]} cases instead of {self.cases_per_class}"
            if counts[name] == self.cases_per_class:
                continue
            if counts[name] > self.cases_per_class:
                raise TaskError(f"{found}: job.cases_per_class is the number that is due. {messages}")
            if not counts[name]:
                raise TaskError(f"{found}, and a class needs one. {messages}")
            if self.short_classes == "refuse":
                raise TaskError(f"{found}. job.short_classes=keep takes such classes as they are. {messages}")
            remarks.append(found)
        return remarks

    def _runnable(self, generated: Generated) -> tuple[Generated, Counter[str]]:
        """Return the output without cases that cannot be run, and their number in each class. Raises `TaskError`."""
        left, dropped = [], Counter[str]()
        for number, case in enumerate(generated.cases, start=1):
            try:
                Case.model_validate(case)
            except ValidationError as error:
                if self.bad_cases == "refuse":
                    raise TaskError(
                        f"cases.jsonl, line {number}: {first_fault(error)}. job.bad_cases=drop leaves such cases out."
                    ) from error
                dropped[str(case.get("class"))] += 1
            else:
                left.append(case)
        return generated.model_copy(update={"cases": tuple(left)}), dropped


def _script(command: str) -> str:
    """Return the script in `sh -c '..'`; for any other command, the command itself."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[-1] if words[1:-1] == ["-c"] else command
