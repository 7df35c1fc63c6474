"""Start programs as a launcher does that ignores and blocks signals, which processes inherit."""

from __future__ import annotations

from collections.abc import Sequence

_IGNORE = """
import ctypes, os, signal, sys
call, ignore = {"x86_64": 13, "aarch64": 134}[os.uname().machine], (ctypes.c_ulong * 4)(signal.SIG_IGN)
for number in set(range(1, 65)) - {signal.SIGKILL, signal.SIGSTOP}:
    assert ctypes.CDLL(None).syscall(call, number, ignore, None, ctypes.c_size_t(8)) == 0
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execv(sys.argv[1], sys.argv[1:])
"""


def ignoring_all(command: Sequence[str], python: str) -> list[str]:
    """Return a command that runs this one with every possible signal ignored and blocked, including glibc's own."""
    return [python, "-I", "-S", "-c", _IGNORE, *command]
