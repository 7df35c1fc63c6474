"""Tools whose help cannot be had: each ends with a reason, and what is asked next is answered as if nothing was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.benchmarks.cli_tool_bench.construction.help.pages import HelpTree, explore
from runner.benchmarks.cli_tool_bench.construction.machine import ReferenceMachine
from tests.support.tool_task_factory import reference_machine

pytestmark = pytest.mark.docker

TOOL = """\
import os, subprocess, sys, urllib.request

def less(text):
    raise SystemExit(subprocess.run("${PAGER:-less}", shell=True, input=text, text=True).returncode)

def loop():
    while True:
        pass

def fork():
    while True:
        os.fork()

def flood():
    print("usage: tally floods\\n")
    for _ in range(10):
        print("x" * (1 << 20))

def network():
    urllib.request.urlopen("http://192.0.2.1/help", timeout=3)

def harm():
    for place, _, names in os.walk("/", topdown=False):
        for name in names:
            try:
                os.unlink(os.path.join(place, name))
            except OSError:
                pass
    print("usage: tally harms")

WAYS = {
    "pages": lambda: less("usage: tally pages\\n" * 100),
    "asks": lambda: print("usage:", input("Your name? ")),
    "loops": loop,
    "forks": fork,
    "floods": flood,
    "calls": network,
    "harms": harm,
    "fine": lambda: print("usage: tally fine [--keep]\\n\\n  --keep  keep it"),
}

def main():
    for word in sys.argv[1:]:
        if word in WAYS:
            WAYS[word]()
            return
    print("usage: tally COMMAND\\n\\nCommands:")
    for name in WAYS:
        print(f"  {name}  does it")
"""
REASONS = {
    "pages": "exit code 127",
    "asks": "exit code 1",
    "loops": "it ended by deadline",
    "forks": "(exit code|it ended by|it printed no usage)",
    "calls": "exit code 1",
}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, common: Path) -> Iterator[ReferenceMachine]:
    folder = tmp_path_factory.mktemp("tools")
    with reference_machine(folder, common, TOOL, limits={"seconds": 4}) as machine:
        yield machine


@pytest.fixture(scope="module")
def tree(machine: ReferenceMachine) -> HelpTree:
    return explore(machine.run, "tally")


@pytest.mark.parametrize("how", REASONS)
def test_a_help_that_pages_asks_hangs_forks_or_calls_is_a_reason(tree: HelpTree, how: str) -> None:
    (reason,) = (node.reason for node in tree.rejected if node.path == (how,))
    assert re.match(f"tally {how} --help: {REASONS[how]}", reason)


def test_the_pages_between_them_are_read(tree: HelpTree) -> None:
    """Also after the one that removes what it can: each command has a machine of its own."""
    assert [(page.path, page.cut) for page in tree.pages] == [
        ((), False),
        (("floods",), True),
        (("harms",), False),
        (("fine",), False),
    ]
