"""Read the model's answer to a command prompt: a JSON object with thoughts and one tool (ExecutionAgent, Figure 4).

Answers are untrusted until they are checked here. The reason for a rejection is a sentence for the model.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from runner.benchmarks.project_setup.agent.json_answers import complaint
from runner.records import Record

FORM: Final = '{"thoughts": "why this is the next step", "tool": {"name": "...", "args": {...}}}'


class Command(Record):
    """`linux_terminal`: run a command."""

    command: str = Field(min_length=1)


class Control(Record):
    """`linux_terminal`: go on with a command that has passed its time limit."""

    action: Literal["wait", "write", "terminate"]
    text: str = ""
    """Input for `write`; a line end is added."""


class Read(Record):
    """`read_file`: read a text file."""

    path: str = Field(min_length=1)


class Write(Record):
    """`write_file`: replace a text file."""

    path: str = Field(min_length=1)
    content: str


class Done(Record):
    """`task_done`: claim that all goals are reached."""

    reason: str = Field(min_length=1)


Args = Command | Control | Read | Write | Done
TOOLS: Final[dict[str, TypeAdapter[Args]]] = {
    "linux_terminal": TypeAdapter(Command | Control),
    "read_file": TypeAdapter(Read),
    "write_file": TypeAdapter(Write),
    "task_done": TypeAdapter(Done),
}


class _Tool(Record):
    name: str
    args: dict[str, Any] = {}


class _Answer(Record):
    thoughts: str
    tool: _Tool


class Response(Record):
    """One step that the model asks for."""

    thoughts: str
    name: str
    args: Args

    @property
    def call(self) -> str:
        """Tool and arguments in one line; equal calls give equal lines."""
        return f"{self.name} {self.args.model_dump_json(exclude_defaults=True)}"


def parsed(answer: str) -> Response:
    """Return the step that an answer asks for. Other words and a fence around its one JSON object are allowed.

    Raises `ValueError` with a sentence for the model.
    """
    found = [value for value in _objects(answer) if value.keys() & _Answer.model_fields.keys()]
    if not found:
        raise ValueError(f"There is no JSON object of the required form in it: {FORM}")
    if len(found) > 1:
        raise ValueError(f"It holds {len(found)} JSON objects. Answer with one: one tool at a time.")
    try:
        wanted = _Answer.model_validate(found[0])
    except ValidationError as error:
        raise ValueError(f"Its JSON has not the required form {FORM}: {complaint(error)}") from error
    if wanted.tool.name not in TOOLS:
        raise ValueError(f"There is no tool {wanted.tool.name!r}. The tools are {', '.join(TOOLS)}.")
    try:
        args = TOOLS[wanted.tool.name].validate_python(wanted.tool.args)
    except ValidationError as error:
        raise ValueError(f"The arguments of {wanted.tool.name} are wrong: {complaint(error)}") from error
    return Response(thoughts=wanted.thoughts, name=wanted.tool.name, args=args)


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the outermost JSON objects of a text, in their order.

    Lone surrogates, which JSON can spell and no file can hold, become question marks.
    """
    decoder, found, at = json.JSONDecoder(strict=False), [], 0
    while (at := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            at += 1
        except RecursionError:
            break  # every later bracket would end like this
        else:
            whole = json.dumps(value, ensure_ascii=False).encode(errors="replace")
            found.append(json.loads(whole))
    return found
