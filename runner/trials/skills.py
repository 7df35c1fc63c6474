"""Skills of a task's image: folders with a `SKILL.md` that coding agents list for their model.

Images bring skills in the folders that one agent or another reads, and each agent reads others. So that agents are
compared on equal terms, each finds all of the image's skills in a folder that it reads (`dataset.skills=present`), or
none of them is in the image (`absent`).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from runner.errors import TaskError
from runner.records import ExecSpec
from runner.sandbox.inside import AGENT_DIR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner.protocols import Sandbox
    from runner.records import Task

UNSUPPORTED = "skills_unsupported"
"""Flag of a trial whose agent lists no skills, on a task that brings some."""
SECONDS = 60.0
"""Time limit of each of our own commands."""
FIND = """
for file in {first}"$HOME"/.[!.]*/skills/*/SKILL.md "$HOME"/.config/*/skills/*/SKILL.md \\
    "$PWD"/.[!.]*/skills/*/SKILL.md {more}
do
    test -f "$file" && printf '%s\\n' "${{file%/SKILL.md}}"
done
true
"""
"""Script that prints the folder of each skill, those in the given places first."""
COPY = 'own=$1; shift; mkdir -p "$own" && for folder in "$@"; do cp -RP "$folder" "$own/" || exit 1; done'
"""Script that copies the folders. Links would do for most agents; Continue overlooks linked folders, Codex files."""


def settle_skills(
    task: Task, places: Sequence[str], sandbox: Sandbox, *, uses_model: bool
) -> tuple[str, ...] | None:
    """Show the agent the image's skills, or remove them, as the task says. Return the names of the skills that the
    agent finds.

    `places` are the folders that the agent reads; missing skills are copied into the first. None stands for a task
    without skills. Agents without a model get the image as it is. Raises `TaskError` if this cannot be done.
    """
    if task.skills is None:
        return None
    found = _found(task, places, sandbox)
    if not uses_model:
        return tuple(sorted(found))
    if task.skills == "absent":
        folders = [folder for copies in found.values() for folder in copies]
        _run(sandbox, ("rm", "-rf", "--", *folders), "root")
        return ()
    read = _resolved(places, sandbox)
    missing = [copies[0] for copies in found.values() if not any(_is_in(copy, read) for copy in copies)]
    if places and missing:
        _run(sandbox, ("sh", "-c", COPY, "sh", read[0], *missing), task.agent_user)
    return tuple(sorted(found))


def _found(task: Task, places: Sequence[str], sandbox: Sandbox) -> dict[str, list[str]]:
    """Return the name of each skill -> its folders, those in the agent's own places first."""
    first = "".join(f"{_shell(place)}/*/SKILL.md " for place in places)
    # ASSAY_ROOT is the folder of a local sandbox, which must not look for files of this machine
    more = f'"$ASSAY_ROOT"{shlex.quote(task.skills_dir)}/*/SKILL.md' if task.skills_dir else ""
    printed = _run(sandbox, ("sh", "-c", FIND.format(first=first, more=more)), task.agent_user)
    found: dict[str, list[str]] = {}
    for folder in dict.fromkeys(printed.splitlines()):
        found.setdefault(folder.rpartition("/")[2], []).append(folder)
    return found


def _resolved(places: Sequence[str], sandbox: Sandbox) -> tuple[str, ...]:
    """Return the absolute paths of the agent's places."""
    if not places:
        return ()
    script = "; ".join(f"printf '%s\\n' {_shell(place)}" for place in places)
    return tuple(_run(sandbox, ("sh", "-c", script), None).splitlines())


def _shell(place: str) -> str:
    """Return a place (`CliAgent.skills`) as a word of a shell."""
    for prefix, folder in (("~/", '"$HOME"/'), ("./", '"$PWD"/')):
        if place.startswith(prefix):
            return folder + place[len(prefix) :]
    return place.format(agent_dir=AGENT_DIR)


def _is_in(folder: str, places: Sequence[str]) -> bool:
    return folder.rpartition("/")[0] in places


def _run(sandbox: Sandbox, argv: tuple[str, ...], user: str | None) -> str:
    result = sandbox.exec(ExecSpec(argv=argv, user=user, timeout_seconds=SECONDS))
    if result.exit_code != 0:
        raise TaskError(f"Its skills could not be put in place: {(result.stderr or result.stdout)[-500:]}")
    return result.stdout
