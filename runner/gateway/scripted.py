"""The scripted model: a deterministic policy that plays shell commands turn by turn, without a language model.

It takes the place of a chat-only provider behind litellm, so agents, bridges, budgets and the ledger cannot tell it
from a real model. It keeps no state: the conversation that it is sent determines the turn.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import yaml
from pydantic import AfterValidator, ValidationError, model_validator

from runner.errors import ConfigError
from runner.gateway.api import Json, text_of
from runner.records import Record

SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""Word that mini-swe-agent asks any model to print at the end."""
COMMAND_FIELDS = ("command", "cmd")
SHELLS = (
    "exec_command",
    "bash",
    "shell",
    "run_shell_command",
    "terminal",
    "execute_bash",
    "shell_command",
    "local_shell",
)
"""Names of shell tools (case ignored), in the order of preference."""
REQUIRED_NUMBER = 60
"""Value for a number that a tool requires without giving a default. All known cases are time limits in seconds."""
CHARACTERS_PER_TOKEN = 4


class Turn(Record):
    """One answer: a command, several commands at once, or the words of the final answer (last turn only)."""

    say: str = ""
    run: str | None = None
    tools: tuple[str, ...] = ()
    """Commands of parallel tool calls."""

    @model_validator(mode="after")
    def _does_one_thing(self) -> Turn:
        if sum((self.run is not None, bool(self.tools), bool(self.say) and not self.commands)) != 1:
            raise ValueError("a turn has `run`, or `tools`, or `say` alone")
        return self

    @property
    def commands(self) -> tuple[str, ...]:
        """Commands to run; empty for an answer of words alone."""
        return self.tools if self.run is None else (self.run,)


def _words_come_last(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    if any(not turn.commands for turn in turns[:-1]):
        raise ValueError("words alone end the rollout of most agents, so only the last turn may be that")
    return turns


Turns = Annotated[tuple[Turn, ...], AfterValidator(_words_come_last)]


class Policy(Record):
    """The turns for each task."""

    name: str
    description: str = ""
    tasks: dict[str, Turns] = {}
    default: Turns = ()
    """Turns for all other tasks."""


class Script(NamedTuple):
    """A policy and the task to play."""

    policy: Policy
    task: str

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns for the task."""
        return self.policy.tasks.get(self.task, self.policy.default)


SCRIPT: ContextVar[Script | None] = ContextVar("SCRIPT", default=None)
"""Script of the call under way. litellm calls one handler for all trials and passes on only arguments that it knows. A
context variable belongs to the task of one call, and litellm's own tasks and threads inherit it."""


def load(path: Path) -> Policy:
    """Read a policy file. Raises `ConfigError`, naming the file and each key that is wrong."""
    try:
        return Policy.model_validate(yaml.safe_load(path.read_text()))
    except OSError as error:
        raise ConfigError(
            f"Cannot read the scripted policy {path} ({error.strerror}): model.policy names a YAML file of turns."
        ) from error
    except yaml.YAMLError as error:
        raise ConfigError(f"The scripted policy {path} is not YAML: {error}") from error
    except ValidationError as error:
        keys = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'file'}: {one['msg']}" for one in error.errors()
        )
        raise ConfigError(
            f"The scripted policy {path} is wrong at {keys}. A turn has say, run and tools; see the shipped ones."
        ) from error


def handler() -> Any:
    """Return the provider that litellm knows as `scripted/...`."""
    import litellm  # noqa: PLC0415 - takes seconds; see `provider.load_litellm`

    class ScriptedProvider(litellm.CustomLLM):  # type: ignore[misc] # litellm's base is untyped
        async def acompletion(self, *_: object, **call: Any) -> Any:
            script = SCRIPT.get()
            if script is None:
                raise litellm.APIError(500, "No script is playing.", "scripted", call["model"])
            tools = call["optional_params"].get("tools") or []
            return litellm.ModelResponse(**answer(script, call["messages"], tools))

    return ScriptedProvider()


def answer(script: Script, messages: list[Json], tools: list[Json]) -> Json:
    """Return the script's chat completion for a conversation. Deterministic.

    The turn is the number of assistant messages with tool calls so far. Usage: input tokens are the characters of the
    canonical JSON of tools and messages / 4, with the part up to the previous turn as a cache hit; output tokens are
    the characters of the answer's JSON / 4.
    """
    turns = [index for index, message in enumerate(messages) if message.get("tool_calls")]
    message = _message(script, len(turns), messages, tools)
    read, written = _tokens([tools, messages]), _tokens(message)
    cached = _tokens([tools, messages[: turns[-1]]]) if turns else 0
    return {
        "id": f"scripted-{script.policy.name}-{len(turns)}",
        "model": script.policy.name,
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
                "message": message,
            }
        ],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


def _message(script: Script, turn: int, messages: list[Json], tools: list[Json]) -> Json:
    functions = {
        tool["function"]["name"]: tool["function"] for tool in tools if tool.get("type") == "function"
    }
    say, calls = _move(script, turn, messages, functions)
    message: Json = {
        "role": "assistant",
        "content": f"[scripted policy {script.policy.name}, not a language model] {say}",
    }
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{turn}_{index}",
                "type": "function",
                "function": {"name": function["name"], "arguments": json.dumps(arguments)},
            }
            for index, (function, arguments) in enumerate(calls)
        ]
    return message


def _move(
    script: Script, turn: int, messages: list[Json], functions: dict[str, Json]
) -> tuple[str, list[tuple[Json, Json]]]:
    """Return the words and the calls of a turn, each call as (function, arguments)."""
    shell = _shell(functions)
    active = [one for one in script.turns if one.commands]
    if turn < len(active):
        now = active[turn]
        if shell is None:
            return "No shell tool is offered, so nothing can be run.", []
        return now.say, [(shell, _arguments(shell, command)) for command in now.commands]
    say = next((one.say for one in script.turns if not one.commands), "Done.")
    if turn > len(active):
        return say, []
    asked = any(
        SUBMIT in text_of(one.get("content"))
        for one in messages
        if one.get("role") in ("system", "developer", "user")
    )
    if asked and shell:
        return say, [(shell, _arguments(shell, f"echo {SUBMIT}"))]
    if "finish" in functions:
        return say, [(functions["finish"], _filled(functions["finish"], say))]
    return say, []


def _shell(functions: dict[str, Json]) -> Json | None:
    """Return the tool that runs commands: a known one, or else any with a command among its parameters."""
    shells = {name.lower(): one for name, one in functions.items() if _command_field(one)}
    return next((shells[name] for name in SHELLS if name in shells), next(iter(shells.values()), None))


def _command_field(function: Json) -> str | None:
    properties = _schema(function).get("properties") or {}
    return next((field for field in COMMAND_FIELDS if field in properties), None)


def _arguments(shell: Json, command: str) -> Json:
    field = _command_field(shell) or COMMAND_FIELDS[0]
    listed = _schema(shell)["properties"][field].get("type") == "array"
    return _filled(shell, command) | {field: ["bash", "-lc", command] if listed else command}


def _filled(function: Json, text: str) -> Json:
    """Return all arguments that the tool requires: their default, first choice, or a plain value of their type."""
    schema = _schema(function)
    plain_values = {
        "boolean": False,
        "integer": REQUIRED_NUMBER,
        "number": REQUIRED_NUMBER,
        "array": [],
        "object": {},
    }
    filled = {}
    for name in schema.get("required") or ():
        field = (schema.get("properties") or {}).get(name) or {}
        choices = [field["default"]] if "default" in field else field.get("enum")
        filled[name] = choices[0] if choices else plain_values.get(str(field.get("type")), text)
    return filled


def _schema(function: Json) -> Json:
    return function.get("parameters") or {}


def _tokens(value: object) -> int:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return -(-len(canonical) // CHARACTERS_PER_TOKEN)
