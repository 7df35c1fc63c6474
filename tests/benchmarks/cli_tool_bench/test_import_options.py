"""The options of `job=import_cli_tool_bench`: each kind of failure that real tasks had, and its way out."""

from __future__ import annotations

import json
import tarfile
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import IO, Any

import pytest

from runner.__main__ import main
from runner.benchmarks.cli_tool_bench.case_file import read_cases
from runner.benchmarks.cli_tool_bench.dataset import ToolTask
from runner.benchmarks.cli_tool_bench.published_tasks import vendoring
from runner.benchmarks.cli_tool_bench.published_tasks.cases import CasePolicy, Generated
from runner.benchmarks.cli_tool_bench.published_tasks.checkout import find_tool
from runner.benchmarks.cli_tool_bench.published_tasks.texts import read_categories, read_texts
from runner.benchmarks.cli_tool_bench.published_tasks.vendoring import MARK, recipe
from runner.benchmarks.sources.clones import pack
from runner.benchmarks.sources.task_toml import read_toml
from runner.errors import ConfigError, TaskError
from tests.support import checkout_factory as authors
from tests.support import tool_task_factory as tally
from tests.support.waiting import once

CASES = 3
BUSY_SECONDS = 1800
"""Limit for imports with downloads."""
DEPENDENT = tally.PROJECT.replace('version = "1.0"', 'version = "1.0"\ndependencies = ["six==1.17.0"]')
NEEDY = tally.TOOL.replace("import sys\n", "import six\nimport sys\n")
TIMED = tally.TOOL.replace('"words")', '"words in", __import__("time").time_ns(), "ns")')
NODE = {
    "package.json": json.dumps(
        {"name": "tally", "version": "1.0.0", "bin": {"tally": "tally.js"}, "dependencies": {"ms": "2.1.3"}}
    ),
    "tally.js": "#!/usr/bin/env node\nconsole.log(require('ms')('2 days'), process.argv.length);\n",
}
PYTHON = {"pyproject.toml": tally.PROJECT, "tally.py": tally.TOOL}
THOUGHTS = "The user wants a prompt. Let me think about what tally does with words.\n"
NODE_START = {"language": "node", "install": "npm install && npm install -g ."}
KINDS: dict[str, dict[str, Any]] = {
    # name of a repository -> parts of its script, its clone
    "kind/plain": {},
    "kind/masked": {"mask": "return re.sub(r'\\d+ ns', 'N ns', raw_stdout)", "clone": PYTHON | {"tally.py": TIMED}},
    "kind/one-by-design": {"body": f"{authors.BODY}\nif category.name == 'LOG' and i: continue"},
    "kind/swallowed": {"body": f"if category.name == 'LOG' and i == 1: undefined_name\n{authors.BODY}"},
    "kind/nul": {"body": f"{authors.BODY}\nif i == 2: command += '\\0'"},
    "kind/outside": {"body": f"{authors.BODY}\nif i == 1: files['../out.txt'] = 'boo'"},
    "kind/thinking": {"prompt": THOUGHTS},
    "kind/yaml": {"imports": "import yaml", "body": f"{authors.BODY}\nfiles['x.yml'] = yaml.safe_dump([i])"},
    "kind/python-needs": {"clone": {"pyproject.toml": DEPENDENT, "tally.py": NEEDY}},
    "kind/node-needs": {**NODE_START, "clone": NODE},
    "kind/node-nul": {**NODE_START, "clone": NODE, "body": f"{authors.BODY}\nif i == 0: command += '\\0'"},
}  # fmt: skip
"""The kinds of thirteen real tasks. Not here: a second of a kind, a package that no index has, and modules of Go."""


def generated(*classes: str, **bad: int) -> Generated:
    """Return a generator's output with three cases in each class; `bad` says how many of a class cannot be run."""
    cases = [
        {"class": name, "command": "tally\0" if number < bad.get(name, 0) else "tally"}
        for name in classes
        for number in range(CASES)
    ]
    names = dict.fromkeys(classes, "tally")
    return Generated(image="python:latest", reference=(), candidate=(), classes=names, cases=tuple(cases))


def test_a_short_class_is_refused_or_kept() -> None:
    found = generated("A", "B")
    short = found.model_copy(update={"cases": found.cases[:-2]})
    with pytest.raises(TaskError, match=r"class B: 1 cases instead of 3\. job\.short_classes=keep takes"):
        CasePolicy(cases_per_class=CASES).apply(short, "")
    kept = CasePolicy(cases_per_class=CASES, short_classes="keep").apply(short, "")
    assert kept == (short, ["class B: 1 cases instead of 3"])


@pytest.mark.parametrize(
    ("due", "reason"), [(2, "A: 3 cases instead of 2: job.cases_per_class"), (4, "B: 0 cases")]
)
def test_a_class_with_too_many_cases_or_none_is_always_refused(due: int, reason: str) -> None:
    found = generated("A", "B")
    found = found.model_copy(update={"cases": found.cases[:CASES]})
    with pytest.raises(TaskError, match=reason):
        CasePolicy(cases_per_class=due, short_classes="keep", bad_cases="drop").apply(found, "It said this.")


def test_cases_that_cannot_be_run_are_refused_or_left_out() -> None:
    found = generated("A", "B", B=2)
    with pytest.raises(TaskError, match=r"jsonl, line 4: command: a NUL .*\. job\.bad_cases=drop leaves"):
        CasePolicy(cases_per_class=CASES).apply(found, "")
    dropping = CasePolicy(cases_per_class=CASES, bad_cases="drop")
    left, remarks = dropping.apply(found, "")
    assert left.cases == (*found.cases[:3], found.cases[5])
    assert remarks == ["class B: 2 cases that cannot be run are left out"]
    with pytest.raises(TaskError, match="class B: none of its 3 cases can be run"):
        dropping.apply(generated("A", "B", B=3), "")


def test_a_prompt_without_a_name_needs_one() -> None:
    with pytest.raises(TaskError, match=r"does not give its CLI Tool Name: set it with job\.names"):
        find_tool(THOUGHTS, None)
    assert (find_tool(THOUGHTS, "tally"), find_tool(authors.PROMPT, None)) == ("tally", "tally")


def test_texts_by_repository(tmp_path: Path) -> None:
    file = tmp_path / "names.yaml"
    file.write_text("a/b: tally\n")
    assert read_texts(file, "job.names") == read_texts({"a/b": "tally"}, "job.names") == {"a/b": "tally"}
    assert read_texts(None, "job.names") == {}
    for text in ("- a/b", "a/b: [1]", "a/b: 1", "../x: tally", "{"):
        file.write_text(text)
        with pytest.raises(ConfigError, match=r"job\.names: "):
            read_texts(file, "job.names")


def test_the_categories_of_a_checkout_are_read(tmp_path: Path) -> None:
    assert read_categories(tmp_path) == {}
    file = tmp_path / "category.json"
    file.write_text(json.dumps({"System Tools": ["a/b", "c/d"], "Testing": ["e/f"]}))
    assert read_categories(tmp_path) == {"a/b": "System Tools", "c/d": "System Tools", "e/f": "Testing"}
    for text in ("[]", '{"a": "b"}', '{"a": [1]}', "{", "[" * 100_000):
        file.write_text(text)
        with pytest.raises(ConfigError, match=r"job\.root: category\.json"):
            read_categories(tmp_path)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="lies behind a link"):
        read_categories(tmp_path)


@pytest.mark.parametrize(
    ("install", "fetch"),
    [
        ("pip install .", f"pip wheel --wheel-dir /workspace/{MARK} ."),
        ("pip3 install -e .[all] && python -m pip install -r more.txt",
         f"pip wheel --wheel-dir /workspace/{MARK} .[all] && pip wheel --wheel-dir /workspace/{MARK} -r more.txt"),
        ("(cd tools/it && pip install --upgrade --user .)",
         f"(cd tools/it && pip wheel --wheel-dir /workspace/{MARK} .)"),
    ],
)  # fmt: skip
def test_wheels_are_fetched_as_the_tool_is_installed(install: str, fetch: str) -> None:
    made = recipe("python", install)
    assert made.fetch == f"export SOURCE_DATE_EPOCH=315532800; {fetch}"
    assert made.install == f"if [ -d {MARK} ]; then pip install --no-deps {MARK}/*.whl; else {install}; fi"


def test_other_installations_with_requirements() -> None:
    assert recipe("go", "go install ./...") == ("go mod vendor", ("vendor",), "go install ./...")
    assert recipe("javascript", "npm install -g .").install.endswith("else npm install -g .; fi")
    with pytest.raises(TaskError, match=r"job\.vendor: its installation 'make' does not call pip"):
        recipe("python", "make")


def test_what_a_client_adds_never_replaces_the_clones_own_files(tmp_path: Path) -> None:
    for name, files in {
        "source": {"tally.py": "own", "lib/a.js": "own"},
        "made": {
            "tally.py": "other",
            "lib/a.js": "other",
            "lib/b.js": "new",
            "node_modules/ms/index.js": "new",
        },
    }.items():
        for path, text in files.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(text)
    (tmp_path / "made" / "node_modules" / "dangling").symlink_to("nowhere")
    vendoring._add_new(tmp_path / "made", tmp_path / "source", ())
    pack(tmp_path / "source", tmp_path / "one.tar")
    (tmp_path / "source" / "tally.py").touch()
    pack(tmp_path / "source", tmp_path / "other.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "other.tar").read_bytes()
    with tarfile.open(tmp_path / "one.tar") as packed:
        texts = {name: file.read() for name in packed.getnames() if (file := _file(packed, name))}
        assert packed.getmember("node_modules/dangling").linkname == "nowhere"
    assert texts == {
        "tally.py": b"own",
        "lib/a.js": b"own",
        "lib/b.js": b"new",
        "node_modules/ms/index.js": b"new",
    }


def _file(packed: tarfile.TarFile, name: str) -> IO[bytes] | None:
    return packed.extractfile(name) if packed.getmember(name).isreg() else None


def test_what_a_client_adds_is_not_written_through_a_link_of_the_clone(tmp_path: Path) -> None:
    for name in ("source", "made", "outside"):
        (tmp_path / name).mkdir()
    (tmp_path / "source" / "vendor").symlink_to(tmp_path / "outside")
    (tmp_path / "made" / "vendor").mkdir()
    (tmp_path / "made" / "vendor" / "new.go").write_text("new")
    with pytest.raises(TaskError, match="would lie behind a link of the clone"):
        vendoring._add_new(tmp_path / "made", tmp_path / "source", ("vendor",))
    assert not list((tmp_path / "outside").iterdir())


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a checkout with a repository of each kind."""
    root = authors.checkout(tmp_path_factory.mktemp("authors") / "checkout")
    for name, parts in KINDS.items():
        script = {key: text for key, text in parts.items() if key not in ("clone", "language", "install")}
        authors.add(root, name, **{"mask": "return raw_stdout", **script})
        start = root / "run_differential_test" / "repo" / name / "start.py"
        text = start.read_text().replace("python:latest", f"{parts.get('language', 'python')}:latest")
        start.write_text(text.replace("pip install .", parts.get("install", "pip install .")))
        authors.clone(root.with_name("checkout-clones") / name, parts.get("clone", PYTHON))
    (root / "category.json").write_text(json.dumps({"Testing": sorted(KINDS)}))
    (root / "names.yaml").write_text("kind/thinking: tally\n")
    return root


def imported(checkout: Path, cache: Path, into: str, *words: str) -> tuple[int, str, str]:
    """Import everything. Returns exit code, output and errors."""
    command = [
        *("job=import_cli_tool_bench", f"job.root={checkout}", f"job.references={checkout}-clones"),
        *(f"job.path={checkout.with_name(into)}", f"job.cases_per_class={CASES}", "job.seed=7"),
        *(f"outputs={checkout.with_name('outputs')}", f"dataset.verifier.cache={cache}"),
        *("dataset.verifier.limits.seconds=200", "dataset.verifier.install_seconds=900"),
    ]
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as errors:
        code = main([*command, *words])
    return code, out.getvalue(), errors.getvalue()


CASE_OPTIONS = ("job.short_classes=keep", "job.bad_cases=drop")
ALL_OPTIONS = (*CASE_OPTIONS, "job.vendor=true", 'job.packages=["pyyaml==6.0.2"]')
INSTALLED = tuple(
    f"kind/{name}" for name in ("plain", "masked", "thinking", "nul", "yaml", "python-needs", "node-needs")
)
"""Kinds that are imported with all options; the others only need those on cases, and installing takes most time."""


@pytest.fixture(scope="module")
def results(checkout: Path, common: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Import all kinds without the options and with those that they need, once for all workers."""

    def make() -> str:
        cache = tally.furnished(tmp_path_factory.mktemp("cache") / "cache", common, "results")
        without = imported(checkout, cache, "without")
        named = partial(imported, checkout, cache, "with", f"job.names={checkout}/names.yaml")
        installed = named(f"job.repositories=[{','.join(INSTALLED)}]", *ALL_OPTIONS)
        others = ",".join(sorted({*KINDS} - {*INSTALLED}))
        read = named(f"job.repositories=[{others}]", "job.check=false", *CASE_OPTIONS)
        found = {"without": without, "installed": installed, "read": read}
        return json.dumps(found | {"tasks": str(checkout.with_name("with"))})

    found: dict[str, Any] = json.loads(once(common / "import-options.json", make))
    return found


@pytest.mark.docker
@pytest.mark.timeout(BUSY_SECONDS)
def test_each_error_names_the_option_that_is_its_way_out(results: dict[str, Any]) -> None:
    code, out, errors = results["without"]
    assert code == 2, errors
    assert "2 of 11 repositories are tasks" in out
    for name, option in {
        "one-by-design": "class LOG: 1 cases instead of 3. job.short_classes=keep",
        "swallowed": "class LOG: 2 cases instead of 3. job.short_classes=keep",
        "nul": "NUL byte cannot be given to a shell. job.bad_cases=drop",
        "outside": "is not a path below /test_data. job.bad_cases=drop",
        "thinking": "does not give its CLI Tool Name: set it with job.names",
        "yaml": "'yaml' may come with a package: name it in job.packages=",
        "python-needs": "cannot be installed",
        "node-needs": "job.vendor=true makes what it requires a part of it",
        "node-nul": "job.bad_cases=drop",
    }.items():
        message = errors.partition(f"kind/{name}: ")[2].partition("\nkind/")[0]
        assert option in message, (name, message)


@pytest.mark.docker
@pytest.mark.timeout(BUSY_SECONDS)
def test_with_the_options_all_kinds_are_imported(results: dict[str, Any]) -> None:
    (code, out, errors), (read_code, read_out, read_errors) = results["installed"], results["read"]
    assert (code, errors, read_code, read_errors) == (0, "", 0, "")
    assert "7 of 7 repositories are tasks" in out
    assert "4 of 4 repositories are tasks" in read_out
    out += read_out
    for name, remark in {
        "one-by-design": "4 cases; class LOG: 1 cases instead of 3\n",
        "swallowed": "5 cases; class LOG: 2 cases instead of 3\n",
        "nul": "4 cases; class COUNT: 1 cases that cannot be run are left out; class LOG: 1 cases that",
        "plain": "2 classes, 6 cases; what its reference requires is part of it\n",
        "masked": "2 classes, 6 cases; what its reference requires is part of it\n",
        "thinking": "2 classes, 6 cases; what its reference requires is part of it\n",
    }.items():
        assert f"kind/{name}: " in out
        assert remark in out.partition(f"kind/{name}: ")[2].partition("\n[")[0] + "\n"
    tasks = Path(results["tasks"])
    tools = {name: read_toml(tasks / name.replace("/", "__") / "task.toml", ToolTask) for name in KINDS}
    assert {tool.category for tool in tools.values()} == {"Testing"}
    assert [rule.pattern for rule in tools["kind/masked"].normalize] == ["\\d+ ns"]
    assert not tools["kind/plain"].normalize
    yaml_cases = read_cases(tasks / "kind__yaml" / "cases.jsonl")
    assert yaml_cases[1].files["x.yml"] == "- 1\n"
    with tarfile.open(tasks / "kind__python-needs" / "reference.tar") as packed:
        names = packed.getnames()
    assert {"tally.py", MARK} <= {*names}
    assert any(name.startswith(f"{MARK}/six-1.17.0-") for name in names)
    assert tools["kind/python-needs"].reference.packages == {"pypi": ("six", "tally")}
    assert tools["kind/node-needs"].reference.packages == {}
    with tarfile.open(tasks / "kind__node-needs" / "reference.tar") as packed:
        assert "node_modules/ms/package.json" in packed.getnames()
