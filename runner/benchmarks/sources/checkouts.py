"""Read untrusted git checkouts without their configuration. No other module calls git.

A repository's configuration names programs: `core.fsmonitor`, `filter.*`, `tar.*.command`, `core.sshCommand`, hooks,
and more with every version of git. So git works with an empty repository of ours, which borrows only the checkout's
index or its objects. The paths that git prints are checked.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from runner.errors import TaskError

GIT_SECONDS = 120.0
_NETWORK = (
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "GIT_SSL_CAINFO",
)
"""Variables by which a network is reached."""
LARGEST = 10 << 20
"""Largest text file in `.git` that is read, in bytes."""
_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_REF = re.compile(r"refs(/[\w+@#=-][\w.+@#=-]*)+")
_GITLINK = "160000"
_OFF = (
    *("-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false"),
    *("-c", f"core.hooksPath={os.devnull}", "-c", f"core.attributesFile={os.devnull}"),
    *("-c", "core.logAllRefUpdates=false"),
)
"""Options that switch off what the user's own configuration may switch on, and logs, which name who cloned."""


class Listing(NamedTuple):
    """Relative paths in a checkout, with `/` between names."""

    files: list[str]
    """Files that are tracked, and new files that are not ignored."""
    checkouts: list[str]
    """Folders that are checkouts themselves: submodules, and clones that git does not track."""


def list_files(folder: Path) -> Listing:
    """List what git does not ignore in a checkout.

    Patterns come from the checkout and the user's own configuration; the checkout's `core.excludesFile` is not read.
    Raises `TaskError` if the checkout cannot be listed, or lists a path that is outside.
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


def project_paths(folder: Path) -> Sequence[str]:
    """Return the paths in a folder that belong to the project.

    That is everything, except in a git checkout: `.git` and ignored files may hold secrets, virtual environments and
    gigabytes.
    """
    if not (folder / ".git").exists():
        return (".",)
    found = list_files(folder)
    inside = [f"{inner}/{name}" for inner in found.checkouts for name in project_paths(folder / inner)]
    return sorted({*found.files, *inside})


def head(clone: Path) -> str:
    """Return the commit that a clone has checked out. Raises `TaskError`."""
    try:
        commit = _text(clone / ".git" / "HEAD").strip()
        ref = commit.removeprefix("ref: ")
        if commit != ref:
            commit = _resolve(clone / ".git", ref)
    except (OSError, UnicodeError, _NoRepositoryError) as error:
        raise TaskError(f"{clone}: its HEAD cannot be read: {_reason(error)}") from error
    if not _ID.fullmatch(commit):
        raise TaskError(f"{clone}: its HEAD is not a commit.")
    return commit


def tags(clone: Path) -> Sequence[str]:
    """Return the tags of a fresh clone, each with its object, as git packs them. Raises `TaskError`."""
    packed = clone / ".git" / "packed-refs"
    try:
        lines = _text(packed).splitlines() if packed.is_file() else []
    except (OSError, UnicodeError, _NoRepositoryError) as error:
        raise TaskError(f"{clone}: its tags cannot be read: {_reason(error)}") from error
    return sorted(line for line in lines if " refs/tags/" in line)


def archive(clone: Path, commit: str, into: Path) -> None:
    """Pack a commit of a clone as a tar file, with the same bytes for the same commit. No filter is run.

    Raises `TaskError` if git fails, or if the clone's objects lie elsewhere.
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


def clone(address: str, commit: str, into: Path) -> str:
    """Clone a public repository at a commit, tag or branch, with its submodules; return the commit.

    `commit` may be empty: the branch that the repository shows first. Without the user's configuration and keys: no
    hook, filter or credential helper runs. Raises `TaskError`.
    """
    passed = {name: os.environ[name] for name in _NETWORK if name in os.environ}
    protocols = "file" if address.startswith("file://") else "https:http:git"
    env = {**passed, "GIT_CONFIG_GLOBAL": os.devnull, "HOME": os.devnull, "GIT_ALLOW_PROTOCOL": protocols}
    try:
        with tempfile.TemporaryDirectory(prefix="assay-git-", dir=into.parent) as folder:
            place = Path(folder, "clone")
            git_dir, here = place / ".git", ("--work-tree", str(place), "-C", str(place))
            _git(git_dir, env, "clone", "--quiet", "--no-checkout", "--template=", "--", address, str(place))
            found = _git(
                git_dir, env, "rev-parse", "--verify", "--end-of-options", f"{commit or 'HEAD'}^{{commit}}"
            )
            _git(git_dir, env, *here, "checkout", "--quiet", "--detach", found.strip())
            _git(git_dir, env, *here, "submodule", "--quiet", "update", "--init", "--recursive")
            place.rename(into)
    except (OSError, UnicodeError, subprocess.SubprocessError) as error:
        what = f" at {commit}" if commit else ""
        raise TaskError(f"{address} cannot be cloned{what}: {_reason(error)}") from error
    return head(into)


class _NoRepositoryError(Exception):
    """A folder is not a repository that can be read."""


def _git(git_dir: Path, env: Mapping[str, str], *words: str) -> str:
    """Run git with no other environment than `env` and our own settings; return its standard output."""
    settings = {
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
        env={**settings, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=GIT_SECONDS,
    )
    return os.fsdecode(done.stdout)


@contextmanager
def _repository(*, sha256: bool) -> Iterator[Path]:
    """Make an empty repository of ours."""
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
    text = _text(place)
    git_dir = folder / text.removeprefix("gitdir:").strip()
    if not text.startswith("gitdir:") or not (git_dir / "HEAD").is_file():
        raise _NoRepositoryError("it is not a git repository.")
    return git_dir


def _common(git_dir: Path) -> Path:
    """Return the repository of a worktree's `.git`. Any other `.git` is its own."""
    file = git_dir / "commondir"
    return git_dir / _text(file).strip() if file.is_file() else git_dir


def _is_sha256(git_dir: Path) -> bool:
    config = _common(git_dir) / "config"
    text = _text(config) if config.is_file() else ""
    return bool(re.search(r"^\s*objectformat\s*=\s*sha256\s*$", text, re.IGNORECASE | re.MULTILINE))


def _resolve(git_dir: Path, ref: str) -> str:
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
    """Return the content of a small text file."""
    if not path.is_file() or path.stat().st_size > LARGEST:
        raise _NoRepositoryError(f"{path.name} is not a small file.")
    return path.read_text("utf-8", errors="surrogateescape")


def _regular(path: Path) -> Path:
    """Return the absolute path of a file or of nothing. Raise for anything else: git would wait for a pipe."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise _NoRepositoryError(f"its {path.name} is not a file.")
    return path.absolute()


def _check_patterns(folder: Path) -> None:
    """Raise for a `.gitignore` that git would wait for. Git does not follow one that is a link."""
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
    """Return whether a path is a regular file or a link, with no link on the way to it."""
    place = folder / path
    return _is_plain(folder, place.parent) and (place.is_symlink() or place.is_file())


def _is_checkout(folder: Path, path: str) -> bool:
    return _is_plain(folder, folder / path) and os.path.lexists(folder / path / ".git")


def _is_plain(folder: Path, place: Path) -> bool:
    """Return whether `place` is a folder beneath `folder` with no link on the way to it."""
    return place == folder or (not place.is_symlink() and place.is_dir() and _is_plain(folder, place.parent))


def _reason(error: Exception) -> str:
    stderr = getattr(error, "stderr", None)
    return os.fsdecode(stderr).strip()[-500:] if stderr else str(error)
