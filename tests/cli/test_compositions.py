"""What was composed before is what would be composed now, or it is not used."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from runner.cli import compose as composing
from runner.cli.arguments import check
from runner.cli.compositions import LIMIT, compose

WORDS = ["agent=oracle"]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Where compositions are kept."""
    return tmp_path / "kept"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A `--config-dir` with a preset `mine`."""
    preset(tmp_path / "own", "attempts: 2")
    return tmp_path / "own"


def preset(own: Path, text: str, name: str = "mine") -> None:
    (own / "experiment").mkdir(parents=True, exist_ok=True)
    (own / f"experiment/{name}.yaml").write_text(f"# @package _global_\n{text}\n")


def mine(own: Path, kept: Path, *words: str) -> list[int]:
    """Attempts of each job of the preset."""
    return [job.attempts for job in compose(["--config-dir", str(own), "experiment=mine", *words], kept)]


def marked(kept: Path) -> list[Path]:
    """Every composition that is kept, changed so that whoever gets it knows."""
    files = list(kept.glob("*.json"))
    for file in files:
        file.write_text(json.dumps([{**node, "attempts": 77} for node in json.loads(file.read_text())]))
    return files


@pytest.mark.parametrize(
    "words",
    [
        ["agent=codex", "model=glm"],
        ["-m", "agent=oracle,nop", "budget.turns=1,2"],
        ["experiment=agentmeter_core30", "dataset.root=tasks"],
        ["experiment=cli_tool_bench"],
        ["job=report", "name=some"],
    ],
    ids=" ".join,
)
def test_what_is_kept_is_what_hydra_composed(words: list[str], kept: Path) -> None:
    checked = check(words)
    first = compose(checked, kept)
    again = compose(checked, kept)
    assert again == first
    assert [OmegaConf.to_yaml(job) for job in again] == [OmegaConf.to_yaml(job) for job in first]
    assert all(OmegaConf.is_struct(job) for job in (*first, *again))
    assert marked(kept), "the project's own configuration is kept"
    assert all(job.attempts == 77 for job in compose(checked, kept)), "and used"


def test_a_changed_file_is_composed_anew(own: Path, kept: Path) -> None:
    assert mine(own, kept) == [2]
    marked(kept)
    preset(own, "attempts: 3")
    assert mine(own, kept) == [3]


def test_a_new_file_is_composed_anew_where_a_pattern_names_it(own: Path, kept: Path) -> None:
    words = ["-m", "--config-dir", str(own), "experiment=glob(m*)"]
    assert len(compose(words, kept)) == 1
    preset(own, "attempts: 3", name="more")
    assert [job.attempts for job in compose(words, kept)] == [2, 3]


def test_a_file_behind_a_linked_folder_is_composed_anew(tmp_path: Path, kept: Path) -> None:
    preset(tmp_path / "elsewhere", "attempts: 2")
    (tmp_path / "own").mkdir()
    (tmp_path / "own/experiment").symlink_to(tmp_path / "elsewhere/experiment")
    assert mine(tmp_path / "own", kept) == [2]
    preset(tmp_path / "elsewhere", "attempts: 3")
    assert mine(tmp_path / "own", kept) == [3]


def test_links_in_circles_and_whole_projects_kept_a_command_searching_for_ever(own: Path, kept: Path) -> None:
    for name in "abc":
        (own / name).symlink_to(own)
    assert mine(own, kept) == [2]
    assert not marked(kept)


def test_a_link_to_nowhere_keeps_nothing_and_breaks_nothing(own: Path, kept: Path) -> None:
    (own / "old.yaml").symlink_to(own / "gone.yaml")
    assert mine(own, kept) == [2]
    assert not marked(kept)


def test_the_users_own_conf_is_part_of_what_is_kept(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for attempts in (2, 3):
        place = tmp_path / f"{attempts}"
        preset(place / "conf", f"attempts: {attempts}")
        monkeypatch.chdir(place)
        for _ in range(2):
            assert [job.attempts for job in compose(["experiment=mine"], kept)] == [attempts]
    assert len(list(kept.glob("*.json"))) == 2


def test_other_words_are_composed_anew(kept: Path) -> None:
    compose(WORDS, kept)
    marked(kept)
    (job,) = compose([*WORDS, "++budget.turns=9"], kept)
    assert (job.attempts, job.budget.turns) == (1, 9)


@pytest.mark.parametrize(
    "text",
    [
        "attempts: ${oc.decode:${oc.env:ASSAY_TRIES}}",
        "defaults:\n  - override /budget: ${oc.env:ASSAY_BUDGET}",
        "name: x${now:%S}",
    ],
)
def test_what_asks_the_environment_or_the_clock_is_never_kept(
    text: str, own: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_TRIES", "4")
    monkeypatch.setenv("ASSAY_BUDGET", "tight")
    preset(own, text)
    compose(["--config-dir", str(own), "experiment=mine"], kept)
    assert not marked(kept)


@pytest.mark.parametrize(
    "spelt",
    ['"\\x24{oc.env:ASSAY_BUDGET}"', '"\\u0024{oc.env:ASSAY_BUDGET}"', '"$\\\n    {oc.env:ASSAY_BUDGET}"'],
    ids=["x", "u", "two lines"],
)
def test_an_environment_asked_in_yaml_escapes_was_kept(
    spelt: str, own: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset(own, f"defaults:\n  - override /budget: {spelt}")
    for budget in ("tight", "unlimited"):
        monkeypatch.setenv("ASSAY_BUDGET", budget)
        (job,) = compose(["--config-dir", str(own), "experiment=mine"], kept)
        assert job.budget.name == budget


def test_words_beyond_ascii_are_kept_and_are_no_escapes(kept: Path) -> None:
    words = check([*WORDS, "name=größe", "outputs=/tmp/\udcff"])
    compose(words, kept)
    marked(kept)
    (job,) = compose(words, kept)
    assert (job.attempts, job.name) == (77, "größe")


def test_a_changed_hidden_file_gave_what_was_composed_before(own: Path, kept: Path) -> None:
    words = ["--config-dir", str(own), "experiment=.hidden"]
    for attempts in (2, 3):
        preset(own, f"attempts: {attempts}", name=".hidden")
        (job,) = compose(words, kept)
        assert job.attempts == attempts


def test_a_shuffled_sweep_had_the_first_order_for_ever(kept: Path) -> None:
    compose(["-m", "agent=shuffle(oracle,nop)"], kept)
    assert not marked(kept)


def test_a_file_that_changes_while_hydra_reads_spoiled_what_was_kept_of_its_old_content(
    own: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Edited in the half second between naming and composing, and then edited back: the old words gave the new job."""
    really = composing.compose

    def edited_meanwhile(words: Sequence[str]) -> list[DictConfig]:
        preset(own, "attempts: 3")
        return really(words)

    monkeypatch.setattr(composing, "compose", edited_meanwhile)
    assert mine(own, kept) == [3]
    monkeypatch.undo()
    preset(own, "attempts: 2")
    assert mine(own, kept) == [2]


def test_words_that_ask_the_environment_are_never_kept(kept: Path) -> None:
    compose([*WORDS, "++model.api_base=${oc.env:SOMETHING}"], kept)
    assert not marked(kept)


@pytest.mark.parametrize("spoiled", [b"", b"[{", b"\xff"])
def test_a_spoiled_file_is_composed_anew(spoiled: bytes, kept: Path) -> None:
    expected = compose(WORDS, kept)
    (file,) = kept.iterdir()
    file.write_bytes(spoiled)
    assert compose(WORDS, kept) == expected


def test_a_folder_that_cannot_be_written_only_takes_longer(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert len(compose(WORDS, tmp_path / "file" / "kept")) == 1


def test_what_is_no_longer_used_makes_room(kept: Path) -> None:
    kept.mkdir()
    for number in range(LIMIT + 5):
        (kept / f"{number}.json").touch()
    compose(WORDS, kept)
    assert len(list(kept.iterdir())) == LIMIT


def test_nothing_is_kept_of_a_question(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        compose(["--cfg", "job", *WORDS], kept)
        assert "root: ${root:tasks/quickstart}" in capsys.readouterr().out
    assert not kept.exists()
