"""CLI agents: the commands that their YAML files render to, and the rules of their templates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from runner.agents.cli import CliAgent
from runner.errors import ConfigError
from runner.records import Endpoint, Environment, Task
from tests.agents.trials import AGENTS as SHIPPED
from tests.agents.trials import shipped

SNAPSHOTS = Path(__file__).parent / "snapshots"
PROMPT = 'Write "hello.txt"; keep {braces}, {{both}} and {key}.\nThen: stop - né 🙂'
TASK = Task(name="t", dataset="d", directory=Path("/d/t"), instruction=PROMPT)
ENDPOINT = Endpoint(base_url="http://127.0.0.1:4180", key="KEY", model="glm", context_window=200_000)


def agent(**fields: Any) -> CliAgent:
    return CliAgent(**{"name": "a", "version": "1", "argv": ("a", "{prompt}"), **fields})


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_agents_render_as_committed(name: str) -> None:
    """A change of these files changes what was measured; review it as such."""
    rendered = shipped(name).command(TASK, ENDPOINT).model_dump_json(indent=1, exclude_defaults=True)
    assert f"{rendered}\n" == (SNAPSHOTS / f"{name}.json").read_text()


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_agents_keep_the_key_and_the_prompt_out_of_argv(name: str) -> None:
    task = TASK.model_copy(update={"instruction": "long" * 100_000})
    argv = "\n".join(shipped(name).command(task, ENDPOINT).argv)
    assert "KEY" not in argv.replace("GATEWAY_KEY", "")
    assert len(argv) < 2_000


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_agents_run_what_their_bundle_installs(name: str) -> None:
    cli = shipped(name)
    assert cli.bundle
    assert cli.bundle.version == cli.version
    assert any(part.startswith(f"/opt/assay/{cli.bundle.name}/bin/") for part in cli.argv)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_agents_are_told_the_context_window(name: str) -> None:
    """Some get the size at which to compact; Grok CLI and mini-swe-agent never compact."""
    rendered = shipped(name).command(TASK, ENDPOINT).model_dump_json()
    assert [size for size in ("200000", "160000") if size in rendered] == (
        {
            "grok_cli": [],
            "mini_swe_agent": [],
            "openhands": ["160000"],
            "gemini_cli": ["160000"],
            "gptme": ["160000"],
            "mistral_vibe": ["200000", "160000"],
            "mistral_vibe_3": ["200000", "160000"],
        }.get(name, ["200000"])
    )


def test_another_version_of_an_npm_agent_needs_no_more_than_its_name() -> None:
    bundle = shipped("qwen_code", version="0.24.3").bundle
    assert bundle
    assert bundle.version == "0.24.3"


def test_another_version_of_a_pypi_agent_needs_a_lock_and_says_so() -> None:
    with pytest.raises(
        ConfigError, match=r"kimi_cli\.lock does not pin kimi-cli==1\.50\.0.*agent\.bundle\.lock=FILE"
    ):
        shipped("kimi_cli", version="1.50.0")
    absent = {
        "bundle": {"name": "a", "kind": "pypi", "package": "a", "version": "1", "lock": Path("/none.lock")}
    }
    with pytest.raises(ConfigError, match=r"agent\.bundle\.lock: /none\.lock is not a file"):
        shipped("kimi_cli", **absent)


def test_element_without_a_value_is_left_out_as_a_whole() -> None:
    templates: dict[str, Any] = {
        "argv": (
            "a",
            "{prompt}",
            "--context={context_window}",
            "--most={max_output_tokens}",
            "--in={workdir}",
        ),
        "env": {"CONTEXT": "{context_window}", "MOST": "{max_output_tokens}"},
        "files": {"{agent_dir}/context": "{context_window}", "{agent_dir}/most": "{max_output_tokens}"},
    }
    command = agent(**templates).command(TASK, ENDPOINT)
    assert command.argv == ("a", PROMPT, "--context=200000")
    assert command.env == {"CONTEXT": "200000"}
    assert command.files == {"/run/assay/agent/context": "200000"}
    task = TASK.model_copy(update={"environment": Environment(workdir="/app")})
    assert agent(**templates).command(task, ENDPOINT).argv[-1] == "--in=/app"


def test_doubled_braces_are_literal_and_values_are_not_rendered_again() -> None:
    command = agent(argv=("a", '{{"x":{{}}}} {prompt}')).command(TASK, ENDPOINT)
    assert command.argv == ("a", '{"x":{}} ' + PROMPT)


def test_stdin_comes_from_a_container_file() -> None:
    command = agent(argv=("a", "-"), stdin="{agent_dir}/p", files={"{agent_dir}/p": "{prompt}"}).command(
        TASK, ENDPOINT
    )
    assert command.files == {"/run/assay/agent/p": PROMPT}
    assert command.argv[-5:] == ("--stdin", "/run/assay/agent/p", "--", "a", "-")


@pytest.mark.parametrize(
    ("template", "complaint"),
    [
        (
            "{promt}",
            r"unknown placeholder {promt}; valid: {prompt}, .*{agent_dir}; a literal brace is doubled",
        ),
        ("{}", "unknown placeholder {}"),
        ("{0}", "unknown placeholder {0}"),
        ("{key.__class__}", "unknown placeholder {key.__class__}"),
        ("{prompt!r}", "unknown placeholder {prompt!r}"),
        ("{prompt:>9}", "unknown placeholder {prompt:>9}"),
        ('{"json": 1}', "unknown placeholder"),
        ("}", "Single '}' encountered"),
        ("{key", "expected '}'"),
    ],
)
@pytest.mark.parametrize("field", ["argv", "env", "files", "file", "stdin"])
def test_faulty_template_fails_at_construction(field: str, template: str, complaint: str) -> None:
    fields: dict[str, dict[str, Any]] = {
        "argv": {"argv": ("a", "{prompt}", template)},
        "env": {"env": {"A": template}},
        "files": {"files": {"/x": template}},
        "file": {"files": {template: "x"}},
        "stdin": {"stdin": template},
    }
    with pytest.raises(ValidationError, match=complaint):
        agent(**fields[field])


def test_agent_that_would_not_know_its_task_fails_at_construction() -> None:
    with pytest.raises(ValidationError, match="it would not know its task"):
        agent(argv=("a", "--go"))


def test_unknown_key_and_tool_kind_fail_at_construction() -> None:
    with pytest.raises(ValidationError):
        agent(arguments=())
    with pytest.raises(ValidationError):
        agent(tools={"shell": ("bash",)})


def test_model_less_use_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="agent a needs a model"):
        agent().command(TASK, None)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_prompt_json_is_read_alike_by_json_and_yaml(prompt: str) -> None:
    task = TASK.model_copy(update={"instruction": prompt})
    text = agent(argv=("a", "{{run: {{task: {prompt_json}}}}}")).command(task, ENDPOINT).argv[1]
    assert yaml.safe_load(text) == {"run": {"task": prompt}}
    assert json.loads(text.removeprefix("{run: {task: ").removesuffix("}}")) == prompt
