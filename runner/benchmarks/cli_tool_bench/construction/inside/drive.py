"""Run one generator of cases, in a sandbox: `python3 drive.py GENERATOR TOOL SEED COUNT OUT`.

The cases go to OUT as a JSON list; printed text stays on the streams. Of five cases three are common usage, one is at a
boundary, and one is an error. A dimension that runs out of distinct cases leaves its places to the others.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

from fuzz import Case, Draw  # type: ignore[import-not-found] # lies beside this file in the sandbox

DIMENSIONS = ("common", "boundary", "error")
TURNS = ("common", "common", "boundary", "common", "error")
"""Dimensions of five consecutive cases."""
TRIES = 60
"""Calls without a new case after which a dimension has run out."""


def main(generator: str, tool: str, seed: str, count: str, out: str) -> None:
    """Write distinct cases of a generator: `count`, or fewer if all dimensions run out."""
    made = runpy.run_path(generator)
    functions = {name: made[name] for name in DIMENSIONS}  # KeyError: the generator lacks a dimension
    draws = {name: Draw(tool, f"{seed}/{tool}/{name}") for name in DIMENSIONS}
    cases: list[dict[str, Any]] = []
    known: set[str] = set()
    live = dict.fromkeys(DIMENSIONS)
    for name in cycle(TURNS):
        if len(cases) == int(count) or not live:
            break
        case = _new_case(functions[name], draws[name], known) if name in live else None
        if case is None:
            live.pop(name, None)
        else:
            cases.append({"dimension": name, **case})
    Path(out).write_text(json.dumps(cases), "utf-8")


def _new_case(function: Callable[[Draw], Case], draw: Draw, known: set[str]) -> dict[str, Any] | None:
    """Return the next case that is not known, or None."""
    for _ in range(TRIES):
        case = function(draw)
        if type(case) is not Case:
            raise TypeError(f"a generator's function must return a Case, not {type(case).__name__}")
        fields = {"command": case.command, "files": case.files, "prep": case.prep, "env": case.env}
        key = json.dumps(fields, sort_keys=True)
        if key not in known:
            known.add(key)
            return fields
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
