"""Every command that the documents show: run as it stands, page by page, in a folder of the page's own.

A block of commands is a fence of `bash`. A comment before it, which readers do not see, says what it needs:

    <!-- needs-key -->          a provider's key: its commands are only planned (`dry_run=true`) or composed
    <!-- run-by: FILE -->       FILE runs it, in CI or by hand, because it is large or never ends
    <!-- docker -->             a Docker Engine with the base image and the bundles
    <!-- given: NAME ... -->    made beforehand, by a function of `GIVEN`

A block without a mark must run. Other fences (`text`, `yaml`, ...) are no commands.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from runner.locks import exclusive
from runner.resources import CONF, ROOT
from tests.support import warm
from tests.support.suite_factory import make_folder
from tests.support.sweeps import finished_sweep

DOCUMENTS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
PREAMBLE = Path(__file__).with_name("commands.sh")
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<word>[\w-]*)(?P<about>[^\n]*)\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL
)
MARK = re.compile(r"<!-- (?P<name>[\w-]+)(?:: (?P<value>.+?))? -->")
COMMAND = ("bash", "sh", "shell", "console")
MARKS = {"needs-key", "run-by", "docker", "given"}
NEEDS_DOCKER = {"docker", "given: quickstart"}


@dataclass(frozen=True)
class Block:
    """One fence of commands."""

    page: Path
    line: int
    text: str
    marks: frozenset[str]

    def value(self, name: str) -> str | None:
        """Return what the mark of this name says; None without one."""
        return next((mark.partition(": ")[2] for mark in self.marks if mark.partition(": ")[0] == name), None)

    @property
    def place(self) -> str:
        """File and line at which the block begins."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Return the page's fences of commands, in order."""
    text = page.read_text()
    found = []
    for fence in FENCE.finditer(text):
        if fence["word"] not in COMMAND or "title=" in fence["about"]:  # a title is the name of a file
            continue
        before = text[: fence.start()].rstrip("\n").splitlines()
        marks = set()
        while before and (mark := MARK.fullmatch(before[-1].strip())):
            marks.add(mark[1] if mark[2] is None else f"{mark[1]}: {mark[2]}")
            before.pop()
        line = text.count("\n", 0, fence.start()) + 1
        body = "\n".join(each.removeprefix(fence["indent"]) for each in fence["body"].splitlines())
        found.append(Block(page, line, body, frozenset(marks)))
    return found


PAGES = {str(page.relative_to(ROOT)): found for page in DOCUMENTS if (found := blocks(page))}


def run(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={
            **os.environ,
            "PATH": path,
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "100",
            "CI": "true",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def quickstart(folder: Path, common: Path) -> None:
    """Copy the records of the quickstart sweep, which the first page to ask for them runs."""
    made = common / "quickstart"
    common.mkdir(exist_ok=True)
    with exclusive(common / "quickstart.lock"):
        if not made.exists():
            script = f"{PREAMBLE.read_text()}\npython -m runner experiment=quickstart"
            (common / "first").mkdir(exist_ok=True)  # of a test that failed: the sweep resumes
            done = run(script, common / "first")
            assert done.returncode == 0, done.stdout + done.stderr
            (common / "first" / "outputs").rename(made)
    shutil.copytree(made, folder / "outputs")


def sweeps(folder: Path, common: Path) -> None:  # noqa: ARG001 - as the others
    """Make the finished sweeps `mine` and `other`, of nine cells and twelve tasks."""
    finished_sweep(folder / "outputs", "mine")
    finished_sweep(folder / "outputs", "other", dataset="others")


def published_folder(folder: Path, common: Path) -> None:  # noqa: ARG001 - as the others
    """Make a folder as NL2Repo-Bench's authors publish it, with two of its tasks."""
    for task in ("jsonlines", "schema"):
        make_folder(folder / "test_files", task)


GIVEN: dict[str, Callable[[Path, Path], None]] = {
    "quickstart": quickstart,
    "sweeps": sweeps,
    "test_files": published_folder,
}


def pages() -> list[object]:
    """Return each page as a test's parameter, marked as needing an engine where one of its blocks does."""
    needed = {page: any(NEEDS_DOCKER & block.marks for block in found) for page, found in PAGES.items()}
    engine = [pytest.mark.docker, pytest.mark.bundle]
    return [pytest.param(page, id=page, marks=engine if needed[page] else []) for page in PAGES]


@pytest.mark.timeout(1800)  # of a page's commands together, on a machine however busy
@pytest.mark.usefixtures("warm_commands")
@pytest.mark.parametrize("page", pages())
def test_commands_of_a_page_run(page: str, tmp_path: Path, common: Path) -> None:
    (tmp_path / "tasks").symlink_to(ROOT / "tasks")
    (tmp_path / "conf").symlink_to(ROOT / "conf")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    script = [PREAMBLE.read_text()]
    for block in PAGES[page]:
        for name in (block.value("given") or "").split():
            GIVEN[name](tmp_path, common / "docs")
        if block.value("run-by") is None:
            script += [
                f"NEEDS_KEY={'yes' if 'needs-key' in block.marks else ''}",
                f"echo '== {block.place}' >&2",
                block.text,
            ]
    # Most of a report's time is its page, so it is left out where the document does not speak of it.
    no_page = "" if "report/" in (ROOT / page).read_text() else "yes"
    done = run("\n".join(script), tmp_path, **{warm.NO_PAGE: no_page})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize(
    "block", [block for found in PAGES.values() for block in found], ids=lambda each: each.place
)
def test_marks_of_a_block_say_something_true(block: Block) -> None:
    assert {mark.partition(": ")[0] for mark in block.marks} <= MARKS
    if (by := block.value("run-by")) is not None:
        assert (ROOT / by).is_file(), f"{block.place} is said to be run by {by}, which does not exist"
        if by.startswith(".ci"):
            run = (ROOT / by).read_text().splitlines()
            assert set(block.text.splitlines()) <= set(run), f"{block.place}: {by} runs something else"
    for target in re.findall(r"^make ([a-z-]+)", block.text, re.MULTILINE):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"no target {target}"


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda each: str(each.relative_to(ROOT)))
def test_options_in_the_text_of_a_page_exist(page: Path) -> None:
    groups = "|".join(path.name for path in CONF.iterdir() if path.is_dir())
    named = re.findall(rf"`[^`\n]*?\b({groups})=([a-z][\w-]*)[^`\n]*`", page.read_text())
    missing = {
        f"{group}={option}" for group, option in named if not list(CONF.glob(f"{group}/{option}.yaml"))
    }
    assert not missing
