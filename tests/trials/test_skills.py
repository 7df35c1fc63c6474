"""Skills of a machine: found in many places, copied into an agent's own place, or removed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.protocols import Sandbox
from runner.records import Environment, ExecSpec, Image, SandboxSpec, Task
from runner.sandbox.local import LocalSandboxes
from runner.trials.skills import Skills, settle_skills

KEPT = (
    *("~/.claude/skills/count", "~/.agents/skills/count", "~/.agents/skills/weigh", "./.claude/skills/fold"),
    *("~/.opencode/skill/weigh", "~/.config/opencode/skill/weigh", "./.opencode/skill/weigh"),
)


@pytest.fixture
def machine() -> Iterator[Sandbox]:
    spec = SandboxSpec(
        name="skilled",
        image=Image(id="", reference="", origin="none"),
        environment=Environment(workdir="/workspace"),
    )
    with LocalSandboxes().open(spec) as sandbox:
        for place in KEPT:
            sh(sandbox, f"mkdir -p {place} && touch {place}/SKILL.md")
        for place in ("/opt/ours/feed", "/etc/claude-code/.claude/skills/feed"):
            sh(sandbox, f'mkdir -p "$ASSAY_ROOT"{place} && touch "$ASSAY_ROOT"{place}/SKILL.md')
        yield sandbox


def sh(sandbox: Sandbox, script: str) -> str:
    result = sandbox.exec(ExecSpec(argv=("sh", "-c", script)))
    assert result.exit_code == 0, result
    return result.stdout


def task(skills: str | None) -> Task:
    return Task.model_validate(
        {"name": "t", "dataset": "d", "directory": Path(), "skills": skills, "skills_dir": "/opt/ours"}
    )


def test_missing_skills_are_copied_into_the_first_place(machine: Sandbox) -> None:
    places = ("~/.mine/skills", "./.claude/skills")
    found = settle_skills(task("present"), places, machine, uses_model=True)
    assert found == Skills(("count", "feed", "fold", "weigh"))
    assert sh(machine, "ls ~/.mine/skills").split() == ["count", "feed", "weigh"], "fold is in another place"
    assert sh(machine, "ls ~/.mine/skills/*/SKILL.md").count("SKILL.md") == 3
    assert settle_skills(task("present"), places, machine, uses_model=True) == found, "it can be done again"


def test_absent_skills_are_gone_from_everywhere(machine: Sandbox) -> None:
    assert settle_skills(task("absent"), ("~/.agents/skills",), machine, uses_model=True) == Skills(())
    assert sh(machine, 'find ~ . "$ASSAY_ROOT" -name SKILL.md') == ""
    assert settle_skills(task("present"), (), machine, uses_model=True) == Skills(())


def test_an_agent_that_reads_none_is_told_where_they_are(machine: Sandbox) -> None:
    text = "---\\nname: weigh\\ndescription: >\\n  Weighs\\n  ducks.\\n---\\nUse scales."
    sh(machine, f"printf -- '{text}' > ~/.agents/skills/weigh/SKILL.md")
    sh(machine, "printf -- '---\ndescription: [not, a, text]\n---\n' > ./.claude/skills/fold/SKILL.md")
    sh(machine, "printf -- '---\n{: no YAML\n---\n' > ~/.claude/skills/count/SKILL.md")
    settled = settle_skills(task("present"), (), machine, uses_model=True)
    assert settled is not None
    assert settled.names == ("count", "feed", "fold", "weigh")
    lines = re.findall(r"^\* (\w+): (.*) \((.*)\)$", settled.listing, re.MULTILINE)
    listed = {name: description for name, description, _ in lines}
    assert listed == {"count": "", "feed": "", "fold": "", "weigh": "Weighs ducks."}
    for *_, file in lines:
        sh(machine, f"test -f {file}")
    assert settled.listed(task("present")).instruction == settled.listing


@pytest.mark.parametrize("head", ["x: 2001-99-99", "[" * 2000, "&a [*a, *a]", "? [a]: b"])
def test_a_hostile_description_spoils_no_trial(machine: Sandbox, head: str) -> None:
    """A date that does not exist and deep nesting end a YAML parser with errors that are not its own."""
    sh(machine, f"printf -- '---\\n{head}\\n---\\n' > ~/.agents/skills/weigh/SKILL.md")
    settled = settle_skills(task("present"), (), machine, uses_model=True)
    assert settled is not None
    assert "* weigh:  (" in settled.listing


@pytest.mark.parametrize(("skills", "uses_model"), [(None, True), ("absent", False)])
def test_nothing_is_touched_without_need(machine: Sandbox, skills: str | None, *, uses_model: bool) -> None:
    before = sh(machine, 'find "$ASSAY_ROOT" | sort')
    settle_skills(task(skills), ("~/.mine/skills",), machine, uses_model=uses_model)
    assert sh(machine, 'find "$ASSAY_ROOT" | sort') == before


def test_a_skills_folder_of_this_machine_is_not_one_of_a_local_sandbox(
    machine: Sandbox, tmp_path: Path
) -> None:
    """Its skills would have been removed."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "SKILL.md").touch()
    named = task("absent").model_copy(update={"skills_dir": str(tmp_path)})
    settle_skills(named, (), machine, uses_model=True)
    assert (tmp_path / "mine" / "SKILL.md").exists()
