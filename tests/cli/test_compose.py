"""One configuration per cell, as Hydra itself composes it."""

from __future__ import annotations

import sys
from pathlib import Path

import hydra
import pytest
from omegaconf import DictConfig

from runner.cli.arguments import check
from runner.cli.compose import compose
from runner.errors import ConfigError
from runner.resources import CONF


def preset(folder: Path, attempts: int) -> None:
    text = f"# @package _global_\nattempts: {attempts}\n"
    (folder / "experiment").mkdir(exist_ok=True)
    (folder / "experiment/mine.yaml").write_text(text)


def composed_by_hydra(words: list[str], scratch: Path, monkeypatch: pytest.MonkeyPatch) -> list[DictConfig]:
    """Let `hydra.main` run the jobs of a command line, as other programs do."""
    configs: list[DictConfig] = []
    folders = [f"hydra.run.dir='{scratch}'", f"hydra.sweep.dir='{scratch}'"]
    monkeypatch.setattr(sys, "argv", ["assay", *words, *folders])
    hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")(configs.append)()
    return configs


@pytest.mark.parametrize(
    "words",
    [
        ["agent=codex", "model=glm"],
        ["-m", "agent=oracle,nop", "budget.turns=1,2", "name='a,b'"],
        ["experiment=quickstart"],
        ["experiment=quickstart", "agent=nop", "budget.turns=1,2"],
        ["-m", "experiment=cli_tool_bench,agentmeter_alpha", "dataset=quickstart", "~agent.memory_mb"],
        ["-m", "agent=glob(n*)", "model=scripted_hasty"],
        ["--config-dir", "OWN", "-m", "experiment=glob(m*)"],
        ["job=report", "name=some"],
    ],
    ids=" ".join,
)
def test_cells_are_those_that_hydra_would_run(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset(tmp_path, 2)
    checked = check([word.replace("OWN", str(tmp_path)) for word in words])
    ours = compose(checked)
    assert ours == composed_by_hydra(checked, tmp_path / "scratch", monkeypatch)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["budget.turns=1,2"], "budget.turns=1,2 names several values: add -m"),
        (["name=a,b"], "or put the value in quotes"),
        (["-m", "budget.turns=interval(1,2)"], "INTERVAL_SWEEP"),
        (["agent=oracle", "hydra/launcher=nothing"], "Could not find 'hydra/launcher/nothing'"),
    ],
)
def test_what_cannot_be_composed_is_the_users_to_mend(words: list[str], reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        compose(words)
    assert reason in str(refused.value)


@pytest.mark.parametrize("content", [b"name: [", b"name: \xff", b"[]", b"defaults: [_gone]"])
def test_a_base_that_cannot_be_read_is_the_users_to_mend(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "budget").mkdir()
    (tmp_path / "budget/mine.yaml").write_text("defaults: [_base]\n")
    (tmp_path / "budget/_base.yaml").write_bytes(content)
    with pytest.raises(ConfigError, match="Hydra cannot compose this"):
        compose(["--config-dir", str(tmp_path), "budget=mine"])


def test_a_file_that_has_changed_is_read_anew(tmp_path: Path) -> None:
    for attempts in (2, 3):
        preset(tmp_path, attempts)
        (config,) = compose(["--config-dir", str(tmp_path), "experiment=mine"])
        assert config.attempts == attempts


def test_what_is_done_to_one_configuration_is_not_done_to_the_next() -> None:
    words = ["-m", "agent=oracle,nop"]
    for config in compose(words):
        config.budget.usd = 77
    assert [config.budget.usd for config in compose(words)] == [2.0, 2.0]


def test_the_process_keeps_the_command_line_it_was_given() -> None:
    typed = list(sys.argv)
    compose(["agent=oracle"])
    assert sys.argv == typed


def test_the_users_own_conf_is_in_front_of_the_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf/model").mkdir(parents=True)
    (tmp_path / "conf/model/mine.yaml").write_text("defaults: [gpt]\nname: mine\n")
    (tmp_path / "conf/model/glm.yaml").write_text("name: glm\nid: other/glm\n")
    shipped, same = (compose([f"model={name}"])[0] for name in ("gpt", "glm"))
    monkeypatch.chdir(tmp_path)
    mine, other = (compose([f"model={name}"])[0] for name in ("mine", "glm"))
    assert (mine.model.name, mine.model.id) == ("mine", shipped.model.id)
    assert other.model.id == "other/glm" != same.model.id
    preset(tmp_path / "conf", 3)
    assert compose(["experiment=mine"])[0].attempts == 3
