"""Time until the help is shown: part of `make bench`. Measures; asserts nothing.

python -m tests.bench.starting

The folder where it is asked has thirty agents of the user's own beside the shipped ones, and options of other groups.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OWN, TIMES = 30, 9
"""Agents of the user's own, and starts of each command."""
GROUPS = ("agent", "model", "dataset", "experiment")
"""Groups with options of the user's own."""


def main() -> None:
    """Measure the help of everything, of a group and of one agent, beside an interpreter that does nothing."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        shipped = _with_options(Path(folder))
        bare = _median([sys.executable, "-c", "pass"], Path(folder))
        asked = {
            ("--help",): "bound 0.1 s",
            ("--help", "agent"): "no bound",
            ("--help", "agent=mine07"): "no bound",
        }
        for words, bound in asked.items():
            took = _median([sys.executable, "-m", "runner", *words], Path(folder))
            print(
                f"{' '.join(words)} with {shipped} shipped agents and {OWN} of one's own: {took:.2f} s "
                f"(load {os.getloadavg()[0]:.1f}, {bound}; an interpreter alone takes {bare:.2f} s)"
            )


def _with_options(folder: Path) -> int:
    """Write the user's options, copies of shipped ones; return the number of shipped agents."""
    for group in GROUPS:
        own = folder / "conf" / group
        own.mkdir(parents=True)
        shipped = sorted((ROOT / "conf" / group).glob("*.yaml"))
        for number in range(OWN):
            (own / f"mine{number:02d}.yaml").write_bytes(shipped[number % len(shipped)].read_bytes())
    return len(list((ROOT / "conf/agent").glob("*.yaml")))


def _median(command: list[str], folder: Path) -> float:
    return statistics.median(_seconds(command, folder) for _ in range(TIMES))


def _seconds(command: list[str], folder: Path) -> float:
    environment = os.environ | {"CI": "true", "PYTHONPATH": str(ROOT)}
    began = time.monotonic()
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
