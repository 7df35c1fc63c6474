"""Candidates for a task's source: releases on the package index, tar files of Debian, git clones. All unpacked only."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from runner.archives import Limits
from runner.benchmarks.nl2repo.upstream import Source, move_tests, unpack_commit, upstream
from runner.benchmarks.sources import packages, sdists
from runner.benchmarks.sources.checkouts import head
from runner.benchmarks.sources.clients import debian_source
from runner.benchmarks.sources.references import new_folder
from runner.benchmarks.sources.task_files import digest, short
from runner.errors import FetchError
from runner.files import write_atomically
from runner.terminal.escaping import Say

LIMITS = Limits(members=20_000, size=256 << 20)
"""Largest archive that is unpacked. Those of libraries are a hundredth of it."""
_ABSENT = re.compile(
    r"was not found in the package registry|No solution found|no versions? of|unsatisfiable", re.IGNORECASE
)
"""Pattern of what uv says if the index has no such release, as against an index that does not answer."""
_ORIGINAL = re.compile(r"^ ([0-9a-f]{64}) \d+ (\S+\.orig\.tar\.\w+)$", re.MULTILINE)


class Candidate(NamedTuple):
    """An archive that may hold a task's code and tests."""

    source: Source
    found: dict[str, Any]
    """sdist: its entry in uv's lock, with `url` and `hash`."""


class Release(NamedTuple):
    """A version on the package index. `found` is empty if it has no sdist."""

    version: str
    found: dict[str, Any]


def release(
    package: str, specifier: str, work: Path, *, oldest: bool = False, before: str = ""
) -> Release | None:
    """Return the newest (or oldest) release that a specifier allows; None if there is none. Keeps the index's answer.

    Raises `FetchError` if the index does not answer.
    """

    def ask() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                return sdists.release(package, specifier, Path(folder), oldest=oldest, before=before)
            except FetchError as error:
                if _ABSENT.search(" ".join(str(error).split())):
                    return {}
                raise

    entry = _remembered(work / "releases", [package, specifier, oldest, before], ask)
    return Release(entry["version"], entry.get("sdist") or {}) if entry else None


def sdist(package: str, found: Release) -> Candidate:
    """Return a release's sdist as a candidate."""
    source = Source(
        kind="sdist", package=package, version=found.version, digest=found.found["hash"], count="truth"
    )
    return Candidate(source, found.found)


def unpacked(candidate: Candidate, clone: Path | None, cache: Path, say: Say) -> Path:
    """Unpack an archive into the cache that `fetch_upstream` uses, and return its folder.

    Raises `ConfigError` for an archive that cannot be fetched, is hostile or is too large.
    """
    source = candidate.source
    target = upstream(source, cache)
    with new_folder(target, f"{source.kind} {source.package} {source.version}".rstrip(), say) as place:
        if place and source.kind == "sdist":
            sdists.unpack_distribution(
                candidate.found, source.package, place / "source", source.digest, LIMITS
            )
        elif place and source.kind == "debian":
            debian_source(source.package, source.digest, place / "source", say)
        elif place and clone:
            unpack_commit(clone, source.version, source.digest, place / "source")
        if place:
            move_tests(source, place / "source")
    return target / "source"


def debian_names(task: str, package: str) -> list[str]:
    """Return the names that Debian's conventions give the source package and the package of a library."""
    plain = [re.sub(r"[^a-z0-9.+]+", "-", name.lower()) for name in (package, task)]
    names = [
        name
        for one in plain
        for name in (one, *(f"{before}{one.removeprefix('python-')}" for before in ("python-", "python3-")))
    ]
    return [name for name in dict.fromkeys(names) if re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name)]


def debian_list(
    names: list[str], work: Path, say: Say, ask: Callable[[list[str], Say], str]
) -> dict[str, list[Candidate]]:
    """Return name -> its upstream tar files in Debian's suites, the newest first, for the names that Debian has."""
    text = _remembered(work / "debian", names, lambda: {"text": ask(names, say)})["text"]
    found: dict[str, dict[str, Candidate]] = {}
    for paragraph in text.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version|Directory): (\S+)$", paragraph, re.MULTILINE))
        sums = paragraph.partition("Checksums-Sha256:")[2]
        original = _ORIGINAL.search(sums)
        if original and len(fields) == 3:  # noqa: PLR2004 - all of them
            version = re.sub(r"^\d+:|-[^-]*$", "", fields["Version"])
            source = Source(
                kind="debian",
                package=packages.debian_file(f"{fields['Directory']}/{original[2]}"),
                version=version,
                digest=f"sha256:{original[1]}",
                count="truth",
            )
            binaries = re.search(r"^Binary:((?:.*\n?)(?: .*\n?)*)", paragraph, re.MULTILINE)
            known_as = re.findall(r"[^\s,]+", binaries[1]) if binaries else []
            for name in {fields["Package"], *known_as}.intersection(names):
                found.setdefault(name, {})[source.digest] = Candidate(source, {})
    return {
        name: sorted(each.values(), key=lambda one: _order(one.source.version), reverse=True)
        for name, each in sorted(found.items())
    }


def _order(version: str) -> tuple[list[int], str]:
    """Return a key that sorts versions of Debian's tar files: by their numbers, then by their text."""
    return [int(number) for number in re.findall(r"\d+", version)], version


def commit(clone: Path) -> Candidate:
    """Return the commit that a clone has checked out as a candidate. Raises `ConfigError` if it cannot be packed."""
    version = head(clone)
    with tempfile.TemporaryDirectory() as folder:
        found = unpack_commit(clone, version, "", Path(folder, "source"))
    return Candidate(Source(kind="git", package=clone.name, version=version, digest=found, count="truth"), {})


def _remembered(folder: Path, question: object, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the answer to a question from its file, or ask and write the file."""
    file = folder / f"{short(digest(question))}.json"
    if not file.is_file():
        write_atomically(file, json.dumps(ask()).encode(), lasting=False)
    answer: dict[str, Any] = json.loads(file.read_bytes())
    return answer
