"""The output of a watched program is recorded to its end, however slowly it is read."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from runner.benchmarks.project_setup.watch_inside import programs
from runner.benchmarks.project_setup.watch_inside.programs import Printed, Pump
from tests.support.watch_bench import TRUE, results, watch

SLOW_DISK = """
import os, time
walk = os.walk
os.walk = lambda *root: (time.sleep(1.2), walk(*root))[1]
"""
SUMMARY = b"\nOK: 3 tests passed\n"


@pytest.mark.parametrize("long", [0, 100_000, 150_000, 190_000])
def test_what_a_program_printed_last_is_kept_although_nobody_reads_it_yet(long: int) -> None:
    """A reader that took a second (`| tee`, on a busy machine) lost the output without an error."""
    printed, wanted = Printed(1 << 20, 1 << 20), b"x" * long + SUMMARY
    (reading, end), (reader, target) = os.pipe(), os.pipe()
    pump = Pump({reading: target}, printed)
    program = f"import os; os.write(1, b'x' * {long} + {SUMMARY!r})"
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", program], stdout=end) as child:
        os.close(end)
    pump.rest()
    assert child.returncode == 0
    assert printed.whole() == wanted
    with os.fdopen(reader, "rb") as late:
        assert late.read() == wanted
    pump.join()


def test_a_daemon_that_prints_on_into_a_full_pipe_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its output takes no more memory than a pipe."""
    monkeypatch.setattr(programs, "REST_SECONDS", 0.3)
    printed = Printed(1 << 24, 1 << 24)
    (reading, end), (reader, target) = os.pipe(), os.pipe()
    with subprocess.Popen(["yes"], stdout=end) as daemon:
        os.close(end)
        pump = Pump({reading: target}, printed)
        pump.rest()
        assert len(printed.whole()) < 1 << 22
        os.close(reader)
        assert daemon.wait() != 0
    pump.join()


def test_a_run_whose_results_are_being_searched_at_the_end_is_reported() -> None:
    """Its results were lost if the search of the workspace outlasted the script."""
    script = """
        python3 -m unittest tests/test_sums.py > out 2>&1 &
        until grep -q ^FAILED out; do sleep 0.05; done
        sleep 0.1
    """
    watched = watch(script, machine=SLOW_DISK, seconds=30)
    assert watched.ended
    assert results(watched, script)[0] == [("unittest", TRUE)]
