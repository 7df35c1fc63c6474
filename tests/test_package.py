"""The wheel in an empty environment, far from any checkout: that it is whole, and runs as the checkout does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from runner import __version__
from runner.resources import ROOT

UV = Path(sys.executable).with_name("uv")
SWEEP = ("-m", "experiment=quickstart", "agent=oracle,nop", "dataset.include=[logs-to-csv,release-chores]")
MINE = "# A model of mine.\ndefaults: [scripted_hasty]\nname: mine\n"


def _run(command: list[str | Path], cwd: Path, **environment: str) -> str:
    """Return what a command prints. It sees nothing of the checkout, and finds programs on the usual path."""
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    ended = subprocess.run(
        command,
        cwd=cwd,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    _run([sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", place], ROOT)
    (built,) = place.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that has the wheel and what it depends on, in the locked versions."""
    place = tmp_path_factory.mktemp("environment") / "venv"
    # uv reads neither pip's configuration nor the system's certificates by itself: as .ci/venv does.
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
        check=False,
    )
    index = os.environ.get("PIP_INDEX_URL") or pip.stdout.strip()
    _run([UV, "venv", "--quiet", "--python", sys.executable, place], place.parent)
    install: list[str | Path] = [UV, "pip", "install", "--quiet", "--constraints", ROOT / "requirements.lock"]
    where = ["--default-index", index] if index else []
    _run([*install, *where, "--python", place / "bin/python", wheel], place.parent, UV_SYSTEM_CERTS="1")
    _link_bytecode(Path(sysconfig.get_path("purelib")), next(place.glob("lib/python*/site-packages")))
    return place / "bin"


def _link_bytecode(ours: Path, theirs: Path) -> None:
    """Give an environment the bytecode of libraries that this one has too.

    Python takes it for sources of the same size and age alone, and compiles all others, such as the wheel's own.
    """
    for made in ours.rglob("__pycache__"):
        place = theirs / made.relative_to(ours)
        if place.parent.is_dir():
            shutil.copytree(made, place, copy_function=os.symlink, dirs_exist_ok=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of somebody's with a model of their own."""
    (tmp_path / "conf/model").mkdir(parents=True)
    (tmp_path / "conf/model/mine.yaml").write_text(MINE)
    return tmp_path


def test_every_tracked_file_that_the_code_reads_is_in_the_wheel(wheel: Path) -> None:
    listed = _run(["git", "ls-files", "conf", "metrics", "runner", "tasks"], ROOT).splitlines()
    tracked = {path if path.startswith(("metrics/", "runner/")) else f"runner/data/{path}" for path in listed}
    about = f"assay-{__version__}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        assert tracked <= set(archive.namelist())
        assert "Apache License" in archive.read(f"{about}/licenses/LICENSE").decode()
        assert "License-Expression: Apache-2.0" in archive.read(f"{about}/METADATA").decode()


def test_the_citation_names_this_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_an_installed_copy_answers_questions_with_the_users_own_options(
    installed: Path, folder: Path
) -> None:
    assert _run([installed / "assay", "--version"], folder) == f"assay {__version__}\n"
    page = _run([installed / "assay", "--help"], folder, COLUMNS="120")
    assert "mine" in page
    assert "A model of mine. (your own)" in page
    planned = _run([installed / "assay", "model=mine", "dry_run=true"], folder)
    assert "mini_swe_agent·mine" in planned
    assert [path.name for path in folder.iterdir()] == ["conf"], "it was asked and has written nothing here"


def test_an_installed_copy_runs_a_class_of_the_current_folder(installed: Path, folder: Path) -> None:
    (folder / "conf/job").mkdir()
    (folder / "conf/job/greet.yaml").write_text("# Greet.\n_target_: greetings.Greet\n")
    (folder / "greetings.py").write_text(
        "from runner.sweeps.cells import Job, Sweep\n\n\n"
        "class Greet(Job):\n    def run(self, sweep: Sweep) -> int:\n        print('hello')\n        return 0\n"
    )
    (folder / "yaml.py").write_text("raise SystemExit('a file of this folder stands in for a library')\n")
    assert _run([installed / "assay", "job=greet"], folder) == "hello\n"


@pytest.mark.docker
def test_an_installed_copy_runs_a_sweep_whose_trials_are_those_of_the_checkout(
    installed: Path, folder: Path
) -> None:
    _run([installed / "python", "-m", "runner", *SWEEP], folder)
    assert len(list(folder.glob("outputs/trials/*/*/record.json"))) == 4
    assert list(folder.glob("outputs/*/report/index.html"))
    again = _run([sys.executable, "-m", "runner", *SWEEP, "dry_run=true"], folder, PYTHONPATH=str(ROOT))
    assert "4 finished, 0 to do" in again
