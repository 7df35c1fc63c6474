"""Speed of making tasks: part of `make bench`. Measures; asserts nothing.

The tool is a small Python program of 20 classes in its own folder, so no registry and no model is part of a figure. The
floor is the same number of runs of the tool by one process in the same image, two at a time.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
import tracemalloc
from functools import partial
from pathlib import Path

from metrics.differential import Rules
from runner.benchmarks.cli_tool_bench.construction import acceptance, golden
from runner.benchmarks.cli_tool_bench.construction.drawing import Generators
from runner.benchmarks.cli_tool_bench.construction.golden import GoldenClass, golden_class
from runner.benchmarks.cli_tool_bench.construction.machine import ReferenceMachine
from runner.benchmarks.cli_tool_bench.construction.recipe import Recipe
from runner.benchmarks.cli_tool_bench.construction.scrubbing import Brand
from runner.benchmarks.cli_tool_bench.construction.steps import Steps
from runner.benchmarks.sources.references import Reference
from runner.benchmarks.sources.task_files import copy_tree, tree_digest
from runner.sandbox.docker.provider import DockerSandboxes
from tests.support.tool_task_factory import make_tool_task, tool_dataset

CLASSES = 20
TOOLS = 100
TOOL = """\
import sys

def main():
    how, *words = sys.argv[1:]
    if not how.startswith("c"):
        sys.exit("no such command")
    print(how, len(words), *sorted(words))
"""
GENERATOR = """\
from fuzz import Case, quote

def common(draw):
    return Case(f"{draw.tool} HOW " + " ".join(map(quote, draw.words(draw.integer(1, 9)))))

def boundary(draw):
    return Case(f"{draw.tool} HOW {quote(draw.evil())} {draw.integer()}")

def error(draw):
    return Case(f"{draw.tool} x{draw.word()} {draw.integer()}")
"""
BARE = """
import json, subprocess, sys, time
from concurrent.futures import ThreadPoolExecutor
commands = json.load(sys.stdin)
def run(command):
    subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True)
began = time.perf_counter()
with ThreadPoolExecutor(2) as pool:
    list(pool.map(run, commands))
print(time.perf_counter() - began)
"""


def main() -> None:
    """Run every measurement, one line each."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as scratch:
        _one_tool(Path(scratch))
        _many_tools(Path(scratch))


def _one_tool(folder: Path) -> None:
    task = make_tool_task(folder / "tasks", tool=TOOL)
    draft = folder / "work" / "draft" / "tally"
    draft.mkdir(parents=True)
    copy_tree(task / "reference", draft / "reference")
    digest = tree_digest(draft / "reference")
    reference = Reference(source="folder", package="reference", digest=digest, license="none", lines=9)
    recipe = Recipe(tool="tally", source="pypi", package="other", version="1", category="Testing")
    dataset, sandboxes = tool_dataset(folder / "tasks", folder / "cache"), DockerSandboxes()
    brand = Brand.of("tally", [], [], [])
    with (
        ReferenceMachine(recipe, reference, dataset, sandboxes, folder / "work") as machine,
        Generators(sandboxes, 1) as generators,
    ):
        machine.fetch(lambda _: None)
        machine.run("tally c")  # the image of the language is built off the clock
        began = time.monotonic()
        classes: list[GoldenClass] = []
        for number in range(CLASSES):
            name, source = f"C{number}", GENERATOR.replace("HOW", f"c{number}")
            draws = generators.draw("tally", name, source, {})
            look = partial(golden_class, name, draws, machine, brand, Rules())
            classes.append(Steps(folder / "one").get(name, [], GoldenClass, look))
        looked = time.monotonic() - began
        cases = [case for one in classes for case in one.cases]
        floor = _bare(machine.image.reference, [case.case.command for case in cases])
    (task / "cases.jsonl").write_text("".join(f"{json.dumps(case.line)}\n" for case in cases))
    text = (task / "task.toml").read_text().partition("[classes]")[0]
    (task / "task.toml").write_text(text + "[classes]\n" + "".join(f'{one.name} = "-"\n' for one in classes))
    began = time.monotonic()
    acceptance.accept(task, Steps(folder / "steps"), dataset, sandboxes)
    accepted = time.monotonic() - began
    size = len(golden.lines(classes))
    print(
        f"a tool of {CLASSES} classes, {len(cases)} cases: drawn and looked at three times in {looked:.0f} s "
        f"({looked / (3 * floor):.2f} x three bare runs, two at once), accepted in {accepted:.0f} s; "
        f"{looked + accepted:.0f} s in all (bound 180 s); golden.jsonl {size / 2**20:.1f} MiB"
    )


def _bare(image: str, commands: list[str]) -> float:
    """Return the seconds of running all commands without isolation, two at once, in one container."""
    name = "assay-bench-bare"
    inside = ["--network", "none", "--workdir", "/tmp", "--entrypoint", "python3", image, "-c", BARE]
    run = ["docker", "run", "-i", "--rm", "--name", name, *inside]
    done = subprocess.run(run, input=json.dumps(commands), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the bare runs failed: {done.stderr[-500:]}")
    return float(done.stdout)


def _many_tools(folder: Path) -> None:
    """Time the resumption of many tools whose steps are stored, and its memory beyond that of a tenth of them."""
    names = sorted(path.stem for path in (folder / "one").glob("*.json"))
    for number in range(TOOLS):
        shutil.copytree(folder / "one", folder / "many" / str(number))
    peaks, seconds = {}, 0.0
    for count in (TOOLS // 10, TOOLS):
        tracemalloc.start()
        began = time.monotonic()
        for number in range(count):
            steps = Steps(folder / "many" / str(number))
            for name in names:
                steps.get(name, [], GoldenClass, _never)
        seconds = time.monotonic() - began
        peaks[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    few, many = peaks[TOOLS // 10], peaks[TOOLS]
    print(
        f"{TOOLS} tools of {len(names)} stored classes are resumed in {seconds:.1f} s, while memory is traced; its "
        f"peak is {many / few:.2f} x that of {TOOLS // 10} tools (bound 1.2)"
    )


def _never() -> GoldenClass:
    raise AssertionError("a step is not stored")


if __name__ == "__main__":
    main()
