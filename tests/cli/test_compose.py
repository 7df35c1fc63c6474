"""One configuration per cell, from files that are read once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runner.cli.compose import compose


def preset(folder: Path, attempts: int) -> None:
    text = f"# @package _global_\nattempts: {attempts}\n"
    (folder / "experiment").mkdir(exist_ok=True)
    (folder / "experiment/mine.yaml").write_text(text)


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
