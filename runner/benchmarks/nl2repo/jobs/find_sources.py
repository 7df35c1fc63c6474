"""`job=find_nl2repo_sources`: find the archives of tasks that hold upstream's code and tests, and write their sources.

Nothing of an archive runs. `job=verify_ground_truth` then runs upstream's tests in a sandbox.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ClassVar

import yaml
from packaging.utils import canonicalize_name
from pydantic import Field, ValidationError, field_validator

from runner.benchmarks.nl2repo import published_folder
from runner.benchmarks.nl2repo.dataset import SOURCE, Nl2RepoBench
from runner.benchmarks.nl2repo.finding import archives, document_names
from runner.benchmarks.nl2repo.finding.search import Finding, Hints, PythonChoice, Search
from runner.benchmarks.nl2repo.jobs.make_task import dataset_of
from runner.benchmarks.nl2repo.upstream import PYTHON
from runner.benchmarks.sources import packages
from runner.benchmarks.sources.task_files import digest, short, tree_digest
from runner.errors import ConfigError, EngineError, FetchError, ImageError
from runner.files import code_digest, write_atomically
from runner.sweeps.cells import Job, Sweep
from runner.terminal.escaping import Say, one_line

NAME = "nl2repo_sources"
UNANSWERED = "Something did not answer, and the same command asks again"


class FindNl2RepoSources(Job):
    """Tries for each task the versions that its document names, then neighbours, Debian and the user's clones.

    A task with a source is left alone. A finding is kept until the task's folder or an option changes, so the same
    command goes on where it was stopped.
    """

    plans: ClassVar[bool] = True
    tasks: tuple[str, ...] = ()
    """Names of tasks; empty for all without a source."""
    packages: dict[str, str] = {}
    """Task -> name on the package index, where that is neither in the document nor the task's name."""
    requires: dict[str, tuple[str, ...]] = {}
    """Task -> packages that its tests require although its archive does not say so."""
    sdists: dict[str, tuple[str, ...]] = {}
    """Task -> requirements without a wheel, as `name==version`, in place of the newest."""
    without: dict[str, tuple[str, ...]] = {}
    """Task -> versions that `job=verify_ground_truth` has refused, so that the next best one is taken."""
    moved: dict[str, dict[str, str]] = {}
    """Task -> path in the authors' layout -> path in the archive, for tests that the authors put elsewhere. It is found
    without this where the archive has one place of that name."""
    pythons: dict[str, PythonChoice] = {}
    """Task -> version of Python, if it needs another one than the usual one, and the reason."""
    most: int = Field(default=5, ge=1)
    """Largest number of releases of one package that are fetched."""
    before: str = Field(default="", pattern=r"(\d{4}-\d\d-\d\d)?")
    """Date, YYYY-MM-DD, after which uploads are left out."""
    debian: bool = True
    """True if Debian's source packages are tried too, which needs Docker."""

    @field_validator("packages")
    @classmethod
    def _are_names(cls, value: dict[str, str]) -> dict[str, str]:
        return {task: packages.python_name(name) for task, name in value.items()}

    @field_validator("sdists")
    @classmethod
    def _are_exact(cls, value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        return {task: tuple(map(packages.exact, lines)) for task, lines in value.items()}

    @field_validator("requires")
    @classmethod
    def _are_requirements(cls, value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        return {task: tuple(map(packages.requirement, lines)) for task, lines in value.items()}

    def run(self, sweep: Sweep) -> int:
        """Write each `source.yaml` and the report, and return 0. Raises `ConfigError` if a client fails."""
        dataset, say = dataset_of(sweep), partial(print, flush=True)
        folders = published_folder.folders(dataset.root)
        if absent := sorted({*self.tasks} - {folder.name for folder in folders}):
            raise ConfigError(f"job.tasks: the dataset has no task {absent[0]!r}.")
        chosen = [folder for folder in folders if self._is_wanted(folder, dataset)]
        names = {folder.name: self._names(folder) for folder in chosen}
        if sweep.settings.dry_run:
            say(f"{len(chosen)} tasks would be looked up, at most {self.most} releases each:")
            for task, packages_of in names.items():
                say(one_line(f"  {task}: {', else '.join(packages_of)}"))
            return 0
        work = sweep.settings.outputs / "cache" / NAME
        search = self._search(dataset, names, work, say)
        documents = published_folder.documents(folders)
        found = []
        for number, folder in enumerate(chosen, start=1):
            finding = self._find(search, folder, names[folder.name], documents)
            if finding.source:
                _write(finding, dataset.sources / finding.task / SOURCE)
            found.append(finding)
            say(one_line(f"[{number}/{len(chosen)}] {finding.task}: {_words(finding)}"))
        self._report(sweep.settings.folder / NAME, found)
        able = sum(finding.source is not None for finding in found)
        say(f"{able} of {len(found)} tasks have a source. Report: {sweep.settings.folder / NAME}")
        return 0

    def _is_wanted(self, folder: Path, dataset: Nl2RepoBench) -> bool:
        known = any((place / SOURCE).is_file() for place in (folder, dataset.sources / folder.name))
        return not known and (not self.tasks or folder.name in self.tasks)

    def _names(self, folder: Path) -> list[str]:
        """Return the names under which the library may be published, the most likely first."""
        if given := self.packages.get(folder.name):
            return [given]
        file = folder / published_folder.DOCUMENT
        document = file.read_text("utf-8", errors="replace") if file.is_file() else ""
        first = document_names.package_name(folder.name, document)
        names: dict[str, str] = {}
        for name in (first, *document_names.other_names(folder.name, document)):
            with suppress(ValueError):
                names.setdefault(canonicalize_name(name), packages.python_name(name))
        return list(names.values())

    def _search(self, dataset: Nl2RepoBench, names: dict[str, list[str]], work: Path, say: Say) -> Search:
        asked = sorted(
            {
                name
                for task, packages_of in names.items()
                for package in packages_of
                for name in archives.debian_names(task, package)
            }
        )
        return Search(
            cache=dataset.verifier.cache,
            work=work,
            image_of=dataset.image_of,
            most=self.most,
            before=self.before,
            checkouts=dataset.checkouts,
            debian=_debian(asked, work, say) if self.debian and asked else {},
            say=say,
            hints={task: self._hints(task) for task in names},
        )

    def _hints(self, task: str) -> Hints:
        return Hints(
            requires=self.requires.get(task, ()),
            sdists=self.sdists.get(task, ()),
            without=self.without.get(task, ()),
            moved=self.moved.get(task, {}),
            python=self.pythons.get(task),
        )

    def _find(
        self, search: Search, folder: Path, names: list[str], documents: dict[str, list[str]]
    ) -> Finding:
        """Return the finding from its file, or search and write the file."""
        hints = self._hints(folder.name)
        chosen = hints.python.version if hints.python else PYTHON
        own = hints.model_dump(mode="json")
        options = [names, self.most, self.before, sorted(search.debian), str(search.checkouts), own]
        files = tree_digest(folder, published_folder.PARTS)
        code = code_digest(Path(archives.__file__).parent.glob("*.py"))
        key = digest([folder.name, files, options, tree_digest(search.image_of(chosen).image), code])
        file = search.work / "findings" / f"{short(key)}.json"
        try:
            return Finding.model_validate_json(file.read_bytes())
        except (FileNotFoundError, ValidationError):
            pass
        if not names:
            finding = Finding(task=folder.name, reason="No package of the index can have its name.")
        else:
            try:
                finding = search.find(folder, names, documents)
            except FetchError as error:  # not kept: the same command tries again
                text = " ".join(str(error).split())[-300:]
                return Finding(task=folder.name, package=names[0], reason=f"{UNANSWERED}: {text}")
        write_atomically(file, finding.model_dump_json().encode(), lasting=False)
        return finding

    def _report(self, folder: Path, found: list[Finding]) -> None:
        """Write `findings.json`, and `reasons.yaml` with the tasks that have no source."""
        content = [finding.model_dump(mode="json", exclude_defaults=True) for finding in found]
        write_atomically(folder / "findings.json", json.dumps(content, indent=1).encode() + b"\n")
        reasons = {finding.task: finding.reason for finding in found if finding.reason}
        write_atomically(folder / "reasons.yaml", yaml.safe_dump(reasons, width=10_000).encode())


def _debian(names: list[str], work: Path, say: Say) -> dict[str, list[archives.Candidate]]:
    """Return what Debian has of these names; nothing, with a remark, if there is no engine to ask it."""
    from runner.sandbox.docker.debian_pool import describe_sources  # noqa: PLC0415 - only this needs an engine

    try:
        return archives.debian_list(names, work, say, describe_sources)
    except (EngineError, ImageError, FetchError) as error:
        say(f"Debian's source packages are left out: {error}")
        return {}


def _write(finding: Finding, file: Path) -> None:
    assert finding.source is not None  # noqa: S101 - the caller has checked it
    node = finding.source.model_dump(mode="json", exclude_defaults=True)
    write_atomically(file, yaml.safe_dump(node, sort_keys=False, width=10_000).encode())


def _words(finding: Finding) -> str:
    if finding.source is None:
        return f"no source: {finding.reason}"[:300]
    least = "" if finding.exact else "at least "
    return (
        f"{finding.source.kind} {finding.source.package} {finding.source.version}, {least}{finding.tests} tests "
        f"({finding.published} published)"
    )
