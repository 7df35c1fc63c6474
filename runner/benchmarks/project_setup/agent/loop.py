"""The feedback loop: run commands until the tests are executed (ExecutionAgent, section 2.4; Algorithm 1, lines 8-31).

The machine stays the same between attempts, since Algorithm 1 renews only prompt and budget; the shell is new. At
`task_done` the scripts are run from scratch, so they cannot depend on the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, assert_never

from pydantic import Field, TypeAdapter

from runner.benchmarks.project_setup.agent.asking import Asker, Manners, Window, shortage
from runner.benchmarks.project_setup.agent.delivery import Scripts, write_scripts
from runner.benchmarks.project_setup.agent.goal_check import (
    FromScratch,
    checked,
    delivered,
    missing,
    passing,
    run_from_scratch,
)
from runner.benchmarks.project_setup.agent.json_answers import parsed
from runner.benchmarks.project_setup.agent.prompts import (
    Shown,
    Step,
    View,
    command_prompt,
    last_prompt,
    lessons_prompt,
)
from runner.benchmarks.project_setup.agent.repetition import repetition
from runner.benchmarks.project_setup.agent.response import (
    Check,
    Command,
    Control,
    Done,
    Edit,
    Read,
    Refused,
    Response,
    Write,
)
from runner.benchmarks.project_setup.agent.shell_session import (
    CommandReport,
    Terminal,
    edit_file,
    read_file,
    write_file,
)
from runner.benchmarks.project_setup.agent.summary import SUMMARISED_TOKENS, ends, shortened, tokens
from runner.errors import Stopped

if TYPE_CHECKING:
    from runner.benchmarks.project_setup.agent.goal_check import Check as Found
    from runner.benchmarks.project_setup.agent.ingredients import Ingredients
    from runner.protocols import Bench
    from runner.records import Task

LOG_TOKENS: Final = 2000
"""Number of tokens of a tool's result in the log. The trajectory has all of it."""
LEAST_SECONDS: Final = 10.0
"""Shortest time for which a command is waited for when the time of the trial runs out."""
KEPT_SECONDS: Final = 150.0
"""Time of the trial that a command leaves, for the last answer."""


class Limits(Manners):
    """Limits of the feedback loop, and how the model is asked."""

    commands: int = Field(default=40, ge=1)
    """Number of commands of an attempt. Every tool call is one, and every invalid answer beyond `format_retries`."""
    attempts: int = Field(default=3, ge=1)
    command_seconds: float = Field(default=300.0, gt=0, le=86_400)
    """Seconds after which the model is asked whether to wait for a command, to write input or to terminate it."""
    summary_tokens: int = Field(default=200, ge=1)
    """Longest output, in tokens of four characters, that later prompts have whole; longer ones are summarised."""
    pass_share: float | None = Field(default=None, gt=0, le=1)
    """Share of the executed tests that must pass. `check_scripts` ends the work when it is reached, as the authors'
    code does when most tests pass. None, as in the paper's text: `task_done` needs only executed tests."""


class Result(NamedTuple):
    """Result of a call."""

    status: str = ""
    """Part of the result that is never summarised."""
    output: str = ""

    def __str__(self) -> str:
        return "\n".join(part for part in self if part)


class Attempt:
    """One run of the inner loop, with its shell and the steps so far."""

    def __init__(self, limits: Limits, task: Task, bench: Bench, from_scratch: FromScratch) -> None:
        self._limits, self._task, self._bench, self._from_scratch = limits, task, bench, from_scratch
        self._terminal = Terminal(bench.sandbox, limits.command_seconds, bench.check)
        self._asker = Asker(limits, bench)
        self._calls: list[str] = []
        self._newest = 0
        self.steps: list[Step] = []
        """Steps so far, one for each command."""
        self.done = False
        """True if the goals are reached."""
        self.over = ""
        """Part of the trial's budget or time that is nearly spent; empty as long as nothing is."""

    def run(self, ingredients: Ingredients, lessons: list[str], number: int) -> bool:
        """Work until the goals are reached or something is used up; return whether the goals are reached."""
        while (left := self._limits.commands - len(self.steps)) > 0:
            self._bench.log(f"\nAttempt {number}, command {len(self.steps) + 1} of {self._limits.commands}")

            def prompt(shown: Shown, left: int = left) -> list[dict[str, object]]:
                told, manner = self._asker.told(left), self._asker.manner
                return command_prompt(self._task, ingredients, lessons, self.steps, told, View(manner, shown))

            self.over = self._asker.short_of(prompt(self._view))
            if self.over and delivered(self._bench):
                return False
            try:
                wanted = self._asker.steps(prompt, self.steps, self._newest)
            except ValueError as error:
                self._bench.log(f"  no valid answer: {error}")
                status = f"Nothing was done, because your answer is not valid. {error}"
                self._take([Step(status=status)])
                continue
            self._take([self._step(one) for one in self._bounded(wanted, left)])
            if self.done:
                return True
        self._terminal.terminate()  # nothing may run on into the next attempt
        return False

    def deliver(self, why: str) -> None:
        """Ask for both files in a last answer, and write those that are missing. Raises `Stopped` and `ModelFailed`."""
        lacking = delivered(self._bench)
        if not lacking or not self._limits.final_delivery:
            return
        self._bench.log(f"\n{why} Asked for {' and '.join(lacking)} in a last answer.")
        reply = self._asker.asked(
            lambda shown: last_prompt(why, self._task, self.steps, shown), self.steps, self._view, {}
        )
        try:
            scripts = parsed(reply.text, TypeAdapter(Scripts))
        except ValueError as error:
            self._bench.log(f"The last answer does not hold the files. {error}")
            return
        write_scripts(self._bench, scripts, lacking)

    def lessons(self) -> str:
        """Return what the model learns from this attempt. Raises `Stopped` and `ModelFailed`."""
        return self._asker.asked(
            lambda shown: lessons_prompt(self.steps, shown), self.steps, Shown(), {}
        ).text

    @property
    def _view(self) -> Shown:
        return Shown(newest=self._newest, verbatim=self._limits.last_result_tokens)

    def _bounded(self, wanted: list[Response | Refused], left: int) -> list[Response | Refused]:
        """Return the first calls of an answer; the last of them says how many were left out."""
        most = min(self._limits.parallel_calls, left)
        if len(wanted) <= most:
            return wanted
        reason = f"Your answer had {len(wanted)} calls; this one and those after it were not carried out."
        cut = wanted[most - 1] if most > 1 else wanted[1]
        call = cut.call
        return [*wanted[: max(1, most - 1)], *([Refused(call=call, reason=reason)] if left > 1 else [])]

    def _take(self, steps: list[Step]) -> None:
        """Add the steps of an answer, and summarise what is not read verbatim any more."""
        kept = len(steps) if self._limits.last_result_tokens else 0
        self.steps += steps
        self._newest = len(steps)
        settled = self.steps[: len(self.steps) - kept]
        self.steps[: len(settled)] = [self._summarised(step) for step in settled]

    def _summarised(self, step: Step) -> Step:
        most = self._limits.summary_tokens
        if step.summary is not None or tokens(step.output) <= most:
            return step
        helper = self._bench.helper
        enough = not shortage(self._bench.left, 2.0 * tokens(step.output), helper.model.prices)
        if enough or not self._limits.final_delivery:
            window = self._asker.window
            if helper.model != self._bench.model:
                window = Window(
                    helper.model.context_window, helper.model.max_output_tokens, self._limits.context_share
                )
            summary = shortened(helper, step.call, step.output, most, window.room(SUMMARISED_TOKENS))
        else:
            summary = ends(step.output, most)
        return step.model_copy(update={"summary": summary})

    def _step(self, wanted: Response | Refused) -> Step:
        """Carry out one call, and return the step."""
        if isinstance(wanted, Refused):
            self._bench.log(f"  > {wanted.call}\n  refused: {wanted.reason}")
            return Step(
                thoughts=wanted.thoughts, call=wanted.call, status=f"Nothing was done. {wanted.reason}"
            )
        self._bench.log(f"  {wanted.thoughts}\n  > {wanted.call}")
        self._bench.use(wanted.name, wanted.args.model_dump(exclude_defaults=True))
        pattern = self._circle(wanted)
        if self.done:
            result = Result("Not carried out: all goals are reached.")
        elif pattern:
            result = Result(
                f"Refused, because the last six calls would be the pattern {pattern}: you are going in circles. "
                "Do something else than in the last steps."
            )
        else:
            result = self._result(wanted)
        self._bench.returned(str(result))
        self._bench.log("  " + ends(str(result), LOG_TOKENS).replace("\n", "\n  "))
        return Step(thoughts=wanted.thoughts, call=wanted.call, status=result.status, output=result.output)

    def _circle(self, wanted: Response) -> str | None:
        """Return the pattern for which a call is refused, if any. Waiting again is never refused: time has passed."""
        if isinstance(wanted.args, Control):
            return None
        pattern = repetition([*self._calls, wanted.call])
        if not pattern:
            self._calls.append(wanted.call)
        return pattern

    def _result(self, wanted: Response) -> Result:
        """Run the tool and return its result for the model."""
        args, terminal = wanted.args, self._terminal
        terminal.limit_seconds = self._patience()
        match args:
            case Command():
                return self._described(terminal.run(args.command))
            case Control():
                return self._described(self._controlled(args))
            case Read() | Write() | Edit():
                return self._use_file(args)
            case Check():
                return self._checked(
                    checked(self._task, self._bench, self._from_scratch, self._limits.pass_share)
                )
            case Done():
                share = self._limits.pass_share
                found = missing(self._task, self._bench, self._from_scratch, share)
                self.done = not found.lacking
                return Result(found.lacking or "All goals are reached.", found.end if found.lacking else "")
        assert_never(args)

    def _use_file(self, args: Read | Write | Edit) -> Result:
        """Read, write or edit a file."""
        sandbox, folder = self._bench.sandbox, self._terminal.cwd
        if isinstance(args, Read):
            return Result(output=read_file(sandbox, args.path, folder, args.first, args.last).text)
        if isinstance(args, Write):
            return Result(write_file(sandbox, args.path, args.content, folder).text)
        return Result(edit_file(sandbox, args.path, args.old, args.new, folder).text)

    def _checked(self, found: Found) -> Result:
        """Return the result of `check_scripts`. It ends the work at the asked share of passing tests."""
        share, outcomes = self._limits.pass_share, found.outcomes
        self.done = bool(not found.lacking and share is not None and outcomes and passing(outcomes) >= share)
        words = f"From scratch the tests were executed: {outcomes.words}." if outcomes else ""
        return Result(found.lacking or words, found.end)

    def _patience(self) -> float:
        """Return for how long a command is waited for, such that time for a last answer is left."""
        left = self._bench.seconds_left if self._limits.final_delivery else None
        if left is None:
            return self._limits.command_seconds
        return min(self._limits.command_seconds, max(LEAST_SECONDS, left - KEPT_SECONDS))

    def _controlled(self, control: Control) -> CommandReport:
        if control.action == "wait":
            return self._terminal.wait()
        if control.action == "terminate":
            return self._terminal.terminate()
        return self._terminal.write(control.text)

    def _described(self, report: CommandReport) -> Result:
        """Describe a command for the model. Raises `Stopped` when no command can follow."""
        if report.state == "gone":
            raise Stopped(report.note)
        limit = f"{self._terminal.limit_seconds:g} s"
        ended = f"Exit code {report.exit_code}." if report.exit_code is not None else ""
        running = (
            f"It still runs after {limit}. Choose: wait {limit} more, write a line into it, or terminate it."
            if report.state == "running"
            else ""
        )
        output = report.output if report.output.strip() else "(It printed nothing.)"
        return Result("\n".join(part for part in (ended, running, report.note) if part), output)


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
        if attempt.over:
            attempt.deliver(attempt.over)
            bench.log(f"\nGiven up: {attempt.over}")
            return False
        if number < limits.attempts:
            lessons.append(attempt.lessons())
            bench.log(f"\nLessons of attempt {number}:\n{lessons[-1]}")
        else:
            attempt.deliver("All commands are used up.")
    bench.log(f"\nGiven up: {limits.attempts} attempts of {limits.commands} commands each are used up.")
    return False
