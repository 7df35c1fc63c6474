"""The behaviour of an agent, read from its calls and its ending."""

from __future__ import annotations

import pytest

from runner.records import Status, ToolCall
from runner.resources import CONF
from runner.trials.behaviour import (
    LONGEST_COMMAND,
    LONGEST_COMMANDS,
    command,
    file_reads,
    kinds,
    own_finish,
    terminal_use,
)

TOOLS = {"edit": ("file_editor",), "execute": ("terminal",), "finish": ("finish",)}


def test_calls_have_the_kind_that_the_agents_table_says() -> None:
    assert kinds(["terminal", "file_editor", "other_tool"], TOOLS) == ("execute", "edit", "other")
    assert kinds([], TOOLS) == ()


@pytest.mark.parametrize(
    ("status", "used", "tools", "finished"),
    [
        (Status.COMPLETED, ("edit", "finish"), TOOLS, True),
        (Status.COMPLETED, ("edit",), TOOLS, False),
        (Status.COMPLETED, ("edit",), {"edit": ("Edit",)}, True),
        (Status.TIMEOUT, ("edit", "finish"), TOOLS, False),
        (Status.BUDGET_EXCEEDED, ("edit",), {}, False),
        (Status.AGENT_ERROR, (), {}, False),
    ],
)
def test_who_finished(
    status: Status,
    used: tuple[str, ...],
    tools: dict[str, tuple[str, ...]],
    finished: bool,  # noqa: FBT001
) -> None:
    assert own_finish(status, used, tools) is finished


def test_the_shipped_agents_name_kinds_that_reports_know() -> None:
    import yaml  # noqa: PLC0415

    from metrics.behaviour import KINDS  # noqa: PLC0415

    for file in (CONF / "agent").glob("*.yaml"):
        assert set(yaml.safe_load(file.read_text()).get("tools") or ()) <= set(KINDS), file


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"cmd": "ls"}', "ls"),
        ('{"command": "make && make test", "timeout": 3}', "make && make test"),
        ('{"command": ["bash", "-lc", "ls | wc"]}', "ls | wc"),
        ('{"command": ["git", "log", "a b"]}', "git log 'a b'"),
        ('{"command": []}', ""),
        ('{"command": null}', ""),
        ('{"session": 1}', ""),
        ("3", "3"),
        ("ls -la", "ls -la"),
        ('{"cmd": "half a', '{"cmd": "half a'),
    ],
)
def test_what_a_terminal_is_given(arguments: str, text: str) -> None:
    assert command(ToolCall(id="1", name="terminal", arguments=arguments)) == text


def test_programs_and_phases_of_a_trajectory() -> None:
    given = [
        ("terminal", '{"command": "cd project && ls"}'),
        ("file_editor", '{"command": "create", "path": "Dockerfile"}'),
        ("terminal", '{"command": "sudo apt-get install -y gcc && pytest"}'),
        ("finish", "{}"),
    ]
    calls = [
        ToolCall(id=str(at), name=name, arguments=arguments) for at, (name, arguments) in enumerate(given)
    ]
    phases, programs, _ = terminal_use(calls, kinds([call.name for call in calls], TOOLS))
    assert phases == ("setup", "dependencies", "testing", "other")
    assert programs == ("cd", "ls", "apt install", "pytest")


def test_repeated_reads_have_the_tool_and_the_arguments_of_an_earlier_one() -> None:
    given = [
        ("read", "Read", '{"path": "a.py", "limit": 5}'),
        ("read", "Read", '{"limit":5,"path":"a.py"}'),
        ("read", "Read", '{"path": "a.py"}'),
        ("read", "View", '{"path": "a.py"}'),
        ("read", "View", "half {"),
        ("execute", "Bash", '{"command": "cat a.py"}'),
        ("execute", "Bash", '{"command": "cat a.py "}'),
        ("execute", "Bash", '{"command": "python a.py"}'),
        ("execute", "Bash", '{"command": "python a.py"}'),
        ("edit", "Edit", '{"path": "a.py"}'),
        ("edit", "Edit", '{"path": "a.py"}'),
    ]
    calls = [ToolCall(id=str(at), name=name, arguments=text) for at, (_, name, text) in enumerate(given)]
    assert file_reads(calls, [kind for kind, *_ in given]) == (7, 2)
    assert file_reads([], []) == (0, 0)


@pytest.mark.parametrize(
    ("texts", "cut"),
    [
        (["ls;" * 10], False),
        (["ls;" * LONGEST_COMMAND], True),
        (["x" * LONGEST_COMMAND] * (LONGEST_COMMANDS // LONGEST_COMMAND), False),
        (["x" * LONGEST_COMMAND] * (LONGEST_COMMANDS // LONGEST_COMMAND + 1), True),
    ],
)
def test_long_commands_are_read_in_part_and_that_is_said(texts: list[str], cut: bool) -> None:  # noqa: FBT001
    calls = [ToolCall(id=str(at), name="terminal", arguments=text) for at, text in enumerate(texts)]
    found = terminal_use(calls, ["execute"] * len(calls))
    assert found.cut is cut
    assert len(found.phases) == len(calls)
    assert len(found.programs) <= LONGEST_COMMANDS // 3
