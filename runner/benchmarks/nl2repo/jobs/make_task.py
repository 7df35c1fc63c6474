"""`job=make_nl2repo_task`: make a task folder from an sdist, with a verified ground truth and a document.

The document is a skeleton, or a draft that a model writes entry by entry.
"""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import yaml
from pydantic import Field, field_validator

from runner.benchmarks.nl2repo import published_folder
from runner.benchmarks.nl2repo.construction import document, drafting, eligibility
from runner.benchmarks.nl2repo.jobs.specification import write_inventory
from runner.benchmarks.nl2repo.specification.inventory import (
    assigned_attributes,
    code_lines,
    inventory,
)
from runner.benchmarks.nl2repo.specification.used_names import TestFile, import_statements, read_tests
from runner.benchmarks.sources import packages
from runner.benchmarks.sources.answering_model import ConstructionModel, most_usd
from runner.benchmarks.sources.answers import Answers
from runner.errors import ConfigError, JudgeError, TaskError
from runner.locks import exclusive
from runner.sweeps.cells import Job, Sweep
from runner.trials.scratch_folder import scratch_folder

if TYPE_CHECKING:
    from runner.benchmarks.nl2repo.dataset import Nl2RepoBench
    from runner.benchmarks.nl2repo.upstream import Source

QUESTION_TOKENS = 20_000
"""Length of the longest question (code, tests and instruction) in tokens of three characters."""
READMES = ("README.md", "README.rst", "README.txt", "README")


class MakeNl2RepoTask(Job):
    """Job that makes inventory, commands and deletion list from an sdist, and counts the tests that pass twice.

    With `draft`, the model of the command writes the document; answers that exist are not asked for again.
    """

    plans: ClassVar[bool] = True
    package: str
    """Name on the package index."""
    version: str
    task: str = ""
    """Name of the task; if empty, the package's name."""
    requires: tuple[str, ...] = ()
    """Requirements of library and tests; `source.yaml` pins them by digest."""
    plugins: tuple[str, ...] = ()
    """Modules of pytest plugins among the requirements."""
    tests: tuple[str, ...] = ()
    """Paths of the tests; if empty, `tests`, `test`, or files `test_*.py` at the top."""
    category: str = "unknown"
    license: str = ""
    """SPDX expression of the licence, for a package whose metadata does not state it as one."""
    licenses: tuple[str, ...] = eligibility.PERMISSIVE
    """SPDX identifiers of the licences that are allowed."""
    since: str | None = Field(default="", pattern=r"(\d{4}-\d\d-\d\d)?")
    """Day, YYYY-MM-DD, before which a release is too old; if empty, three years before today. None takes any."""
    draft: bool = False
    """True if the model writes the document."""
    usd: float = Field(default=5.0, gt=0)
    """Limit on the cost of the draft, in USD."""
    tries: int = Field(default=3, ge=1)
    """Attempts of the model at one answer. In each further one it is told the fault of the previous one."""

    @field_validator("version", mode="before")
    @classmethod
    def _is_quoted(cls, value: object) -> object:
        if isinstance(value, float | int):
            raise ValueError(  # noqa: TRY004 - pydantic catches this one
                "a number loses its zeros: quote it as a text, job.version=\"'1.10'\""
            )
        return value

    @field_validator("requires")
    @classmethod
    def _are_packages(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(packages.requirement, value))

    def run(self, sweep: Sweep) -> int:
        """Return exit code 0 when the task is complete.

        Raises `ConfigError`, also for a release that the paper's criteria exclude or a draft with gaps; `JudgeError`
        when the model does not answer or the cap is reached; and `EngineError`.
        """
        dataset = dataset_of(sweep)
        say = partial(print, flush=True)
        folder = dataset.root / (self.task or self.package)
        if (folder / "truth.json").exists() and not self.draft:
            raise ConfigError(f"{folder} is a complete task already: choose another job.task, or remove it.")
        if sweep.settings.dry_run:
            say(self._estimate(dataset, folder, sweep, say))
            return 0
        if not folder.exists():  # an existing folder was corrected by hand, and is only checked
            source, fetched = self._source(dataset, say)
            self._write(folder, source, fetched)
        if not (folder / "truth.json").exists():
            self._verify(folder, dataset, sweep, say)
        if self.draft:
            self._draft(folder, dataset, sweep, say)
        else:
            say("Now complete the draft in start.md; job=spec_coverage tests=DIR says what it lacks.")
        return 0

    def _verify(self, folder: Path, dataset: Nl2RepoBench, sweep: Sweep, say: partial[None]) -> None:
        """Run upstream's tests, and write the truth and the count."""
        from runner.benchmarks.nl2repo.ground_truth import words  # noqa: PLC0415 - only this job needs it

        sandboxes = sweep.settings.sandbox
        sandboxes.prepare([], say)
        try:
            truth = dataset.ground_truth(folder, sandboxes, say)
        except TaskError as error:
            remedy = f"Correct {folder}/source.yaml; the same command then continues."
            raise ConfigError(f"{folder.name}: {error}\n{remedy}") from error
        (folder / "test_case_count.txt").write_text(str(len(truth.passed)))
        say(f"{folder}: {words(truth)}.")

    def _source(self, dataset: Nl2RepoBench, say: partial[None]) -> tuple[Source, Path]:
        """Return the source of a release that the criteria allow, and its folder. Raises `ConfigError` for another."""
        from runner.benchmarks.nl2repo import upstream  # noqa: PLC0415 - only this job needs it
        from runner.benchmarks.sources import sdists  # noqa: PLC0415 - as below

        with tempfile.TemporaryDirectory() as place:
            sdist = sdists.sdist_release(self.package, self.version, Path(place)).get("sdist")
        if not sdist:
            raise ConfigError(f"{self.package} {self.version}: the package index has no sdist of it.")
        try:
            uploaded = self._uploaded(sdist)
            source = upstream.Source(
                kind="sdist",
                package=self.package,
                version=self.version,
                digest=sdist["hash"],
                packages=sdists.lock_requirements(self.requires),
                plugins=self.plugins,
                category=self.category,
                uploaded=uploaded,
            )
            fetched = upstream.fetch_upstream(source, dataset.root, dataset.verifier.cache, say)
            lines = code_lines(fetched)
            eligibility.check_size(lines)
            license_ = eligibility.check_license(
                self.license or eligibility.stated_license(fetched), self.licenses
            )
        except TaskError as error:
            raise ConfigError(f"{self.package} {self.version} cannot become a task. {error}") from error
        say(
            f"{self.package} {self.version}: {lines:,} lines, {license_}, uploaded {uploaded or 'on an unknown day'}"
        )
        return source.model_copy(update={"lines": lines, "license": license_}), fetched

    def _uploaded(self, sdist: dict[str, Any]) -> str:
        """Return the day of the upload. Raises `TaskError` if it is too long ago."""
        said = str(sdist.get("upload-time") or "")
        if self.since is None:
            return said[:10]
        today = dt.datetime.now(dt.UTC).date()
        since = dt.date.fromisoformat(self.since) if self.since else eligibility.years_before(today)
        return eligibility.check_age(said, since)

    def _write(self, folder: Path, source: Source, fetched: Path) -> None:
        """Write everything except the truth, completely or not at all. The count is 1 until the truth is known."""
        from runner.benchmarks.sources.references import new_folder  # noqa: PLC0415 - only this job needs it

        tests = list(self.tests) or _tests(fetched)
        if absent := [path for path in tests if not (fetched / path).exists()]:
            raise ConfigError(f"job.tests: the sdist of {self.package} {self.version} has no {absent[0]}.")
        entries = inventory(fetched)
        material = self._material(source, fetched, tests)
        command = f"pytest --continue-on-collection-errors {' '.join(tests)}"
        node = source.model_dump(mode="json", exclude_defaults=True)
        with new_folder(folder, folder.name, lambda _: None) as place:
            if place is None:  # another command has made it meanwhile
                return
            (place / "test_commands.json").write_text(json.dumps(["pip install -e .", command]))
            (place / "test_files.json").write_text(json.dumps(tests))
            (place / "test_case_count.txt").write_text("1")
            (place / "source.yaml").write_text(yaml.safe_dump(node, sort_keys=False, width=10_000))
            drafting.write_document(place, drafting.skeleton(material.facts), document.UNWRITTEN)
            write_inventory(entries, place / "inventory.json")

    def _material(self, source: Source, fetched: Path, tests: list[str]) -> drafting.Material:
        entries = inventory(fetched)
        files = [file for path in tests for file in _read(fetched, path)]
        readme = next((fetched / name for name in READMES if (fetched / name).is_file()), None)
        facts = document.Facts(
            name=self.task or self.package,
            version=source.version,
            packages=[line.split(" ")[0] for line in source.packages],
            tree=document.tree(fetched, tests),
            imports=import_statements(files, entries),
            entries=drafting.entries_to_describe(entries, files, assigned_attributes(fetched)),
        )
        text = readme.read_text("utf-8", errors="replace") if readme else ""
        return drafting.Material(facts=facts, root=fetched, readme=text, tests=files)

    def _known(self, folder: Path, dataset: Nl2RepoBench, say: partial[None]) -> drafting.Material:
        """Return the material of a task whose folder is written."""
        from runner.benchmarks.nl2repo import upstream  # noqa: PLC0415 - as above

        source, here = dataset.source(folder)
        fetched = upstream.fetch_upstream(source, here, dataset.verifier.cache, say, dataset.checkouts)
        return self._material(source, fetched, list(published_folder.read(folder).deleted))

    def _draft(self, folder: Path, dataset: Nl2RepoBench, sweep: Sweep, say: partial[None]) -> None:
        from runner.gateway import Gateway  # noqa: PLC0415 - its libraries take seconds, and help needs none

        settings = sweep.settings
        material = self._known(folder, dataset, say)
        with ExitStack() as stack:
            stack.enter_context(exclusive(folder))  # another command would pay for the same answers
            gateway = stack.enter_context(Gateway(stack.enter_context(scratch_folder()), settings.gateway))
            ledgers = settings.folder / "construction" / folder.name
            model = ConstructionModel(
                gateway, sweep.cells[0].model, folder.name, ledgers, self.usd, settings.record
            )
            answers = Answers(folder / published_folder.MAKING, model, self.tries)
            try:
                made = drafting.draft(material, answers, say)
            except JudgeError as error:
                raise JudgeError(f"{error} What is written is kept; the same command goes on.") from error
            bill = "no known price" if model.cost_usd is None else f"{model.cost_usd:.4f} USD"
        drafting.write_document(folder, made.text, drafting.author_of(answers))
        say(
            f"{folder / published_folder.DOCUMENT}: {len(made.text):,} characters, not reviewed by anybody; {bill}"
        )
        if made.failures:
            raise ConfigError(
                f"{len(made.failures)} parts are {document.UNWRITTEN} in it. Run the command again, or write their "
                f"files in {folder / published_folder.MAKING}:\n" + "\n".join(made.failures)
            )

    def _estimate(self, dataset: Nl2RepoBench, folder: Path, sweep: Sweep, say: partial[None]) -> str:
        """Return a text about what the command would ask, and what that may cost."""
        if not self.draft:
            return f"{folder} would be made. No model is asked."
        if not folder.exists():
            return f"{folder} would be made first; then dry_run=true says how many answers a draft takes."
        every = drafting.asked(self._known(folder, dataset, say))
        there = sum((folder / published_folder.MAKING / question.file).is_file() for question, _ in every)
        cost = (len(every) - there) * self.tries * most_usd(sweep.cells[0].model, QUESTION_TOKENS)
        return (
            f"{folder.name}: {len(every)} answers, {there} of them written; at most {min(cost, self.usd):.2f} USD "
            f"(job.usd={self.usd:g})."
        )


def dataset_of(sweep: Sweep) -> Nl2RepoBench:
    """Return the sweep's dataset. Raises `ConfigError` if it has no hidden suites."""
    from runner.benchmarks.nl2repo.dataset import Nl2RepoBench  # noqa: PLC0415 - only this job needs it

    dataset = sweep.cells[0].dataset
    if not isinstance(dataset, Nl2RepoBench):
        raise ConfigError(
            f"dataset {dataset.name} has no hidden suites: choose dataset=nl2repo dataset.root=DIR."
        )
    return dataset


def _read(fetched: Path, path: str) -> list[TestFile]:
    """Return the Python files at a path of the tests; none for a file of another kind."""
    place = fetched / path
    has_code = place.suffix == ".py" or (place.is_dir() and any(place.rglob("*.py")))
    return read_tests(place, fetched) if has_code else []


def _tests(source: Path) -> list[str]:
    """Return the paths of the tests. Raises `ConfigError` if there are none at the usual places."""
    folders = [name for name in ("tests", "test") if (source / name).is_dir()]
    found = folders[:1] or sorted(path.name for path in source.glob("test_*.py"))
    if not found:
        raise ConfigError(f"{source} has no folder tests or test and no test_*.py: set job.tests=[PATH,...].")
    return found
