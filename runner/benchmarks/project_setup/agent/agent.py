"""`agent=execution_agent` sets up any project and runs its tests (Bouzenia and Pradel, ExecutionAgent, section 2)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import ConfigDict, Field, TypeAdapter, field_validator

from runner.agents.in_process import InProcess
from runner.benchmarks.project_setup.agent.delivery import Scripts, write_scripts
from runner.benchmarks.project_setup.agent.ingredients import Ingredients
from runner.benchmarks.project_setup.agent.json_answers import ask_for
from runner.benchmarks.project_setup.agent.loop import Limits, work
from runner.benchmarks.project_setup.agent.preparation import prepare, refusal
from runner.benchmarks.project_setup.agent.prompts import single_prompt
from runner.benchmarks.project_setup.agent.setting import setting
from runner.benchmarks.project_setup.agent.web import ENGINES, Search
from runner.protocols import Bench, Sandbox
from runner.records import ExecResult, Model, Task, Usage

GAVE_UP = 1
"""Exit code of a rollout that did not reach the goals."""


class ExecutionAgent(InProcess, Limits):
    """Agent in our process that works in the sandbox through a terminal. See `protocols.DrivingAgent`."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    key_name: ClassVar[str] = "runner.agents.execution.agent.ExecutionAgent"
    """Name of this class in trial keys. It is the class's first name, so that finished trials stay finished."""

    name: str
    version: str
    """Version of the prompts and the loop. Only this number represents them in a trial's key."""
    preparation: bool = True
    """True if the preparation collects guidelines and hints before the loop (Table 3, no preparation phase)."""
    feedback: bool = True
    """True if the agent runs commands in a loop. If not, one answer gives both scripts (Table 3, no feedback phase)."""
    guidelines: bool = True
    """True if the preparation asks for guidelines for languages and for any project (Table 3); those for containers are
    always asked for."""
    retrieval: bool = True
    """True if the preparation reads CI scripts and asks a search engine (Table 3)."""
    helper_model: Model | None = Field(default=None, exclude_if=lambda model: model is None)
    """Model that is asked for the preparation and for summaries; None: the trial's own. Both share the trial's caps."""
    search: Search | None = None
    """Search engine for hints from the web, if any."""

    @property
    def uses_model(self) -> bool:
        """See `protocols.Agent`: always True."""
        return True

    @property
    def bundle(self) -> None:
        """See `protocols.Agent`: None, since nothing of the agent runs in the sandbox."""

    @property
    def tools(self) -> dict[str, tuple[str, ...]]:
        """See `protocols.Agent`. Without feedback the only call is the one that writes the scripts."""
        tools: dict[str, tuple[str, ...]] = {"edit": ("write_file",)}
        if self.feedback:
            edits = ("write_file", "edit_file") if self.more_tools else ("write_file",)
            runs = ("linux_terminal", "check_scripts") if self.more_tools else ("linux_terminal",)
            tools |= {"edit": edits, "execute": runs, "read": ("read_file",), "finish": ("task_done",)}
        return tools

    @property
    def expected_usage(self) -> Usage:
        """See `protocols.EstimatingAgent`; `conf/budget/execution.yaml` explains the numbers."""
        a_command = 3_000 + 150 * self.commands + 5_000
        read = int(1.6 * self.attempts * self.commands * a_command)
        hit = int(0.85 * read)
        return Usage(
            input_tokens=read,
            cache_hit_tokens=hit,
            cache_creation_tokens=read - hit,
            output_tokens=1_125 * self.attempts * self.commands,
        )

    @property
    def setting(self) -> str:
        """See `protocols.SettableAgent`: the paper's way or ours."""
        return setting(self)

    def refusal(self, task: Task) -> str | None:
        """See `protocols.DrivingAgent`: the agent needs a project, and its search engine a key."""
        asked = self.search if self.preparation and self.retrieval else None
        return refusal(task) or (asked.refusal() if asked else None)

    @field_validator("helper_model")
    @classmethod
    def _is_a_language_model(cls, model: Model | None) -> Model | None:
        if model is not None and model.backend != "provider":
            raise ValueError("a helper must be a provider's model, not a script, a recording or none")
        return model

    @field_validator("search", mode="before")
    @classmethod
    def _is_an_engine(cls, value: object) -> object:
        if value is None or isinstance(value, Search):
            return value
        if isinstance(value, str) and value in ENGINES:
            return ENGINES[value]
        names = ", ".join(ENGINES)
        raise ValueError(
            f"not a search engine: use null for none, or one of {names}; --help agent=execution_agent shows how to "
            "describe another one"
        )

    def reported(self, sandbox: Sandbox, result: ExecResult) -> None:
        """See `protocols.Agent`: only the gateway counts."""

    def run(self, task: Task, bench: Bench) -> int:
        """See `protocols.DrivingAgent`; this is Algorithm 1."""
        bench.log(f"Setting: {self.setting}.")
        ingredients = Ingredients()
        if self.preparation:
            ingredients = prepare(
                task,
                bench.helper,
                with_guidelines=self.guidelines,
                with_retrieval=self.retrieval,
                search=self.search,
            )
        reached = (
            work(self, task, bench, ingredients) if self.feedback else _at_once(task, bench, ingredients)
        )
        return 0 if reached else GAVE_UP


def _at_once(task: Task, bench: Bench, ingredients: Ingredients) -> bool:
    """Write both scripts from one answer of the model; return whether the answer held them."""
    try:
        scripts = ask_for(bench, single_prompt(task, ingredients), TypeAdapter(Scripts))
    except ValueError as error:
        bench.log(f"Given up: the model's answer does not hold two scripts. {error}")
        return False
    write_scripts(bench, scripts)
    return True
