"""Classify an agent's changes to its machine: programs, which tests may run or read at a start, or work. Pure.

The agent's places are its working directory, homes, temporary folders, and folders at the root that it made itself.
Everything else is the system's. In the agent's places only start-up files count as programs: those that interpreters,
shells, test runners and package managers read without being told to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from fnmatch import fnmatchcase
from typing import NamedTuple

from runner.benchmarks.harbor.artifacts import is_reserved, lies_in, plain
from runner.records import ChangedPrograms, Changes

MOST_PATHS = 50
"""Largest number of paths in one list of a record."""
PATH_CHARACTERS = 300
"""Longest path in a record, in characters."""
HOMES = ("/root", "/home")
DATA = ("/tmp", "/var/tmp", "/srv", "/mnt", "/media")  # noqa: S108 - of a sandbox
"""Folders for data, which belong to whoever works there."""
PASSING = (
    "/run",
    "/var/run",
    "/var/log",
    "/var/cache/apt/pkgcache.bin",
    "/var/cache/apt/srcpkgcache.bin",
    "/var/cache/apt/archives/lock",
    "/var/cache/apt/archives/partial",
    "/var/cache/debconf",
    "/var/cache/fontconfig",
    "/var/cache/ldconfig",
    "/var/cache/man",
    "/var/lib/apt/lists",
    "/logs",
    "/dev",
    "/proc",
    "/sys",
)
"""Paths that are neither programs nor work: state of running programs, logs, caches that install nothing, and the
kernel's files. Packages in apt's cache count as programs, because apt installs them if its lists, which an agent can
write, say that they are newer."""
OURS = (
    "/opt/assay", "/.dockerenv", "/etc/hosts", "/etc/resolv.conf", "/etc/hostname", "/etc/mtab",
    "/usr/sbin/docker-init", "/sbin/docker-init",
)  # fmt: skip
"""Files that the runner or the engine writes."""
STANDARD = frozenset(
    (
        "bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "libexec", "media", "mnt", "nix", "opt",
        "proc", "root", "run", "sbin", "snap", "srv", "sys", "tmp", "usr", "var",
    )
)  # fmt: skip
"""Names at the root with a standard meaning. They never count as the agent's folders, even if the agent made them."""

MODULES = sys.stdlib_module_names | {"pytest", "_pytest", "pluggy", "iniconfig", "packaging"}
"""Modules that tests import. A file with such a name in the working directory would be imported instead."""
STARTUP_MODULES = ("sitecustomize", "usercustomize", "conftest")
"""Modules and packages, of any suffix, that Python or pytest imports by itself."""
STARTUP_FILES = (
    "*.pth", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", ".coveragerc", ".pdbrc", "pyvenv.cfg",
    ".pydistutils.cfg", "pip.conf", "uv.toml", ".condarc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".bashrc", ".bash_*",
    ".profile", ".zshenv", ".zshrc", ".zprofile", ".inputrc", ".curlrc", ".wgetrc", ".gitconfig",
    "jest.config.*", "vitest.config.*", ".mocharc*", ".babelrc*", "babel.config.*", ".nycrc*", "bunfig.toml",
    ".rspec", ".irbrc", ".gemrc", ".Rprofile", ".Renviron", "phpunit.xml*", ".gdbinit", ".my.cnf", ".psqlrc",
    ".sqliterc", ".mavenrc", "go.work", "rust-toolchain*", ".tool-versions", ".python-version", ".ruby-version",
)  # fmt: skip
"""Names of files that programs read when they start."""
STARTUP_FOLDERS = (
    ".config/pip", ".config/uv", ".config/git", ".config/fish", ".cache/pip", ".cache/uv", ".local/bin", ".local/lib",
    ".local/share/uv", ".npm", ".cargo/bin", ".cargo/config*", ".pip", ".nvm", ".pyenv", ".git/hooks",
    ".cargo/env", ".cargo/registry", ".cargo/git", ".rustup", ".config/go", ".cache/go-build", "go/pkg/mod", "go/bin",
    ".node_modules", ".node_libraries", ".yarn", ".deno", ".bun", ".gradle", ".m2", ".mvn", ".ipython", ".gem",
    ".bundle", ".rbenv", ".asdf", ".sdkman", ".julia", ".cpan", ".ssh/config", ".ssh/rc", ".ssh/environment",
)  # fmt: skip
"""Folders whose files are run, read at a start, or installed."""
IF_PYTEST = ("pyproject.toml", "setup.cfg", "tox.ini")
"""Files that are start-up files if they mention pytest."""


class Places(NamedTuple):
    """The agent's places in one machine."""

    workdir: str
    """Working directory; empty if it is the system's root or a part of the system."""
    own: frozenset[str]
    """Folders at the root that the agent itself made."""

    @classmethod
    def of(cls, changes: Changes, workdir: str) -> Places:
        """Return the agent's places in a machine with these changes."""
        filled = {f"/{path.split('/')[1]}" for path in changes.added if path.count("/") > 1}
        own = {top for top in filled & changes.added if top[1:] not in STANDARD}
        return cls(workdir if _is_narrow(workdir) else "", frozenset(own))

    @property
    def roots(self) -> tuple[str, ...]:
        """Places that lie in no other place, sorted."""
        places = sorted({*HOMES, *DATA, *self.own, *filter(None, [self.workdir])})
        return tuple(root for root in places if not any(root != one and lies_in(root, one) for one in places))

    def is_agents(self, path: str) -> bool:
        """Return whether a path lies in one of the agent's places."""
        return any(lies_in(path, root) for root in self.roots)

    def is_work(self, path: str) -> bool:
        """Return whether a path may be part of the deliverable. Start-up files in home folders are not."""
        in_home = any(lies_in(path, home) for home in HOMES)
        return self.is_agents(path) and not is_reserved(path) and not (in_home and self._is_start_up(path))

    def is_program(self, path: str, mentions_pytest: Callable[[str], bool]) -> bool:
        """Return whether tests may run a path, or read it at a start."""
        if any(lies_in(path, folder) for folder in (*OURS, *PASSING)) or is_reserved(path):
            return False
        if not self.is_agents(path):
            return True
        is_setting = path.rpartition("/")[2] in IF_PYTEST
        return self._is_start_up(path) or self._shadows(path) or (is_setting and mentions_pytest(path))

    def _is_start_up(self, path: str) -> bool:
        """Return whether a program may run or load this absolute path without being asked to."""
        parts = path.split("/")[1:]
        if any(part.partition(".")[0] in STARTUP_MODULES for part in parts):
            return True
        if any(fnmatchcase(parts[-1], name) for name in STARTUP_FILES):
            return True
        subpaths = ["/".join(parts[at : at + length]) for length in (1, 2, 3) for at in range(len(parts))]
        within = any(fnmatchcase(subpath, folder) for subpath in subpaths for folder in STARTUP_FOLDERS)
        return within and not parts[-1].endswith(".sample")  # Git runs no sample of a hook

    def _shadows(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return bool(self.workdir) and folder == self.workdir and name.partition(".")[0] in MODULES


def leaves(paths: AbstractSet[str]) -> Iterator[str]:
    """Yield, in sorted order, the paths that are not a parent folder of another one."""
    folders = {path.rpartition("/")[0] for path in paths}
    yield from sorted(paths - folders)


def changed_programs(
    changes: Changes | None, workdir: str, mentions_pytest: Callable[[str], bool]
) -> ChangedPrograms:
    """Return the changed programs for a trial's record; their count is None if the changes are unknown.

    `mentions_pytest` is called with the path of each file named in `IF_PYTEST`.
    """
    if changes is None:
        return ChangedPrograms(count=None)
    places = Places.of(changes, workdir)
    every = changes.added | changes.changed | changes.deleted
    found = [path for path in leaves(every) if places.is_program(path, mentions_pytest)]
    return ChangedPrograms(count=len(found), paths=clip_paths(found))


def clip_paths(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the first paths for a record, each cut to its limit and as valid text."""
    return tuple(plain(path)[:PATH_CHARACTERS] for path in paths[:MOST_PATHS])


def _is_narrow(workdir: str) -> bool:
    """Return whether a working directory is separate from the system: neither its root nor a part of it."""
    parts = workdir.strip("/").split("/")
    if parts[0] not in STANDARD:
        return bool(parts[0])
    return f"/{parts[0]}" in HOMES or len(parts) > (2 if parts[0] == "usr" else 1)
