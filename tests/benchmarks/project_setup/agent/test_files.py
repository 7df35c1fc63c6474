"""The program that reads and writes an agent's files, with files of all kinds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runner.benchmarks.project_setup.agent.files_inside import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder with one file of each kind."""
    (tmp_path / "text").write_text("grüße\n")
    (tmp_path / "latin").write_bytes("grüße".encode("latin-1"))
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "empty").touch()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nowhere").symlink_to("folder/nowhere")
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("text", "grüße\n"),
        ("directory/../text", "grüße\n"),
        ("latin", "gr��e"),
        ("empty", ""),
    ],
)
def test_a_text_is_read(folder: Path, path: str, text: str) -> None:
    request = {"path": path, "folder": str(folder), "most": 100}
    assert main(request) == {"text": text, "failed": False}


def test_only_the_beginning_of_a_long_text_is_read_and_the_rest_counted(folder: Path) -> None:
    answer = main({"path": "text", "folder": str(folder), "most": 2})
    assert answer == {"text": "gr\n[6 bytes more: read them with the terminal]", "failed": False}


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nope", "There is no such file."),
        ("directory", "It is a directory: list it with `ls`."),
        ("", "It is a directory: list it with `ls`."),
        ("binary", "It is binary, of 6 bytes: look at it with the terminal."),
        ("text/x", "Something on the way to it is no directory."),
        ("pipe", "It is no regular file."),
        ("/dev/zero", "It is no regular file."),
        ("loop", "Too many levels of symbolic links."),
        ("nowhere", "There is no such file."),
        ("x" * 300, "File name too long."),
        ("a\0b", "embedded null"),
        ("\ud800", "surrogates not allowed"),
    ],
)
def test_unreadable_files_are_reported(folder: Path, path: str, reason: str) -> None:
    answer = main({"path": path, "folder": str(folder), "most": 100})
    assert answer["failed"]
    assert reason in answer["text"]
    answer["text"].encode()


@pytest.mark.parametrize("path", ["new", "new/folder/file", "text", "directory/nowhere"])
def test_a_file_is_written_in_place_of_what_was_there(folder: Path, path: str) -> None:
    answer = main({"path": path, "folder": str(folder), "content": "ü\n"})
    assert answer == {"text": f"{folder / path} is written: 3 bytes.", "failed": False}
    assert (folder / path).read_text() == "ü\n"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("directory", "It is a directory: list it with `ls`."),
        ("", "It is a directory: list it with `ls`."),
        ("text/x", "Something on the way to it is no directory."),
        ("text/x/y", "Something on the way to it is no directory."),
        ("pipe", "No such device or address."),
        ("loop", "Too many levels of symbolic links."),
        ("/dev/full", "No space left on device."),
    ],
)
def test_unwritable_files_are_reported(folder: Path, path: str, reason: str) -> None:
    answer = main({"path": path, "folder": str(folder), "content": "x"})
    assert answer["failed"]
    assert reason in answer["text"]
