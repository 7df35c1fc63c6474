"""Find out whether the answer of a task is in reach of the agent: in its bundle, the runtime, or the task's image.

An agent's commands can read its own installation: an unprivileged process cannot be kept from what its parent must
read. A trial whose answer lies there would measure copying. It is refused before anything is paid for, or flagged with
`dataset.answers_in_reach=flag`. An answer is found by the names of its packages, which locks tell before anything is
installed, and by the content of its files (`answers_in_reach_inside`). Contents are searched once for each bundle,
image and answer, and the findings are cached.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from runner.errors import ImageError, ProgramError
from runner.files import write_atomically
from runner.records import Answer, BundleRecipe, ExecSpec, Record, SandboxSpec
from runner.sandbox.inside import PYTHON, ROOT
from runner.sweeps import answers_in_reach_inside
from runner.sweeps.answers_in_reach_inside import normalised, pieces
from runner.sweeps.plan import Plan, identity
from runner.terminal.escaping import Say, one_line, step

if TYPE_CHECKING:
    from runner.protocols import SandboxProvider
    from runner.records import Image, InstalledBundle, Task
    from runner.sweeps.plan import PlannedTrial


FLAG = "answer_in_reach"
CODE = (".py", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".go")
"""Endings of source files. A file without an ending counts if it names its interpreter."""
BESIDE = {"test", "tests", "testing", "testdata", "doc", "docs", "example", "examples", "benchmarks"}
"""Folders in the source of an answer that are not the answer."""
COMMON = {"setup.py", "conf.py", "noxfile.py", "conftest.py", "_version.py"}
"""Files with much the same content everywhere."""
SEARCH_SECONDS = 900.0
"""Time limit for the search of one part."""
PARALLEL = 2
"""Number of parts that are searched at once, each on its own core."""
PLACE = "/tmp/assay-reach"  # noqa: S108 - in a sandbox that nothing else shares
"""Folder of the program in the sandbox."""
RUNTIME = "python"
_QUOTED = re.compile(rb"\"((?:[^\"\\\n]|\\.)*)\"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`", re.DOTALL)
_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_PARSING = Lock()
"""Lock that is held while Python source is parsed: CPython 3.11 counts the depth of all threads' trees together, and
fails (`SystemError: AST constructor recursion depth mismatch`)."""


class Finding(Record):
    """Place in which an answer lies."""

    path: str
    """Path in the sandbox."""
    what: str
    """Relation of the file to the answer, in words: "is a copy of src/x.py"."""


class Searched(Record):
    """Findings in one part, as they are cached."""

    content: str = ""
    """Digest of the part's content. Changed content is searched anew."""
    found: dict[str, Finding | None] = {}
    """Answer -> its place; None if it is not there."""


class Part(NamedTuple):
    """Unit of a search: a bundle, the runtime or an image."""

    name: str
    """Name in words."""
    identity: str
    """Digest of its recipe. It is known before the part is installed."""
    root: str
    recipe: BundleRecipe | None = None


class _Descriptions:
    """Answers as the program in the sandbox takes them. Each is described once, however many parts are searched."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_key: dict[str, dict[str, object]] = {}

    def __call__(self, key: str, answer: Answer) -> dict[str, object]:
        """Return the description of the answer with this key."""
        with self._lock:
            if key not in self._by_key:
                self._by_key[key] = _described(answer)
            return self._by_key[key]


class Reach:
    """Knowledge of answers in reach, in a cache folder that all sweeps share and that may not exist yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def apply(self, plan: Plan) -> Plan:
        """Return the plan with the trials refused, or flagged, whose answer lies in reach as far as is known."""
        if not any(map(_concerned, plan.trials)):
            return plan
        known: dict[tuple[int, int], Task] = {}

        def judged(trial: PlannedTrial) -> PlannedTrial:
            pair = id(trial.cell), id(trial.task)  # attempts share both objects, and go on sharing them
            if pair not in known:
                known[pair] = self._judged(trial)
            task = known[pair]
            return trial if task is trial.task else trial.model_copy(update={"task": task})

        trials = tuple(map(judged, plan.trials))
        left = {trial.key: trial for trial in trials if not trial.task.refused}
        return Plan(trials=trials, todo=tuple(left[trial.key] for trial in plan.todo if trial.key in left))

    def search(
        self,
        trials: Iterable[PlannedTrial],
        sandboxes: SandboxProvider,
        installed: Mapping[str, InstalledBundle],
        say: Say,
    ) -> None:
        """Search the bundles and images of these trials for the trials' answers, unless that was done before.

        An image that cannot be had is left to its own trials, which say so. Raises `ProgramError` and `EngineError`.
        """
        trials_by_part: dict[Part, dict[str, PlannedTrial]] = {}
        for trial in filter(_concerned, trials):
            for part in _parts(trial):
                trials_by_part.setdefault(part, {})[_key(_answer(trial.task))] = trial
        tools = sandboxes, installed, _Descriptions(), say
        with ThreadPoolExecutor(PARALLEL) as pool:
            searches = [
                pool.submit(self._search_part, part, by_answer, tools)
                for part, by_answer in trials_by_part.items()
            ]
            for search in searches:
                search.result()

    def _search_part(
        self,
        part: Part,
        by_answer: Mapping[str, PlannedTrial],
        tools: tuple[SandboxProvider, Mapping[str, InstalledBundle], _Descriptions, Say],
    ) -> None:
        sandboxes, installed, describe, say = tools
        task = next(iter(by_answer.values())).task
        try:
            image = sandboxes.image(
                task.environment, partial(step, say, what=f"the image of {one_line(task.name)}")
            )
        except ImageError:
            return
        content, cached = _content(part, image, installed), self._searched(part)
        known = cached.found if cached.content == content else {}
        new = [key for key in by_answer if key not in known]
        if not new or not content:  # a sandbox without images and bundles has no content
            return
        say(f"Looking for answers in {part.name}")
        answers = {key: describe(key, _answer(by_answer[key].task)) for key in new}
        found = _found(part, image, task, answers, sandboxes)
        after = Searched(content=content, found={**known, **dict.fromkeys(answers), **found})
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._place(part), after.model_dump_json(indent=1).encode())

    def _judged(self, trial: PlannedTrial) -> Task:
        """Return the task of a trial, refused or flagged if its answer lies in reach."""
        if not _concerned(trial) or not (why := self._why(trial)):
            return trial.task
        answer = _answer(trial.task)
        if answer.tolerated:
            update: dict[str, object] = {"flags": (*trial.task.flags, FLAG)}
        else:
            update = {
                "refused": f"its answer lies in reach of {trial.cell.agent.name}: {why}. Choose another agent or task; "
                "dataset.answers_in_reach=flag runs it and flags the trial."
            }
        return trial.task.model_copy(update=update)

    def _why(self, trial: PlannedTrial) -> str:
        """Return where the answer of a trial lies, in words; empty if no place is known."""
        answer = _answer(trial.task)
        for part in _parts(trial):
            if part.recipe and (name := _locked(part.recipe, answer)):
                return f"{part.name} holds the package {name}"
            if found := self._searched(part).found.get(_key(answer)):
                return f"{found.path} ({part.name}) {found.what}"
        return ""

    def _searched(self, part: Part) -> Searched:
        try:
            return Searched.model_validate_json(self._place(part).read_bytes())
        except (OSError, ValueError):
            return Searched()

    def _place(self, part: Part) -> Path:
        return self._folder / f"{_digest(part.name, part.identity)[:32]}.json"


def _concerned(trial: PlannedTrial) -> bool:
    """Return whether a trial has an answer to look for. A bound does not count: `oracle` applies the answer."""
    return trial.task.answer is not None and trial.cell.agent.uses_model and not trial.task.refused


def _answer(task: Task) -> Answer:
    assert task.answer is not None  # noqa: S101 - asked of concerned trials only
    return task.answer


def _parts(trial: PlannedTrial) -> Iterator[Part]:
    """Yield the parts that the agent of a trial can read and has not written."""
    if recipe := trial.cell.agent.bundle:
        yield Part(f"bundle {recipe.name}", identity(recipe), f"{ROOT}/{recipe.name}", recipe)
    yield Part(f"bundle {RUNTIME}", RUNTIME, f"{ROOT}/{RUNTIME}")
    yield Part("the task's image", trial.task.environment.digest, "/")


def _content(part: Part, image: Image, installed: Mapping[str, InstalledBundle]) -> str:
    """Return the digest of a part's content; empty if there is no such part."""
    if part.root == "/":
        return image.id
    bundle = installed.get(part.root.rpartition("/")[2])
    return bundle.content if bundle else ""


def _found(
    part: Part, image: Image, task: Task, answers: Mapping[str, object], sandboxes: SandboxProvider
) -> dict[str, Finding]:
    """Search a part for described answers in a sandbox of its own, without a network.

    Raises `ProgramError` when the search fails.
    """
    spec = SandboxSpec(
        name=f"reach-{task.name}",
        image=image,
        environment=task.environment,
        user="root",
        bundles=(part.recipe,) if part.recipe else (),
        runtime=True,
    )
    with sandboxes.open(spec) as sandbox:
        wanted = {
            "answers": answers,
            "parts": {part.name: part.root},
            # What the task gives to the agent is no secret; the rest are the kernel's files and other parts.
            "without": [sandbox.workdir, "/proc", "/sys", "/dev", ROOT, PLACE] if part.root == "/" else [],
        }
        program = Path(answers_in_reach_inside.__file__).read_text()
        command = ExecSpec(
            argv=(PYTHON, "-I", "-S", f"{PLACE}/search.py", f"{PLACE}/wanted.json"),
            cwd="/",
            files={f"{PLACE}/search.py": program, f"{PLACE}/wanted.json": json.dumps(wanted)},
            timeout_seconds=SEARCH_SECONDS,
        )
        result = sandbox.exec(command)
    if result.exit_code != 0:
        raise ProgramError(f"{part.name} could not be searched ({result.ended}): {result.stderr[-2000:]}")
    return {key: Finding.model_validate(found) for key, found in json.loads(result.stdout)[part.name].items()}


def _key(answer: Answer) -> str:
    """Return the digest of an answer and of the search. The folder above its source is named by a digest."""
    source = answer.source.parent.name if answer.source else ""
    left_out = sorted(_borrowed(answer))
    parts = [json.dumps(answer.packages, sort_keys=True), source, _search_digest()]
    return _digest(*parts, *([json.dumps(left_out)] if left_out else []))[:32]


@cache
def _search_digest() -> str:
    """Return the digest of the program that searches."""
    return _digest(*(Path(module).read_text() for module in (__file__, answers_in_reach_inside.__file__)))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _described(answer: Answer) -> dict[str, object]:
    """Return an answer as the program in the sandbox takes it."""
    return {
        "packages": {kind: list(names) for kind, names in answer.packages.items()},
        "files": [
            [name, *([piece.decode("latin-1") for piece in sorted(part)] for part in parts)]
            for name, *parts in files(answer.source, _borrowed(answer))
        ],
    }


def _borrowed(answer: Answer) -> frozenset[str]:
    """Return the files below an answer's source that are others' code; none if there is no list of them."""
    try:
        text = answer.borrowed.read_text("utf-8") if answer.borrowed else ""
    except (OSError, UnicodeDecodeError):
        return frozenset()
    return frozenset(text.split("\n")) - {""}


def files(
    source: Path | None, borrowed: Collection[str] = ()
) -> Iterator[tuple[str, set[bytes], set[bytes]]]:
    """Yield the name, the pieces and the pieces of literals of each relevant file of an answer."""
    for path in sorted(source.rglob("*")) if source else ():
        name = path.relative_to(source) if source else path
        if (
            path.name in COMMON
            or name.as_posix() in borrowed
            or BESIDE.intersection(name.parts[:-1])
            or path.is_symlink()
            or not path.is_file()
        ):
            continue
        if path.suffix in CODE or (not path.suffix and path.read_bytes()[:2] == b"#!"):
            content = path.read_bytes()
            yield name.as_posix(), set(pieces(content)), _literals(content, path.suffix)


def _literals(content: bytes, ending: str) -> set[bytes]:
    """Return the pieces of literals of several words, which bundlers keep and few programs share.

    Docstrings are left out, because bundlers drop them, and texts of several lines, because some are licences.
    """
    try:
        literals = list((_python_texts if ending == ".py" else _quoted_texts)(content))
    except _UNPARSABLE:  # written for another version of Python
        literals = list(_quoted_texts(content))
    found = {piece for literal in literals if b"\n" not in literal for piece in pieces(literal)}
    return {piece for piece in found if b" " in piece}


def _quoted_texts(content: bytes) -> Iterator[bytes]:
    return (text for groups in _QUOTED.findall(content) for text in groups if text)


def _python_texts(content: bytes) -> Iterator[bytes]:
    with _PARSING:
        tree = ast.parse(content)
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value.encode(errors="replace")


def _locked(recipe: BundleRecipe, answer: Answer) -> str:
    """Return the package of an answer that a bundle's lock names; empty if it names none."""
    wanted = answer.packages.get(recipe.kind, ())
    names = _names(recipe.lock, recipe.kind) if wanted and recipe.lock else frozenset()
    return next((name for name in wanted if normalised(recipe.kind, name) in names), "")


@cache
def _names(lock: Path, kind: str) -> frozenset[str]:
    """Return the packages in a lock; none if it cannot be read, which its installation reports."""
    try:
        text = lock.read_text()
        if kind == "pypi":
            found = re.findall(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]\n]*\])? *==", text, re.MULTILINE)
            return frozenset(normalised(kind, name) for name in found)
        packages = json.loads(text)["packages"]
        return frozenset(
            about.get("name") or path.rpartition("node_modules/")[2] for path, about in packages.items()
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return frozenset()
