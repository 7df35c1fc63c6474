"""A ledger on a full disk: a call that does not fit raises an error and does not damage others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import resource, sys
from pathlib import Path
from runner.gateway.ledger import Ledger
from tests.support.records_factory import model_call

path = Path(sys.argv[1])
ledger = Ledger(path, "the-key-of-the-trial")
ledger.append(model_call(0))
full = path.stat().st_size + 50  # what the disk has left is less than a line
resource.setrlimit(resource.RLIMIT_FSIZE, (full, resource.RLIM_INFINITY))
try:
    ledger.append(model_call(1))
except OSError as error:
    print("refused:", error.strerror)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
ledger.append(model_call(2))
print(*(call.index for call in ledger.calls()))
"""


def test_a_call_that_a_full_disk_cuts_is_an_error_and_the_next_one_whole(tmp_path: Path) -> None:
    """Half a line raised no error; the next line was appended to it, both were lost, and so was the trial's record."""
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "ledger"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.splitlines() == ["refused: File too large", "0 2"]
