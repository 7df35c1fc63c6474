"""Command classes, unrolled from a schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.benchmarks.cli_tool_bench.construction.classes import ExcludedClass, unroll
from runner.benchmarks.cli_tool_bench.construction.schema import Command, Constraint, Parameter, Schema
from runner.benchmarks.sources.rejections import RejectedError


def flag(*names: str, **more: Any) -> Parameter:
    return Parameter(names=names, kind="flag", type="boolean", **more)


FILE = Parameter(names=("FILE",), kind="argument", type="path", required=True)


def tool(*parameters: Parameter, **more: Any) -> Schema:
    return Schema(written_by="by hand", command=Command(name="tool", parameters=parameters, **more))


def test_the_order_is_commands_then_options_then_pairs() -> None:
    add = Command(
        name="add-all",
        about="add a file",
        parameters=(
            flag("--dry.run", "-n"),
            flag("-h", about="show this help"),
            flag("-V", "--version"),
            FILE,
        ),
    )
    schema = tool(
        flag("-k", "--keep", about="keep it"),
        flag("--level"),
        constraints=(Constraint(kind="requires", parameters=("-k", "--level")),),
        subcommands=(add, Command(name="remote", runnable=False, subcommands=(Command(name="list"),))),
    )
    unrolled = unroll(schema, 20)
    assert [found.name for found in unrolled.classes] == [
        "BASIC",
        "ADD_ALL",
        "REMOTE_LIST",
        "KEEP",
        "LEVEL",
        "ADD_ALL_DRY_RUN",
        "KEEP_LEVEL",
    ]
    classes = {found.name: found for found in unrolled.classes}
    assert classes["KEEP"].parameters == ("--keep", "--level")
    assert classes["KEEP"].exercised == ("--keep",)
    assert classes["ADD_ALL"].parameters == ("FILE",)
    assert classes["REMOTE_LIST"].words == ("tool", "remote", "list")
    assert classes["KEEP"].description == "keep it"
    assert classes["REMOTE_LIST"].description == "tool remote list"
    capped = unroll(schema, 4)
    assert capped.classes == unrolled.classes[:4]
    assert capped.dropped == ("LEVEL", "ADD_ALL_DRY_RUN", "KEEP_LEVEL")


def test_a_name_that_is_too_long_for_a_file_is_cut_and_stays_distinct() -> None:
    """A tool's help may list words of any length, at any level. This once raised Python's `OSError`."""
    deepest = Command(name="d" * 80, parameters=(flag(f"--{'e' * 78}"), flag(f"--{'e' * 77}f")))
    inner = Command(name="b" * 80, subcommands=(Command(name="c" * 80, subcommands=(deepest,)),))
    root = Command(name="tool", subcommands=(Command(name="a" * 80, subcommands=(inner,)),))
    names = [found.name for found in unroll(Schema(written_by="by hand", command=root), 20).classes]
    assert len({*names}) == len(names) == 7
    assert max(map(len, names)) <= 100


def test_names_that_would_be_alike_are_told_apart() -> None:
    unrolled = unroll(tool(flag("-a"), flag("-A"), flag("--basic"), flag("-?"), flag("--a_"), flag("-#")), 20)
    assert [found.name for found in unrolled.classes] == ["BASIC", "A", "A_2", "BASIC_2", "X3F", "A_", "X23"]


def test_excluded_parameters_have_no_class() -> None:
    schema = tool(
        flag("-b", "--browser"),
        subcommands=(Command(name="up", parameters=(flag("--browser"), flag("--quiet"))),),
    )
    everywhere = unroll(schema, 9, {"--browser": "opens a browser"})
    assert [found.name for found in everywhere.classes] == ["BASIC", "UP", "UP_QUIET"]
    assert everywhere.excluded == (
        ExcludedClass(name="BROWSER", reason="opens a browser"),
        ExcludedClass(name="UP_BROWSER", reason="opens a browser"),
    )
    assert [found.name for found in unroll(schema, 9, {"up --browser": "no"}).excluded] == ["UP_BROWSER"]
    with pytest.raises(RejectedError, match=r"'--browse' is to be excluded, and no command has it"):
        unroll(schema, 9, {"--browse": "opens a browser"})


def test_each_class_satisfies_the_constraints() -> None:
    schema = tool(
        flag("--json"),
        flag("--csv"),
        flag("--pretty"),
        flag("--plain"),
        constraints=(
            Constraint(kind="one_of", parameters=("--json", "--csv")),
            Constraint(kind="excludes", parameters=("--pretty", "--plain")),
            Constraint(kind="requires", parameters=("--pretty", "--json")),
        ),
    )
    unrolled = unroll(schema, 9)
    assert {found.name: found.parameters for found in unrolled.classes} == {
        "BASIC": ("--json",),
        "JSON": ("--json",),
        "CSV": ("--csv",),
        "PRETTY": ("--pretty", "--json"),
        "PLAIN": ("--plain", "--json"),
        "PRETTY_JSON": ("--pretty", "--json"),
    }


def test_a_class_that_contradicts_itself_is_not_made() -> None:
    constraints = tuple(Constraint(kind=kind, parameters=("--a", "--b")) for kind in ("requires", "excludes"))
    unrolled = unroll(tool(flag("--a"), flag("--b"), constraints=constraints), 9)
    assert [found.name for found in unrolled.excluded] == ["A", "A_B"]
    assert unrolled.excluded[0].reason == "--a and --b exclude each other"


def test_no_class_at_all_is_refused() -> None:
    schema = tool(flag("--gui", required=True))
    with pytest.raises(RejectedError, match="no command class is left"):
        unroll(schema, 3, {"--gui": "opens a window"})
    with pytest.raises(ValueError, match="cap of 0"):
        unroll(schema, 0)


def test_a_long_description_is_cut_to_one_line() -> None:
    description = unroll(tool(flag("-a", about="word " * 100)), 2).classes[1].description
    assert len(description) <= 120
    assert description.endswith("..")


OPTIONS = st.lists(st.from_regex(r"--?[a-cA-C][a-c_.-]{0,3}", fullmatch=True), unique=True, max_size=8)


@given(OPTIONS, OPTIONS, st.integers(1, 12))
def test_names_are_unique_whatever_the_options_are(root: list[str], below: list[str], cap: int) -> None:
    sub = Command(name="b", parameters=tuple(flag(name) for name in below))
    schema = tool(*(flag(name) for name in root), subcommands=(sub,))
    unrolled = unroll(schema, cap)
    names = [*(found.name for found in unrolled.classes), *unrolled.dropped]
    assert len({*names}) == len(names)
    assert len(unrolled.classes) <= cap
    assert unroll(schema, 99).classes[:cap] == unrolled.classes
