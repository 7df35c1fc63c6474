"""Answers within an agent's reach: every way in which an installation may hold one, and files that are not answers.

`search` normally runs in a sandbox. Here it runs on folders of this machine, and at the end with real bundles.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import py_compile
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import EllipsisType

import pytest

from runner.agents.bounds import Nop, Oracle
from runner.benchmarks.nl2repo.dataset import SOURCE
from runner.benchmarks.nl2repo.upstream import Source, fetch_upstream, vendored
from runner.benchmarks.sources import borrowed as borrowed_files
from runner.benchmarks.sources.references import Reference, fetch, fetch_context, solution
from runner.protocols import CommandAgent
from runner.records import Answer, Budget, BundleRecipe, Model, PlannedRow, TrialRecord
from runner.resources import ROOT
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps import answers_in_reach, answers_in_reach_inside
from runner.sweeps.answers_in_reach import FLAG, Reach
from runner.sweeps.answers_in_reach_inside import search
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import Plan, make_plan
from runner.sweeps.yaml_files import read_yaml
from tests.agents.trials import AGENTS, shipped
from tests.support.shipped_tools import EVERY, SHIPPED, SOME_BY_HAND, TOOLS, some_made
from tests.support.tool_task_factory import make_tool_task, tool_dataset

LIBRARY = '''\
"""Reads lists of harbours: docstrings are no literals, and bundlers drop them."""
import re
import sys
from pathlib import Path

HARBOUR = re.compile(r"^(?P<name>[a-z]+)@(?P<depth>[0-9]+)$")


class HarbourError(ValueError):
    def __init__(self, line, reason):
        super().__init__("line %d is no harbour: %s" % (line, reason))
        self.line_of_the_error = line


def harbours_of(text, *, shallowest=0):
    found_so_far = {}
    for number_of_line, line in enumerate(text.splitlines(), start=1):
        stripped_line = line.partition(";")[0].strip()
        if not stripped_line:
            continue
        matched = HARBOUR.match(stripped_line)
        if matched is None:
            raise HarbourError(number_of_line, "it needs a name and a depth")
        name_of_harbour = matched.group("name")
        if name_of_harbour in found_so_far:
            raise HarbourError(number_of_line, "this harbour was named before")
        if int(matched.group("depth")) < shallowest:
            print("too shallow for this ship: ", name_of_harbour, file=sys.stderr)
            continue
        found_so_far[name_of_harbour] = int(matched.group("depth"))
    return found_so_far


def deepest_harbour(path, shallowest):
    all_of_them = harbours_of(Path(path).read_text(), shallowest=shallowest)
    if not all_of_them:
        raise SystemExit("no harbour is deep enough for that")
    return max(all_of_them, key=all_of_them.__getitem__)
'''
MINIFIED = (
    'var e=1,t=(n,r)=>{throw Error(`line ${n} is no harbour: ${r}`)},a=n=>{t(n,"it needs a name and a depth")},'
    "b=n=>{t(n,'this harbour was named before')},c=n=>console.error(\"too shallow for this ship: \",n),"
    'd=()=>{throw Error("no harbour is deep enough for that")};'
)
OTHER = "\n".join(f"def function_number_{n}(argument): return argument + {n}" for n in range(400))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Make the folder of the answer's code."""
    place = tmp_path / "answer" / "source"
    (place / "harbours").mkdir(parents=True)
    (place / "harbours" / "reading.py").write_text(LIBRARY)
    (place / "setup.py").write_text(OTHER)
    return place


@pytest.fixture
def installation(tmp_path: Path) -> Path:
    """Make a bundle with other files in it."""
    place = tmp_path / "bundle"
    place.mkdir()
    (place / "other.py").write_text(OTHER)
    return place


def found(installation: Path, answer: Answer, *without: Path) -> dict[str, str] | None:
    """Search a folder for an answer; return the hit, or None."""
    wanted = {
        "answers": {"it": answers_in_reach._described(answer)},
        "parts": {"part": str(installation)},
        "without": list(map(str, without)),
    }
    return search(json.loads(json.dumps(wanted)))["part"].get("it")


# --- by name ----------------------------------------------------------------------------------------------------------

NAMED = {
    "dist-info": (
        "pypi",
        "python-dotenv",
        "site/python_dotenv-1.2.4.dist-info/METADATA",
        "Name: python-dotenv",
    ),
    "spelled otherwise": ("pypi", "Python.Dotenv", "site/x.dist-info/METADATA", "Name: python_dotenv"),
    "other fields first": (
        "pypi",
        "six",
        "x.dist-info/METADATA",
        "Metadata-Version: 2.1\nName: six\nVersion: 1",
    ),
    "egg-info": ("pypi", "six", "six.egg-info/PKG-INFO", "Metadata-Version: 2.1\nName: six"),
    "vendored distribution": ("pypi", "rich", "pip/_vendor/rich-13.dist-info/METADATA", "Name: rich"),
    "npm": ("npm", "json5", "node_modules/json5/package.json", '{"name": "json5"}'),
    "npm within npm": ("npm", "json5", "node_modules/a/node_modules/b/package.json", '{"name": "json5"}'),
    "npm scoped": ("npm", "@a/b", "node_modules/@a/b/package.json", '{"version": "1", "name": "@a/b"}'),
    "npm alias": ("npm", "json5", "node_modules/called-otherwise/package.json", '{"name": "json5"}'),
    "go module": ("go", "example.org/x", "src/go.mod", "module example.org/x\n\ngo 1.22\n"),
    "go vendor": ("go", "example.org/x", "vendor/modules.txt", "# example.org/x v1.2.3\nexample.org/x/y\n"),
    "debian": ("debian", "goawk", "var/lib/dpkg/status", "Package: mawk\nStatus: ok\n\nPackage: goawk\n"),
    "debian, by its source": (
        "debian",
        "gron",
        "var/lib/dpkg/status",
        "Package: gron-bin\nStatus: ok\nSource: gron (0.7)\n",
    ),
    "egg-info that is a file": ("pypi", "six", "six-1.16.egg-info", "Metadata-Version: 1.1\nName: six\n"),
}


@pytest.mark.parametrize("case", NAMED.values(), ids=NAMED)
def test_a_package_is_found_by_its_name(installation: Path, case: tuple[str, str, str, str]) -> None:
    registry, name, file, text = case
    answer = Answer(packages={registry: (name,)})
    assert found(installation, answer) is None
    (installation / file).parent.mkdir(parents=True, exist_ok=True)
    (installation / file).write_text(text)
    hit = found(installation, answer)
    assert hit
    assert hit["path"] == str(installation / file)
    assert hit["what"].startswith("belongs to the package ")


def test_two_tasks_of_one_library_are_both_found(installation: Path) -> None:
    """Only the last task's name was looked up."""
    text("Name: six", "x.dist-info/METADATA")(installation)
    answers = {
        key: answers_in_reach._described(Answer(packages={"pypi": names}))
        for key, names in (("one", ("six", "rich")), ("other", ("six",)))
    }
    found = search({"answers": answers, "parts": {"part": str(installation)}, "without": []})
    assert set(found["part"]) == {"one", "other"}


OTHERS = {
    "another registry": ("npm", "semver", "x.dist-info/METADATA", "Name: semver"),
    "a name that begins alike": ("pypi", "dotenv", "x.dist-info/METADATA", "Name: dotenv-linter"),
    "mentioned in a description": ("pypi", "six", "x.dist-info/METADATA", "Name: x\n\nLike Name: six"),
    "required only": ("pypi", "six", "x.dist-info/METADATA", "Name: x\nRequires-Dist: six"),
    "npm of no installation": ("npm", "json5", "docs/package.json", '{"name": "json5"}'),
    "npm broken": ("npm", "json5", "node_modules/json5/package.json", '{"name": "jso'),
    "npm deep": ("npm", "json5", "node_modules/json5/package.json", "[" * 200_000),
    "npm list": ("npm", "json5", "node_modules/json5/package.json", '["json5"]'),
    "go required only": ("go", "example.org/x", "go.mod", "module example.org/y\nrequire example.org/x v1"),
}


@pytest.mark.parametrize("case", OTHERS.values(), ids=OTHERS)
def test_another_package_is_not_found(installation: Path, case: tuple[str, str, str, str]) -> None:
    registry, name, file, text = case
    (installation / file).parent.mkdir(parents=True, exist_ok=True)
    (installation / file).write_text(text)
    assert found(installation, Answer(packages={registry: (name,)})) is None


# --- by content -------------------------------------------------------------------------------------------------------

Hide = Callable[[Path], None]


def text(content: str, name: str = "site/x.py") -> Hide:
    """Write a file into an installation."""
    return data(content.encode(), name)


def data(content: bytes, name: str = "site/x.py") -> Hide:
    """Write a file of bytes into an installation."""

    def hide(installation: Path) -> None:
        (installation / name).parent.mkdir(parents=True, exist_ok=True)
        (installation / name).write_bytes(content)

    return hide


def wheel(name: str, before: bytes = b"", how: int = zipfile.ZIP_DEFLATED) -> Hide:
    """Write a zip file with the answer in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", how) as archive:
        archive.writestr("other.py", OTHER)
        archive.writestr("harbours/reading.py", LIBRARY)
    return data(before + buffer.getvalue(), name)


def tarred(pack: Callable[[bytes], bytes], name: str) -> Hide:
    """Write a tar file with the answer in it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member, content in (("other.py", OTHER), ("package/reading.py", LIBRARY)):
            info = tarfile.TarInfo(member)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content.encode()))
    return data(pack(buffer.getvalue()), name)


def compiled(name: str) -> Hide:
    """Write bytecode without its source."""

    def hide(installation: Path) -> None:
        (installation / name).parent.mkdir(parents=True, exist_ok=True)
        source = installation / "gone.py"
        source.write_text(LIBRARY)
        py_compile.compile(str(source), str(installation / name), doraise=True)
        source.unlink()

    return hide


def linked(installation: Path) -> None:
    """Put the file into a hidden folder, and a link to it at the usual place."""
    text(LIBRARY, ".cache/deep/er/blob")(installation)
    (installation / "reading.py").symlink_to(installation / ".cache/deep/er/blob")


def escaped(name: str) -> Hide:
    """Write the answer as a string of JSON, as source maps and `eval` have it."""
    return text(json.dumps({"version": 3, "sourcesContent": [OTHER, LIBRARY]}), name)


def in_git(*, packed: bool) -> Hide:
    """Commit the answer and remove it from the checkout."""

    def hide(installation: Path) -> None:
        text(LIBRARY, "clone/reading.py")(installation)
        text(OTHER, "clone/other.py")(installation)
        name = ("-c", "user.name=x", "-c", "user.email=x@host.example")
        commands = [("init", "-q"), ("add", "."), ("commit", "-qm", "x")]
        for words in [*commands, ("gc", "-q")] if packed else commands:
            subprocess.run(["git", *name, "-C", str(installation / "clone"), *words], check=True)
        (installation / "clone/reading.py").unlink()

    return hide


LINES = LIBRARY.splitlines()
HIDDEN: dict[str, Hide] = {
    "as it is": text(LIBRARY, "site-packages/harbours/reading.py"),
    "package renamed": text(LIBRARY, "site-packages/ports/loading.py"),
    "vendored": text(LIBRARY, "site-packages/other/_vendor/harbours/reading.py"),
    "no ending": text(LIBRARY, "blobs/0f3a"),
    "as text": text(LIBRARY, "reading.txt"),
    "in a hidden folder, linked": linked,
    "windows line ends": text(LIBRARY.replace("\n", "\r\n")),
    "byte order mark": text("\ufeff" + LIBRARY),
    "tabs": text(LIBRARY.replace("    ", "\t")),
    "blanks at line ends": text("".join(f"{line}   \n" for line in LINES)),
    "other quotes": text(LIBRARY.replace('"', "'")),
    "a quarter of the lines gone": text("\n".join(line for n, line in enumerate(LINES) if n % 4)),
    "comments between": text("".join(f"{line}\n# comment\n" for line in LINES)),
    "lines in another order": text("\n".join(sorted(LINES))),
    "within a large file": text(OTHER * 20 + LIBRARY + OTHER * 20),
    "no docstring": text(LIBRARY.partition("\n")[2]),
    "minified": text(MINIFIED, "bundle.min.js"),
    "minified among others": text("var z=0;" * 5000 + MINIFIED + "z++;" * 5000, "cli.js"),
    "minified, other quotes": text(re.sub(r'"([^"]*)"', r"`\1`", MINIFIED), "cli.mjs"),
    "minified, in a program": data(
        b"\x7fELF\x00\x01" * 999 + MINIFIED.encode() + b"\x00\xff" * 999, "bin/agent"
    ),
    "in a program, between zeros": data(
        b"\x7fELF\x00" + LIBRARY.encode().replace(b"\n", b"\x00"), "bin/agent"
    ),
    "at the border of two chunks": text("#\n" * (answers_in_reach_inside.CHUNK // 2 - 300) + LIBRARY),
    "behind a long line": data(
        b"x" * (answers_in_reach_inside.CHUNK + 7) + b"\n" + LIBRARY.encode(), "cli.js"
    ),
    "source map": escaped("cli.js.map"),
    "UTF-16": data(LIBRARY.encode("utf-16")),
    "git's objects": in_git(packed=False),
    "git's pack": in_git(packed=True),
    "wheel": wheel("cache/harbours-1-py3-none-any.whl"),
    "wheel, stored": wheel("cache/wheel", how=zipfile.ZIP_STORED),
    "wheel, packed well": wheel("cache/wheel", how=zipfile.ZIP_LZMA),
    "pip's cache": wheel("http-v2/a/b/c", before=b"cc=4,\x82\xa8response" * 40),
    "zipped program": wheel("bin/tool.pyz", before=b"#!/usr/bin/env python3\n"),
    "sdist": tarred(gzip.compress, "cache/harbours-1.tar.gz"),
    "npm's cache": tarred(gzip.compress, "_cacache/content-v2/sha512/ab/cd/ef"),
    "tar": tarred(bytes, "harbours.tar"),
    "tar, bz2": tarred(bz2.compress, "harbours.tar.bz2"),
    "tar, xz": tarred(lzma.compress, "harbours.tar.xz"),
    "one file, gz": data(gzip.compress(LIBRARY.encode()), "reading.py.gz"),
    "bytecode": compiled("site/reading.pyc"),
    "bytecode in its folder": compiled("site/__pycache__/reading.cpython-313.pyc"),
}


@pytest.mark.parametrize("hide", HIDDEN.values(), ids=HIDDEN)
def test_a_copy_is_found_by_its_content(source: Path, installation: Path, hide: Hide) -> None:
    answer = Answer(source=source)
    assert found(installation, answer) is None
    hide(installation)
    hit = found(installation, answer)
    assert hit
    assert hit["what"].endswith("harbours/reading.py")


def test_a_source_map_of_code_without_literals_is_a_copy(source: Path, installation: Path) -> None:
    r"""Each line of a string began with the `n` of its `\\n`."""
    code = OTHER.replace(": return", ":\n\treturn").replace("function", "method")
    (source / "harbours" / "reading.py").write_text(code)
    text(json.dumps({"sourcesContent": [code]}), "cli.js.map")(installation)
    hit = found(installation, Answer(source=source))
    assert hit
    assert hit["what"] == "is a copy of harbours/reading.py"


def bytecode_beside(installation: Path) -> None:
    """Write bytecode beside a newer source. The interpreter would not run this bytecode."""
    compiled("site/__pycache__/reading.cpython-313.pyc")(installation)
    text("x = 1\n", "site/reading.py")(installation)


def piped(installation: Path) -> None:
    """Make a pipe. Whoever opens it waits for ever."""
    os.mkfifo(installation / "reading.py")


def looped(installation: Path) -> None:
    """Make links that lead in circles."""
    (installation / "again").symlink_to(installation)
    (installation / "self").symlink_to("self")


ELSEWHERE: dict[str, Hide] = {
    "half of the lines": text("\n".join(line for n, line in enumerate(LINES) if n % 2)),
    "two literals": text('print("it needs a name and a depth", "this harbour was named before")'),
    "its docstring": text(LINES[0]),
    "its setup.py": text(OTHER, "setup.py"),
    "broken zip": data(b"PK\x03\x04" + b"\x00" * 200, "a.whl"),
    "cut off gz": data(gzip.compress(LIBRARY.encode())[:40], "a.gz"),
    "no gz": data(b"\x1f\x8bnot at all", "a.gz"),
    "no xz": data(b"\xfd7zXZ\x00nor this", "a.xz"),
    "no bytecode": data(b"\x00" * 64, "a.pyc"),
    "broken bytecode": data(MAGIC_NUMBER + b"\xff" * 64, "a.pyc"),
    "bytecode of an older source": bytecode_beside,
    "empty": data(b""),
    "one endless line": data(b"a" * 9_000_000, "a.js"),
    "pipe": piped,
    "circles": looped,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("hide", ELSEWHERE.values(), ids=ELSEWHERE)
def test_other_files_are_not_taken_for_the_answer(source: Path, installation: Path, hide: Hide) -> None:
    hide(installation)
    assert found(installation, Answer(source=source)) is None


def test_what_the_task_itself_provides_is_not_found(source: Path, installation: Path) -> None:
    shutil.copytree(source, installation / "workspace")
    assert found(installation, Answer(source=source))
    assert found(installation, Answer(source=source), installation / "workspace") is None


def test_tests_and_documents_of_an_answer_are_not_the_answer(source: Path, installation: Path) -> None:
    """Anybody may have tests and documents of the answer."""
    for folder in ("tests", "docs", "examples"):
        (source / folder).mkdir()
        (source / "harbours" / "reading.py").rename(source / folder / "reading.py")
        text(LIBRARY)(installation)
        assert found(installation, Answer(source=source)) is None
        (source / folder / "reading.py").rename(source / "harbours" / "reading.py")


def test_a_licence_in_a_literal_is_not_a_sign_of_the_answer(source: Path, installation: Path) -> None:
    licence = "\n".join(f"a line of a licence that many programs have, number {n}" for n in range(30))
    (source / "harbours" / "about.py").write_text(f'__license__ = """\n{licence}\n"""\n' + "x = 1\n" * 40)
    text(licence, "LICENSE")(installation)
    hit = found(installation, Answer(source=source))
    assert hit is None or "literals" not in hit["what"]


def test_an_answer_for_another_python_is_read_too(source: Path, installation: Path) -> None:
    (source / "harbours" / "reading.py").write_text(f"{LIBRARY}\nprint 'of another Python'\n")
    text(f"{MINIFIED}p('of another Python')")(installation)
    assert found(installation, Answer(source=source))


# --- others' code in the source of an answer -----------------------------------------------------------------------


@pytest.fixture
def borrowed(source: Path) -> Path:
    """Move the library into a folder that is listed as others' code."""
    (source / "vendor").mkdir()
    (source / "harbours").rename(source / "vendor" / "harbours")
    place = source.parent / "borrowed.txt"
    place.write_text("vendor/harbours/reading.py\n")
    return place


def test_what_an_answer_borrows_is_not_the_answer(source: Path, borrowed: Path, installation: Path) -> None:
    text(LIBRARY)(installation)
    assert found(installation, Answer(source=source))
    assert found(installation, Answer(source=source, borrowed=borrowed)) is None
    (source / "own.py").write_text(LIBRARY)
    hit = found(installation, Answer(source=source, borrowed=borrowed))
    assert hit
    assert hit["what"] == "is a copy of own.py"


LISTS = {
    "absent": None,
    "empty": b"",
    "a line end": b"\n\n",
    "the source itself": b".\n./\n..\n/\n",
    "a folder": b"vendor\nvendor/\nvendor/harbours\nvendor/harbours/\n",
    "a pattern": b"*\n**/*.py\nvendor/*/*\n",
    "another path to it": b"vendor/../vendor/harbours/reading.py\n./vendor/harbours/reading.py\n",
    "no text": b"vendor/harbours/reading.py\n\xff\n",
    "a folder of that name": ...,
}


@pytest.mark.parametrize("content", LISTS.values(), ids=LISTS)
def test_a_list_leaves_out_nothing_but_the_files_that_it_names(
    source: Path, borrowed: Path, installation: Path, content: bytes | EllipsisType | None
) -> None:
    borrowed.unlink()
    if content is ...:
        borrowed.mkdir()
    elif isinstance(content, bytes):
        borrowed.write_bytes(content)
    text(LIBRARY)(installation)
    assert found(installation, Answer(source=source, borrowed=borrowed))


def test_only_a_list_of_borrowed_files_changes_the_key_of_a_search(source: Path, borrowed: Path) -> None:
    key = answers_in_reach._key
    plain = key(Answer(source=source, packages={"pypi": ("x",)}))
    answer = Answer(source=source, packages={"pypi": ("x",)}, borrowed=borrowed)
    listed = key(answer)
    assert listed != plain
    borrowed.write_text("another.py\n")
    assert key(answer) not in (plain, listed)
    borrowed.unlink()
    assert key(answer) == plain


# --- refusal of an agent for a task -----------------------------------------------------------------------------------

DOTENV = {
    "source": "pypi",
    "package": "python-dotenv",
    "version": "1.2.4",
    "digest": "sha256:42269a8a5b3fd54ffa6f3d84b18abed50064717576b4ecf03dc4a55d8aa04fdc",
    "entry": "dotenv.__main__:cli",
    "lines": 1118,
}
MODEL = Model(
    name="a model", backend="scripted", id="x", policy=ROOT / "tasks/policies/quickstart_hasty.yaml"
)


def plan_of(
    folder: Path, agent: CommandAgent, reference: dict[str, object] | None = None, treatment: str = "refuse"
) -> Plan:
    """Plan one trial of a task whose reference is python-dotenv, or another."""
    make_tool_task(folder / "tasks", "made")
    dataset = tool_dataset(folder / "tasks", folder / "cache").model_copy(
        update={"answers_in_reach": treatment}
    )
    (task,) = dataset.tasks()
    of = Reference.model_validate({"license": "BSD-3-Clause", **(reference or DOTENV)})
    assert task.answer
    task = task.model_copy(update={"answer": task.answer.model_copy(update={"packages": of.packages})})
    model = MODEL if agent.uses_model else NO_MODEL
    cell = Cell(agent=agent, model=model, dataset=dataset, budget=Budget(), attempts=1)
    plan = make_plan([cell], DockerSandboxes(), lambda _: ())
    trials = tuple(trial.model_copy(update={"task": task}) for trial in plan.trials)
    return Reach(folder / "reach").apply(Plan(trials=trials, todo=trials))


@pytest.mark.parametrize("agent", ["kimi_cli", "mini_swe_agent", "openhands"])
def test_agents_that_carry_the_reference_are_refused_before_anything_is_installed(
    tmp_path: Path, agent: str
) -> None:
    plan = plan_of(tmp_path, shipped(agent))
    assert not plan.todo
    (task,) = plan.refused
    assert task.refused
    assert task.refused.startswith(
        f"its answer lies in reach of {agent}: bundle {agent} holds the package python-dotenv."
    )


@pytest.mark.parametrize(
    "agent", [*(shipped(name) for name in ("codex", "claude_code", "qwen_code")), Oracle(), Nop()]
)
def test_agents_without_the_reference_and_bounds_are_not_refused(tmp_path: Path, agent: CommandAgent) -> None:
    plan = plan_of(tmp_path, agent)
    assert not plan.refused
    assert len(plan.todo) == 1


def test_with_flag_the_trial_runs_and_is_flagged(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, shipped("openhands"), treatment="flag")
    assert [trial.task.flags for trial in plan.todo] == [(FLAG,)]
    assert not plan.refused


def test_a_requirement_of_a_reference_is_not_the_answer(tmp_path: Path) -> None:
    """mini_swe_agent carries jinja2, as many agents do, and a task over another package may need it."""
    required = {**DOTENV, "package": "a-thin-shell", "requires": [f"jinja2==3.1.6 --hash=sha256:{0:064}"]}
    assert not plan_of(tmp_path / "required", shipped("mini_swe_agent"), required).refused
    itself = plan_of(tmp_path / "itself", shipped("mini_swe_agent"), {**DOTENV, "package": "jinja2"})
    assert "holds the package jinja2" in str(itself.refused[0].refused)


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ("node_modules/json5", "json5"),
        ("node_modules/a/node_modules/json5", "json5"),
        ("node_modules/@a/b", "@a/b"),
        ("node_modules/alias", "real"),
    ],
)
def test_an_npm_lock_is_read_as_npm_does(tmp_path: Path, entry: str, name: str) -> None:
    lock = tmp_path / "package-lock.json"
    about = {"version": "1"} | ({"name": "real"} if entry.endswith("alias") else {})
    lock.write_text(json.dumps({"packages": {"": {}, entry: about}}))
    recipe = BundleRecipe(name="x", kind="npm", package="x", version="1", lock=lock)
    assert answers_in_reach._locked(recipe, Answer(packages={"npm": (name,)})) == name
    assert not answers_in_reach._locked(recipe, Answer(packages={"pypi": (name,)}))


@pytest.mark.parametrize(
    "line", ["six==1.17.0 \\", "Six[all]==1.17.0 ; os_name == 'posix' \\", "six == 1.17.0"]
)
def test_a_lock_is_read_with_extras_and_blanks(tmp_path: Path, line: str) -> None:
    lock = tmp_path / "x.lock"
    lock.write_text(f"# six==0\nrich==1\n{line}\n    --hash=sha256:0\n")
    recipe = BundleRecipe(name="x", kind="pypi", package="x", version="1", lock=lock)
    assert answers_in_reach._locked(recipe, Answer(packages={"pypi": ("six",)}))


def test_a_debian_reference_is_known_by_its_source_package() -> None:
    path = "pool/main/g/goawk/goawk_1.29.0.orig.tar.gz"
    of = Reference(source="debian", package=path, digest="sha256:0", license="MIT", lines=1)
    assert of.packages == {"debian": ("goawk",)}


def test_one_task_may_be_refused_to_one_agent_only(tmp_path: Path) -> None:
    refused = plan_of(tmp_path / "one", shipped("openhands"))
    free = plan_of(tmp_path / "other", shipped("codex"))
    both = Plan(trials=(*refused.trials, *free.trials), todo=(*refused.todo, *free.todo))
    assert len(both.trials) == 2
    assert [trial.cell.agent.name for trial in both.todo] == ["codex"]
    assert [row.refused is None for row in (trial.row() for trial in both.trials)] == [False, True]


def test_a_result_from_before_the_refusal_does_not_count(tmp_path: Path) -> None:
    from runner.report.trials_table import trials_table  # noqa: PLC0415 - brings pandas
    from tests.report.plans import record  # noqa: PLC0415

    row: PlannedRow = plan_of(tmp_path, shipped("openhands")).trials[0].row()
    won: TrialRecord = record(row, passed=True)
    table = trials_table([row], {row.key: won})
    assert table["ran"].tolist() == [False]
    assert table["reason"].str.startswith("refused: its answer lies in reach").all()


def test_a_dry_run_prints_the_refusal(tmp_path: Path) -> None:
    task = tmp_path / "tasks" / "made"
    make_tool_task(tmp_path / "tasks", "made")
    toml = (task / "task.toml").read_text()
    fields = "\n".join(
        f"{key} = {json.dumps(value)}" for key, value in {**DOTENV, "license": "BSD-3-Clause"}.items()
    )
    (task / "task.toml").write_text(
        re.sub(r"(?s)\[reference\].*?(?=\n\[|\Z)", f"[reference]\n{fields}\n", toml)
    )
    words = [
        "agent=openhands",
        "model=scripted_hasty",
        "dataset=cli_tool_bench",
        f"dataset.root={tmp_path / 'tasks'}",
    ]
    command = [sys.executable, "-m", "runner", *words, "dry_run=true", f"outputs={tmp_path / 'out'}"]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    said = " ".join(output.split())  # lines are as long as the terminal is wide
    assert "refused: made: its answer lies in reach of openhands: bundle openhands holds the package" in said
    assert "0 to do" in said


# --- shipped tasks, searched with real bundles ------------------------------------------------------------------------

CARRIED = {
    "dotenv": (
        {"kimi_cli", "mini_swe_agent", "openhands"},
        Reference(license="BSD-3-Clause", **{k: v for k, v in DOTENV.items() if k != "license"}),
    ),
    "json5": (
        {"qwen_code"},
        Reference(
            source="npm",
            package="json5",
            version="2.2.3",
            digest="sha512-XmOWe7eyHYH14cLdVPoyg+GOH3rYX++KpzrylJwSW98t3Nk+U8XOl8FWKOgwtzdb8lXGf6zYwDUzeHMWfxasyg==",
            license="MIT",
            entry="lib/cli.js",
            lines=1592,
        ),
    ),
}
"""Libraries that agents carry and that were once references of shipped tasks."""
REQUIRING = Reference(
    source="pypi",
    package="files-to-prompt",
    version="0.6",
    digest="sha256:83d9a8b33246a10233218716a5c78034da4f5614748eda2f0ab94f1117801337",
    license="Apache-2.0",
    requires=("click==8.3.1 --hash=sha256:981153a64e25f12d547d3426c367a4857371575ee7ad18df2a6183ab0545b2a6",),
    entry="files_to_prompt.cli:cli",
    lines=278,
)
"""A tool that no agent carries. It requires a package that some do."""
HELD = {
    "kimi_cli": {"databases", "jinja", "justext", "pyjwt", "python-dotenv", "tenacity", "typing_extensions"},
    "mini_swe_agent": {
        "databases",
        "jinja",
        "pyjwt",
        "python-dotenv",
        "six",
        "tenacity",
        "typing_extensions",
    },
    "mistral_vibe": {"databases", "humanize", "pyjwt", "python-dotenv", "six", "typing_extensions"},
    "openhands": {
        "databases",
        "frontmatter",
        "jinja",
        "pyjwt",
        "python-dotenv",
        "python-json-logger",
        "six",
        "sortedcontainers",
        "tenacity",
        "typing_extensions",
    },
}
"""Agent -> shipped suites whose library is in its bundle. Their trials are refused."""
ALIKE = {"wsgidav": {"cline", "kilo_code", "opencode"}}
"""Shipped suite -> agents that are refused too, although their bundles do not hold the library. One file of wsgidav has
hardly any literals but the names of HTTP statuses, which runtimes of JavaScript have as well."""
UPSTREAM = sorted(path.parent for path in (ROOT / "tasks" / "nl2repo").glob("*/*/source.yaml"))
"""Folders of the libraries that NL2Repo tasks ask for, the authors' and those that were made here."""
SEARCHED = sorted([*SOME_BY_HAND, *some_made(lambda name: not TOOLS[name].reference.requires)])
"""Shipped tasks whose references are searched for: one of each language that was written by hand, and a made one, with
requirements if one has them. ASSAY_EVERY_CASE in the environment has them all searched."""
INTO = AGENTS if EVERY else ["mini_swe_agent", "qwen_code"]
"""Agents whose bundles are searched: one of Python and one of JavaScript, each with one of the libraries. All bundles
take a minute of a processor; ASSAY_EVERY_CASE in the environment has them searched."""


@pytest.fixture(scope="module")
def searched(pytestconfig: pytest.Config) -> dict[tuple[str, str], str]:
    """Return (agent, task) -> reason of its refusal, for each agent of `INTO`, found by content alone.

    Sources and findings are kept from run to run in the cache of pytest, where all names are digests: of a source, and
    of an answer, the program that searches and the content of what is searched.
    """
    folder = pytestconfig.cache.mkdir("answers_in_reach")
    dataset = tool_dataset(SHIPPED, folder / "cache").model_copy(update={"include": tuple(SEARCHED)})
    sandboxes, agents = DockerSandboxes(), [shipped(name) for name in INTO]
    installed = sandboxes.prepare([agent.bundle for agent in agents if agent.bundle], print)
    dataset.prepare(print)
    answers = {task.name: task.answer for task in dataset.tasks()}
    client = partial(fetch_context, dataset.images, cache=folder / "cache", say=print)
    for name, (_, reference) in CARRIED.items():
        fetch(reference, name, folder, client, print, folder / "cache")
        answers[name] = Answer(source=solution(reference, name, folder / "cache") / "source")
    fetch(REQUIRING, "requiring", folder, client, print, folder / "cache")
    there = solution(REQUIRING, "requiring", folder / "cache")
    answers["requiring"] = Answer(source=there / "source", borrowed=there / borrowed_files.FILE)
    answers["with what it requires"] = Answer(source=there / "source")

    def upstream(place: Path) -> Path:
        return fetch_upstream(read_yaml(place / SOURCE, Source, SOURCE), place, folder / "cache", print)

    with ThreadPoolExecutor(8) as pool:  # most of the time is the index's
        for place, code in zip(UPSTREAM, pool.map(upstream, UPSTREAM), strict=True):
            others = folder / f"{place.name}-{borrowed_files.FILE}"
            borrowed_files.write(vendored(code), others)
            answers[place.name] = Answer(source=code, borrowed=others)
    cells = [Cell(agent=agent, model=MODEL, dataset=dataset, budget=Budget(), attempts=1) for agent in agents]
    by_name = {trial.task.name: trial for trial in make_plan(cells[:1], sandboxes, lambda _: ()).trials}
    trials = [
        trial.model_copy(
            update={
                "key": f"{cell.name} {name}",
                "cell": cell,
                "task": trial.task.model_copy(update={"name": name, "answer": answer}),
            }
        )
        for cell in cells
        for name, answer in answers.items()
        if answer
        for trial in [by_name.get(name, by_name["hunkr"])]
    ]
    reach_ = Reach(folder / "reach")
    reach_.search(trials, sandboxes, installed, print)
    plan = reach_.apply(Plan(trials=tuple(trials), todo=tuple(trials)))
    return {(trial.cell.agent.name, trial.task.name): trial.task.refused or "" for trial in plan.trials}


@pytest.mark.bundle
@pytest.mark.timeout(900)
@pytest.mark.parametrize("task", SEARCHED)
def test_no_shipped_tool_lies_in_reach_of_a_shipped_agent(
    searched: dict[tuple[str, str], str], task: str
) -> None:
    assert {agent: searched[agent, task] for agent in INTO} == dict.fromkeys(INTO, "")


@pytest.mark.bundle
@pytest.mark.timeout(900)
@pytest.mark.parametrize("task", [place.name for place in UPSTREAM])
def test_which_shipped_agents_carry_a_library_of_a_shipped_suite_is_known(
    searched: dict[tuple[str, str], str], task: str
) -> None:
    """These images are not the tasks' own, which leave out what is asked for (`withheld`)."""
    carrying = {agent for agent in INTO if "(bundle " in searched[agent, task]}
    held = {agent for agent in INTO if task in HELD.get(agent, ())}
    assert carrying == held | ALIKE.get(task, set()).intersection(INTO)


@pytest.mark.bundle
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CARRIED)
def test_libraries_that_agents_carry_are_found_by_content(
    searched: dict[tuple[str, str], str], name: str
) -> None:
    assert {agent for agent in INTO if searched[agent, name]} == CARRIED[name][0] & {*INTO}


@pytest.mark.bundle
@pytest.mark.timeout(900)
def test_agents_may_carry_what_a_reference_requires(searched: dict[tuple[str, str], str]) -> None:
    assert [agent for agent in INTO if searched[agent, "requiring"]] == []
    assert {agent for agent in INTO if searched[agent, "with what it requires"]} >= CARRIED["dotenv"][0] & {
        *INTO
    }


@pytest.mark.bundle
@pytest.mark.timeout(900)
def test_an_image_that_holds_the_library_counts(searched: dict[tuple[str, str], str]) -> None:
    """The image of Python tools contains pathspec, which hatchling needs."""
    assert all("(the task's image)" in searched[agent, "python-pathspec"] for agent in INTO)
