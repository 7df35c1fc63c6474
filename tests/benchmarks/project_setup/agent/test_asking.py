"""Questions to the model: the form of its answers, what it is shown, the context window, and what is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.benchmarks.project_setup.agent.asking import Asker, Manners, Window, shortage
from runner.benchmarks.project_setup.agent.fake_bench import FakeBench
from runner.benchmarks.project_setup.agent.files_inside import main
from runner.benchmarks.project_setup.agent.ingredients import Ingredients
from runner.benchmarks.project_setup.agent.mending import loaded, mended, without_thoughts
from runner.benchmarks.project_setup.agent.prompts import Manner, Shown, Step, View, command_prompt, history
from runner.benchmarks.project_setup.agent.response import (
    TOOLS,
    Command,
    Control,
    Refused,
    Response,
    asked_for,
    parsed,
)
from runner.benchmarks.project_setup.agent.schemas import schemas
from runner.benchmarks.project_setup.agent.summary import shortened
from runner.benchmarks.project_setup.deliverables import ProjectToSetUp
from runner.errors import RequestRefused
from runner.records import Image, Left, Model, ModelReply, Prices, SandboxSpec, Task, ToolCall
from runner.sandbox.local import LocalSandboxes

TASK = Task(name="calc", dataset="made", directory=Path(), instruction="Make its tests run.")
LS = '{"thoughts": "Look.", "tool": {"name": "linux_terminal", "args": {"command": "ls"}}}'
PRICES = Prices(input=2.0, output=10.0)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[FakeBench]:
    """Return a bench whose model lists the folder."""
    spec = SandboxSpec(
        name="asking", image=Image(id="", reference="", origin="none"), network="open", runtime=True
    )
    with LocalSandboxes().open(spec) as sandbox:
        yield FakeBench(sandbox, tmp_path / "cache", lambda _: LS)


def prompt(steps: list[Step], **manner: bool) -> Any:
    """Return a function that writes the command prompt after these steps."""
    return lambda shown: command_prompt(
        TASK, Ingredients(), [], steps, "9 left.", View(Manner(**manner), shown)
    )


# --- what models write -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'{"a": "grep -E \"\d+\" \$HOME"}', {"a": r'grep -E "\d+" \$HOME'}),
        ('{"a": "make \\\n  check"}', {"a": "make \\\n  check"}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        (r'{"a": ",}", "b": "\u00e9\n"}', {"a": ",}", "b": "é\n"}),
        (r'{"a": "\u12"}', {"a": r"\u12"}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
    ],
)
def test_faults_with_one_meaning_are_mended(text: str, value: object) -> None:
    assert loaded(text) == value


def test_valid_json_is_never_changed_and_other_faults_are_told_with_the_decoders_reason() -> None:
    for text in (LS, r'{"a": "\\d \\\\", "b": [",]"]}'):
        assert mended(text) == text
    with pytest.raises(ValueError, match=r"Unterminated string.* line 1, column 7, near"):
        loaded('{"a": "x')
    with pytest.raises(ValueError, match="nested too deeply"):
        loaded("[" * 100_000)
    long = '{"a": "' + "\\d" * (1 << 20) + '"}'
    assert mended(long) == long


@pytest.mark.parametrize(
    "answer",
    [
        f'<think>Is {{"tool": 1}} right?</think>\n{LS}',
        f"no beginning {LS}</think>{LS}",
        LS.replace('"ls"}', r'"ls",}'),
        LS.replace("Look.", r"I look for `\d`."),
        f'As "asked":\n```json\n{LS[:-1]},}}\n```',
    ],
)
def test_an_answer_as_models_write_it_is_a_step(answer: str) -> None:
    assert parsed(answer).args == Command(command="ls")
    assert "<think>" not in without_thoughts(answer)


def test_an_answer_that_is_cut_off_is_told_why_it_cannot_be_read() -> None:
    with pytest.raises(ValueError, match=r"no JSON object.* It is not valid JSON: .* near"):
        parsed(LS[:-20])


def called(*calls: tuple[str, str], text: str = "") -> ModelReply:
    return ModelReply(
        text=text, calls=tuple(ToolCall(id="1", name=name, arguments=given) for name, given in calls)
    )


def test_tool_calls_are_steps_and_a_wrong_one_among_them_is_refused_alone() -> None:
    reply = called(
        ("linux_terminal", '{"command": "ls", "action": "", "text": null}'),
        ("linux_terminal", '{"action": "write", "text": "y"}'),
        ("browser", "{}"),
        ("write_file", '{"path": "a"}'),
        text="<think>Hm.</think>I look.",
    )
    first, second, third, fourth = asked_for(reply, TOOLS)
    assert isinstance(first, Response)
    assert (first.thoughts, first.args) == ("I look.", Command(command="ls"))
    assert isinstance(second, Response)
    assert second.args == Control(action="write", text="y")
    assert isinstance(third, Refused)
    assert "no tool 'browser'" in third.reason
    assert isinstance(fourth, Refused)
    assert "content: Field required" in fourth.reason


def test_an_answer_without_any_call_that_can_be_carried_out_is_invalid() -> None:
    with pytest.raises(ValueError, match="Unterminated"):
        asked_for(called(("linux_terminal", '{"command": "ls')), TOOLS)
    with pytest.raises(ValueError, match="no tool 'edit_file'"):
        asked_for(called(("edit_file", '{"path": "a", "old": "b", "new": ""}')), ["read_file"])
    (step,) = asked_for(ModelReply(text=LS), TOOLS)
    assert isinstance(step, Response), "a model that writes JSON in its words is understood, too"
    assert asked_for(called(("check_scripts", "")), TOOLS)


def test_schemas_and_tools_are_the_same() -> None:
    assert [one["function"]["name"] for one in schemas(TOOLS)] == list(TOOLS)
    assert len(schemas(Manners(more_tools=False).tool_names)) == 4


# --- questions -------------------------------------------------------------------------------------------------------


def test_tools_are_offered_natively_or_json_is_asked_for(bench: FakeBench) -> None:
    Asker(Manners(), bench).steps(prompt([]), [], 0)
    Asker(Manners(protocol="json"), bench).steps(prompt([]), [], 0)
    assert bench.fields[0].keys() == {"tools"}
    assert bench.fields[1] == {"response_format": {"type": "json_object"}}


def test_a_provider_without_response_format_is_asked_without_it(bench: FakeBench) -> None:
    def answer(_: str) -> str:
        if bench.fields[-1]:
            raise RequestRefused("response_format is not supported")
        return LS

    bench.answer = answer
    asker = Asker(Manners(protocol="json"), bench)
    for _ in range(2):
        assert asker.steps(prompt([]), [], 0)
    assert [bool(fields) for fields in bench.fields] == [True, False, False]
    bench.answer = lambda _: (_ for _ in ()).throw(RequestRefused("No."))
    with pytest.raises(RequestRefused):
        asker.steps(prompt([]), [], 0)


def test_invalid_answers_are_asked_for_again_as_often_as_is_free(bench: FakeBench) -> None:
    answers = ["Prose.", LS[:-5], LS]
    bench.answer = lambda _: answers.pop(0)
    asker = Asker(Manners(format_retries=3), bench)
    assert asker.steps(prompt([]), [], 0)
    assert "Nothing was done, because your answer is not valid. There is no JSON" in bench.asked[1]
    assert "It is not valid JSON" in bench.asked[2]
    assert asker.free == 1
    bench.answer = lambda _: "Prose."
    with pytest.raises(ValueError, match="It was: Prose"):
        asker.steps(prompt([]), [], 0)
    assert len(bench.asked) == 5
    paper = Asker(Manners(format_retries=0), bench)
    with pytest.raises(ValueError, match="no JSON"):
        paper.steps(prompt([]), [], 0)
    assert len(bench.asked) == 6, "each invalid answer costs a command"


def test_a_prompt_stays_within_its_share_of_the_context_window(bench: FakeBench) -> None:
    bench.model = Model(name="small", backend="none", context_window=8_000, max_output_tokens=1000)
    steps = [Step(call=f"linux_terminal {at}", output=f"{at} " * 300) for at in range(40)]
    steps[-1] = steps[-1].model_copy(update={"output": "begin " + "x" * 30_000 + " end"})
    Asker(Manners(), bench).steps(prompt(steps), steps, 1)
    (asked,) = bench.asked
    assert len(asked) < 0.8 * 8_000 * 3
    assert "steps 1 to" in asked.lower()
    assert "begin" in asked
    assert " end" in asked, "the newest result is there, though it had to be cut"
    bench.asked.clear()
    Asker(Manners(context_share=0), bench).steps(prompt(steps), steps, 1)
    assert len(bench.asked[0]) > 35_000


def test_a_refusal_for_length_is_followed_by_a_shorter_prompt(bench: FakeBench) -> None:
    def answer(text: str) -> str:
        if len(text) > 9_000:
            raise RequestRefused("too long", too_long=True)
        return LS

    bench.answer = answer
    steps = [Step(call=f"linux_terminal {at}", output="y" * 700) for at in range(30)]
    assert Asker(Manners(), bench).steps(prompt(steps), steps, 1)
    assert len(bench.asked) in (2, 3, 4)
    bench.asked.clear()
    with pytest.raises(RequestRefused):
        Asker(Manners(context_share=0), bench).steps(prompt(steps), steps, 1)
    bench.answer = lambda _: (_ for _ in ()).throw(RequestRefused("too long", too_long=True))
    with pytest.raises(RequestRefused):
        Asker(Manners(), bench).steps(prompt(steps), steps, 1)


def test_the_window_learns_how_many_characters_a_token_has() -> None:
    window = Window(1000, None, 0.8)
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": "x" * 2_100}]}]
    assert window.fits(messages)
    window.counted(messages, 1_050)
    assert not window.fits(messages)
    window.counted(messages, None)
    assert Window(None, None, 0.8).fits(messages)


def test_the_newest_result_is_shown_verbatim_and_its_status_always() -> None:
    steps = [
        Step(call="a", status="Exit code 2.", output="long " * 900, summary="(summary) It failed."),
        Step(call="b", status="It still runs. Choose.", output="new " * 900, summary="(summary) Nothing."),
    ]
    older, newer = history(steps, Shown(newest=1, verbatim=6000))
    assert "Exit code 2.\n(summary) It failed." in older[-1]
    assert "new " * 900 in newer[0]
    older, newer = history(steps)
    assert "It still runs. Choose.\n(summary) Nothing." in older[-1]
    assert newer == []


def test_it_is_told_whether_git_knows_the_projects_history(tmp_path: Path) -> None:
    def told(project: Path) -> str:
        task = TASK.model_copy(update={"payload": ProjectToSetUp(project=project)})
        return str(command_prompt(task, Ingredients(), [], [], "9 left.")[0]["content"])

    (tmp_path / ".git").mkdir()
    assert "with its history and tags" in told(tmp_path)
    assert "`git describe` and tools that ask git for a version find none" in told(tmp_path / "none")


def test_what_stays_the_same_is_marked_for_caches_that_need_marks() -> None:
    steps = [Step(call=str(at), status="Exit code 0.") for at in range(3)]
    shown = Shown(newest=1, verbatim=100)
    first = prompt(steps[:2], marked=True)(shown)
    second = prompt(steps, marked=True)(shown)
    marks = [["cache_control" in part for part in message["content"]] for message in second]
    assert marks == [[True], [False, False, True, False, False]]
    texts = [[part["text"] for part in message["content"]] for message in (first[1], second[1])]
    assert texts[1][:2] == texts[0][:2], "the marked beginning of the last prompt begins the next one, too"
    assert isinstance(prompt(steps)(shown)[1]["content"], str)


def test_summaries_are_bounded(bench: FakeBench) -> None:
    bench.answer = lambda _: json.dumps({"summary": "w" * 50_000})
    assert len(shortened(bench, "c" * 50_000, "x" * 900_000, 200)) < 3000
    assert len(bench.asked[0]) < 90_000


def test_a_summary_is_asked_for_with_as_much_as_fits(bench: FakeBench) -> None:
    def answer(text: str) -> str:
        if len(text) > 6_000:
            raise RequestRefused("too long", too_long=True)
        return '{"summary": "It failed."}'

    bench.answer = answer
    assert shortened(bench, "make", "x" * 50_000, 200) == "(summary) It failed."
    bench.answer = lambda _: (_ for _ in ()).throw(RequestRefused("too long", too_long=True))
    assert "left out" in shortened(bench, "make", "x" * 50_000, 200)
    bench.answer = lambda _: (_ for _ in ()).throw(RequestRefused("No."))
    with pytest.raises(RequestRefused):
        shortened(bench, "make", "x" * 50_000, 200)
    window = Window(1000, None, 0.8)
    assert (window.room(100), window.room(10_000), Window(None, None, 0.8).room(100)) == (100, 560, 100)


# --- what is left ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "what"),
    [
        (Left(), ""),
        (Left(usd=0.05), "The money"),
        (Left(usd=1.0), ""),
        (Left(turns=1), "The number of model calls"),
        (Left(turns=2), ""),
        (Left(input_tokens=3_000), "The number of input tokens"),
        (Left(output_tokens=7_000), "The number of output tokens"),
        (Left(seconds=60.0), "The time"),
    ],
)
def test_one_answer_is_kept_before_anything_runs_out(left: Left, what: str) -> None:
    assert shortage(left, 2_000, PRICES).startswith(what)
    assert bool(shortage(left, 2_000, PRICES)) is bool(what)
    assert shortage(Left(usd=0.001), 2_000, Prices()) == "", "without prices nothing is spent"


def test_money_time_and_commands_left_are_told(bench: FakeBench) -> None:
    bench.left = Left(usd=1.234, seconds=600.0, turns=7)
    assert Asker(Manners(), bench).told(9).endswith("together: 1.23 USD, 10 minutes, 7 model calls.")
    assert (
        Asker(Manners(tell_left=False), bench).told(9)
        == "9 commands are left of this attempt, the next one included."
    )
    bench.left = Left()
    assert "together" not in Asker(Manners(), bench).told(9)


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_text_is_replaced_if_it_is_there_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\ntwo\n")

    def edit(old: str, path: str = "a") -> dict[str, Any]:
        return main({"path": path, "folder": str(tmp_path), "old": old, "new": "three"})

    assert edit("one") == {"text": f"{tmp_path}/a is changed at line 1.", "failed": False}
    assert (tmp_path / "a").read_text() == "three\ntwo\ntwo\n"
    assert "2 times and not once: add lines" in edit("two")["text"]
    assert "0 times and not once: read the file" in edit("four")["text"]
    assert edit("x", "nope")["text"] == "nope: There is no such file."
    assert (tmp_path / "a").read_text() == "three\ntwo\ntwo\n"


def test_a_range_of_lines_is_read_with_their_numbers(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\nthree\n")

    def read(first: int, last: int | None, most: int = 100) -> str:
        request = {"path": "a", "folder": str(tmp_path), "most": most, "first": first, "last": last}
        return str(main(request)["text"])

    assert read(2, 3) == "2\ttwo\n3\tthree\n[lines 2 to 3 of 3]"
    assert read(3, None) == "3\tthree\n[lines 3 to 3 of 3]"
    assert read(1, 9, 5) == "1\tone\n[cut here: ask for fewer lines]\n[lines 1 to 3 of 3]"
    assert read(4, None) == "a: It has only 3 lines."
    (tmp_path / "a").write_bytes(b"\0")
    assert "binary" in read(1, None)
