"""What the model answers to a command prompt: a JSON object with its thoughts and one tool (ExecutionAgent, Figure 4).

Every answer is somebody else's words until it is checked here; what is wrong with one is said in a sentence that the
model gets back.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from runner.benchmarks.project_setup.agent.answers import complaint
from runner.records import Record

FORM: Final = '{"thoughts": "why this is the next step", "tool": {"name": "...", "args": {...}}}'


class Command(Record):
    """`linux_terminal`: run a command."""

    command: str = Field(min_length=1)


class Control(Record):
    """`linux_terminal`: what to do about a command that has passed its time limit."""

    action: Literal["wait", "write", "terminate"]
    text: str = ""
    """Of `write`; a line's end is added."""


class Read(Record):
    """`read_file`."""

    path: str = Field(min_length=1)


class Write(Record):
    """`write_file`."""

    path: str = Field(min_length=1)
    content: str


class Done(Record):
    """`task_done`."""

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
    """One step that the model wants."""

    thoughts: str
    name: str
    args: Args

    @property
    def call(self) -> str:
        """Tool and arguments in one line; equal calls are equal lines."""
        return f"{self.name} {self.args.model_dump_json(exclude_defaults=True)}"


def parsed(answer: str) -> Response:
    """The step that an answer asks for. Words around its one JSON object, and a fence, do no harm.

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
    """The JSON objects of a text that lie in no other, in their order.

    Halves of characters, which JSON can spell and nobody can write to a file, become question marks.
    """
    decoder, found, at = json.JSONDecoder(strict=False), [], 0
    while (at := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            at += 1
        except RecursionError:
            break  # every bracket that follows would end so
        else:
            whole = json.dumps(value, ensure_ascii=False).encode(errors="replace")
            found.append(json.loads(whole))
    return found
