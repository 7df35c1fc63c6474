"""Generators and looks at references on real machines, friendly and hostile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from metrics.differential import Rules
from runner.benchmarks.cli_tool_bench.construction import drawing
from runner.benchmarks.cli_tool_bench.construction import golden as golden_cases
from runner.benchmarks.cli_tool_bench.construction.drawing import Draws, Generators, check_source
from runner.benchmarks.cli_tool_bench.construction.golden import CASES, GoldenClass, golden_class
from runner.benchmarks.cli_tool_bench.construction.machine import ReferenceMachine
from runner.benchmarks.cli_tool_bench.construction.scrubbing import Brand
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from tests.support.tool_task_factory import reference_machine

pytestmark = pytest.mark.docker

TOOL = """\
import os, random, socket, sys, time

def main():
    how, *words = sys.argv[1:] or ["--help"]
    if how == "--help":
        print("usage: tally HOW [WORD ...]")
    elif how == "steady":
        print(len(words), *sorted(words))
    elif how == "file":
        open("out.txt", "w").write(" ".join(words))
    elif how == "day":
        print(time.strftime("%Y-%m-%d"))
    elif how == "host":
        print(socket.gethostname())
    elif how == "chance":
        print(random.random())
    elif how == "brand":
        print("written by Ada Example")
    elif how == "bytes":
        sys.stdout.buffer.write(b"\\xff")
    else:
        sys.exit(f"no such command: {how}")
"""
GENERATOR = """\
from fuzz import Case, quote

def common(draw):
    return Case(f"{draw.tool} HOW " + " ".join(map(quote, draw.words(draw.integer(1, 9)))))

def boundary(draw):
    return Case(f"{draw.tool} HOW {quote(draw.evil())} {draw.integer()}")

def error(draw):
    return Case(f"{draw.tool} {draw.word()}less {draw.integer()}")
"""
VERDICT = """\
import json, os
case = {"dimension": "common", "command": "tally x", "negative": False}
with open("cases.json", "w") as file:
    json.dump([case], file)
os._exit(0)
"""
BRAND = Brand.of("tally", ["Ada Example"], [], [])
FEW = 20
"""Cases of a class that is refused; all that a generator draws would take long and show no more."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, common: Path) -> Iterator[ReferenceMachine]:
    with reference_machine(tmp_path_factory.mktemp("construction"), common, TOOL) as machine:
        yield machine


@pytest.fixture(scope="module")
def generators() -> Iterator[Generators]:
    base_image.ensure(connect(), print)
    with Generators(DockerSandboxes(), seed=3) as generators:
        yield generators


def _golden(machine: ReferenceMachine, draws: Draws, brand: Brand = BRAND) -> GoldenClass:
    return golden_class("BASIC", draws, machine, brand, Rules())


def _drawn(generators: Generators, how: str) -> Draws:
    return generators.draw("tally", "BASIC", GENERATOR.replace("HOW", how), {})


@pytest.fixture
def _small_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make classes of ten cases, where it matters which cases are dropped and not how many are kept."""
    for name, number in {"CASES": 10, "FEWEST": 8, "AT_ONCE": 36}.items():
        monkeypatch.setattr(golden_cases, name, number)


def _few(draws: Draws) -> Draws:
    assert {drawn.dimension for drawn in draws.cases[:FEW]} == {"common", "boundary", "error"}
    return draws.model_copy(update={"cases": draws.cases[:FEW]})


@pytest.mark.parametrize("how", ["steady", "file"])
def test_a_class_has_fifty_distinct_cases_of_both_signs_and_an_example_that_is_none_of_them(
    machine: ReferenceMachine, generators: Generators, how: str
) -> None:
    golden = _golden(machine, _drawn(generators, how))
    commands = [one.case.command for one in golden.cases]
    assert len({*commands}) == CASES
    assert golden.example.case.command not in commands
    assert golden.example.exit_code == 0
    assert {one.exit_code == 0 for one in golden.cases} == {True, False}
    assert {one.dimension for one in golden.cases} == {"common", "boundary", "error"}
    changed = [one.changes for one in golden.cases if one.exit_code == 0]
    assert all(bool(changes) is (how == "file") for changes in changed)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("day", "it depends on the date or the host"),
        ("host", "it depends on the date or the host"),
        ("chance", "it varies"),
        ("brand", "it shows a published name"),
        ("bytes", "its output is not text"),
        ("x 2> err.txt; rm err.txt; echo", "it ends alike without the tool"),
    ],
)
@pytest.mark.usefixtures("_small_class")
def test_a_case_that_moves_or_tells_is_not_kept(
    machine: ReferenceMachine, generators: Generators, how: str, reason: str
) -> None:
    moving = _few(_drawn(generators, how))
    with pytest.raises(ValueError, match="no common case succeeds"):
        _golden(machine, moving)
    mixed = moving.model_copy(update={"cases": (*moving.cases, *_drawn(generators, "steady").cases)})
    golden = _golden(machine, mixed)
    assert golden.dropped.get(reason, 0) >= 12
    assert len(golden.cases) == golden_cases.CASES


def test_a_case_that_uses_a_published_name_is_not_kept(
    machine: ReferenceMachine, generators: Generators
) -> None:
    """Its command or files would show the name in the prompt's example, although its output does not."""
    brand = Brand.of("tally", ["steady"], [], [])
    with pytest.raises(ValueError, match="it uses a published name"):
        _golden(machine, _few(_drawn(generators, "steady")), brand)


def test_a_class_whose_common_cases_fail_says_what_the_reference_printed(
    machine: ReferenceMachine, generators: Generators
) -> None:
    with pytest.raises(ValueError, match=r"no common case succeeds(.|\n)*no such command: nothing"):
        _golden(machine, _few(_drawn(generators, "nothing")))


def test_a_class_that_nothing_fails_is_refused(machine: ReferenceMachine, generators: Generators) -> None:
    source = GENERATOR.replace("HOW", "steady").replace("{draw.word()}less", "steady")
    draws = generators.draw("tally", "BASIC", source, {})
    with pytest.raises(ValueError, match="no case fails, and both kinds are needed"):
        _golden(machine, _few(draws))


def test_the_same_seed_draws_the_same_cases_and_another_does_not(generators: Generators) -> None:
    one = generators.draw("tally", "BASIC", GENERATOR, {})
    assert generators.draw("tally", "BASIC", GENERATOR, {}) == one
    assert generators.draw("tally", "OTHER", GENERATOR, {}) != one


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import os\nwhile True:\n    os.fork()\n", "it ended with"),
        ("print('x' * 10**8)\n" + GENERATOR, "it ended with flood"),
        ("open('/workspace/tally.py').read()\n" + GENERATOR, "No such file"),
        ("import socket\nsocket.create_connection(('192.0.2.1', 80), 3)\n" + GENERATOR, "unreachable"),
        ("raise SystemExit(0)\n", "No such file"),
        ("import random\n" + GENERATOR.replace("draw.integer()", "random.random()"), "two runs differ"),
        (GENERATOR.replace("{draw.tool}", "true"), "does not call 'tally'"),
        (GENERATOR.replace("Case(", "dict(command="), "must return a Case"),
        (GENERATOR.replace("{draw.word()}less", "\\0"), "NUL"),
        (VERDICT, "negative"),
    ],
    ids=[
        "forks",
        "floods",
        "reads",
        "calls",
        "leaves",
        "unseeded",
        "nameless",
        "untyped",
        "nul",
        "judges",
    ],
)
def test_a_hostile_or_broken_generator_is_a_reason_and_harms_nothing(
    generators: Generators, source: str, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        generators.draw("tally", "BASIC", source, {})
    assert len(generators.draw("tally", "BASIC", GENERATOR, {}).cases) > CASES


def test_a_generator_that_loops_ends_at_its_deadline_and_harms_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It burns a processor until then, and has a machine of its own so that its deadline can be short."""
    monkeypatch.setattr(drawing, "_LIMITS", drawing._LIMITS.model_copy(update={"seconds": 3.0}))
    with Generators(DockerSandboxes(), seed=3) as generators:
        with pytest.raises(ValueError, match="it ended with deadline"):
            generators.draw("tally", "BASIC", "while True:\n    pass\n", {})
        assert len(generators.draw("tally", "BASIC", GENERATOR, {}).cases) > CASES


NOSY = """\
import os

def read(path):
    try:
        return open(path, errors="replace").read()
    except OSError:
        return ""

PLACES = ["/proc/self/environ", "/proc/1/environ", "/proc/1/cmdline", "/proc/mounts", "/etc/passwd"]
FOUND = [str(dict(os.environ)), *map(read, PLACES)]
for place, folders, names in os.walk("/"):
    folders[:] = [name for name in folders if name != "proc"]
    FOUND += [os.path.join(place, name) for name in names]
"""


def test_a_nosy_generator_finds_nothing_of_the_runner_or_of_the_reference(
    generators: Generators, machine: ReferenceMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a README talks a model into: all that its answer can reach is a clean machine without a network."""
    monkeypatch.setenv("OPENAI_API_KEY", "k-secret-of-the-runner")
    assert machine.run("tally steady a").exit_code == 0  # the reference is installed, elsewhere
    source = NOSY + GENERATOR.replace(
        "    return Case(", "    return Case(files={'found.txt': '\\n'.join(FOUND)[:3_000_000]}, command=", 1
    )
    source = source.replace("draw.integer(1, 9)", "1")
    first = generators.draw("tally", "BASIC", source, {}).cases[0]
    found = first.files["found.txt"]
    assert "drive.py" in found
    for word in ("k-secret", "tally.py", "docker.sock", str(Path.cwd())):
        assert word not in found


@pytest.mark.parametrize("source", ["not python(", "x = 1", "def common(draw): pass", "\0"])
def test_a_file_that_is_no_generator_is_refused_before_it_runs(source: str) -> None:
    with pytest.raises(ValueError, match=r"it is not Python|it has no function"):
        check_source(source)


def test_a_fence_around_a_generator_is_taken_off() -> None:
    assert check_source(f"```python\n{GENERATOR}```") == GENERATOR


def test_a_generator_with_an_escape_that_python_only_warns_of_was_refused() -> None:
    source = f'{GENERATOR}\nPATTERN = "\\d"\n'
    assert check_source(source) == source
