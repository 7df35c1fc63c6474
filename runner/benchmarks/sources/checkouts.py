"""Git checkouts of strangers: git is called here and nowhere else, and never with a configuration of theirs.

A repository's configuration names programs: `core.fsmonitor`, `filter.*`, `tar.*.command`, `core.sshCommand`, hooks,
and more with every version of git. So git works with an empty repository of ours, which is lent the checkout's index or
its objects, and nothing else. What it says of paths is checked.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from runner.errors import TaskError

GIT_SECONDS = 120.0
LARGEST = 10 << 20
"""Bytes of a text file in `.git` that is read."""
_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_REF = re.compile(r"refs(/[\w+@#=-][\w.+@#=-]*)+")
_GITLINK = "160000"
_OFF = (
    *("-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false"),
    *("-c", f"core.hooksPath={os.devnull}", "-c", f"core.attributesFile={os.devnull}"),
)
"""Against what the user's own configuration switches on."""


class Listing(NamedTuple):
    """Paths in a checkout, relative, with `/`."""

    files: list[str]
    """Tracked ones, and new ones that are not ignored."""
    checkouts: list[str]
    """Folders that are checkouts of their own: submodules, and clones that this one does not know."""


def list_files(folder: Path) -> Listing:
    """What git does not ignore in a checkout. Patterns are those of the checkout and of the user's own configuration;
    a `core.excludesFile` of the checkout's is not read.

    Raises `TaskError` when it cannot be listed, or lists a path that is outside.
    """
    try:
        git_dir = _git_dir(folder)
        _check_patterns(folder)
        own = {name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in os.environ}
        with _repository(sha256=_is_sha256(git_dir)) as ours:
            # git reads a missing index as an empty one.
            env = {**own, "GIT_INDEX_FILE": str(_regular(git_dir / "index"))}
            here = str(folder.absolute())
            words = ("--work-tree", here, "-C", here, "ls-files", "-z")
            tracked = [
                entry.partition("\t") for entry in _git(ours, env, *words, "--stage").split("\0") if entry
            ]
            exclude = _regular(_common(git_dir) / "info" / "exclude")
            excluding = ("--exclude-from", str(exclude)) if exclude.is_file() else ()
            new = _git(ours, env, *words, "--others", "--exclude-standard", *excluding).split("\0")
    except (OSError, UnicodeError, subprocess.SubprocessError, _NoRepositoryError) as error:
        raise TaskError(f"git cannot list the files of the checkout {folder}: {_reason(error)}") from error
    links = {path for about, _, path in tracked if about.startswith(_GITLINK)}
    files = {path for _, _, path in tracked} - links | {path for path in new if path and path[-1] != "/"}
    checkouts = links | {path.rstrip("/") for path in new if path.endswith("/")}
    for path in (*files, *checkouts):
        _check(folder, path)
    return Listing(
        sorted(path for path in files if _is_file(folder, path)),
        sorted(path for path in checkouts if _is_checkout(folder, path)),
    )


def head(clone: Path) -> str:
    """The commit that a clone has checked out. Raises `TaskError`."""
    try:
        said = _text(clone / ".git" / "HEAD").strip()
        ref = said.removeprefix("ref: ")
        if said != ref:
            said = _resolved(clone / ".git", ref)
    except (OSError, UnicodeError, _NoRepositoryError) as error:
        raise TaskError(f"{clone}: its HEAD cannot be read: {_reason(error)}") from error
    if not _ID.fullmatch(said):
        raise TaskError(f"{clone}: its HEAD is not a commit.")
    return said


def archive(clone: Path, commit: str, into: Path) -> None:
    """Pack a commit of a clone as a tar file: the same bytes for the same commit. No filter is run.

    Raises `TaskError` when git fails, or the clone's objects lie elsewhere.
    """
    git_dir, objects = clone / ".git", clone / ".git" / "objects"
    borrowed = [objects / "info" / name for name in ("alternates", "http-alternates")]
    if any(path.is_symlink() for path in (git_dir, objects)) or not objects.is_dir():
        raise TaskError(
            f"{clone} is not a clone of its own: a .git that is a link or a file leads elsewhere. Clone it."
        )
    if any(map(os.path.lexists, borrowed)) or any(path.is_symlink() for path in objects.rglob("*")):
        raise TaskError(
            f"{clone} borrows its objects from elsewhere: clone it without --shared and --reference."
        )
    try:
        with _repository(sha256=len(commit) > 40) as ours:  # noqa: PLR2004 - hexadecimal digits of SHA-1
            env = {
                "GIT_OBJECT_DIRECTORY": str(objects.absolute()),
                "GIT_CONFIG_GLOBAL": os.devnull,
                "HOME": str(ours),
            }
            _git(ours, env, "archive", "--format=tar", f"--output={into.absolute()}", commit)
    except (OSError, UnicodeError, subprocess.SubprocessError) as error:
        raise TaskError(f"git archive failed on {clone}: {_reason(error)}") from error


class _NoRepositoryError(Exception):
    """What is there is not a repository."""


def _git(git_dir: Path, env: Mapping[str, str], *words: str) -> str:
    """What git prints, with an environment of ours alone."""
    off = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }
    command = ["git", *_OFF, "--git-dir", str(git_dir), *words]
    done = subprocess.run(
        command,
        env={**off, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=GIT_SECONDS,
    )
    return os.fsdecode(done.stdout)


@contextmanager
def _repository(*, sha256: bool) -> Iterator[Path]:
    """An empty repository of ours."""
    with tempfile.TemporaryDirectory(prefix="assay-git-") as folder:
        place = Path(folder)
        for name in ("objects", "refs"):
            (place / name).mkdir()
        (place / "HEAD").write_text("ref: refs/heads/none\n")
        extensions = "[extensions]\n\tobjectFormat = sha256\n" if sha256 else ""
        (place / "config").write_text(f"[core]\n\trepositoryFormatVersion = {int(sha256)}\n{extensions}")
        yield place


def _git_dir(folder: Path) -> Path:
    place = folder / ".git"
    if place.is_dir() and (place / "HEAD").exists():
        return place
    said = _text(place)
    found = folder / said.removeprefix("gitdir:").strip()
    if not said.startswith("gitdir:") or not (found / "HEAD").is_file():
        raise _NoRepositoryError("it is not a git repository.")
    return found


def _common(git_dir: Path) -> Path:
    """Where a worktree's repository lies; any other's is its own."""
    file = git_dir / "commondir"
    return git_dir / _text(file).strip() if file.is_file() else git_dir


def _is_sha256(git_dir: Path) -> bool:
    config = _common(git_dir) / "config"
    said = _text(config) if config.is_file() else ""
    return bool(re.search(r"^\s*objectformat\s*=\s*sha256\s*$", said, re.IGNORECASE | re.MULTILINE))


def _resolved(git_dir: Path, ref: str) -> str:
    if not _REF.fullmatch(ref):
        raise _NoRepositoryError(f"it names {ref[:200]!r}.")
    loose = git_dir / ref
    if loose.resolve() != git_dir.resolve() / ref:
        raise _NoRepositoryError(f"{ref} lies behind a link.")
    if loose.is_file():
        return _text(loose).strip()
    packed = git_dir / "packed-refs"
    lines = _text(packed).splitlines() if packed.is_file() else []
    return next((line.split(" ")[0] for line in lines if line.endswith(f" {ref}")), "")


def _text(path: Path) -> str:
    """A small text file's content."""
    if not path.is_file() or path.stat().st_size > LARGEST:
        raise _NoRepositoryError(f"{path.name} is not a small file.")
    return path.read_text("utf-8", errors="surrogateescape")


def _regular(path: Path) -> Path:
    """A path at which there is a file or nothing: a pipe would be waited for."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise _NoRepositoryError(f"its {path.name} is not a file.")
    return path.absolute()


def _check_patterns(folder: Path) -> None:
    """Raise for a `.gitignore` that git would wait for. One that is a link is not followed by git."""
    for top, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        place = Path(top, ".gitignore")
        if place.name in files and not place.is_symlink() and not place.is_file():
            raise _NoRepositoryError(f"{place.relative_to(folder)} is not a file.")


def _check(folder: Path, path: str) -> None:
    parts = PurePosixPath(path).parts
    if path.startswith("/") or not parts or ".." in parts or any(part.lower() == ".git" for part in parts):
        raise TaskError(f"The index of the checkout {folder} lists {path[:200]!r}, which is outside of it.")


def _is_file(folder: Path, path: str) -> bool:
    """Whether there is a regular file or a link, and no link on the way to it."""
    place = folder / path
    return _is_plain(folder, place.parent) and (place.is_symlink() or place.is_file())


def _is_checkout(folder: Path, path: str) -> bool:
    return _is_plain(folder, folder / path) and os.path.lexists(folder / path / ".git")


def _is_plain(folder: Path, place: Path) -> bool:
    """Whether a folder beneath another is reached without a link."""
    return place == folder or (not place.is_symlink() and place.is_dir() and _is_plain(folder, place.parent))


def _reason(error: Exception) -> str:
    stderr = getattr(error, "stderr", None)
    return os.fsdecode(stderr).strip()[-500:] if stderr else str(error)
