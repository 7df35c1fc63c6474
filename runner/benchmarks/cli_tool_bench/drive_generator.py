"""Runs in a sandbox, on its python3, as `drive_generator.py START SEED OUT`: one generator of CLI-Tool-Bench's authors.

Uses the checkout's own `BaseRepoAdapter` and nothing of its engine. What the generator yields goes to OUT as JSON; what
it prints stays on its streams. Random numbers are seeded; the caller sets PYTHONHASHSEED.
"""

from __future__ import annotations

import json
import os
import random
import sys
import traceback
from collections import namedtuple
from enum import Enum
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

Ended = namedtuple("Ended", "exit_code output")  # noqa: PYI024 - theirs read it by name and by position


class Recorder:
    """Stands where a container stands while their adapter installs something: writes down what it would run."""

    id = "recorder"

    def __init__(self) -> None:
        self.commands: list[str] = []

    def exec_run(self, cmd: Any, **_: Any) -> Ended:
        """As if it had gone well."""
        self.commands.append(cmd if isinstance(cmd, str) else cmd[-1])
        return Ended(0, b"")


def loaded(start: Path) -> ModuleType:
    """Their script as a module; its engine, which wants Docker, is an empty one."""
    sys.path.insert(0, str(start.parents[3]))
    engine = ModuleType("DiffTestEngine")
    engine.DiffTestEngine = object  # type: ignore[attr-defined] # only its name is imported
    sys.modules["DiffTestEngine"] = engine
    loader = SourceFileLoader("start", str(start))
    module = sys.modules["start"] = ModuleType("start")
    module.__file__ = str(start)
    loader.exec_module(module)
    return module


def adapter(module: ModuleType) -> Any:
    """The one adapter that the script defines."""
    base = sys.modules["BaseRepoAdapter"].BaseRepoAdapter
    own = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, base) and value.__module__ == "start"
    ]
    if len(own) != 1:
        raise SystemExit(f"{len(own)} adapters are defined, and one is needed")
    return own[0]()


def classes(module: ModuleType, used: set[Any]) -> list[Enum]:
    """All members of those of the script's enumerations that its cases use: the command classes."""
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, Enum)]
    found = [list(kind) for kind in kinds if kind.__module__ == "start"]
    return [
        member
        for kind in found
        if used & {key for member in kind for key in (member, member.value, member.name)}
        for member in kind
    ]


def installs(install: Any, *arguments: str) -> list[str]:
    """The commands that one of their installations gives to a container."""
    recorder, system = Recorder(), os.system
    os.system = lambda command: 0  # noqa: ARG005 - they copy with it
    install(recorder, *arguments)
    os.system = system
    return recorder.commands


def described(case: Any, names: dict[Any, str]) -> dict[str, Any]:
    """One of their cases as a line of `cases.jsonl`; what is wrong with it is said by who reads that."""
    files = case.mount_files or {}
    node = {
        "class": names.get(case.category, str(case.category)),
        "command": case.command,
        "start": "/",  # their engine sets no working directory, and their images none, but for Go's
        "prep": case.prep_script or "",
        # As their engine has it: a slash at either end of a path does not count.
        "files": {str(path).strip("/"): content for path, content in files.items()},
    }
    return {**node, "env": case.env_vars} if case.env_vars else node


def class_at(error: BaseException) -> str:
    """The command class on which a generator was at work when it failed: the last of them among its variables."""
    found = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for value in frame.f_locals.values():
            found = value.name if isinstance(value, Enum) else found
    return found


def main(start: Path, seed: int, out: Path) -> None:
    """Write what the generator yields, or where it failed; the failure itself goes to stderr."""
    random.seed(seed)
    try:
        module = loaded(start)
        made = adapter(module)
        cases = made.generate_test_cases()
        members = classes(module, {case.category for case in cases})
        names = {key: member.name for member in members for key in (member, member.value, member.name)}
        found = {
            "image": made.base_image,
            "reference": installs(made.install_oracle),
            "candidate": installs(made.install_agent, "/repo/repo_to_be_tested"),
            "classes": {member.name: str(member.value) for member in members},
            "cases": [described(case, names) for case in cases],
            "masks": "sanitize_stdout" in vars(type(made)),
        }
    except Exception as error:  # noqa: BLE001 - whatever it is, it is said with the class
        traceback.print_exc()
        out.write_text(json.dumps({"failed_class": class_at(error)}))
        raise SystemExit(1) from None
    out.write_text(json.dumps(found, default=lambda value: {"not JSON": type(value).__name__}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
