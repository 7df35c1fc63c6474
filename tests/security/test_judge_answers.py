"""Attacks on the judges' answers: the candidate's side may send anything, and at worst fails its trial.

A losing trial must not end as one that could not be judged.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metrics import differential as metric
from runner.benchmarks.cli_tool_bench.comparison import Comparison
from runner.benchmarks.cli_tool_bench.reference_runs import ReferenceRun
from runner.benchmarks.nl2repo import verifier
from runner.benchmarks.nl2repo.suite import Suite
from runner.benchmarks.nl2repo.suite_results import only_of, read_reports
from runner.benchmarks.project_setup.deliverables import Outcomes, Rerun, Truth
from runner.benchmarks.project_setup.rerun import _is_cut
from runner.benchmarks.project_setup.verifier import _claimed, components, reward
from runner.benchmarks.project_setup.watched_results import Watched, read, readings
from runner.protocols import CaseBox
from runner.records import Environment, ExecResult, Image, Verdict
from runner.records.cases import Case, CaseLimits, CaseResult, CaseSide
from runner.sandbox.cases import launch
from runner.sandbox.cases.box import longest, read_answer
from runner.sandbox.cases.lane import LaneDied
from runner.sandbox.docker import base_image
from runner.sandbox.inside import PYTHON
from tests.support.cases_factory import prepared
from tests.support.watch_bench import TRUE, results, watch

DEEP = "[" * 5_000 + "]" * 5_000
LONG_NUMBER = "9" * 5_000
VALUES = {
    "null": "null",
    "a truth value": "true",
    "a number": "3",
    "a fraction": "0.5",
    "below nothing": "-1",
    "too large": "1" + "0" * 30,
    "larger than a float": "1" + "0" * 400,
    "longer than Python reads": LONG_NUMBER,
    "infinite": "Infinity",
    "infinite by its exponent": "1e999",
    "not a number": "NaN",
    "a text": '"x"',
    "an empty text": '""',
    "half a character": '"\\udc80"',
    "a list": "[]",
    "a list of lists": "[[], [[]]]",
    "an object": "{}",
    "depth": DEEP,
}
"""JSON, or what Python accepts as JSON, in place of another value."""
LINES = {
    "nothing": b"",
    "a blank": b" ",
    "half a line": b'{"exit_code": 0, "how": "over',
    "bytes": bytes(range(256)).replace(b"\n", b""),
    "not UTF-8": b'{"exit_code": 0, "how": "overlay", "stdout": "\xff"}',
    "zeros": b"\0" * 1000,
    "a text": b'"exited"',
    "a number": b"0",
    "a list": b"[]",
    "nothing inside": b"{}",
    "depth": DEEP.encode(),
    "deep objects": b'{"a":' * 2_000 + b"1" + b"}" * 2_000,
    "two values": b"{} {}",
    "a long number": LONG_NUMBER.encode(),
    "a byte order": b"\xef\xbb\xbf{}",
    "UTF-16": '{"event": "end"}'.encode("utf-16"),
}
"""Lines that no judge writes."""


# --- cases ------------------------------------------------------------------------------------------------------------

LIMITS = CaseLimits(seconds=10, output_bytes=1000, diff_entries=3, text_bytes=10)
SIDE = CaseSide(name="t", image=Image(id="x", reference="x"), limits=LIMITS)
CHANGE = {
    "path": "/x",
    "change": "added",
    "kind": "file",
    "mode": 0o644,
    "size": 1,
    "digest": "0",
    "text": "a",
}
RESULT: dict[str, Any] = {
    "exit_code": 0,
    "ended": "exited",
    "stdout": "x",
    "stderr": "",
    "binary": [],
    "stdout_bytes": 1,
    "stderr_bytes": 0,
    "changes": [CHANGE],
    "truncated": [],
    "seconds": 0.1,
    "cpu_seconds": 0.1,
    "how": "overlay",
}
TEXTS = ("stdout", "stderr", "path", "digest", "text")


def with_value(whole: dict[str, Any], field: str, value: str) -> str:
    """Return the object as JSON, with this text in place of a field's value."""
    return json.dumps({**whole, field: "PLACE"}).replace('"PLACE"', value)


def judged(result: CaseResult) -> Verdict | dict[str, float]:
    """Judge a case with this result, and check that all figures are numbers."""
    rules = metric.Rules("paper", 0.8, compare_modes=True)
    case = Case(command_class="t", command="x")
    good = CaseResult(exit_code=0, stdout="y", seconds=0.01, cpu_seconds=0.01, how="overlay")
    comparison = Comparison(rules, [case], ReferenceRun(results=(good,)), [result], "")
    scored = comparison.score()
    comparison.summary(scored).encode()
    json.dumps(comparison.details(scored))
    return Verdict(reward=scored.metrics["exact_match"], components=comparison.components())


def test_a_result_of_the_supervisor_is_read() -> None:
    assert read_answer(json.dumps(RESULT).encode(), SIDE, "overlay").exit_code == 0


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_line_that_is_not_a_result_counts_as_a_dead_supervisor(line: bytes) -> None:
    with pytest.raises(LaneDied):
        read_answer(line, SIDE, "overlay")


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("field", [*RESULT, *(f"change {name}" for name in CHANGE)])
def test_no_value_of_a_result_stops_the_judge(field: str, value: str) -> None:
    """The value either makes the answer invalid, or is judged like any other."""
    if field.startswith("change "):
        change = with_value(CHANGE, field.removeprefix("change "), value)
        answer = json.dumps({**RESULT, "changes": ["PLACE"]}).replace('"PLACE"', change)
    else:
        answer = with_value(RESULT, field, value)
    try:
        result = read_answer(answer.encode(), SIDE, "overlay")
    except LaneDied:
        return
    judged(result)


@pytest.mark.parametrize(
    "fields",
    [
        {"ended": "lost", "exit_code": None},
        {"ended": "deadline"},
        {"exit_code": None},
        {"how": "copy"},
        {"stdout": "x" * 4_001},
        {"stderr": "x" * 4_001},
        {"changes": [CHANGE] * 4},
        {"changes": [CHANGE | {"text": "x" * 41}]},
        {"exit_code": 256},
        {"seconds": 1e300},
        {"cpu_seconds": 1e308},
        {"reward": 1.0},
    ],
    ids=str,
)
def test_an_impossible_result_counts_as_a_dead_supervisor(fields: dict[str, Any]) -> None:
    with pytest.raises(LaneDied):
        read_answer(json.dumps(RESULT | fields).encode(), SIDE, "overlay")


EVIL = """
import json, os, signal, sys
good = json.dumps({"exit_code": 0, "stdout": "x", "how": "overlay"})
for line in sys.stdin:
    shape = json.loads(line)["command"]
    if shape == "ends": sys.exit(0)
    if shape == "is killed": os.kill(os.getpid(), signal.SIGKILL)
    if shape == "floods": sys.stdout.write("x" * 100_000_000)
    if shape == "complains": sys.stderr.write("x" * 30_000_000); print("{}")
    print({"good": good, "twice": good + chr(10) + good, "late": good[:-1]}.get(shape, shape), flush=True)
"""
"""A program in place of the supervisor, which follows the command of a case."""
LOST = (
    "ends",
    "is killed",
    "floods",
    "complains",
    "twice",
    "null",
    "{}",
    "[",
    DEEP[:3000],
)


@pytest.fixture(scope="module")
def taken_over() -> Iterator[CaseBox]:
    """Open a side whose supervisors are replaced by `EVIL`."""
    sandboxes = prepared()
    image = sandboxes.image(Environment(image=base_image.tag()))
    genuine = launch.command
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            launch,
            "command",
            lambda *arguments: [PYTHON, "-c", EVIL] if arguments[0] == "serve" else genuine(*arguments),
        )
        with sandboxes.cases(CaseSide(name="taken", image=image, limits=LIMITS, how="overlay")) as box:
            yield box


@pytest.mark.docker
@pytest.mark.parametrize("shape", LOST, ids=lambda shape: shape[:20])
def test_a_side_whose_supervisor_is_replaced_loses_its_cases(taken_over: CaseBox, shape: str) -> None:
    result = taken_over.run(Case(command_class="t", command=shape))
    assert (result.ended, result.exit_code) == ("lost", None)
    verdict = judged(result)
    assert isinstance(verdict, Verdict)
    assert verdict.reward == 0.0
    good = taken_over.run(Case(command_class="t", command="good"))
    assert (good.ended, good.stdout) == ("exited", "x"), "the next case has a supervisor of its own"


def test_the_longest_valid_answer_is_accepted() -> None:
    text, path = "\\xff" * LIMITS.output_bytes, "/" + "\\\\x01" * 999
    change = CHANGE | {"path": path, "text": "\\xff" * LIMITS.text_bytes}
    full = RESULT | {"stdout": text, "stderr": "\x01" * LIMITS.output_bytes, "changes": [change] * 3}
    answer = json.dumps(full).encode()
    assert len(answer) < longest(SIDE)
    assert read_answer(answer, SIDE, "overlay").stdout == text


# --- hidden suites ----------------------------------------------------------------------------------------------------

SUITE = Suite(
    commands=("pip install .", "pytest tests"), deleted=("tests",), count=2, expected=("t.py::a", "t.py::b")
)
PASSED: dict[str, Any] = {
    "event": "test",
    "id": "t.py::a",
    "file": "/workspace/t.py",
    "outcome": "passed",
    "seconds": 0.1,
    "kind": "",
    "message": "",
    "command": 1,
}
REPORTS: dict[str, dict[str, Any]] = {
    "test": PASSED,
    "collection": {"event": "collection", "command": 1, "id": "t.py", "message": "E  ImportError: x"},
    "forged": {"event": "forged", "command": 1, "message": "changed: x"},
    "command": {"event": "command", "command": 1, "code": 0, "seconds": 1.0},
}


def verdict_of(output: str, into: Path, suite: Suite = SUITE) -> Verdict:
    """Return the verifier's verdict on the output of `launch.py`."""
    reported = only_of(read_reports(output, len(suite.commands)), {"/workspace/t.py"})
    return verifier._verdict(suite, reported, into, "")


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_line_that_is_not_a_report_changes_nothing(line: bytes, tmp_path: Path) -> None:
    output = f"{line.decode(errors='replace')}\n{json.dumps(PASSED)}\n{line.decode(errors='replace')}"
    assert verdict_of(output, tmp_path).reward == 0.5


@pytest.mark.parametrize("value", [None, *VALUES.values()], ids=["missing", *VALUES])
@pytest.mark.parametrize(
    ("event", "field"), [(event, field) for event in REPORTS for field in REPORTS[event]]
)
def test_no_value_of_a_report_voids_a_trial(
    event: str, field: str, value: str | None, tmp_path: Path
) -> None:
    report = dict(REPORTS[event])
    output = (
        with_value(report, field, value)
        if value
        else json.dumps({**report, field: ...}, default=lambda _: {})
    )
    if value is None:
        del report[field]
        output = json.dumps(report)
    verdict = verdict_of(f"{output}\n{json.dumps(PASSED | {'id': 't.py::b'})}", tmp_path)
    assert verdict.reward in (0.0, 0.5, 1.0)
    assert verdict.error is None


@pytest.mark.parametrize("event", REPORTS)
def test_a_report_with_an_extra_field_is_ignored(event: str, tmp_path: Path) -> None:
    output = json.dumps(REPORTS[event] | {"reward": 1})
    verdict = verdict_of(output, tmp_path)
    assert (verdict.reward, verdict.components["forged"]) == (0.0, 0.0)


@pytest.mark.parametrize("number", [-1, 2, 10**9])
@pytest.mark.parametrize("event", REPORTS)
def test_a_report_of_an_unknown_command_is_ignored(event: str, number: int, tmp_path: Path) -> None:
    verdict = verdict_of(json.dumps(REPORTS[event] | {"command": number}), tmp_path)
    assert (verdict.reward, verdict.components["forged"]) == (0.0, 0.0)


def test_more_tests_than_are_published_do_not_void_a_trial(tmp_path: Path) -> None:
    """Without upstream code every test counts, and a candidate can add some."""
    invented = "\n".join(json.dumps(PASSED | {"id": f"t.py::{number}"}) for number in range(9))
    verdict = verdict_of(invented, tmp_path, SUITE.model_copy(update={"expected": None}))
    assert (verdict.reward, verdict.error, verdict.components["tests_passed"]) == (1.0, None, 9.0)


@pytest.mark.parametrize("cut", [1, 20, 60, 150])
def test_a_stream_that_breaks_off_counts_up_to_there(cut: int, tmp_path: Path) -> None:
    output = "\n".join(json.dumps(PASSED | {"id": f"t.py::{name}"}) for name in "ab")
    assert verdict_of(output[: len(output) - cut], tmp_path).reward in (0.0, 0.5)


# --- reruns -----------------------------------------------------------------------------------------------------------


def packed(body: bytes) -> str:
    return base64.b64encode(zlib.compress(body)).decode()


SESSION: dict[str, Any] = {
    "tests": [["/workspace/project/t.py", "a", "passed"]],
    "files": {"/workspace/project/t.py": "0"},
    "plugins": {"/x.py": "0"},
}
EVENTS: dict[str, dict[str, Any]] = {
    "run": {
        "event": "run",
        "run": 0,
        "argv": ["make"],
        "code": 0,
        "file": ["/x", "0"],
        "script": [],
        "body": packed(b"ok 1\n1..1\n"),
    },
    "file": {"event": "file", "run": 0, "path": "/a/build/test-results/test/a.xml", "body": packed(b"<a/>")},
    "pytest": {"event": "pytest", "body": packed(json.dumps(SESSION).encode())},
    "end": {"event": "end", "code": 0, "seconds": 1.0, "full": False, "body": packed(b"the end")},
}
TRUTH = Truth(outcomes=Outcomes(passed=2, failed=1), origin="here")


def measured(watched: Watched, project: Path, *scripts: str) -> float:
    """Return the reward for the watched results, and check that all figures are numbers."""
    found, refused = readings(watched, project, scripts)
    rerun = Rerun(built=True, readings=found, output=" ".join(refused))
    Rerun.model_validate_json(rerun.model_dump_json())
    Verdict(reward=0.0, components=components(TRUTH, rerun))
    return reward(TRUTH, rerun.outcomes)


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_line_that_the_watcher_did_not_write_is_ignored(line: bytes, tmp_path: Path) -> None:
    watched = read(f"{line.decode(errors='replace')}\n{json.dumps(EVENTS['end'])}")
    assert (watched.ended, watched.runs, watched.sessions) == (True, (), ())
    assert measured(watched, tmp_path) == 0.0


@pytest.mark.parametrize("value", [None, *VALUES.values()], ids=["missing", *VALUES])
@pytest.mark.parametrize(("event", "field"), [(event, field) for event in EVENTS for field in EVENTS[event]])
def test_no_value_of_an_event_voids_a_trial(
    event: str, field: str, value: str | None, tmp_path: Path
) -> None:
    output = dict(EVENTS[event])
    if value is None:
        del output[field]
    line = with_value(output, field, value) if value else json.dumps(output)
    others = (json.dumps(other) for name, other in EVENTS.items() if name != event)
    assert measured(read("\n".join([line, *others])), tmp_path, "true") <= 1.0


@pytest.mark.parametrize("value", [None, *VALUES.values()], ids=["missing", *VALUES])
@pytest.mark.parametrize("field", [*SESSION, "path", "rest", "outcome", "digest"])
def test_no_value_of_a_session_of_pytest_voids_a_trial(field: str, value: str | None, tmp_path: Path) -> None:
    """A script can talk to the watcher like pytest's plugin, so it can invent a whole session."""
    session = json.dumps(SESSION)
    if field in SESSION:
        session = (
            with_value(SESSION, field, value) if value else json.dumps({**SESSION, field: 0} | {field: None})
        )
    else:
        old = {
            "path": '"/workspace/project/t.py", "a"',
            "rest": '"a"',
            "outcome": '"passed"',
            "digest": '"0"',
        }
        new = {"path": f'{value or "0"}, "a"'}.get(field, value or "")
        session = session.replace(old[field], new, 1)
    output = json.dumps({"event": "pytest", "body": packed(session.encode())})
    assert measured(read(f"{output}\n{json.dumps(EVENTS['end'])}"), tmp_path) == 0.0


@pytest.mark.parametrize(
    "body",
    [
        "x",
        "====",
        base64.b64encode(b"not zlib").decode(),
        packed(b"x" * 1000)[:20],
        packed(b"\xff\xfe"),
        packed(DEEP.encode()),
        packed(b"{" * 100_000),
        packed(b" " * 20_000_000),
        "\udc80",
    ],
    ids=[
        "text",
        "padding",
        "not zlib",
        "half",
        "not UTF-8",
        "depth",
        "objects",
        "a bomb",
        "half a character",
    ],
)
@pytest.mark.parametrize("event", EVENTS)
def test_no_body_voids_a_trial(event: str, body: str, tmp_path: Path) -> None:
    lines = [json.dumps(EVENTS["run"]), json.dumps(EVENTS[event] | {"body": body}), json.dumps(EVENTS["end"])]
    assert measured(read("\n".join(lines)), tmp_path) <= 1.0


NUMBER = "9" * 4_000
PRINTED = {
    "unittest": f"{'-' * 70}\nRan {NUMBER} tests in 1.000s\n\nOK",
    "unittest, failures": f"{'-' * 70}\nRan 3 tests in 1.000s\n\nFAILED (failures={NUMBER})",
    "pytest": f"===== {NUMBER} passed in 1.00s =====",
    "jest": f"Tests:       {NUMBER} passed, {NUMBER} total\nTime:        1 s",
    "mocha": f"  {NUMBER} passing (1s)\n  {NUMBER} failing",
    "cargo": f"test result: ok. {NUMBER} passed; 0 failed; {NUMBER} ignored; 0 measured; 0 filtered out",
    "maven": f"Tests run: {NUMBER}, Failures: 0, Errors: 0, Skipped: {NUMBER}",
    "ctest": f"100% tests passed, 0 tests failed out of {NUMBER}",
    "automake": f"# TOTAL: {NUMBER}\n# PASS:  {NUMBER}\n# SKIP:  0\n# XFAIL: 0\n# FAIL:  0\n# XPASS: 0\n# ERROR: 0",
    "node": f"# tests {NUMBER}\n# pass {NUMBER}\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0",
    "vitest": f" Test Files  1 passed (1)\n      Tests  {NUMBER} passed ({NUMBER})",
    "tap": f"1..{NUMBER}\nok {NUMBER}",
    "prove": f"t/a.t .. \n TODO passed:   1-{NUMBER}\nFiles=1, Tests=3,  0 wallclock secs",
    "go": '{"Action":' + "[" * 4_000,
    "go, objects": '{"a":' * 800,
    "other digits": f"{'-' * 70}\nRan \u0663\u00b2 tests in 1.000s\n\nOK",
    "control characters": "\x1b[" * 3000 + "\x00\x9b",
}
"""Results of test runs, as a program can print them."""


@pytest.mark.parametrize("printed", PRINTED.values(), ids=PRINTED)
@pytest.mark.parametrize("place", ["printed", "script"])
def test_no_output_and_no_script_voids_a_trial(printed: str, place: str, tmp_path: Path) -> None:
    programs = ("python3", "make", "jest", "mocha", "cargo", "mvn", "ctest", "node", "vitest", "prove", "go")
    body = packed(printed.encode() if place == "printed" else b"ok 1\n1..1\n")
    runs = [
        json.dumps(EVENTS["run"] | {"run": number, "argv": [name, "-m", "unittest"], "body": body})
        for number, name in enumerate(programs)
    ]
    watched = read("\n".join([*runs, json.dumps(EVENTS["end"])]))
    assert len(watched.runs) == len(programs)
    assert measured(watched, tmp_path, f"cat <<'END'\n{printed if place == 'script' else ''}\nEND") <= 1.0


@pytest.mark.parametrize(
    "claimed",
    [
        *(
            json.dumps({"passed": "PLACE", "failed": 0, "skipped": 0}).replace('"PLACE"', value)
            for value in VALUES.values()
        ),
        *(line.decode(errors="replace") for line in LINES.values()),
    ],
    ids=[*(f"passed is {name}" for name in VALUES), *LINES],
)
def test_no_claim_of_an_agent_voids_a_trial(claimed: str) -> None:
    Verdict(reward=0.0, components=_claimed(claimed, Outcomes(passed=1)))


def test_a_watcher_that_a_script_made_complain_and_killed_is_not_a_fault_of_the_engine() -> None:
    output = '{"event": "run"}\n'
    killed = ExecResult(
        exit_code=137, stdout=output, stderr="x" * (10 << 20), seconds=1, output_bytes=50 << 20
    )
    assert not _is_cut(killed)
    small = ExecResult(exit_code=0, stdout="x" * (1 << 20), stderr="", seconds=1, output_bytes=5 << 20)
    assert _is_cut(small), "the cap of this sandbox is lower than the watcher's longest output"


ASK = """
import json, os, socket, sys
def ask(data, numbers=b"\\xff", fds=()):
    place = os.environ["BASH_ENV"].removesuffix("functions")
    with socket.socket(socket.AF_UNIX) as watcher:
        watcher.settimeout(10)
        watcher.connect(place + "socket")
        socket.send_fds(watcher, [len(data).to_bytes(8, "big") + numbers], fds) if fds else watcher.sendall(
            len(data).to_bytes(8, "big") + numbers)
        watcher.sendall(data)
        watcher.shutdown(socket.SHUT_WR)
        watcher.recv(16)
pytest = {"ask": "pytest", "session": "s", "root": "/", "tests": {"t.py::a": "passed"}, "plugins": [], "last": True}
run = {"ask": "run", "program": "/bin/true", "argv": ["make"], "cwd": "/", "env": {}, "umask": 18, "groups": [],
       "limits": {}}
"""
"""Beginning of a program that sends any text to the watcher, like a shim or pytest's plugin."""
ASKED = {
    "a name with a zero": "ask(json.dumps({**pytest, 'tests': {'a\\0b::t': 'passed'}}).encode())",
    "an outcome of its own": "ask(json.dumps({**pytest, 'tests': {'t.py::a': {}}}).encode())",
    "tests that are a list": "ask(json.dumps({**pytest, 'tests': ['t.py::a']}).encode())",
    "a root that is a number": "ask(json.dumps({**pytest, 'root': 3}).encode())",
    "plugins that are numbers": "ask(json.dumps({**pytest, 'plugins': [3]}).encode())",
    "a session that is a list": "ask(json.dumps({**pytest, 'session': []}).encode())",
    "half a character": "ask(json.dumps({**pytest, 'tests': {'\\udc80.py::\\udc80': 'passed'}}).encode())",
    "depth": "ask(b'[' * 100_000)",
    "deep objects": "ask(b'{\"a\":' * 100_000)",
    "a number": "ask(b'3')",
    "a long number": "ask(b'9' * 10_000)",
    "not JSON": "ask(b'\\xff\\xfe')",
    "nothing": "ask(b'')",
    "no end": "ask(b'{}', numbers=b'')",
    "no argument": "ask(json.dumps({**run, 'argv': []}).encode())",
    "arguments that are numbers": "ask(json.dumps({**run, 'argv': [1]}).encode())",
    "an argument that is not UTF-8": "ask(json.dumps({**run, 'argv': ['make', '\\udc80']}).encode())",
    "an invalid name of a program": "ask(json.dumps({**run, 'program': 'a\\0b'}).encode())",
    "a program that is a list": "ask(json.dumps({**run, 'program': []}).encode())",
    "an environment of numbers": "ask(json.dumps({**run, 'env': {'a': 1}}).encode())",
    "unknown limits": "ask(json.dumps({**run, 'limits': {'x': 1}}).encode())",
    "a place that is nowhere": "ask(json.dumps({**run, 'cwd': '/nowhere'}).encode())",
    "too many files": "ask(json.dumps(run).encode(), numbers=bytes([0, 1, 2, 3, 4, 5, 255]), fds=(0, 1, 2))",
    "files that are not there": "ask(json.dumps(run).encode(), numbers=bytes([0, 1, 2, 255]))",
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_no_message_of_a_script_to_the_watcher_hides_its_later_tests(asked: str) -> None:
    script = f"cat > ask.py <<'END'\n{ASK}{asked}\nEND\n$PY ask.py > /dev/null 2>&1\npython3 -m unittest discover tests"
    watched = watch(script)
    assert watched.ended
    readings_, _ = results(watched, script)
    assert ("unittest", TRUE) in readings_
