"""Choose among shipped tasks; of CLI-Tool-Bench, those written by hand, and those made by `job=make_cli_task`."""

from __future__ import annotations

import os
from collections.abc import Callable

from runner.benchmarks.cli_tool_bench.dataset import ToolTask
from runner.benchmarks.sources.task_toml import read_toml
from runner.resources import ROOT

SHIPPED = ROOT / "tasks" / "cli_tool_bench"
EVERY = "ASSAY_EVERY_CASE" in os.environ
"""Whether all tasks and cases are tried, which takes long, instead of some of them."""
TOOLS = {path.parent.name: read_toml(path, ToolTask) for path in sorted(SHIPPED.glob("*/task.toml"))}
"""Name of a task -> its `task.toml`."""
BY_HAND = [name for name, tool in TOOLS.items() if tool.made is None]
ONE_OF_A_LANGUAGE = list(
    {(TOOLS[name].language, TOOLS[name].install): name for name in reversed(BY_HAND)}.values()
)
"""A task written by hand for each way to install one: an empty workspace fails there, whatever the tool."""
SOME_BY_HAND = BY_HAND if EVERY else sorted(ONE_OF_A_LANGUAGE)
MADE = [name for name, tool in TOOLS.items() if tool.made is not None]


def some_made(rank: Callable[[str], object]) -> list[str]:
    """Return the made task of each language that `rank` puts first, or all of them if everything is tried."""
    if EVERY:
        return MADE
    ordered = sorted(MADE, key=lambda name: (rank(name), name), reverse=True)
    return sorted({TOOLS[name].language: name for name in ordered}.values())
