"""Whole trials of a shipped agent against a provider that misbehaves, and what they came to."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from runner.agents.cli import CliAgent
from runner.cli.config import build
from runner.gateway import Gateway
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.records import Budget, Model, ModelCall, Prices, Record, TrialRecord, Usage
from runner.records.trial_files import LEDGER
from runner.resources import CONF
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.support.serving import KEY_VARIABLE
from tests.support.tasks_factory import dataset, make_task

AGENTS = sorted(path.stem for path in (CONF / "agent").glob("*.yaml") if "CliAgent" in path.read_text())


def _usual() -> list[str]:
    """Return the agents that `make bundles` installs."""
    composed = OmegaConf.load(CONF / "experiment" / "every_agent.yaml")
    return str(OmegaConf.select(composed, "hydra.sweeper.params.agent")).split(",")


EVERY = bool(os.environ.get("ASSAY_EVERY_AGENT"))
TRIED = [name for name in AGENTS if EVERY or name in _usual()]
"""Agents whose programs are run: those of `experiment=every_agent`, or all with `make every-agent`."""
ONE_OF_A_KIND = TRIED if EVERY else ["claude_code", "codex", "gemini_cli", "mini_swe_agent", "qwen_code"]
"""Agents whose long trials and skills are tried: at least one of each API, of Node, Python and Rust, of those that
stream and those that do not, of those that compact their context and those that do not; all with `make every-agent`."""
NATIVE = {
    "claude_code": "anthropic/claude-sonnet-4-6",
    "codex": "openai/gpt-5.5",
    "cline": "openai/kimi-k2.5",
    "copilot": "openai/kimi-k2.5",
    "gemini_cli": "gemini/gemini-2.5-pro",
    "continue_cli": "openai/kimi-k2.5",
    "goose": "openai/kimi-k2.5",
    "gptme": "openai/kimi-k2.5",
    "grok_cli": "openai/kimi-k2.5",
    "hermes_agent": "openai/kimi-k2.5",
    "kilo_code": "openai/kimi-k2.5",
    "kimi_cli": "openai/kimi-k2.5",
    "kimi_code": "openai/kimi-k2.5",
    "mini_swe_agent": "openai/gpt-5.4",
    "mistral_vibe": "openai/kimi-k2.5",
    "mistral_vibe_3": "openai/kimi-k2.5",
    "nanocoder": "openai/kimi-k2.5",
    "opencode": "openai/kimi-k2.5",
    "openhands": "openai/gpt-5.4",
    "pi": "openai/gpt-5.4",
    "qwen_code": "openai/qwen3-coder-plus",
}
"""A model that speaks the agent's own API and whose name the agent may know: Codex offers `apply_patch` to such models
only, OpenHands speaks the responses API with this one."""
FOREIGN = dict.fromkeys(AGENTS, "anthropic/claude-sonnet-4-6") | {
    "claude_code": "openai/gpt-5.4",
    "codex": "zai/glm-5.1",
}
"""A model of another maker and API than the agent's; Codex's has chat only."""
LOOK = "(id -u; grep CapEff /proc/self/status; cat /sys/class/net/*/address; touch /opt/assay/python/x) > seen 2>&1; "
"""A command's beginning, which every first command has: what it sees of its sandbox."""
SHELL_ARGUMENTS: dict[str, dict[str, Any]] = {
    "copilot": {"description": "Look."},
    "openhands": {"security_risk": "LOW"},
    "qwen_code": {"is_background": False},
}
"""Arguments that an agent's shell tool demands beside the command."""
DONE = "/app/done"
CREATE = {"file_path": DONE, "content": "one\n"}
REPLACE = {"file_path": DONE, "old_string": "one", "new_string": "two"}
_PATCH = "*** Begin Patch\n{}\n*** End Patch"
_EDITOR = {"path": DONE, **SHELL_ARGUMENTS["openhands"]}
OWN_TOOLS: dict[str, tuple[tuple[str, str | dict[str, Any]], ...]] = {
    "claude_code": (("Write", CREATE), ("Edit", REPLACE)),
    "cline": (
        ("editor", {"path": DONE, "new_text": "one\n"}),
        ("editor", {"path": DONE, "old_text": "one", "new_text": "two"}),
    ),
    "codex": (
        ("apply_patch", _PATCH.format(f"*** Add File: {DONE}\n+one")),
        ("apply_patch", _PATCH.format(f"*** Update File: {DONE}\n@@\n-one\n+two")),
    ),
    "continue_cli": (
        ("Write", {"filepath": DONE, "content": "one\n"}),
        ("Read", {"filepath": DONE}),
        ("MultiEdit", {"file_path": DONE, "edits": [{"old_string": "one", "new_string": "two"}]}),
    ),
    "copilot": (
        ("create", {"path": DONE, "file_text": "one\n"}),
        ("edit", {"path": DONE, "old_str": "one", "new_str": "two"}),
    ),
    "gemini_cli": (
        ("write_file", CREATE),
        ("replace", {"instruction": "Replace it."} | REPLACE),
    ),
    "kimi_cli": (
        ("WriteFile", {"path": DONE, "content": "one\n"}),
        ("StrReplaceFile", {"path": DONE, "edit": {"old": "one", "new": "two"}}),
    ),
    "kimi_code": (
        ("Write", {"path": DONE, "content": "one\n"}),
        ("Edit", {"path": DONE, "old_string": "one", "new_string": "two"}),
    ),
    "mini_swe_agent": (  # which has no other tool
        ("bash", {"command": f"echo one > {DONE}"}),
        ("bash", {"command": f"sed -i s/one/two/ {DONE}"}),
    ),
    "goose": (
        ("write", {"path": DONE, "content": "one\n"}),
        ("edit", {"path": DONE, "before": "one", "after": "two"}),
    ),
    "gptme": (
        ("save", {"path": DONE, "content": "one\n"}),
        ("patch", {"path": DONE, "patch": "<<<<<<< ORIGINAL\none\n=======\ntwo\n>>>>>>> UPDATED"}),
    ),
    "grok_cli": (
        ("create_file", {"path": DONE, "content": "one\n"}),
        ("str_replace_editor", {"path": DONE, "old_str": "one", "new_str": "two"}),
    ),
    "hermes_agent": (
        ("write_file", {"path": DONE, "content": "one\n"}),
        ("patch", {"mode": "replace", "path": DONE, "old_string": "one", "new_string": "two"}),
    ),
    "kilo_code": (
        ("write", {"filePath": DONE, "content": "one\n"}),
        ("edit", {"filePath": DONE, "oldString": "one", "newString": "two"}),
    ),
    "opencode": (
        ("write", {"filePath": DONE, "content": "one\n"}),
        ("edit", {"filePath": DONE, "oldString": "one", "newString": "two"}),
    ),
    "mistral_vibe": (
        ("write_file", {"path": DONE, "content": "one\n"}),
        ("edit", {"file_path": DONE, "old_string": "one", "new_string": "two"}),
    ),
    "mistral_vibe_3": (
        ("write_file", {"path": DONE, "content": "one\n"}),
        ("edit", {"file_path": DONE, "old_string": "one", "new_string": "two"}),
    ),
    "nanocoder": (
        ("write_file", {"path": DONE, "content": "one\n"}),
        ("string_replace", {"path": DONE, "old_str": "one", "new_str": "two"}),
    ),
    "openhands": (
        ("file_editor", {"command": "create", "file_text": "one\n"} | _EDITOR),
        ("file_editor", {"command": "str_replace", "old_str": "one", "new_str": "two"} | _EDITOR),
    ),
    "pi": (
        ("write", {"path": DONE, "content": "one\n"}),
        ("edit", {"path": DONE, "edits": [{"oldText": "one", "newText": "two"}]}),
    ),
    "qwen_code": (("write_file", CREATE), ("edit", REPLACE)),
}
"""Calls of an agent's own tools that write a line, `one`, and make it `two`; text is for a tool that takes any."""
NEVER_COMPACT = (
    "gemini_cli",
    "goose",
    "gptme",
    "grok_cli",
    "hermes_agent",
    "mini_swe_agent",
    "nanocoder",
    "pi",
)
"""Agents that ask for no summary within a short run when the provider's counts reach the window: Gemini CLI, goose and
Pi do it between prompts, Hermes Agent only in a conversation of more messages than it protects, Nanocoder by its own
estimate; gptme cuts outputs of tools by its own estimate; Grok CLI and mini-swe-agent do nothing."""
END = {"mini_swe_agent": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}
"""The command that ends an agent; all others end by words or by a tool of the kind `finish`."""
FINISH = {"gptme": ("complete", "{}")}
"""The call that ends an agent at once, which would ask whether words are its last otherwise."""


class Outcome(Record):
    """Results of a trial, at both of its ends."""

    record: TrialRecord
    calls: tuple[ModelCall, ...]
    seen: str
    """Output of the first command, which looks at its sandbox."""
    made: str
    """Content of the file that was asked for."""
    served: Usage
    """Sum over all answers that the provider sent."""
    hung_up: int
    """Requests that the provider could not answer any more."""
    trajectory: dict[str, Any]
    """Content of `trajectory.json`."""


def shipped(name: str, **changed: Any) -> CliAgent:
    """The agent of a file in `conf/agent/`, as `agent.KEY=VALUE` changes it."""
    node = OmegaConf.merge(OmegaConf.load(CONF / "agent" / f"{name}.yaml"), changed)
    agent = build(OmegaConf.to_container(node, resolve=True), "agent")
    assert isinstance(agent, CliAgent)
    return agent


def shell(agent: CliAgent, command: str, **changed: Any) -> Behaviour:
    """The model's call of the agent's own shell tool."""
    own: dict[str, dict[str, Any]] = {"cline": {"commands": [command]}, "codex": {"cmd": command}}
    given = own.get(agent.name, {"command": command})
    arguments = {**given, **SHELL_ARGUMENTS.get(agent.name, {})}
    call = agent.tools["execute"][0], json.dumps(arguments)
    return Behaviour.model_validate({"text": "A step.", "calls": (call,)} | changed)


def own(agent: CliAgent) -> tuple[Behaviour, ...]:
    """The model's calls of the agent's own tools for files, one an answer."""
    return tuple(
        Behaviour(text="A step.", texts=((name, given),))
        if isinstance(given, str)
        else Behaviour(text="A step.", calls=((name, json.dumps(given)),))
        for name, given in OWN_TOOLS[agent.name]
    )


def last(agent: CliAgent) -> Behaviour:
    """The model's last answer."""
    if agent.name in FINISH:
        return Behaviour(text="Done.", calls=(FINISH[agent.name],))
    return shell(agent, END[agent.name]) if agent.name in END else Behaviour(text="Done.")


def trial(
    agent: CliAgent,
    moves: tuple[Behaviour, ...],
    budget: Budget,
    gateway: Gateway,
    folder: Path,
    **changed: Any,
) -> Outcome:
    """One whole trial in the new `folder`; `changed` may hold its `prompt` and fields of the model."""
    prompt = changed.pop("prompt", "Make /app/done.")
    make_task(folder / "tasks", "made", toml='[agent]\nuser = "1000"\n')
    (folder / "tasks" / "made" / "instruction.md").write_text(prompt)
    with FakeUpstream(*moves) as upstream:
        cell = Cell(
            agent=agent,
            model=_model(upstream, {"id": NATIVE[agent.name]} | changed),
            dataset=dataset(folder / "tasks"),
            budget=budget,
            attempts=1,
        )
        sandboxes = DockerSandboxes()
        assert agent.bundle
        bundles = sandboxes.prepare([agent.bundle], print)
        (planned,) = make_plan([cell], sandboxes, lambda _: ()).trials
        context = TrialContext(sandboxes, gateway, Store(folder / "outputs"), "test", bundles)
        record = run_to_the_end(planned, context, 0, lambda: False)
    (ledger,) = (folder / "outputs").rglob(LEDGER)
    return Outcome(
        record=record,
        calls=tuple(ModelCall.model_validate_json(line) for line in ledger.read_text().splitlines()),
        seen=_file(ledger.parent / "workspace.tar.gz", "seen"),
        made=_file(ledger.parent / "workspace.tar.gz", "done"),
        served=sum(upstream.served, Usage()),
        hung_up=upstream.hung_up,
        trajectory=json.loads((ledger.parent / "trajectory.json").read_text()),
    )


def _model(upstream: FakeUpstream, changed: dict[str, Any]) -> Model:
    is_anthropics = changed["id"].startswith("anthropic/")
    model = {
        "name": "fake",
        "api_base": upstream.url.removesuffix("/v1")
        if is_anthropics
        else upstream.url,  # as litellm wants it
        "api_key_env": KEY_VARIABLE,
        "prices": Prices(input=2.0, output=10.0, cache_hit=0.5),
        "context_window": 1_000_000,
        "max_output_tokens": 8192,
    }
    return Model.model_validate(model | changed)


def _file(tar: Path, name: str) -> str:
    with tarfile.open(tar) as archive:
        content = archive.extractfile(f"app/{name}") if f"app/{name}" in archive.getnames() else None
        return content.read().decode() if content else ""
