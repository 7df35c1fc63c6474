"""Read both scripts from one answer of the model, and write them to the workspace."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from pydantic import ConfigDict

from runner.benchmarks.project_setup.agent.shell_session import write_file
from runner.benchmarks.project_setup.deliverables import DOCKERFILE, SCRIPT, WORKSPACE
from runner.records import Record

if TYPE_CHECKING:
    from runner.protocols import Bench


class Scripts(Record):
    """The model's answer with both scripts."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    dockerfile: str
    script: str


def write_scripts(bench: Bench, scripts: Scripts, names: Collection[str] = (DOCKERFILE, SCRIPT)) -> None:
    """Write the scripts of these names to the workspace. Raises `Stopped` and `EngineError`."""
    for name, content in {DOCKERFILE: scripts.dockerfile, SCRIPT: scripts.script}.items():
        if name not in names:
            continue
        path = f"{WORKSPACE}/{name}"
        bench.use("write_file", {"path": path, "content": content})
        written = write_file(bench.sandbox, path, content, WORKSPACE).text
        bench.returned(written)
        bench.log(written)
