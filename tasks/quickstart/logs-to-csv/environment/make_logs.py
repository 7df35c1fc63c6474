"""Write the log files; the same on every machine and every version of Python."""

import sys
from pathlib import Path

LEVELS = ("INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR", "INFO", "ERROR")
MESSAGES = (
    "request served",
    "retry after ERROR from upstream",
    "cache refreshed",
    "queue length 17",
    "could not reach the store",
    "connection closed by peer",
)
state = 20310314


def below(limit):
    """A pseudo-random number (linear congruential generator)."""
    global state
    state = (state * 1103515245 + 12345) % 2**31
    return (state >> 16) % limit


folder = Path(sys.argv[1])
folder.mkdir()
for service in ("api", "billing", "search"):
    seconds, lines = below(1800), []
    for _ in range(180):
        seconds += 20 + below(300)
        hour, rest = divmod(8 * 3600 + seconds, 3600)
        level = LEVELS[below(len(LEVELS))]
        stamp = f"2031-03-{14 + hour // 24:02}T{hour % 24:02}:{rest // 60:02}:{rest % 60:02}Z"
        lines.append(f"{stamp} {level} {MESSAGES[below(len(MESSAGES))]}")
        if level == "ERROR" and below(2):
            lines += ["  Traceback, most recent first:", f"  {stamp} ERROR in handler", "    store.read"]
    (folder / f"{service}.log").write_text("\n".join(lines) + "\n")
