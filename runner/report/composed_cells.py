"""The configuration of a sweep's cells, as `config.yaml` in its folder has it, and what it says of agents."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

SILENT = "It exits with code 0, as after an answer without a call of a tool. Stopping to ask looks the same."
"""Meaning of the end of a CLI that has no way to say that it is done."""
OWN_PROGRAM = "It ends its work by its own program."


def composed_cells(sweep: Path) -> tuple[dict[str, Any], ...]:
    """Return the configuration of each cell, unresolved; empty where the folder has no `config.yaml`, as an import."""
    file = sweep / "config.yaml"
    return _cells(file, file.stat().st_mtime_ns) if file.is_file() else ()


@lru_cache(maxsize=4)
def _cells(file: Path, _mtime: int) -> tuple[dict[str, Any], ...]:
    nodes = yaml.load_all(file.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return tuple(node for node in nodes if isinstance(node, dict))


def meanings_of_endings(sweep: Path) -> dict[str, str]:
    """Return agent -> what it means that it ended its work itself."""
    agents = [cell["agent"] for cell in composed_cells(sweep) if isinstance(cell.get("agent"), dict)]
    return {str(agent.get("name")): _meaning(agent) for agent in agents}


def _meaning(agent: dict[str, Any]) -> str:
    tools = agent.get("tools")
    finish = tools.get("finish") if isinstance(tools, dict) else None
    if said := agent.get("done_when"):
        return str(said)
    if finish:
        return f"It calls {' or '.join(map(str, finish))}. An answer without a call is not enough: it has halted."
    return SILENT if "argv" in agent else OWN_PROGRAM
