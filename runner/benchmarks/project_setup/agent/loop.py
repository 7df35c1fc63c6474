"""The feedback loop: run commands until the tests are executed (ExecutionAgent, section 2.4; Algorithm 1, lines 8-31).

The machine stays the same between attempts, since Algorithm 1 renews only prompt and budget; the shell is new. At
`task_done` the scripts are run from scratch, so they cannot depend on the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from pydantic import Field

from runner.benchmarks.project_setup.agent import response
from runner.benchmarks.project_setup.agent.goal_check import FromScratch, missing, run_from_scratch
from runner.benchmarks.project_setup.agent.prompts import Step, command_prompt, lessons_prompt
from runner.benchmarks.project_setup.agent.repetition import repetition
from runner.benchmarks.project_setup.agent.response import Command, Control, Done, Read, Response, Write
from runner.benchmarks.project_setup.agent.shell_session import CommandReport, Terminal, read_file, write_file
from runner.benchmarks.project_setup.agent.summary import ends, shortened
from runner.errors import Stopped
from runner.records import Record

if TYPE_CHECKING:
    from runner.benchmarks.project_setup.agent.ingredients import Ingredients
    from runner.protocols import Bench
    from runner.records import Task


ANSWER_TOKENS: Final = 50
"""Number of tokens of an invalid answer that the model is shown again."""
LOG_TOKENS: Final = 2000
"""Number of tokens of a tool's result in the log. The trajectory has all of it."""


class Limits(Record):
    """Limits of the feedback loop."""

    commands: int = Field(default=40, ge=1)
    """Number of commands of an attempt. Every answer of the model counts as one command, even an invalid answer."""
    attempts: int = Field(default=3, ge=1)
    command_seconds: float = Field(default=300.0, gt=0, le=86_400)
    """Seconds after which the model is asked whether to wait for a command, to write input or to terminate it."""
    summary_tokens: int = Field(default=200, ge=1)
    """Longest output, in tokens of four characters, that the model reads whole; longer ones are summarised."""


class Attempt:
    """One run of the inner loop, with its shell and the steps so far."""

    def __init__(self, limits: Limits, task: Task, bench: Bench, from_scratch: FromScratch) -> None:
        self._limits, self._task, self._bench, self._from_scratch = limits, task, bench, from_scratch
        self._terminal = Terminal(bench.sandbox, limits.command_seconds, bench.check)
        self._calls: list[str] = []
        self.steps: list[Step] = []
        """Steps so far, one for each answer of the model."""
        self.done = False
        """Whether the goals are reached."""

    def run(self, ingredients: Ingredients, lessons: list[str], number: int) -> bool:
        """Work until the goals are reached or the commands are used up; return whether they are reached."""
        for left in range(self._limits.commands, 0, -1):
            self._bench.log(
                f"\nAttempt {number}, command {self._limits.commands - left + 1} of {self._limits.commands}"
            )
            answer = self._bench.ask(command_prompt(self._task, ingredients, lessons, self.steps, left))
            self.steps.append(self._step(answer))
            if self.done:
                return True
        self._terminal.terminate()  # nothing may run on into the next attempt
        return False

    def _step(self, answer: str) -> Step:
        """Carry out an answer of the model, which may be invalid, and return the step."""
        try:
            wanted = response.parsed(answer)
        except ValueError as error:
            self._bench.log(f"  no valid answer: {error}")
            began = ends(answer, ANSWER_TOKENS)
            return Step(
                result=f"Nothing was done, because your answer is not valid. {error}\nIt was: {began}"
            )
        self._bench.log(f"  {wanted.thoughts}\n  > {wanted.call}")
        self._bench.use(wanted.name, wanted.args.model_dump(exclude_defaults=True))
        pattern = self._circle(wanted)
        if pattern:
            result = (
                f"Refused, because the last six calls would be the pattern {pattern}: you are going in circles. "
                "Do something else than in the last steps."
            )
        else:
            result = self._result(wanted)
        self._bench.returned(result)
        self._bench.log("  " + ends(result, LOG_TOKENS).replace("\n", "\n  "))
        short = shortened(self._bench, wanted.call, result, self._limits.summary_tokens)
        return Step(thoughts=wanted.thoughts, call=wanted.call, result=short)

    def _circle(self, wanted: Response) -> str | None:
        """Return the pattern for which a call is refused, if any. Waiting again is never refused: time has passed."""
        if isinstance(wanted.args, Control):
            return None
        pattern = repetition([*self._calls, wanted.call])
        if not pattern:
            self._calls.append(wanted.call)
        return pattern

    def _result(self, wanted: Response) -> str:
        """Run the tool and return its result for the model."""
        args, terminal, sandbox = wanted.args, self._terminal, self._bench.sandbox
        match args:
            case Command():
                return self._described(terminal.run(args.command))
            case Control():
                return self._described(self._controlled(args))
            case Read():
                return read_file(sandbox, args.path, terminal.cwd).text
            case Write():
                return write_file(sandbox, args.path, args.content, terminal.cwd).text
            case Done():
                lacking = missing(self._task, self._bench, self._from_scratch)
                self.done = not lacking
                return lacking or "All goals are reached."
        assert_never(args)

    def _controlled(self, control: Control) -> CommandReport:
        if control.action == "wait":
            return self._terminal.wait()
        if control.action == "terminate":
            return self._terminal.terminate()
        return self._terminal.write(control.text)

    def _described(self, report: CommandReport) -> str:
        """Describe a command for the model. Raises `Stopped` when no command can follow."""
        if report.state == "gone":
            raise Stopped(report.note)
        limit = f"{self._limits.command_seconds:g} s"
        ended = f"Exit code {report.exit_code}." if report.exit_code is not None else ""
        running = (
            f"It still runs after {limit}. Choose: wait {limit} more, write a line into it, or terminate it."
            if report.state == "running"
            else ""
        )
        output = report.output if report.output.strip() else "(It printed nothing.)"
        return "\n".join(part for part in (ended, running, report.note, output) if part)


def work(
    limits: Limits,
    task: Task,
    bench: Bench,
    ingredients: Ingredients,
    from_scratch: FromScratch = run_from_scratch,
) -> bool:
    """Run attempts, each with the lessons of earlier ones; return whether the goals were reached.

    Raises `Stopped`, `ModelFailed` and `EngineError`.
    """
    lessons: list[str] = []
    for number in range(1, limits.attempts + 1):
        attempt = Attempt(limits, task, bench, from_scratch)
        if attempt.run(ingredients, lessons, number):
            return True
        if number < limits.attempts:
            lessons.append(bench.ask(lessons_prompt(attempt.steps)))
            bench.log(f"\nLessons of attempt {number}:\n{lessons[-1]}")
    bench.log(f"\nGiven up: {limits.attempts} attempts of {limits.commands} commands each are used up.")
    return False
