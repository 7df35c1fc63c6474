"""Skills of a task's image: folders with a `SKILL.md` that coding agents list for their model.

Images bring skills in the folders that one agent or another reads, and each agent reads others. So that agents are
compared on equal terms, each finds all of the image's skills in a folder that it reads (`dataset.skills=present`), or
none of them is in the image (`absent`). For an agent that reads none, the instruction lists them as other agents list
them for their models: by name, description and file.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

import yaml

from runner.errors import TaskError
from runner.records import ExecSpec
from runner.sandbox.inside import AGENT_DIR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runner.protocols import Sandbox
    from runner.records import Task

UNSUPPORTED = "skills_unsupported"
"""Flag of a trial whose agent reads no skills, on a task that brings some."""
SECONDS = 60.0
"""Time limit of each of our own commands."""
FIND = """
for file in {first}"$HOME"/.[!.]*/skills/*/SKILL.md "$HOME"/.config/*/skills/*/SKILL.md \\
    "$PWD"/.[!.]*/skills/*/SKILL.md "$HOME"/.[!.]*/skill/*/SKILL.md \\
    "$HOME"/.config/*/skill/*/SKILL.md "$PWD"/.[!.]*/skill/*/SKILL.md \\
    "$ASSAY_ROOT"/etc/claude-code/.claude/skills/*/SKILL.md {more}
do
    test -f "$file" && printf '%s\\n' "${{file%/SKILL.md}}"
done
true
"""
"""Script that prints the folder of each skill, those in the given places first. Besides the folders of the shipped
agents, images of SkillsBench use `~/.opencode/skill` and the folder in which Claude Code has skills for all users.
`ASSAY_ROOT` is the folder of a local sandbox, which must not look for files of this machine."""
COPY = 'own=$1; shift; mkdir -p "$own" && for folder in "$@"; do cp -RP "$folder" "$own/" || exit 1; done'
"""Script that copies the folders. Links would do for most agents; Continue overlooks linked folders, Codex files."""


HEAD_BYTES = 4096
"""Length of the beginning of a `SKILL.md` in which its description is looked for."""
LISTED = """
These folders hold skills: instructions for certain kinds of work. Before you do such work, read the skill's SKILL.md.
"""


class Skills(NamedTuple):
    """The image's skills that an agent can see."""

    names: tuple[str, ...]
    listing: str = ""
    """Text that lists them, for the instruction of an agent that reads none itself; empty for others."""

    def listed(self, task: Task) -> Task:
        """Return the task with an instruction that lists the skills, if the agent needs that."""
        return task.model_copy(update={"instruction": task.instruction + self.listing})


def settle_skills(task: Task, places: Sequence[str], sandbox: Sandbox, *, uses_model: bool) -> Skills | None:
    """Show the agent the image's skills, or remove them, as the task says. Return the skills that the agent finds.

    `places` are the folders that the agent reads; missing skills are copied into the first. Without any, the skills
    are listed. None stands for a task without skills. Agents without a model get the image as it is. Raises `TaskError`
    if this cannot be done.
    """
    if task.skills is None:
        return None
    found = _found(task, places, sandbox)
    names = tuple(sorted(found))
    if not uses_model:
        return Skills(names)
    if task.skills == "absent":
        folders = [folder for copies in found.values() for folder in copies]
        _run(sandbox, ("rm", "-rf", "--", *folders), "root")
        return Skills(())
    if not places:
        return Skills(names, _listing({name: found[name][0] for name in names}, task, sandbox))
    read = _resolved(places, sandbox)
    missing = [copies[0] for copies in found.values() if not any(_is_in(copy, read) for copy in copies)]
    if missing:
        _run(sandbox, ("sh", "-c", COPY, "sh", read[0], *missing), task.agent_user)
    return Skills(names)


def _listing(folders: Mapping[str, str], task: Task, sandbox: Sandbox) -> str:
    """Return the text that lists the skills of these folders, by name; empty if there are none."""
    lines = []
    for name, folder in folders.items():
        file = f"{folder}/SKILL.md"
        head = _run(sandbox, ("head", "-c", str(HEAD_BYTES), file), task.agent_user)
        lines.append(f"\n* {name}: {_description(head)} ({file})")
    return f"\n{LISTED}{''.join(lines)}\n" if lines else ""


def _description(head: str) -> str:
    """Return the description in the front matter of a `SKILL.md`, on one line; empty if there is none."""
    try:
        fields = yaml.safe_load(head.split("---")[1])
    except (
        IndexError,
        ValueError,
        RecursionError,
        yaml.YAMLError,
    ):  # a date that does not exist, deep nesting
        return ""
    description = fields.get("description") if isinstance(fields, dict) else None
    return " ".join(description.split()) if isinstance(description, str) else ""


def _found(task: Task, places: Sequence[str], sandbox: Sandbox) -> dict[str, list[str]]:
    """Return the name of each skill -> its folders, those in the agent's own places first."""
    first = "".join(f"{_shell(place)}/*/SKILL.md " for place in places)
    more = f'"$ASSAY_ROOT"{shlex.quote(task.skills_dir)}/*/SKILL.md' if task.skills_dir else ""
    printed = _run(sandbox, ("sh", "-c", FIND.format(first=first, more=more)), task.agent_user)
    found: dict[str, list[str]] = {}
    for folder in dict.fromkeys(printed.splitlines()):
        found.setdefault(folder.rpartition("/")[2], []).append(folder)
    return found


def _resolved(places: Sequence[str], sandbox: Sandbox) -> tuple[str, ...]:
    """Return the absolute paths of the agent's places."""
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
