"""Coding CLIs as data. A new agent is a YAML file in `conf/agent/` and needs no Python.

The command line, environment and files are templates with these placeholders:

    {prompt}             the task's instruction
    {prompt_json}        the instruction as a JSON string with quotes, which is also a YAML string
    {base_url}           the gateway's origin, without `/v1`
    {key}                the trial's key; belongs in `env`, since every process can read a command line
    {model}              the provider's name of the model, by which CLIs know its window and tools
    {context_window}     the model's context window in tokens; may have no value
    {compact_at}         four fifths of the context window, when an agent should compact; may have no value
    {max_output_tokens}  the model's longest answer in tokens; may have no value
    {workdir}            the task's working directory; has no value where the image decides it
    {agent_dir}          the agent's own writable folder, outside the workspace

A literal brace is doubled. An argument, variable or file with a placeholder that has no value is left out as a whole,
so an optional flag is written as one argument: `--context={context_window}`.
"""

from __future__ import annotations

import json
import re
from string import Formatter
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

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
_PLACE = re.compile(r"(~|\.|\{agent_dir\})/[\w./-]+")
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that JSON allows in a string and YAML folds or rejects."""


class CliAgent(Record):
    """A coding CLI that calls its model at a base URL with a key. See `protocols.Agent`."""

    name: str
    version: str
    uses_model: bool = True
    bundle: BundleRecipe | None = None
    argv: tuple[str, ...]
    """Templates. One argument holds at most 128 KiB, so a prompt should come from a file."""
    env: dict[str, str] = {}
    """Variable -> template."""
    files: dict[str, str] = {}
    """Absolute container path -> content, both templates; written before the start."""
    stdin: str | None = None
    """Template of the container path of its standard input; None means /dev/null."""
    api: ApiName = Field(default="chat", exclude=True)
    """API through which the CLI calls its model; the check before the first trial uses it too. A provider's refusal of
    a call through another API counts as the agent's failure. Like `needs`, not part of a trial's key."""
    memory_mb: int | None = Field(default=None, ge=1, exclude=True)
    """MiB that a sandbox needs for the CLI and its commands; None for any. A task's lower limit is raised to it and the
    trial flagged `memory_raised`; only then is it part of the trial's key."""
    skills: tuple[str, ...] = Field(default=(), exclude=True)
    """Folders in which the CLI looks for skills, `NAME/SKILL.md`. Skills of a task that are in none of them are copied
    into the first. Empty if it reads none: then the instruction lists a task's skills. `~/` is the home of the agent's
    user, `./` the workspace, `{agent_dir}` the agent's own folder. Not part of a trial's key, which says whether a task
    shows skills."""
    tools: dict[ToolKind, tuple[str, ...]] = {}
    """Kind -> names of this agent's tools in its calls; all other tools are `other`."""
    done_when: str = Field(default="", exclude=True)
    """Sentence for the report on what the CLI does to end its work itself; empty where `tools` tells. Not part of a
    trial's key."""
    needs: tuple[Literal["context_window", "max_output_tokens"], ...] = Field(default=(), exclude=True)
    """Fields of the model without which the CLI cannot work. Not part of a trial's key: they decide whether a trial
    runs, not what it does."""
    usage: UsageReport | None = None
    """Place of the CLI's own count of its tokens, which is compared with the gateway's and never replaces it."""

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
            raise ConfigError(f"agent.bundle.lock: {lock} is not a file.")
        if f"{pinned} " not in lock.read_text():
            raise ConfigError(  # pydantic would show a ValueError with the whole configuration
                f"{lock} does not pin {pinned}. Make a lock of that version with the command in the head of the "
                "shipped one, and name it: agent.bundle.lock=FILE"
            )
        return self

    @field_validator("skills")
    @classmethod
    def _check_skills(cls, places: tuple[str, ...]) -> tuple[str, ...]:
        for place in places:
            if not _PLACE.fullmatch(place):
                raise ValueError(
                    f"{place!r} does not begin with ~/, ./ or {{agent_dir}}/, or has other letters than a path"
                )
        return places

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
    quoted = json.dumps(
        text, ensure_ascii=False
    )  # YAML would read an escaped character beyond 16 bits as two
    return _NOT_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _placeholders(template: str) -> list[str]:
    """Return the names between single braces, with their format and conversion, which make them invalid.

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
