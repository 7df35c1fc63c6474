"""Pages of the site that are made from the code: a hook of MkDocs, named in `mkdocs.yml`.

Configuration comes from `conf/` and from the classes that its files name, the command line from `--help`, and the
Python pages from the packages found on disk, so no module is named here and none can be forgotten.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
CONF = ROOT / "conf"
DATA = {
    "model": ["Model", "Prices", "PriceTier"],
    "budget": ["Budget"],
    "scoring": ["Scoring", "TierScoring"],
}
DATA |= {"pricing": ["Pricing"], "config": ["CallLimits", "CallLimit", "SpendLimits", "StoreSettings"]}
"""Group -> names of the records that hold its keys, where its files name no class."""
TITLES = {"runner.records": "Records", "metrics": "Metric functions"}
"""Packages with a page of their own in the reference, beside those under "Python API"."""

LEFT = {"skipped": "skipped", "xfailed": "expected to fail", "failed": "failed", "left_out": "left out"}
"""List of a truth -> its name in the table."""
NL2REPO = """\
# NL2Repo-Bench tasks

{runs} of {all} public tasks run: their source is pinned, upstream passes its own tests here twice, and an empty
workspace none. `job=find_nl2repo_sources` found the sources, or the reasons; `job=verify_ground_truth` found the tests
that count. Fifteen further tasks of the authors are not known here.

| task | runs | Python | tests that count |
|---|---|---|---|
{rows}
"""
"""Page on the public tasks."""

Classes = dict[str, tuple[str, ast.ClassDef]]


def on_config(config: Any) -> Any:
    """Add what is found on disk to the navigation."""
    reference = _section(config.nav, "Reference")
    reference.append({"Command line": "reference/cli.md"})
    reference.append({"Configuration": [f"reference/configuration/{name}.md" for name in _groups()]})
    reference.append({"NL2Repo-Bench tasks": "reference/nl2repo-tasks.md"})
    names = [name for name, _ in _packages()]
    reference += [{TITLES[name]: _page(name)} for name in names if name in TITLES]
    reference.append({"Python API": [{name: _page(name)} for name in names if name not in TITLES]})
    decisions = sorted((ROOT / "docs" / "adr").glob("*.md"))
    _section(config.nav, "Explanation").append({"Decisions": [f"adr/{path.name}" for path in decisions]})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - the site's dependency, and not the runner's

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def pages() -> dict[str, str]:
    """Return every generated page: path below `docs/` -> Markdown."""
    classes = _classes()
    made = {f"reference/configuration/{name}.md": _configuration(name, classes) for name in _groups()}
    made["reference/cli.md"] = _command_line()
    made["reference/nl2repo-tasks.md"] = nl2repo_tasks(ROOT / "tasks" / "nl2repo")
    made["contributing.md"] = (ROOT / "CONTRIBUTING.md").read_text()
    return made | {_page(name): _python(name, modules) for name, modules in _packages()}


def _section(nav: list[Any], title: str) -> list[Any]:
    return next(entry[title] for entry in nav if isinstance(entry, dict) and title in entry)


def _page(package: str) -> str:
    return f"reference/python/{package}.md"


def _packages() -> Iterator[tuple[str, list[str]]]:
    """Yield each package of the project with its modules, by name."""
    for folder in sorted(
        path.parent for top in ("metrics", "runner") for path in (ROOT / top).rglob("__init__.py")
    ):
        name = ".".join(folder.relative_to(ROOT).parts)
        yield name, [f"{name}.{path.stem}" for path in sorted(folder.glob("*.py")) if path.stem[0] != "_"]


def _python(name: str, modules: list[str]) -> str:
    title = TITLES.get(name, name)
    package = f"::: {name}\n    options:\n      members: false\n      show_root_heading: false\n"
    return "\n\n".join([f"# {title}", package, *(f"::: {module}" for module in modules)])


def nl2repo_tasks(folder: Path) -> str:
    """Return the page on which public tasks run: their sources and truths, and the reasons of all others."""
    rows = {
        name: f"no: {reason}"
        for name, reason in yaml.safe_load((folder / "reasons.yaml").read_text()).items()
    }
    numbers: dict[str, str] = {}
    pythons: dict[str, str] = {}
    for file in sorted(folder.glob("sources/*/source.yaml")):
        source, truth = yaml.safe_load(file.read_text()), file.with_name("truth.json")
        if truth.is_file():
            rows[file.parent.name] = f"yes: {source['kind']} `{source['package']}` {source['version']}"
            reason = source.get("python_reason", "")
            pythons[file.parent.name] = f"{source.get('python', '3.13')}{f': {reason}' if reason else ''}"
            found = json.loads(truth.read_bytes())
            left = [f"{len(found[key])} {name}" for key, name in LEFT.items() if found.get(key)]
            numbers[file.parent.name] = (
                f"{len(found['passed'])}{' (' + ', '.join(left) + ')' if left else ''}"
            )
    lines = [
        f"| {name} | {rows[name]} | {pythons.get(name, '')} | {numbers.get(name, '')} |"
        for name in sorted(rows, key=str.lower)
    ]
    return NL2REPO.format(runs=len(numbers), all=len(rows), rows="\n".join(lines))


def _command_line() -> str:
    text = _help()
    return f"# Command line\n\nThis is the output of `python -m runner --help`.\n\n```text\n{text}```\n"


def _help(*words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "runner", "--help", *words],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def _groups() -> list[str]:
    return [
        "config",
        *sorted(path.name for path in CONF.iterdir() if path.is_dir() and any(path.glob("*.yaml"))),
    ]


def _configuration(group: str, classes: Classes) -> str:
    """Return the page of a group: its files as they are, then the keys that their classes take."""
    if group == "config":
        files, title, lead = (
            [CONF / "config.yaml"],
            "What a run consists of",
            "The table of contents of `conf/`.",
        )
    else:
        files, title = sorted((CONF / group).glob("*.yaml")), group
        lead = (
            f"Choose with `{group}=NAME`. The files are shown as they are; their comments explain the keys."
        )
    parts = [f"# {title}", lead]
    names = list(DATA.get(group, []))
    for path in files:
        text = path.read_text()
        parts += [f"## {path.stem}", f'```yaml title="{path.relative_to(ROOT)}"\n{text}```']
        names += re.findall(r"_target_: [\w.]+\.(\w+)", text)
    tables = [_table(name, classes) for name in dict.fromkeys(names)]
    return (
        "\n\n".join([*parts, *(["## Keys of the classes"] if any(tables) else []), *filter(None, tables)])
        + "\n"
    )


def _classes() -> Classes:
    """Return every class of the runner by its name, with its module."""
    found: Classes = {}
    for path in sorted((ROOT / "runner").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, (module, node))
    return found


def _table(name: str, classes: Classes) -> str:
    module, node = classes[name]
    rows = list(_fields(name, classes))
    if not rows:
        return ""
    lead = (ast.get_docstring(node) or "").partition("\n\n")[0]
    head = (
        f"### {name}\n\n`{module}.{name}`: {lead}\n\n| key | type | default | meaning |\n|---|---|---|---|\n"
    )
    return head + "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _fields(name: str, classes: Classes) -> Iterator[tuple[str, str, str, str]]:
    """Yield key, type, default and docstring of each public field, those of its bases first."""
    node = classes[name][1]
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            yield from _fields(base.id, classes)
    for field, after in zip(node.body, [*node.body[1:], None], strict=True):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        kind = ast.unparse(field.annotation)
        if field.target.id.startswith("_") or field.target.id == "model_config" or "ClassVar" in kind:
            continue
        yield f"`{field.target.id}`", f"`{kind}`", _default(field.value), _meaning(after)


def _default(value: ast.expr | None) -> str:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "Field":
        given = {word.arg: word.value for word in value.keywords}
        value = given.get("default")
    return "" if value is None else f"`{ast.unparse(value)}`"


def _meaning(after: ast.stmt | None) -> str:
    if (
        isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
        and isinstance(after.value.value, str)
    ):
        return " ".join(after.value.value.split()).replace("|", "\\|")
    return ""
