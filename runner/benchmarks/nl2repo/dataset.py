"""NL2Repo-Bench: write a whole repository from one document, judged by upstream's own tests (section 3).

A task is a folder in the authors' public layout: `start.md` (the document), `test_case_count.txt`,
`test_commands.json` and `test_files.json` (paths to delete from the agent's work). The tests are not published beside
it. A `source.yaml` says where they come from, and a `truth.json` holds the results of upstream's own code. Both lie in
the task's folder or, for the public tasks, in `tasks/nl2repo/sources`.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from runner.benchmarks.nl2repo import published_folder, upstream
from runner.benchmarks.nl2repo.instructions import Wording, instruction
from runner.benchmarks.nl2repo.published_folder import DOCUMENT, Published
from runner.benchmarks.nl2repo.suite import WORKSPACE, Suite, Truth
from runner.benchmarks.nl2repo.upstream import Source
from runner.benchmarks.nl2repo.verifier import SuiteVerifier
from runner.benchmarks.sources import borrowed
from runner.benchmarks.sources.references import new_folder
from runner.benchmarks.sources.task_files import (
    check_links,
    chosen_folders,
    digest,
    read_truth,
    short,
    tree_digest,
)
from runner.errors import ConfigError, TaskError
from runner.files import write_atomically
from runner.records import Answer, Environment, Record, Task, VerifierSpec
from runner.sweeps.yaml_files import read_yaml

if TYPE_CHECKING:
    from runner.protocols import SandboxProvider
    from runner.report.blocks import Sections

SOURCE, TRUTH = "source.yaml", "truth.json"
EASY, MEDIUM = 1500, 4000
"""Largest number of lines of upstream's code in an easy task, and smallest in a hard one (Table 2)."""
BUILD_SECONDS = 1800.0
"""Limit on the build of an image. Some have hundreds of megabytes of packages, which the build compiles."""
LEAST_OF_PUBLISHED = 0.8
"""Smallest share of the published number of tests that upstream must pass here under `count: truth`."""


class PythonImage(Record):
    """Image for tasks that need another version of Python than the usual one."""

    version: str
    """Version, such as "3.11", that `source.yaml` names as its `python`."""
    image: Path
    """Build context, as `Nl2RepoBench.image`."""
    build_args: dict[str, str] = {}


class Nl2RepoBench(Record):
    """Dataset of NL2Repo-Bench tasks, from a folder."""

    name: str
    root: Path
    """Absolute folder whose children with any of the four files are the tasks, in the order of their names."""
    sources: Path
    """Folder with `TASK/source.yaml` and `TASK/truth.json` for tasks whose own folder lacks them."""
    image: Path
    """Build context of the image in which tasks are done and judged."""
    pythons: tuple[PythonImage, ...] = ()
    """Images with other versions of Python."""
    published: Path
    """Dockerfile that builds on the authors' image of a task, to judge in it."""
    checkouts: Path | None = None
    """Folder of the user's git clones, for sources with `kind: git`."""
    build_args: dict[str, str] = {}
    pass_threshold: float = Field(default=1.0, ge=0, le=1)
    """Lowest reward with which a trial passes."""
    reveal_tests: bool = False
    """True if the agent gets the tests too (section 4.4.2)."""
    include: tuple[str, ...] = ()
    """Names of the tasks to use; if empty, all."""
    instruction: Wording = "ours"
    """Words with which the agent gets its task. ours: warns of hidden tests and says that nobody answers questions,
    which suppresses early halts that the paper reports (section 4.2). paper: as the authors' agents got it."""
    answers_in_reach: Literal["refuse", "flag"] = "refuse"
    """Treatment of a trial whose library is in the agent's bundle, the runtime or the image
    (`runner.sweeps.answers_in_reach`)."""
    verifier: SuiteVerifier

    @classmethod
    def report_sections(cls) -> Sections:
        """Return the sections on hidden suites, which the report of a sweep shows beside the general ones."""
        from runner.benchmarks.nl2repo.report.sections import SECTIONS  # noqa: PLC0415 - brings pandas and matplotlib

        return SECTIONS

    def tasks(self) -> Sequence[Task]:
        """Return every task, sorted by folder; broken tasks and those that cannot be judged here have `refused` set.

        Raises `ConfigError` when there is no task, or `include` names one that does not exist.
        """
        folders = published_folder.folders(self.root)
        if not folders:
            raise ConfigError(
                f"dataset {self.name}: no folder of NL2Repo-Bench in {self.root}. Set dataset.root to test_files/."
            )
        chosen = chosen_folders(folders, self.include, f"dataset {self.name}: {self.root}")
        documents = published_folder.documents(folders)
        return [self._task(folder, documents) for folder in chosen]

    def prepare(self, say: Callable[[str], None]) -> None:
        """Fetch upstream's sources and the contents of images. Raises `ConfigError` when a client fails."""
        for task in self.tasks():
            for flag in () if task.refused else task.flags:
                say(f"{task.name} is flagged {flag}: {published_folder.REMARKS[flag]}")
            if not task.refused:
                self.make(task.directory, self.suite(task.directory), say)

    def truth_folders(self, tasks: Sequence[str]) -> list[Path]:
        """Return the folders of these tasks; without names, of those in `include`, or of all that have a source."""
        names = tasks or self.include
        folders = published_folder.folders(self.root)
        return [f for f in folders if (f.name in names if names else self._has_source(f))]

    def find_truth(
        self, folder: Path, scripts: Path | None, sandboxes: SandboxProvider, say: Callable[[str], None]
    ) -> str:
        """Run upstream's code against its own tests (`runner.jobs.verify_ground_truth`)."""
        from runner.benchmarks.nl2repo.ground_truth import others, words  # noqa: PLC0415 - only jobs need it

        if scripts:
            raise ConfigError("job.scripts: hidden suites are verified with upstream's code; leave it out.")
        truth = self.ground_truth(folder, sandboxes, say)
        published = published_folder.read(folder).count
        if fault := _count_fault(truth, published, self.source(folder)[0]):
            raise TaskError(f"{fault} ({others(truth)})")
        differs = "" if len(truth.passed) == published else f"; {published} are published"
        return f"{words(truth)}{differs}"

    def ground_truth(self, folder: Path, sandboxes: SandboxProvider, say: Callable[[str], None]) -> Truth:
        """Find a task's truth, and write it beside its `source.yaml`.

        Raises `TaskError` where there is none, `ConfigError` when something cannot be fetched, and `EngineError`.
        """
        from runner.benchmarks.nl2repo.ground_truth import LEFT_OUT, ground_truth  # noqa: PLC0415 - as above

        source, here = self.source(folder)
        if source.kind == "none":
            raise TaskError("There is no upstream code to check its tests with: its source has kind=none.")
        suite = self.bare_suite(published_folder.read(folder), source)
        task = self.make(folder, suite, say)
        most = LEFT_OUT if source.count == "truth" else 0.0
        truth = ground_truth(task, suite, self.verifier, sandboxes, self.truth_digest(suite, source), most)
        write_atomically(here / TRUTH, truth.model_dump_json(indent=1).encode() + b"\n")
        return truth

    def _has_source(self, folder: Path) -> bool:
        try:
            return self.source(folder)[0].kind != "none"
        except TaskError:
            return False

    def make(self, folder: Path, suite: Suite, say: Callable[[str], None]) -> Task:
        """Make everything of a task that the cache lacks, and return the task."""
        source, here = self.source(folder)
        cache = self.verifier.cache
        fetched = None
        if source.kind != "none":
            fetched = upstream.fetch_upstream(source, here, cache, say, self.checkouts)
        task = self.complete(Task(name=folder.name, dataset=self.name, directory=folder), suite)
        with new_folder(_there(task.verifier.tests), f"the suite of {folder.name}", say) as place:
            if place:
                upstream.write_suite(suite, None if source.image else fetched, place)
        if fetched and task.solution:
            with new_folder(task.solution, f"the oracle of {folder.name}", say) as place:
                if place:
                    upstream.write_oracle(fetched, suite.deleted, place)
        self._make_image(task.environment, (folder, suite, fetched), say, revealed=self.reveal_tests)
        judged_in = task.verifier.environment
        if judged_in and judged_in != task.environment:
            published = self.published if source.image else None
            self._make_image(judged_in, (folder, suite, fetched), say, dockerfile=published)
        return task

    def source(self, folder: Path) -> tuple[Source, Path]:
        """Return a task's source and the folder of its `source.yaml`. Raises `TaskError` when there is none."""
        for place in (folder, self.sources / folder.name):
            if (place / SOURCE).is_file():
                try:
                    return read_yaml(place / SOURCE, Source, SOURCE), place
                except ConfigError as error:
                    raise TaskError(str(error)) from error
        raise TaskError(
            f"It is not known where its hidden tests are: write {self.sources / folder.name / SOURCE} "
            "(an sdist, a tar file of Debian, a git commit, a folder or the published image), or let "
            "job=find_nl2repo_sources find it."
        )

    def image_of(self, python: str) -> PythonImage:
        """Return the image with a version of Python. Raises `TaskError` if there is none."""
        usual = PythonImage(version=upstream.PYTHON, image=self.image, build_args=self.build_args)
        for image in (usual, *self.pythons):
            if image.version == python:
                return image
        raise TaskError(f"There is no image with Python {python}: name one in dataset.pythons.")

    def suite(self, folder: Path) -> Suite:
        """Return the suite that judges a task.

        Raises `TaskError` when its truth is missing, belongs to something else, or differs from the published count
        although the source does not say `count: truth`.
        """
        published = published_folder.read(folder)
        source, here = self.source(folder)
        bare = self.bare_suite(published, source)
        truth = read_truth(here / TRUTH, Truth)
        if source.kind == "none":
            return bare
        if truth is None:
            raise TaskError(
                "Nobody has checked that upstream passes its own tests here: run job=verify_ground_truth."
            )
        if truth.digest != self.truth_digest(bare, source):
            raise TaskError(
                "Its source, commands or image are not those whose ground truth is stored: run "
                "job=verify_ground_truth."
            )
        known = {"expected": truth.passed}
        if len(truth.passed) == published.count:
            return bare.model_copy(update=known)
        if fault := _count_fault(truth, published.count, source):
            raise TaskError(fault)
        counts = {"count": len(truth.passed), "published": published.count}
        return bare.model_copy(update=known | counts)

    def bare_suite(self, published: Published, source: Source) -> Suite:
        """Return the suite without the tests that are expected to pass."""
        return Suite(
            commands=published.commands,
            deleted=published.hidden,
            count=published.count,
            plugins=source.plugins,
            env=source.env,
            command_seconds=source.command_seconds,
        )

    def truth_digest(self, suite: Suite, source: Source) -> str:
        """Return the digest of everything that a ground truth depends on.

        The deletion list is not part of it: files that it takes from upstream are put back.
        """
        images = [
            tree_digest(self.image_of(source.python).image),
            self.published.read_text() if source.image else "",
        ]
        ran = suite.model_dump(
            mode="json", exclude={"expected", "count", "published", "deleted"}, exclude_defaults=True
        )
        return digest([ran, source.shaping, images])

    def _task(self, folder: Path, documents: dict[str, list[str]]) -> Task:
        task = Task(name=folder.name, dataset=self.name, directory=folder, language="python")
        try:
            check_links(folder, (*published_folder.PARTS, SOURCE, TRUTH))
            task = task.model_copy(update={"digest": tree_digest(folder, published_folder.PARTS)})
            published = published_folder.read(folder)
            source, _ = self.source(folder)
            flags = (*published.flags, *published_folder.flags_of_making(folder))
            strata = {"tier": _tier(source.lines), "category": source.category, "flags": flags}
            task = task.model_copy(update=strata)
            published_folder.check_document(folder, source.package, documents)
            suite = self.suite(folder)
            unproven = () if suite.expected else (published_folder.NO_TRUTH,)
            differs = (published_folder.COUNT_DIFFERS,) if suite.published else ()
            paper = (published_folder.PAPER_INSTRUCTION,) if self.instruction == "paper" else ()
            flags = (*task.flags, *unproven, *differs, *paper)
            return self.complete(task.model_copy(update={"flags": flags}), suite)
        except TaskError as error:
            return task.model_copy(update={"refused": str(error)})

    def complete(self, task: Task, suite: Suite) -> Task:
        """Return the task with all other fields. Pure, except for the files that it reads."""
        source, _ = self.source(task.directory)
        cache, files = self.verifier.cache, tree_digest(task.directory, published_folder.PARTS)
        identity = digest([files, suite.identity, source.shaping, self.reveal_tests, self.verifier.shaping,
                           *(["paper"] if self.instruction == "paper" else [])])  # fmt: skip
        oracle = cache / "oracle" / short(digest([source.shaping, suite.deleted]))
        return task.model_copy(
            update={
                "digest": identity,
                "instruction": instruction(self.instruction, revealed=self.reveal_tests),
                "environment": self._environment(task, source, suite, revealed=self.reveal_tests),
                "agent_user": "agent",
                "verifier": VerifierSpec(
                    mode="separate",
                    tests=cache / "suites" / short(digest([suite.identity, source.shaping])),
                    environment=self._environment(task, source, suite, revealed=False, judging=True),
                    timeout_seconds=suite.command_seconds,
                ),
                "solution": None if source.kind == "none" else oracle,
                "answer": Answer(
                    packages={"pypi": (source.package if source.kind == "sdist" else task.name,)},
                    source=None if source.kind == "none" else oracle / "source",
                    borrowed=oracle / borrowed.FILE,
                    tolerated=self.answers_in_reach == "flag",
                ),
            }
        )

    def _environment(
        self, task: Task, source: Source, suite: Suite, *, revealed: bool, judging: bool = False
    ) -> Environment:
        published = judging and source.image is not None
        image = self.image_of(source.python)
        build_args = {"BASE": source.image or ""} if published else image.build_args
        document = hashlib.sha256((task.directory / DOCUMENT).read_bytes()).hexdigest()
        tests = [source.shaping, suite.deleted] if revealed else None
        dockerfile = self.published.read_text() if published else ""
        parts = [
            tree_digest(image.image),
            dockerfile,
            build_args,
            source.packages,
            source.withheld,
            document,
            tests,
            *(part for part in (source.plugins, source.sdists) if part),
        ]
        return Environment(
            name=task.name,
            context=self.verifier.cache / "nl2repo_images" / short(digest(parts)),
            build_args=build_args,
            build_timeout_seconds=BUILD_SECONDS,
            network="no-network",
            workdir=WORKSPACE,
            digest=digest(parts),
        )

    def _make_image(
        self,
        environment: Environment,
        parts: tuple[Path, Suite, Path | None],
        say: Callable[[str], None],
        *,
        revealed: bool = False,
        dockerfile: Path | None = None,
    ) -> None:
        """Make the build context of an image; `parts` are the task's folder, its suite and upstream's source."""
        folder, suite, fetched = parts
        files = {DOCUMENT: folder / DOCUMENT}
        if revealed and fetched is None:
            raise ConfigError(f"{folder.name}: its tests are in the authors' image and cannot be revealed.")
        if revealed and fetched:
            files |= upstream.tests_of(fetched, suite.deleted)
        with new_folder(_there(environment.context), f"the image of {folder.name}", say) as place:
            if place:
                source, _ = self.source(folder)
                upstream.write_context(self.image_of(source.python).image, source, files, place)
                if dockerfile:
                    shutil.copyfile(dockerfile, place / "Dockerfile")


def _count_fault(truth: Truth, published: int, source: Source) -> str:
    """Return why a truth's number of tests cannot be the denominator of a task's scores; empty if it can."""
    passes = f"Upstream passes {len(truth.passed)} of its tests here, and {published} are published"
    if source.count == "truth":
        few = len(truth.passed) < LEAST_OF_PUBLISHED * published
        return (
            f"{passes}: too few. Name another version in {SOURCE}, or what its tests require." if few else ""
        )
    if len(truth.passed) == published:
        return ""
    return (
        f"{passes}: name another version in {SOURCE}, or write `count: truth` there to score against these."
    )


def _tier(lines: int | None) -> str:
    if lines is None:
        return "unknown"
    return "easy" if lines <= EASY else "medium" if lines < MEDIUM else "hard"


def _there(path: Path | None) -> Path:
    assert path is not None  # noqa: S101 - `complete` gives every task both
    return path
