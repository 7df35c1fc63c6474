"""Baseline "LLM scripts" (ExecutionAgent, section 3.1.4, Figure 6): one general script per language."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

from runner.agents.in_process import InProcess
from runner.benchmarks.project_setup.agent.guidelines import once
from runner.benchmarks.project_setup.agent.languages import languages, main_languages
from runner.benchmarks.project_setup.agent.preparation import refusal
from runner.benchmarks.project_setup.deliverables import (
    DOCKERFILE,
    PROJECT,
    SCRIPT,
    WORKSPACE,
    fetched_project,
)
from runner.records import BundleRecipe, ExecResult, ExecSpec, Record, Task

if TYPE_CHECKING:
    from runner.protocols import Bench, Sandbox

RECIPE: Final = f"""\
ARG BASE
FROM ${{BASE}}
COPY {PROJECT} {WORKSPACE}/{PROJECT}
WORKDIR {WORKSPACE}/{PROJECT}
"""
"""Dockerfile of the machine that the script is promised: the base image with the project and nothing else."""
QUESTION: Final = """\
Write one bash script that installs a project written in {language} from its source code and runs its test cases. It \
will be used, as it is, for any such project, and you will see none of them: make it as general as you can, with what \
differs from project to project (build tools, test frameworks, ways to declare and to install dependencies), and treat \
the special cases that you know of.

It is started as root, in the top folder of the project, on a fresh Debian 13 with Python 3, git and a network, where \
nothing else is installed. Nobody is there to answer questions.

Answer with the script alone, in one fenced block."""
_FENCED: Final = re.compile(r"^```[^\n`]*\n(.*?)(?:^```|\Z)", re.DOTALL | re.MULTILINE)


class LlmScripts(InProcess, Record):
    """Agent that delivers the script for a project's language, which a model wrote once that day.

    See `protocols.DrivingAgent`.
    """

    key_name: ClassVar[str] = "runner.agents.llm_scripts.LlmScripts"
    """Name of this class in trial keys. It is the class's first name, so that finished trials stay finished."""

    name: str = "llm_scripts"
    version: str = "1"
    uses_model: bool = True
    bundle: BundleRecipe | None = None

    @property
    def tools(self) -> dict[str, tuple[str, ...]]:
        """See `protocols.Agent`: the model's answer counts as one written file."""
        return {"edit": ("write_file",)}

    def refusal(self, task: Task) -> str | None:
        """See `protocols.DrivingAgent`."""
        return refusal(task)

    def run(self, task: Task, bench: Bench) -> int:
        """Write the two scripts; return 1 if the project has no known language, or the model wrote no script."""
        main = main_languages(languages(fetched_project(task), bench.check))[:1]
        if not main:
            bench.log("The project has no code in a programming language that is known.")
            return 1
        question = QUESTION.format(language=main[0])
        try:
            script = once(bench, f"script for {main[0]}", question, lambda: _asked(bench, question))
        except ValueError as error:
            bench.log(str(error))
            return 1
        files = {f"{WORKSPACE}/{DOCKERFILE}": RECIPE, f"{WORKSPACE}/{SCRIPT}": script}
        written = bench.sandbox.exec(ExecSpec(argv=("true",), files=files))
        return written.exit_code or 0

    def reported(self, sandbox: Sandbox, result: ExecResult) -> None:
        """See `protocols.Agent`: only the gateway counts."""


def script_in(answer: str) -> str:
    """Return the longest fenced block of an answer, or the whole answer. Raises `ValueError` for an empty script."""
    script = max(_FENCED.findall(answer), key=len, default=answer)
    if not script.strip():
        raise ValueError("The model wrote no script.")
    return script if script.endswith("\n") else f"{script}\n"


def _asked(bench: Bench, question: str) -> str:
    script = script_in(bench.ask([{"role": "user", "content": question}]))
    bench.use("write_file", {"path": f"{WORKSPACE}/{SCRIPT}", "content": script})
    return script
