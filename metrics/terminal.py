"""What an agent does in its terminal (ExecutionAgent, sections 3.5.1 and 3.5.2): programs it runs, phases of its work.

Both are read from the text of its commands, by the tables here: a program that none of them names is looking about,
which is setup, and is counted by its name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from metrics.shell import called, commands

PHASES = ("setup", "dependencies", "testing")
"""Of a trajectory, as the paper orders them: looking at the project; writing scripts, installing, building; tests."""
NO_PHASE = "other"
"""Of planning, finishing, waiting for a command, and tools of unknown kind."""
SCRIPT = "./file"
"""Every path but that of a program in some `bin`: a local script (Figure 10)."""
UNNAMED = "other"
"""What has no name that could be shown."""

_NAME = re.compile(r"[\w.+:\[-]{1,40}")
_VERSIONED = re.compile(r"(python|pip)[\d.]*")
_SYSTEM = frozenset({"apt", "apk", "dnf", "yum"})
"""Shown with what they are to do: `apt install`."""
_INSTALLERS = _SYSTEM | {
    "dpkg", "pip", "pipx", "conda", "mamba", "nvm", "rustup", "gem", "composer", "corepack",
}  # fmt: skip
_BUILDERS = frozenset({
    "npm", "yarn", "pnpm", "poetry", "uv", "bundle", "rake", "go", "cargo", "mvn", "gradle", "ant", "sbt", "bazel",
    "make", "cmake", "ninja", "meson", "autoreconf", "gcc", "g++", "clang", "clang++", "dotnet", "docker",
})  # fmt: skip
_RUNNERS = _BUILDERS | {"python", "node", "npx", "deno", "bun", "bash", "sh", "source", SCRIPT}
"""Programs that run tests when one of their words says so."""
_TESTERS = frozenset({
    "pytest", "py.test", "unittest", "tox", "nox", "jest", "mocha", "vitest", "ava", "tap", "tape", "karma", "jasmine",
    "ctest", "prove", "phpunit", "rspec",
})  # fmt: skip
_TEST = re.compile(r"(?:^|[^a-z]|run)tests?(?:[^a-z]|$)|^(?:check|verify)(?:\W|$)")
_INSTALLING = frozenset({"install", "ci", "add", "update"})


def programs(text: str) -> list[str]:
    """The name of what each command of a shell text runs, in their order; assignments alone run nothing.

    `apt` stands for `apt-get` too, and is shown with its first word (`apt install`); versions of python and pip are
    one; `python -m pip` is pip; a path is its last part where it lies in a `bin`, else `SCRIPT`.
    """
    return [_shown(words) for command in commands(text) if (words := called(command))]


def phase(kind: str, text: str = "") -> str:
    """Of `PHASES`, that of a tool call of this kind (`metrics.behaviour.KINDS`), `text` being what it runs.

    A rule of ours, since the paper's three phases are described and not defined: editing is dependencies (the scripts
    are written then), reading and searching are setup, and of a terminal's commands the one that is furthest counts.
    """
    if kind == "execute":
        found = {_of(words) for command in commands(text) if (words := called(command))}
        return max(found, key=PHASES.index, default=NO_PHASE)
    return {"edit": "dependencies", "read": "setup", "search": "setup"}.get(kind, NO_PHASE)


def _of(words: Sequence[str]) -> str:
    program = _program(words)
    if program in _TESTERS or (program == "npx" and not _TESTERS.isdisjoint(words)):
        return "testing"
    plain = [word for word in words if not word.startswith(("'", '"'))]
    if program in _RUNNERS and _INSTALLING.isdisjoint(plain) and any(map(_TEST.search, plain)):
        return "testing"
    return "dependencies" if program in _INSTALLERS | _BUILDERS or "configure" in words[0] else "setup"


def _shown(words: Sequence[str]) -> str:
    program = _program(words)
    if program in _SYSTEM:
        program = " ".join([program, *[word for word in words[1:] if word.isalpha()][:1]])
    return program if program == SCRIPT or _NAME.fullmatch(program.replace(" ", "-")) else UNNAMED


def _program(words: Sequence[str]) -> str:
    """Its name, without what makes several names of one program."""
    path, _, name = words[0].rpartition("/")
    if path and (path.startswith(".") or not path.endswith("bin")):
        name = {"mvnw": "mvn", "gradlew": "gradle"}.get(name, SCRIPT)
    if name.startswith("python") and "-m" in words[1:2]:
        name = next(iter(words[2:]), "python")
    versioned = _VERSIONED.fullmatch(name)
    return versioned[1] if versioned else {"apt-get": "apt"}.get(name, name)
