"""Any coding CLI as data: a new agent is a YAML file in `conf/agent/` and no Python.

Its command line, environment and files are templates with these placeholders:

    {prompt}             the task's instruction
    {prompt_json}        the same as a JSON string, which is also a YAML one, quotes included
    {base_url}           the gateway's origin, without `/v1`
    {key}                the trial's key; belongs in `env`, since every process can read a command line
    {model}              what its provider calls the model: CLIs know windows and tools by that name
    {context_window}     tokens; may have no value
    {compact_at}         tokens, four fifths of that: for an agent that is told when to compact; may have no value
    {max_output_tokens}  tokens; may have no value
    {workdir}            the task's working directory; has no value where the image decides it
    {agent_dir}          a writable folder of the agent's own, outside the workspace

A literal brace is doubled. An argument, variable or file with a placeholder that has no value is left out as a whole,
so an optional flag is written as one argument: `--context={context_window}`.
"""

from __future__ import annotations

import json
import re
from string import Formatter
from typing import Literal, Self

from pydantic import Field, model_validator

from runner.agents import own_usage
from runner.errors import ConfigError
from runner.protocols import Sandbox
from runner.records import (
    ApiName,
    BundleRecipe,
    Endpoint,
    ExecResult,
    ExecSpec,
    OwnUsage,
    Record,
    Task,
    UsageReport,
)
from runner.sandbox.inside import AGENT_DIR, fed

ToolKind = Literal["edit", "execute", "plan", "read", "search", "finish", "other"]
PLACEHOLDERS = (
    "prompt",
    "prompt_json",
    "base_url",
    "key",
    "model",
    "context_window",
    "compact_at",
    "max_output_tokens",
    "workdir",
    "agent_dir",
)
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What JSON allows in a string and YAML folds or rejects."""


class CliAgent(Record):
    """A coding CLI that reaches its model through a base URL and a key. See `protocols.Agent`."""

    name: str
    version: str
    uses_model: bool = True
    bundle: BundleRecipe | None = None
    argv: tuple[str, ...]
    """Templates. One argument holds at most 128 KiB: a prompt may be longer and better comes from a file."""
    env: dict[str, str] = {}
    """Variable -> template."""
    files: dict[str, str] = {}
    """Absolute container path -> content, both templates; written before the start."""
    stdin: str | None = None
    """Template of a container path that the CLI reads as standard input; None means /dev/null."""
    api: ApiName = Field(default="chat", exclude=True)
    """API by which it asks its model; the model is asked by it before the first trial. A provider's refusal of a call
    by another API counts as the agent's failure. Like `needs`, not part of a trial's key."""
    memory_mb: int | None = Field(default=None, ge=1, exclude=True)
    """MiB that a sandbox must have for the CLI and the commands it runs. A task's lower limit is raised to it, and the
    trial flagged `memory_raised`; only then it is part of a trial's key. None: any limit will do."""
    tools: dict[ToolKind, tuple[str, ...]] = {}
    """Kind -> names under which this agent's tools appear in its calls; what is not named is `other`."""
    needs: tuple[Literal["context_window", "max_output_tokens"], ...] = Field(default=(), exclude=True)
    """Fields of the model without which the CLI cannot work. They decide whether a trial runs and not what it is, so
    they are no part of its key."""
    usage: UsageReport | None = None
    """Where it says itself what it used: a cross-check of the gateway's count, never in its place."""

    @model_validator(mode="after")
    def _check_templates(self) -> Self:
        used = {name for template in self._templates() for name in _placeholders(template)}
        if unknown := used.difference(PLACEHOLDERS):
            valid = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise ValueError(
                f"unknown placeholder {{{min(unknown)}}}; valid: {valid}; a literal brace is doubled"
            )
        if not used & {"prompt", "prompt_json"}:
            raise ValueError("no template mentions {prompt} or {prompt_json}: it would not know its task")
        return self

    @model_validator(mode="after")
    def _check_lock(self) -> Self:
        lock = self.bundle.lock if self.bundle else None
        if self.bundle is None or self.bundle.kind == "npm" or lock is None:
            return self
        pinned = f"{self.bundle.package}=={self.bundle.version}"
        if not lock.is_file():
            raise ConfigError(f"agent.bundle.lock: {lock} is no file.")
        if f"{pinned} " not in lock.read_text():
            raise ConfigError(  # unlike a ValueError it is not told with all that was configured
                f"{lock} does not pin {pinned}. Make a lock of that version with the command in the head of the "
                "shipped one, and name it: agent.bundle.lock=FILE"
            )
        return self

    @model_validator(mode="after")
    def _check_usage(self) -> Self:
        if self.usage:
            own_usage.check(self.usage)
        return self

    def command(self, task: Task, endpoint: Endpoint | None) -> ExecSpec:
        """Render the templates. Raises `ConfigError` without an endpoint."""
        if endpoint is None:
            raise ConfigError(f"agent {self.name} needs a model: choose one with model=...")
        values = _values(task, endpoint)
        rendered = (_render(template, values) for template in self.argv)
        argv = tuple(argument for argument in rendered if argument is not None)
        stdin = _render(self.stdin, values) if self.stdin else None
        return ExecSpec(
            argv=fed(argv, stdin) if stdin else argv,
            env=_render_mapping(self.env, values),
            files=_render_mapping(self.files, values),
        )

    def reported(self, sandbox: Sandbox, result: ExecResult) -> OwnUsage | None:
        """See `protocols.Agent`."""
        return own_usage.reported(self.usage, sandbox, result) if self.usage else None

    def _templates(self) -> tuple[str, ...]:
        paths = (self.stdin,) if self.stdin else ()
        return (*self.argv, *self.env.values(), *self.files, *self.files.values(), *paths)


def _values(task: Task, endpoint: Endpoint) -> dict[str, str | int | None]:
    return {
        "prompt": task.instruction,
        "prompt_json": _quoted(task.instruction),
        "base_url": endpoint.base_url,
        "key": endpoint.key,
        "model": endpoint.model,
        "context_window": endpoint.context_window,
        "compact_at": endpoint.context_window and endpoint.context_window * 4 // 5,
        "max_output_tokens": endpoint.max_output_tokens,
        "workdir": task.environment.workdir,
        "agent_dir": AGENT_DIR,
    }


def _quoted(text: str) -> str:
    """Return a double-quoted string that JSON and YAML read alike."""
    quoted = json.dumps(text, ensure_ascii=False)  # escaped, a character beyond 16 bits would be two to YAML
    return _NOT_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _placeholders(template: str) -> list[str]:
    """Return the names between single braces; with a format or conversion they are no valid names.

    Raises `ValueError` for unbalanced braces.
    """
    parts = Formatter().parse(template)
    return [
        f"{name}{'!' if conversion else ''}{conversion or ''}{':' if spec else ''}{spec}"
        for _, name, spec, conversion in parts
        if name is not None
    ]


def _render(template: str, values: dict[str, str | int | None]) -> str | None:
    """Return the filled template, or None when a placeholder in it has no value."""
    if any(values[name] is None for name in _placeholders(template)):
        return None
    return template.format(**values)


def _render_mapping(templates: dict[str, str], values: dict[str, str | int | None]) -> dict[str, str]:
    rendered = {_render(name, values): _render(text, values) for name, text in templates.items()}
    return {name: text for name, text in rendered.items() if name is not None and text is not None}
