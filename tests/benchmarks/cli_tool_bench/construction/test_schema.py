"""Schemas of tools: their rules, models' answers, and help pages as the judge of both."""

from __future__ import annotations

import json
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from runner.benchmarks.cli_tool_bench.construction.schema import (
    Command,
    Constraint,
    Parameter,
    Schema,
    Word,
    checked,
    merged,
    read_schema,
    walk,
)

FORCE = {"names": ["-f", "--force"], "kind": "flag", "type": "boolean"}
LEVEL = {"names": ["--level"], "kind": "option", "type": "choice", "choices": ["low", "high"]}
FILE = {"names": ["FILE"], "kind": "argument", "type": "path", "required": True}
ADD = {
    "name": "add",
    "about": "add a file",
    "parameters": [FORCE, LEVEL, FILE],
    "constraints": [{"kind": "requires", "parameters": ["-f", "--level"]}],
}
WHOLE: dict[str, Any] = {
    "written_by": "by hand",
    "command": {"name": "tool", "runnable": False, "subcommands": [ADD]},
}


def flag(*names: str, **more: Any) -> Parameter:
    return Parameter(names=names, kind="flag", type="boolean", **more)


def option(*names: str, **more: Any) -> Parameter:
    return Parameter(names=names, kind="option", **{"type": "string", **more})


def tool(*parameters: Parameter, by: str = "a model", **more: Any) -> Schema:
    return Schema(written_by=by, command=Command(name="tool", parameters=parameters, **more))


def nested(depth: int) -> dict[str, Any]:
    command: dict[str, Any] = {"name": "x"}
    for _ in range(depth):
        command = {"name": "x", "subcommands": [command]}
    return {"written_by": "a model", "command": command}


def test_a_schema_is_read_alone_and_from_a_fenced_block() -> None:
    alone = read_schema(json.dumps(WHOLE))
    fenced = read_schema(f"Here it is:\n```json\n{json.dumps(WHOLE, indent=2)}\n```\nThat is all.")
    assert alone == fenced
    assert read_schema(alone.to_json()) == alone
    assert [path for path, _ in walk(alone.command)] == [(), ("add",)]
    assert read_schema(json.dumps(WHOLE), written_by="a model").written_by == "a model"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I cannot do that.", "The answer is not JSON: Expecting value"),
        ("```\n{}\n```\n```\n{}\n```", "The answer is not JSON: Extra data"),
        ("```\n{}", "The answer is not JSON: Expecting value"),
        ('{"written_by": ', "is not JSON"),
        ("[]", "must be one JSON object"),
        ("[" * 200_000, "nested too deeply"),
        ('{"written_by": "a", "written_by": "b"}', "'written_by' twice"),
        ('{"written_by": NaN}', "NaN"),
        ("{" + " " * (1 << 20), "at most"),
        (json.dumps(nested(5)), "more than 4 levels"),
        (json.dumps(nested(400)), "nested too deeply"),
        (json.dumps({**WHOLE, "note": "x"}), "note"),
        (json.dumps({"written_by": "", "command": {"name": "x"}}), "written_by"),
        (json.dumps({"written_by": "x", "command": {"name": "x", "about": "a\u001b[31m"}}), "control"),
        (json.dumps({"written_by": "x", "command": {"name": "x", "about": "y" * 1_001}}), "1000 characters"),
        (json.dumps({"written_by": "x", "command": {"name": "\ud800"}}), "name"),
        (json.dumps({"written_by": "x", "command": {"name": "a b"}}), "one word"),
        (json.dumps({"written_by": "x", "command": {"name": "--x"}}), "not the name of a command"),
        (json.dumps({"written_by": "x", "command": {"name": "x", "runnable": False}}), "must be runnable"),
    ],
)
def test_the_first_fault_of_an_answer_is_named(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r"\.$") as caught:
        read_schema(text)
    assert reason in str(caught.value)
    assert len(str(caught.value)) <= 2_000


@pytest.mark.parametrize("unit", ["```x\n", "```\n", " ", "{", "\n```"])
def test_a_hostile_answer_takes_no_time(unit: str) -> None:
    text = "x" + unit * ((1 << 20) // len(unit) - 1)
    began = process_time()
    with pytest.raises(ValueError, match=r"\.$"):
        read_schema(text)
    assert process_time() - began < 1


@pytest.mark.parametrize(
    "fields",
    [
        {"names": []},
        {"names": ["force"]},
        {"names": ["--"]},
        {"names": ["--a b"]},
        {"names": ["-f", "-f"]},
        {"kind": "switch"},
        {"type": "string"},
        {"type": "choice"},
        {"choices": ["a"]},
        {"kind": "argument"},
        {"kind": "argument", "names": ["A", "B"]},
        {"kind": "option", "type": "choice", "choices": ["x"] * 65},
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Parameter.model_validate({**FORCE, **fields})


@pytest.mark.parametrize("names", [("-f", "--gone"), ("-f", "--force"), ("-f",)])
def test_a_constraint_is_about_several_parameters_of_its_command(names: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError):
        tool(flag("-f", "--force"), constraints=(Constraint(kind="excludes", parameters=names),))


def test_names_are_unique_and_commands_are_bounded() -> None:
    with pytest.raises(ValidationError, match="two parameters called '-a'"):
        tool(flag("-a"), flag("-b", "-a"))
    with pytest.raises(ValidationError, match="two subcommands"):
        tool(subcommands=(Command(name="a"), Command(name="a")))
    with pytest.raises(ValidationError, match="65 commands"):
        tool(subcommands=tuple(Command(name=f"a{number}") for number in range(64)))


def test_what_no_page_shows_is_taken_out() -> None:
    schema = tool(
        flag("-f", "--force"),
        flag("-x", "--extra"),
        flag("--no-color"),
        flag("--col"),
        constraints=(
            Constraint(kind="excludes", parameters=("--force", "--no-color")),
            Constraint(kind="excludes", parameters=("-x", "--no-color")),
        ),
        subcommands=(
            Command(name="add", parameters=(flag("--force"), flag("--nowhere"))),
            Command(name="magic"),
        ),
    )
    root = "Usage: tool [-q]\n\nCommands:\n  add   add it\n\nOptions:\n  -f             force\n  --[no-]color   colours"
    page = "Usage: tool add\n\nOptions:\n  --keep   keep it\n  -V, --version   show the version"
    found = checked(schema, {(): root, ("add",): page, ("gone",): "Usage: tool gone"})
    assert {(word.command, word.name) for word in found.invented} == {
        ((), "--force"),
        ((), "-x"),
        ((), "--extra"),
        ((), "--col"),
        (("add",), "--force"),
        (("add",), "--nowhere"),
        ((), "magic"),
    }
    command = found.schema_checked.command
    assert [parameter.names for parameter in command.parameters] == [("-f",), ("--no-color",)]
    assert [constraint.parameters for constraint in command.constraints] == [("-f", "--no-color")]
    assert found.unlisted == (
        Word(command=(), name="--color"),
        Word(command=(), name="-q"),
        Word(command=("add",), name="--keep"),
        Word(command=(), name="gone"),
    )
    assert Schema.model_validate(found.schema_checked.model_dump()) == found.schema_checked


def test_the_reader_wins_over_a_model() -> None:
    read = tool(
        flag("-f", "--force"),
        option("-n", "--number", about="how many"),
        option("--level", type="choice", choices=("low", "high")),
        Parameter(names=("FILE",), kind="argument", type="string", required=True),
        flag("--only-read"),
        by="help pages",
    )
    answered = tool(
        option("--level", type="integer"),
        option("-n", type="integer", repeatable=True),
        option("--force", type="path"),
        Parameter(names=("file",), kind="argument", type="path"),
        Parameter(names=("MORE",), kind="argument", type="string"),
        flag("--invented"),
        constraints=(Constraint(kind="excludes", parameters=("--force", "--invented")),),
        subcommands=(Command(name="add"),),
    )
    both = merged(read, answered)
    assert both.written_by == "a model"
    assert [parameter.names for parameter in both.command.parameters] == [
        ("--level",),
        ("-n", "--number"),
        ("-f", "--force"),
        ("FILE",),
        ("MORE",),
        ("--invented",),
        ("--only-read",),
    ]
    level, number, force, file, *_ = both.command.parameters
    assert (level.type, level.choices) == ("choice", ("low", "high"))
    assert (number.type, number.repeatable, number.about) == ("integer", True, "how many")
    assert (force.kind, force.type) == ("flag", "boolean")
    assert (file.type, file.required) == ("path", True)
    assert both.command.constraints == answered.command.constraints
    assert [command.name for command in both.command.subcommands] == ["add"]


NAMES = st.lists(st.sampled_from(["-a", "--all", "-b", "--bare", "--[no-]x", "--no-x", "--x"]), unique=True)


@given(NAMES.filter(bool), st.text("ab-x[]no \n,=", max_size=60))
def test_a_checked_schema_is_whole_and_checking_again_changes_nothing(names: list[str], page: str) -> None:
    schema = tool(*(flag(name) for name in names if "[" not in name))
    found = checked(schema, {(): page})
    assert Schema.model_validate(found.schema_checked.model_dump()) == found.schema_checked
    again = checked(found.schema_checked, {(): page})
    assert (again.schema_checked, again.invented, again.unlisted) == (
        found.schema_checked,
        (),
        found.unlisted,
    )


@given(st.permutations(["-a", "--bare", "--out"]), st.sets(st.sampled_from(["-a", "--bare", "--new"])))
def test_merging_keeps_all_names_of_both(read: list[str], answered: set[str]) -> None:
    ours, theirs = tool(*map(flag, read)), tool(*map(flag, sorted(answered)))
    names = {name for parameter in merged(ours, theirs).command.parameters for name in parameter.names}
    assert names == {*read} | answered
