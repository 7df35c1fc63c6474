"""`job=import_cli_tool_bench` on the command line, over a small checkout with generators that misbehave."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from threading import Barrier

import pytest

from runner.__main__ import main
from runner.benchmarks.cli_tool_bench.case_file import read_cases
from runner.benchmarks.cli_tool_bench.dataset import ToolTask
from runner.benchmarks.cli_tool_bench.published_tasks.cases import CasePolicy, Generated
from runner.benchmarks.cli_tool_bench.published_tasks.checkout import Generator, Published, write_task
from runner.benchmarks.cli_tool_bench.published_tasks.masks import Masks
from runner.benchmarks.sources.references import fetch, solution
from runner.benchmarks.sources.task_files import tree_digest
from runner.benchmarks.sources.task_toml import read_toml
from runner.errors import TaskError
from runner.records import Image
from runner.sandbox.local import LocalSandboxes
from tests.support import checkout_factory as authors
from tests.support import tool_task_factory as tally
from tests.support.waiting import once

SEED, CASES = 7, 3
GOOD = "someone/tally"


def _faulty(fault: str) -> str:
    """Return a generator that is good except for the second case of its second class."""
    return f"if category.name == 'LOG' and i == 1: {fault}\n{authors.BODY}"


FORGED = """import json
case = {"class": "COUNT", "command": "tally", "files": {"../../etc/cron.d/x": "boo"}}
found = {"image": "python:latest", "reference": [], "candidate": ["cd /repo/repo_to_be_tested && pip install ."],
         "classes": {"COUNT": "tally"}, "cases": [case] * 3}
open(sys.argv[3], "w").write(json.dumps(found))
os._exit(0)"""
ENDLESS = "bad/endless"
MISBEHAVING = {
    "bad/forger": FORGED,
    "bad/raising": _faulty(
        "print('\\x1b[2J'); raise OSError(os.listdir('/sys/class/net'), os.getuid() == 0)"
    ),
    "bad/restless": authors.BODY + "\nfiles['x'] = str(random.SystemRandom().random())",
    "bad/swallowing": _faulty("undefined_name"),
    "bad/empty": "undefined_name",
    ENDLESS: "while True: pass",
    "bad/nul": authors.BODY + "\nif i == 2: command += '\\0'",
}


def _import(checkout: Path, into: str, *words: str, seed: int = SEED) -> list[str]:
    """Return the command line."""
    return [
        "job=import_cli_tool_bench",
        f"job.root={checkout}",
        f"job.references={checkout}-clones",
        f"job.path={checkout.with_name(into)}",
        f"job.seed={seed}",
        f"job.cases_per_class={CASES}",
        "job.check=false",
        *words,
    ]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a checkout with one good repository, and a bad one for each defect."""
    root = authors.checkout(tmp_path_factory.mktemp("authors") / "checkout")
    authors.add(root, GOOD)
    for name, body in MISBEHAVING.items():
        authors.add(root, name, body, "raise" if name == "bad/raising" else authors.SWALLOW)
    authors.add(root, "bad/unreferenced")
    with (root / "run_differential_test" / "full_name.txt").open("a") as names:
        names.write("bad/listed-only\n")
    (root / "categories.yaml").write_text(f"{GOOD}: Text Processing\n")
    for name in (GOOD, *MISBEHAVING):
        files = {"pyproject.toml": tally.PROJECT, "tally.py": tally.TOOL, "tests/test_tally.py": "pass\n"}
        files |= {".github/deep/er/ci.yml": "a: b\n", "docs/use.md": "Use it.\n"}
        authors.clone(root.with_name("checkout-clones") / name, files)
    return root


@pytest.fixture(scope="module")
def imported(checkout: Path) -> Path:
    """Import the good repository, and return its task folder."""
    words = [f"job.repositories=[{GOOD}]", f"job.categories={checkout}/categories.yaml"]
    assert main(_import(checkout, "imported", *words)) == 0
    return checkout.with_name("imported") / "someone__tally"


@pytest.mark.docker
def test_a_repository_becomes_a_task_of_the_dataset(imported: Path, tmp_path: Path) -> None:
    tool = read_toml(imported / "task.toml", ToolTask)
    assert (tool.tool, tool.language, tool.category, tool.install) == (
        "tally",
        "python",
        "Text Processing",
        "pip install .",
    )
    assert tool.classes == {"COUNT": "tally count <file>", "LOG": "tally log <file>"}
    code = [line for line in tally.TOOL.splitlines() if line.strip()]
    assert (tool.tier, tool.reference.lines) == ("easy", len(code))
    assert (tool.reference.files, tool.reference.depth) == (3, 1), "without its tests and its hidden files"
    assert (imported / "instruction.md").read_text() == authors.PROMPT
    cases = read_cases(imported / "cases.jsonl", tool.classes, "tally")
    assert [case.command for case in cases] == [
        f"tally {n} /test_data/w{i}.txt" for n in ("count", "log") for i in range(3)
    ]
    assert all(case.files and not case.prep for case in cases)
    assert {case.start for case in cases} == {"/"}
    (task,) = tally.tool_dataset(imported.parent, tmp_path).tasks()
    assert not task.refused
    fetch(tool.reference, "tally", imported, lambda _: tmp_path, print, tmp_path)
    source = solution(tool.reference, "tally", tmp_path) / "source"
    assert (source / "tally.py").read_text() == tally.TOOL


@pytest.mark.docker
def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_cases(
    checkout: Path, imported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [f"job.repositories=[{GOOD}]", f"job.categories={checkout}/categories.yaml"]
    assert main(_import(checkout, "again", *words)) == 0
    assert tree_digest(checkout.with_name("again") / imported.name) == tree_digest(imported)
    assert "2 classes, 6 cases; line 28 of its sanitize_stdout is not taken over" in capsys.readouterr().out
    # into the same folder: an imported task is replaced
    assert main(_import(checkout, "again", *words, seed=SEED + 1)) == 0
    other = checkout.with_name("again") / imported.name / "cases.jsonl"
    assert len(other.read_text().splitlines()) == 2 * CASES
    assert other.read_text() != (imported / "cases.jsonl").read_text()


@pytest.fixture(scope="module")
def failed(checkout: Path, common: Path) -> dict[str, str]:
    """Import each bad repository once for all workers. Returns name -> error message."""
    messages: dict[str, str] = json.loads(
        once(common / "imports.json", lambda: json.dumps(_import_bad_ones(checkout)))
    )
    return messages


def _import_bad_ones(checkout: Path) -> dict[str, str]:
    names = {*MISBEHAVING, "bad/unreferenced", "bad/listed-only"}
    messages: dict[str, str] = {}
    for some, seconds in ((names - {ENDLESS}, 60), ({ENDLESS}, 2)):
        words = [f"job.repositories=[{','.join(some)}]", f"job.seconds={seconds}"]
        with redirect_stderr(StringIO()) as errors:
            assert main(_import(checkout, "failed", *words)) == 2
        assert not list(checkout.with_name("failed").iterdir())
        _, _, text = errors.getvalue().partition(f"{len(some)} were not imported:\n")
        messages |= {name: text.partition(f"{name}: ")[2].partition("\nbad/")[0] for name in some}
    return messages


@pytest.mark.docker
@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        # No network but the loopback, no root, and the escape sequence is printed in escaped form.
        (
            "raising",
            ("class LOG: its generator failed", "Traceback", "\\x1b[2J\n", "OSError: [Errno ['lo']] False"),
        ),
        (
            "swallowing",
            (
                "class LOG: 2 cases instead of 3. job.short_classes=keep",
                "Warning: LOG: name 'undefined_name'",
            ),
        ),
        ("restless", ("cases.jsonl, line 1: class COUNT: two runs differ in files", "seed does not fix it")),
        ("forger", ("cases.jsonl, line 1: files: file '../../etc/cron.d/x' is not a path below",)),
        ("nul", ("cases.jsonl, line 3: command: a NUL byte",)),
        ("empty", ("its generator yields no case", "Warning: COUNT: name 'undefined_name'")),
        ("endless", ("left nothing readable. It ended with deadline",)),
        ("unreferenced", ("its reference is missing: git clone https://code.example/someone/tally.git /",)),
        ("listed-only", ("start.py cannot be read",)),
    ],
)
def test_a_repository_that_is_not_imported_is_reported_with_the_reason(
    failed: dict[str, str], name: str, reasons: tuple[str, ...]
) -> None:
    for reason in reasons:
        assert reason in failed[f"bad/{name}"]
    assert "\x1b" not in failed[f"bad/{name}"]


def _generated(image: str = "node:latest", *commands: str) -> Generated:
    return Generated(image=image, reference=(), candidate=commands, classes={"A": "a"}, cases=())


@pytest.mark.parametrize(
    ("commands", "install"),
    [
        (
            ["sh -c 'cd /repo/repo_to_be_tested && npm install && npm install -g .'"],
            "npm install && npm install -g .",
        ),
        (
            ["mkdir -p /repo", "cd /repo/repo_to_be_tested && go install -buildvcs=false ."],
            "go install -buildvcs=false .",
        ),
        (["cd /repo/repo_to_be_tested/tools/it && go install ."], "(cd tools/it && go install .)"),
    ],
)
def test_installations_of_the_authors_are_understood(commands: list[str], install: str) -> None:
    assert _generated("golang:latest", *commands).install == install


@pytest.mark.parametrize("command", ["pip install /repo/other", "sh -c 'cd /repo/repo_to_be_tested'", ""])
def test_an_installation_that_is_not_understood_is_refused(command: str) -> None:
    with pytest.raises(TaskError, match="installation is not understood"):
        assert not _generated("node:latest", command).install


def test_an_unknown_language_is_refused() -> None:
    assert _generated("registry.example/node:20").language == "javascript"
    with pytest.raises(TaskError, match=r"'rust:latest' is for none of python, node, golang"):
        assert not _generated("rust:latest").language


@pytest.mark.parametrize(
    "part",
    [
        f"run_differential_test/repo/{GOOD}/start.py",
        f"agent_prompt/{GOOD}/agent_prompt.txt",
        "run_differential_test/repo/someone",
        "agent_prompt/someone",
    ],
    ids=["script", "prompt", "owner of a script", "owner of a prompt"],
)
def test_a_link_out_of_the_checkout_is_not_followed(tmp_path: Path, part: str) -> None:
    root = authors.checkout(tmp_path / "checkout")
    authors.add(root, GOOD)
    (root / part).rename(tmp_path / "secret")
    (root / part).symlink_to(tmp_path / "secret")
    generator = Generator(root=root, seed=0, seconds=1, policy=CasePolicy(cases_per_class=3))
    with pytest.raises(TaskError, match="lies behind a link"):
        _read(generator)


def _read(generator: Generator) -> None:
    """Read a repository as far as possible before a sandbox starts."""
    generator.prompt(GOOD)
    generator.generate(GOOD, Image(id="", reference=""), LocalSandboxes())


def test_a_folder_that_is_not_a_checkout_is_reported_before_anything_starts(tmp_path: Path) -> None:
    with redirect_stderr(StringIO()) as errors:
        assert main(_import(tmp_path / "nothing", "out")) == 2
    assert "is not a checkout of CLI-Tool-Bench" in errors.getvalue()
    root = authors.checkout(tmp_path / "checkout")
    with redirect_stderr(StringIO()) as errors:
        assert main(_import(root, "out", "job.repositories=[no/such]")) == 2
    assert "job.repositories: no/such is not in" in errors.getvalue()
    (root / "run_differential_test" / "full_name.txt").write_text("../../etc\n")
    with redirect_stderr(StringIO()) as errors:
        assert main(_import(root, "out")) == 2
    assert "'../../etc' is not OWNER/REPOSITORY" in errors.getvalue()


def test_generators_never_run_outside_a_container(tmp_path: Path) -> None:
    root = authors.checkout(tmp_path / "checkout")
    authors.add(root, GOOD)
    with redirect_stderr(StringIO()) as errors:
        assert main(_import(root, "out", "sandbox=local")) == 2
    assert "use sandbox=docker" in errors.getvalue()


def test_of_two_imports_of_one_repository_one_ended_in_a_traceback(tmp_path: Path) -> None:
    """Both removed the earlier task at the same time."""
    case = {"class": "COUNT", "command": "tally a", "files": {}}
    generated = Generated(
        image="python:latest",
        reference=(),
        candidate=("cd /repo/repo_to_be_tested && pip install .",),
        classes={"COUNT": "tally"},
        cases=(case,) * 2000,
    )
    published = Published("The tool is called tally.", generated, Masks((), ()), ())
    (reference := tmp_path / "reference.tar").touch()
    head = {"repository": GOOD, "tool": "tally", "install": "", "category": "", "reference": {}}
    into, both = tmp_path / "tasks" / "someone__tally", Barrier(2)
    into.parent.mkdir()

    def check(_: Path) -> None:
        both.wait()

    def write(_: int) -> None:
        write_task(into, published, head, reference, check)

    with ThreadPoolExecutor(2) as pool:
        for _ in range(10):
            list(pool.map(write, range(2)))
    assert [path.name for path in into.parent.iterdir()] == [into.name]
    names = ["cases.jsonl", "instruction.md", "reference.tar", "task.toml"]
    assert sorted(path.name for path in into.iterdir()) == names
