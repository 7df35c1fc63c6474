"""Search the archives of a task for the one whose tests are those that the task publishes."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.benchmarks.nl2repo import published_folder
from runner.benchmarks.nl2repo.dataset import LEAST_OF_PUBLISHED, PythonImage
from runner.benchmarks.nl2repo.finding import archives, document_names, requirements, test_counts
from runner.benchmarks.nl2repo.finding.archives import Candidate, Release
from runner.benchmarks.nl2repo.finding.declarations import declared
from runner.benchmarks.nl2repo.finding.requirements import Wheelless
from runner.benchmarks.nl2repo.finding.resemblance import lacks_modules, resembles
from runner.benchmarks.nl2repo.finding.test_counts import Count
from runner.benchmarks.nl2repo.published_folder import DOCUMENT, Published
from runner.benchmarks.nl2repo.specification.inventory import code_lines
from runner.benchmarks.nl2repo.upstream import PYTHON, Source
from runner.benchmarks.sources.packages import python_name
from runner.benchmarks.sources.python_declared import read_declared
from runner.benchmarks.sources.registry_pypi import described, named
from runner.benchmarks.sources.sdists import install_modules, sdist_digest, unpack_distribution
from runner.errors import ConfigError, FetchError, TaskError
from runner.records import Record
from runner.terminal.escaping import Say

UNKNOWN_LICENSE = "NOASSERTION"
"""The SPDX word for an unknown licence."""
ABSENT = re.compile(r"\b404\b")
"""Pattern of what a client says if a server does not have a file, as against one that does not answer."""
WITHOUT_TESTS = 2
"""Number of releases without any test after which no further release of a package is tried."""


class Finding(Record):
    """Result of the search for a task's source."""

    task: str
    package: str = ""
    """Name under which the package index was asked."""
    published: int = 0
    """Published number of tests."""
    source: Source | None = None
    tests: int = 0
    """Number of tests in the source, counted by syntax."""
    exact: bool = False
    """See `test_counts.Count`."""
    tried: tuple[str, ...] = ()
    """Attempts, as sentences in order."""
    reason: str = ""
    """Reason why there is no source; empty if there is one."""


class PythonChoice(Record):
    """Version of Python that a task takes instead of the usual one."""

    version: str
    why: str
    """Reason, as a sentence."""


class Hints(Record):
    """Facts about a task's source that its archive does not state, so that the user has to."""

    requires: tuple[str, ...] = ()
    """Packages that its tests require although its archive does not say so."""
    sdists: tuple[str, ...] = ()
    """Requirements without a wheel, as `name==version`, in place of the newest. What they require themselves is to be
    asked for too."""
    without: tuple[str, ...] = ()
    """Versions that cannot be its source, since upstream fails its tests here."""
    moved: dict[str, str] = {}
    """See `Source.moved`."""
    python: PythonChoice | None = None


class _Seen:
    """Candidates with their counts, best first when sorted."""

    def __init__(self, published: int, hints: Hints, document: str, *, guessed: bool) -> None:
        self.published, self.without, self.moved = published, hints.without, hints.moved
        self.counted: list[tuple[Candidate, Path, Count]] = []
        self.tried: list[str] = []
        self.document = document
        """Document of the task, which has to describe each archive; empty if the user named the package."""
        self.strangers = 0
        """Number of archives that hold another library than the one described."""
        self.guessed = guessed
        """True if the package's name is a guess, so that its archives have to resemble the document."""

    def best(self) -> tuple[Candidate, Path, Count] | None:
        """Return the candidate with tests whose number is closest to the published one; of equals the first seen.

        One with too few tests for a truth comes last, for it can only be refused.
        """
        able = [each for each in self.counted if each[2].tests and each[0].source.version not in self.without]
        return min(
            able,
            key=lambda each: (self._too_few(each[2]), abs(each[2].tests - self.published)),
            default=None,
        )

    def _too_few(self, count: Count) -> bool:
        return count.exact and count.tests < LEAST_OF_PUBLISHED * self.published

    def enough(self) -> bool:
        """Return whether the best has half of the published tests or more, so that no other kind need be tried."""
        best = self.best()
        return best is not None and (2 * best[2].tests >= self.published or not best[2].exact)


@dataclass(frozen=True)
class Search:
    """Search for sources, and its settings."""

    cache: Path
    """Folder of fetched archives, which the dataset shares."""
    work: Path
    """Folder of the index's answers."""
    image_of: Callable[[str], PythonImage]
    """Version of Python -> its image, whose own packages are not installed twice. Raises `TaskError`."""
    most: int
    """Largest number of releases of a package that are fetched."""
    before: str
    """Date after which uploads are left out, or empty."""
    checkouts: Path | None
    debian: dict[str, list[Candidate]]
    """Package of Debian -> its tar files, the newest first."""
    say: Say
    hints: Mapping[str, Hints]
    """Task -> what the user knows about it."""

    def find(self, folder: Path, names: Sequence[str], documents: dict[str, list[str]]) -> Finding:
        """Return the source of a task, or the reason why there is none.

        `names` are those under which its library may be published. An archive of any but the first must resemble the
        document. Raises `FetchError` if something does not answer, so that the same command can try again.
        """
        package = names[0]
        finding = Finding(task=folder.name, package=package)
        try:
            published = published_folder.read(folder)
            published_folder.check_document(folder, package, documents)
        except TaskError as error:
            return finding.model_copy(update={"reason": str(error)})
        seen = self._try_names(folder, names, published)
        told = {"published": published.count, "tried": tuple(each for one in seen for each in one.tried)}
        sure = [one for one in seen[::-1] if one.enough()]  # a later name is tried if the first is doubtful
        best = next((found for one in (*sure, *seen) if (found := one.best())), None)
        if best is None:
            reason = "No archive of it has the tests that its commands name."
            if not any(one.counted for one in seen):
                reason = "No archive of it can be had from the package index, Debian or a clone."
                if any(one.strangers for one in seen):
                    reason = "The archives of its name hold another library than its document describes."
            return finding.model_copy(update={**told, "reason": reason})
        candidate, place, count = best
        if candidate.source.kind == "sdist":
            package = candidate.source.package
        told |= {"package": package, "tests": count.tests, "exact": count.exact}
        try:
            source = self._complete(folder.name, candidate.source, package, (place, published))
        except (FetchError, ValueError) as error:
            text = " ".join(str(error).split())[-300:]
            reason = (
                f"What {candidate.source.kind} {candidate.source.version} requires cannot be pinned: {text}"
            )
            return finding.model_copy(update={**told, "reason": reason})
        return finding.model_copy(update={**told, "source": source})

    def _try_names(self, folder: Path, names: Sequence[str], published: Published) -> list[_Seen]:
        """Try one name after the other until the archives of one have enough tests; return what was seen of each.

        Where archives of the first name do not resemble the document, the others are tried, too.
        """
        document = (folder / DOCUMENT).read_text("utf-8", errors="replace")
        found: list[_Seen] = []
        known = len(names) == 1  # from the user
        hints = self.hints.get(folder.name, Hints())
        for number, name in enumerate(names):
            seen = _Seen(published.count, hints, "" if known else document, guessed=number > 0)
            found.append(seen)
            self._try_all(folder, name, published, seen)
            best = seen.best()
            if best and seen.enough() and (seen.guessed or known or resembles(best[1], document)):
                break
        return found

    def _try_all(self, folder: Path, package: str, published: Published, seen: _Seen) -> None:
        """Try sdists, then Debian, then a clone, until one has tests."""
        document = (folder / DOCUMENT).read_text("utf-8", errors="replace")
        self._try_sdists(package, document_names.versions(package, document), published, seen)
        if not seen.enough():
            names = archives.debian_names(folder.name, package)
            tars = {tar.source.digest: tar for name in names for tar in self.debian.get(name, ())}
            for tar in tars.values():
                if not seen.enough():
                    self._look(tar, None, published, seen)
        clone = self.checkouts / folder.name if self.checkouts else None
        if clone and clone.is_dir() and not seen.enough() and not seen.guessed:
            try:
                self._look(archives.commit(clone), clone, published, seen)
            except ConfigError as error:
                seen.tried.append(f"git: {error}")

    def _try_sdists(self, package: str, named: list[str], published: Published, seen: _Seen) -> None:
        """Try the named versions, then the newest, then neighbours towards the published number of tests."""
        start: str | None = None
        for version in named:
            if self._try_release(package, f"=={version}", published, seen) is not None:
                start = start or version
        if not start:
            newest = self._try_release(package, "", published, seen)
            if newest is None:
                seen.tried.append(f"The package index has no {package} for this Python.")
                return
            start = newest.version
        for _ in self._steps(package, start, published, seen):
            if len(seen.tried) >= self.most:
                return

    def _steps(self, package: str, version: str, published: Published, seen: _Seen) -> Iterator[None]:
        """Try one neighbour after the other, in the direction in which the number of tests comes closer."""
        older: bool | None = None
        while True:
            best = seen.best()
            last = seen.counted[-1][2] if seen.counted else None
            if best and best[2].tests == published.count:
                return
            if not best and len(seen.tried) >= WITHOUT_TESTS:
                return
            if last is None or not last.tests or last.tests > published.count:
                back = True
            elif last.exact:
                back = False
            else:
                return  # an inexact count is a lower bound, which says nothing
            if older is not None and back != older:
                return
            older = back
            found = self._try_release(
                package, f"<{version}" if back else f">{version}", published, seen, oldest=not back
            )
            if found is None:
                return
            version = found.version
            yield

    def _try_release(
        self, package: str, specifier: str, published: Published, seen: _Seen, *, oldest: bool = False
    ) -> Release | None:
        found = archives.release(package, specifier, self.work, oldest=oldest, before=self.before)
        if found is None:
            return None
        if found.found:
            self._look(archives.sdist(package, found), None, published, seen)
        else:
            seen.tried.append(f"sdist {found.version}: the index has none.")
        return found

    def _look(self, candidate: Candidate, clone: Path | None, published: Published, seen: _Seen) -> None:
        """Unpack a candidate, and count its tests."""
        candidate = candidate._replace(source=candidate.source.model_copy(update={"moved": seen.moved}))
        name = f"{candidate.source.kind} {candidate.source.version}"
        try:
            place = archives.unpacked(candidate, clone, self.cache, self.say)
        except FetchError as error:
            if not ABSENT.search(str(error)):
                raise
            seen.tried.append(f"{name}: it is listed, and cannot be fetched (404).")
            return
        except ConfigError as error:
            seen.tried.append(f"{name}: refused: {error}")
            return
        if lacks_modules(place, seen.document) or (seen.guessed and not resembles(place, seen.document)):
            seen.strangers += 1
            seen.tried.append(
                f"{candidate.source.package} {candidate.source.version}: it is another library."
            )
            return
        files = test_counts.test_files(place, published)
        if not files and not seen.moved and (moved := test_counts.moved_tests(place, published)):
            candidate = candidate._replace(source=candidate.source.model_copy(update={"moved": moved}))
            place = archives.unpacked(candidate, clone, self.cache, self.say)
            files = test_counts.test_files(place, published)
        count = test_counts.count(files, place)
        seen.counted.append((candidate, place, count))
        least = "" if count.exact else "at least "
        seen.tried.append(f"{name}: {least}{count.tests} tests, {published.count} are published.")

    def _complete(self, task: str, source: Source, package: str, found_in: tuple[Path, Published]) -> Source:
        """Return a source with licence, lines and requirements. Raises `FetchError`, or `ValueError` for odd names."""
        place, published = found_in
        hints = self.hints.get(task, Hints())
        chosen = hints.python or PythonChoice(version=PYTHON, why="")
        tests = test_counts.test_files(place, published)
        wanted = requirements.wanted(place, tests, hints.requires, published.commands)
        image = self.image_of(chosen.version).image
        absent = (python_name(package), *(named(line) for line in hints.sdists))
        found = requirements.pinned(absent, wanted, image, chosen.version, self._wheelless)
        fields = {
            "license": _license(place) or UNKNOWN_LICENSE,
            "python": chosen.version,
            "python_reason": chosen.why,
            "lines": code_lines(place),
            **found._asdict(),
            "sdists": (*map(_with_digest, hints.sdists), *found.sdists),
        }
        return Source.model_validate(source.model_dump() | fields)

    def _wheelless(self, requirement: str) -> Wheelless:
        """Return the newest sdist that a requirement allows, if its modules can be taken without building it.

        Raises `FetchError`.
        """
        name, specifier = named(requirement), re.sub(r"^[\w.-]+(\[[^\]]*\])?", "", requirement).strip()
        found = archives.release(name, specifier, self.work, before=self.before)
        if found is None or not found.found:
            raise FetchError(f"{requirement}: the index has neither a wheel nor an sdist of it.")
        line = f"{name}=={found.version} --hash={found.found['hash']}"
        with tempfile.TemporaryDirectory() as folder:
            unpack_distribution(found.found, name, Path(folder, "source"), limits=archives.LIMITS)
            (into := Path(folder, "modules")).mkdir()
            install_modules(line, into)
            return Wheelless(line, tuple(declared(Path(folder, "source")).runtime))


def _with_digest(line: str) -> str:
    """Return a requirement `name==version` with the digest of its sdist. Raises `ConfigError` if it has none."""
    name, _, version = line.partition("==")
    return f"{line} --hash={sdist_digest(name, version)}"


def _license(place: Path) -> str:
    """Return the licence that an archive declares; empty if none can be read."""
    if (place / "PKG-INFO").is_file():
        return str(described(place / "PKG-INFO")["license"])[:200]
    try:
        declared = read_declared(place)
    except TaskError:
        return ""
    return str(declared.described["license"])[:200] if declared else ""
