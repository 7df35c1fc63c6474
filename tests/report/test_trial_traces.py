"""Traces of trials from the files that a trial leaves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from runner.records import (
    ErrorInfo,
    ModelCall,
    PhaseSeconds,
    Prices,
    Retry,
    Status,
    TrialRecord,
    Usage,
    Verdict,
)
from runner.report.trace_steps import JUDGED, STEPS, TEXTS, TEXTS_PER_CALL
from runner.report.traces import Step, Trace
from runner.report.trial_traces import traced_trials, trial_trace
from tests.report.plans import sweep_of_four, write_sweep
from tests.support.records_factory import NOON, model_call, trial_record

PRICES = Prices(input=100.0, output=1000.0)
SPENT = Usage(input_tokens=10, output_tokens=5)


def calls(count: int, **changed: Any) -> list[ModelCall]:
    """Answered calls, one a second, each of 10 + 5 tokens and 0.006 USD at `PRICES`."""
    return [
        model_call(index, started_at=NOON + timedelta(seconds=index + 1), cost_usd=0.006, **changed)
        for index in range(count)
    ]


def said(index: int, words: str = "I look.", tool: str = "bash", result: str = "a\nb") -> dict[str, Any]:
    return {
        "source": "agent",
        "message": words,
        "tool_calls": [
            {"tool_call_id": f"c{index}", "function_name": tool, "arguments": {"cmd": f"ls {index}"}}
        ],
        "observation": {"results": [{"source_call_id": f"c{index}", "content": result}]},
    }


def leave(folder: Path, ledger: Sequence[ModelCall], steps: Sequence[dict[str, Any]]) -> Path:
    """Write the files of a trial, with a ledger in the order in which calls ended."""
    lines = [call.model_dump_json() for call in reversed(ledger)]
    (folder / "ledger.jsonl").write_text("\n".join(lines) + "\n")
    first = {"source": "user", "message": "Do it."}
    (folder / "trajectory.json").write_text(
        json.dumps({"agent": {"version": "1.2"}, "steps": [first, *steps]})
    )
    return folder


def judged(turns: int = 2, **changed: Any) -> TrialRecord:
    """The record of a trial of 10 s, of which the agent had 5."""
    values: dict[str, Any] = {
        "turns": turns,
        "usage": Usage(input_tokens=10 * turns, output_tokens=5 * turns),
        "cost_usd": 0.006 * turns,
        "wall_seconds": 10.0,
        "seconds": PhaseSeconds(environment=1, agent=5, collect=1, verify=3),
        "verdict": Verdict(reward=1.0, components={"reward": 1.0}, output="2 passed", exit_code=0),
    }
    return trial_record(**(values | changed))


def trace_of(record: TrialRecord, folder: Path) -> Trace:
    return trial_trace(record, folder, PRICES)


def named(trace: Trace, name: str) -> Step:
    (step,) = [step for step in trace.steps if step.name == name]
    return step


def texts(trace: Trace) -> str:
    return json.dumps([*trace.steps, *trace.judgements, trace.tags, trace.invalid], default=str)


def test_a_trial_is_its_phases_its_calls_and_their_tools(tmp_path: Path) -> None:
    trace = trace_of(judged(), leave(tmp_path, calls(2), [said(0), said(1)]))
    assert [(step.name, step.kind, step.parent) for step in trace.steps] == [
        ("codex · glm", "TASK", None),
        ("environment", "CHAIN", 0),
        ("codex", "AGENT", 0),
        ("call 1", "CHAT_MODEL", 2),
        ("bash", "TOOL", 2),
        ("call 2", "CHAT_MODEL", 2),
        ("bash", "TOOL", 2),
        ("collect", "CHAIN", 0),
        ("verifier", "EVALUATOR", 0),
    ]
    whole, agent, first, tool = (trace.steps[at] for at in (0, 2, 3, 4))
    assert whole.inputs == {"task": "a", "attempt": 1}
    assert (whole.outputs["outcome"], whole.outputs["usd"]) == ("passed", 0.012)
    assert agent.inputs == {"version": "```\n1.2\n```", "instruction": "```\nDo it.\n```"}
    assert first.outputs == {"words": "```\nI look.\n```"}
    assert (tool.inputs, tool.outputs) == ({"arguments": "```\nls 0\n```"}, {"result": "```\na\nb\n```"})
    assert (first.ended - first.started, tool.started) == (100_000_000, first.ended)
    assert tool.ended == trace.steps[5].started
    assert trace.steps[6].ended == agent.ended
    assert whole.ended - whole.started == 10_000_000_000
    assert not trace.invalid


def test_tokens_and_usd_are_those_of_the_record_and_are_divided_by_the_rates(tmp_path: Path) -> None:
    spoiled = Retry(reason=ErrorInfo(type="EngineError", message="gone"), usage=SPENT, cost_usd=0.5, turns=1)
    record = judged(retries=(spoiled,), usage=Usage(input_tokens=30, output_tokens=15), cost_usd=0.512)
    trace = trace_of(record, leave(tmp_path, calls(2), [said(0), said(1)]))
    spent = [step for step in trace.steps if step.usage]
    assert sum((step.usage for step in spent if step.usage), Usage()) == record.usage
    assert sum(step.cost.total for step in spent if step.cost) == pytest.approx(record.cost_usd)
    cost = named(trace, "call 1").cost
    assert cost is not None
    assert (cost.total, cost.input, cost.output) == pytest.approx((0.006, 0.001, 0.005))
    earlier = named(trace, "earlier try 1")
    assert (earlier.error, earlier.outputs["turns"]) == ("EngineError: gone", 1)


def test_a_call_without_a_price_costs_nothing_known(tmp_path: Path) -> None:
    unpriced = [call.model_copy(update={"cost_usd": None}) for call in calls(1)]
    assert named(trace_of(judged(1), leave(tmp_path, unpriced, [said(0)])), "call 1").cost is None


def test_the_sum_of_the_inputs_of_two_agents_is_the_same_so_that_comparisons_pair_them(
    tmp_path: Path,
) -> None:
    folder = leave(tmp_path, calls(1), [said(0)])
    codex, other = (trace_of(judged(1, agent=name, passed=False), folder) for name in ("codex", "mini"))
    assert codex.steps[0].inputs == other.steps[0].inputs
    assert codex.steps[0].name != other.steps[0].name


@pytest.mark.parametrize("mark", ["scripted", "replayed"])
def test_an_answer_of_no_language_model_says_so_everywhere(tmp_path: Path, mark: str) -> None:
    trace = trace_of(judged(1, **{mark: True}), leave(tmp_path, calls(1, **{mark: True}), [said(0)]))
    assert trace.tags["model"] == named(trace, "call 1").model == f"glm ({mark})"
    assert trace.steps[0].name == f"codex · glm ({mark})"
    assert trace.steps[0].outputs["note"] == f"No language model answered in this trial: glm ({mark})"


def test_an_invalid_trial_is_marked_with_its_reason_and_is_not_judged(tmp_path: Path) -> None:
    error = ErrorInfo(type="EngineError", message="The container\nis <b>gone</b>.", phase="agent")
    record = judged(reward=None, passed=None, verdict=None, status=Status.INFRA_INVALID, error=error)
    trace = trace_of(record, leave(tmp_path, calls(2), [said(0), said(1)]))
    reason = "EngineError: The container is _b_gone_/b_."
    assert (trace.invalid, trace.steps[0].error, named(trace, "codex").error) == (reason, reason, reason)
    passed, ended = trace.judgements
    assert (passed.name, passed.value, passed.error) == (
        "passed",
        None,
        ErrorInfo(type="EngineError", message=reason),
    )
    assert (ended.name, ended.value) == ("status", "infra_invalid")


def test_a_failure_of_the_agent_is_judged_and_not_invalid(tmp_path: Path) -> None:
    error = ErrorInfo(type="timeout", message="900 s are over", phase="agent")
    record = judged(reward=0.0, passed=False, status=Status.TIMEOUT, error=error)
    trace = trace_of(record, leave(tmp_path, calls(2), [said(0), said(1)]))
    assert not trace.invalid
    assert named(trace, "codex").error == "timeout: 900 s are over"
    assert [(each.name, each.value, each.source) for each in trace.judgements] == [
        ("passed", False, "verifier"),
        ("reward", 0.0, "verifier"),
        ("status", "timeout", "runner"),
    ]
    assert trace.judgements[0].rationale == "```\n2 passed\n```"


def test_unanswered_calls_have_their_reason_and_take_nobody_elses_words(tmp_path: Path) -> None:
    ledger = calls(4)
    ledger[1] = ledger[1].model_copy(update={"response": None, "usage": None, "refused": "usd"})
    wrong_key = ErrorInfo(type="AuthenticationError", message="Incorrect key sk-abcdefghijklmnopqrstuv")
    ledger[2] = ledger[2].model_copy(update={"response": None, "usage": None, "error": wrong_key})
    trace = trace_of(judged(), leave(tmp_path, ledger, [said(0, "first"), said(3, "last")]))
    assert named(trace, "call 2").error == "refused: the budget's usd is spent"
    assert named(trace, "call 3").error == "AuthenticationError: Incorrect key _secret_"
    assert named(trace, "call 4").outputs == {"words": "```\nlast\n```"}
    assert named(trace, "codex").outputs["calls without an answer"] == 2


def test_a_second_verdict_is_a_part_of_the_first(tmp_path: Path) -> None:
    verdict = Verdict(reward=1.0, again=Verdict(reward=0.0, mode="pristine", output="1 failed"))
    trace = trace_of(judged(0, verdict=verdict), tmp_path)
    second = named(trace, "second verdict")
    assert trace.steps[second.parent or 0].name == "verifier"
    assert second.inputs == {"mode": "pristine"}


@pytest.mark.parametrize("damage", ["missing", "cut", "garbage", "other tries"])
def test_files_that_are_missing_or_damaged_leave_out_only_what_they_have(tmp_path: Path, damage: str) -> None:
    leave(tmp_path, calls(2), [said(0), said(1)])
    ledger, trajectory = tmp_path / "ledger.jsonl", tmp_path / "trajectory.json"
    match damage:
        case "missing":
            ledger.unlink()
            trajectory.unlink()
        case "cut":
            ledger.write_bytes(ledger.read_bytes()[:-30])
            trajectory.write_bytes(trajectory.read_bytes()[:-30])
        case "garbage":
            ledger.write_bytes(b'\xff\n[]\n{"index": 1}\n')
            trajectory.write_text('{"steps": 3}')
        case _:
            trajectory.write_text(json.dumps({"steps": [said(0)]}))
    trace = trace_of(judged(), tmp_path)
    assert [step.name for step in trace.steps if step.parent == 0] == [
        "environment",
        "codex",
        "collect",
        "verifier",
    ]
    assert trace.judgements[0].value is True


def test_a_long_trial_keeps_its_beginning_its_end_and_its_sums(tmp_path: Path) -> None:
    count = STEPS + 50
    ledger, steps = calls(count), [said(index) for index in range(count)]
    trace = trace_of(judged(count), leave(tmp_path, ledger, steps))
    kept = [step for step in trace.steps if step.kind == "CHAT_MODEL"]
    assert (len(kept), kept[0].name, kept[-1].name) == (STEPS, "call 1", f"call {count}")
    folded = named(trace, "calls 141 to 190")
    assert folded.usage == Usage(input_tokens=500, output_tokens=250)
    assert folded.outputs == {"calls": 50, "tools": 50}
    assert sum(step.cost.total for step in trace.steps if step.cost) == pytest.approx(0.006 * count)


def test_long_texts_are_cut_and_short_ones_stay_whole(tmp_path: Path) -> None:
    steps = [said(index, f"words {index}", result="x" * 100_000) for index in range(10)]
    trace = trace_of(judged(10), leave(tmp_path, calls(10), steps))
    assert [named(trace, f"call {n + 1}").outputs["words"] for n in range(10)] == [
        f"```\nwords {n}\n```" for n in range(10)
    ]
    assert len(texts(trace)) < TEXTS + 10 * TEXTS_PER_CALL + 12_000


def test_whatever_a_model_writes_is_fenced_and_no_secret_gets_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = "![x](http://evil/x.png)<script>alert(1)</script>\n```\n# out\n"
    monkeypatch.setenv("ASSAY_TEST_API_KEY", "the-value-of-a-key")
    steps = [said(0, evil, tool=evil, result=f"{evil} the-value-of-a-key sk-abcdefghijklmnopqrstuv")]
    record = judged(
        1,
        task="[t](javascript:1)",
        flags=("<b>",),
        error=ErrorInfo(type="agent_error", message=evil, phase="agent"),
        status=Status.AGENT_ERROR,
        verdict=Verdict(reward=1.0, output=evil, components={evil: 1.0}),
    )
    trace = trace_of(record, leave(tmp_path, calls(1), steps))
    assert "the-value-of-a-key" not in texts(trace)
    assert "sk-abc" not in texts(trace)
    for step in trace.steps:
        for text in (step.name, step.error, *map(str, step.inputs), *map(str, step.outputs)):
            assert not set(text) & set("<>[]!`")
        for value in [*step.inputs.values(), *step.outputs.values()]:
            if isinstance(value, str) and "<script>" in value:
                assert value.startswith("````\n")
                assert value.endswith("\n````")


def test_a_judges_answers_have_its_name_its_verdicts_and_its_price(tmp_path: Path) -> None:
    answers = ['{"equivalent": false, "reason": "a <b>"}', "no JSON at all", "{" * 100_000]
    ledger = [
        model_call(
            index,
            model="zai/glm-5",
            response={"choices": [{"message": {"role": "assistant", "content": answer}}]},
        )
        for index, answer in enumerate(answers)
    ]
    (tmp_path / "judge.jsonl").write_text("\n".join(call.model_dump_json() for call in ledger))
    found = [each for each in trace_of(judged(0), tmp_path).judgements if each.is_model]
    assert [(each.name, each.value, each.source) for each in found] == [
        ("judge", False, "zai/glm-5"),
        ("judge", "answered", "zai/glm-5"),
        ("judge", "answered", "zai/glm-5"),
    ]
    assert (found[0].cost_usd, found[0].usage) == (0.01, SPENT)
    assert found[0].rationale == '```\n{"equivalent": false, "reason": "a <b>"}\n```'
    many = [ledger[0].model_copy(update={"index": index}) for index in range(JUDGED + 5)]
    (tmp_path / "judge.jsonl").write_text("\n".join(call.model_dump_json() for call in many))
    judgements = trace_of(judged(0), tmp_path).judgements
    assert sum(each.is_model for each in judgements) == JUDGED
    assert (judgements[-1].name, judgements[-1].value) == ("judge_answers", JUDGED + 5)


def test_trials_with_records_are_traced_whole_tasks_first(tmp_path: Path) -> None:
    planned, records = sweep_of_four()
    sweep = write_sweep(tmp_path, planned, records)
    every = traced_trials(sweep, "all", 1000)
    assert ({each.key for each in every.trials}, every.left_out) == (set(records), 0)
    failed = traced_trials(sweep, "failed", 1000)
    assert {each.key for each in failed.trials} == {key for key, each in records.items() if not each.passed}
    assert traced_trials(sweep, "none", 1000).trials == ()
    some = traced_trials(sweep, "all", 8)
    assert some.left_out == len(records) - 8
    assert {records[each.key].task for each in some.trials} == {"easy-1", "easy-2"}
