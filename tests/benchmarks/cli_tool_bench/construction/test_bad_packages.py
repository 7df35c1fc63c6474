"""Packages that no task can be made of, looked up at stand-ins for their registries: each is refused with a reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from runner.benchmarks.sources.published_package import Package
from runner.benchmarks.sources.references import fetch_context
from runner.benchmarks.sources.registries import look_up, reference
from runner.errors import FetchError, TaskError
from runner.resources import ROOT
from tests.support.module_proxy import served
from tests.support.npm_registry import publish_package
from tests.support.package_index import publish_sdist, publish_wheel, tool_files
from tests.support.tool_task_factory import furnished

TRACE = "ran.txt"
"""File that code of a package makes where it runs."""
SETUP = "open({trace!r}, 'w').close()\nfrom setuptools import setup\nsetup(name='bad', version='1.0')\n"
CODE = "def main():\n    print('usage: bad')\n"
ABOUT = "bad-1.0.dist-info"


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, str]]:
    """Serve a registry of npm packages, and yield its folder and its address."""
    root = tmp_path / "registry"
    root.mkdir()
    with served(root) as (address, _):
        monkeypatch.setenv("npm_config_registry", f"{address}/")
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
        monkeypatch.setenv("npm_config_fetch_retries", "0")  # npm waits minutes between them
        yield root, address


@pytest.fixture
def client(tmp_path: Path, common: Path) -> Callable[[str], Path]:
    cache = furnished(tmp_path / "cache", common)
    return partial(fetch_context, ROOT / "tasks" / "cli_tool_bench" / "images", cache=cache, say=print)


def _refused(package: Callable[[], Package]) -> str:
    """Return why a package is refused, either when it is looked up or when it becomes a reference."""
    with pytest.raises((TaskError, FetchError)) as refused:
        reference(package(), "bad", "tallyho")
    return str(refused.value)


def _wheel(root: Path, files: Mapping[str, str], requires: tuple[str, ...] = ()) -> None:
    publish_wheel(root, "bad", "1.0", {**tool_files("bad", "1.0", CODE, {"bad": "main"}, requires), **files})


def _needs_an_sdist(root: Path) -> None:
    _wheel(root, {}, ("worse==1.0",))
    publish_sdist(root, "worse", "1.0", {"setup.py": SETUP.format(trace=str(root / TRACE))})


def _not_a_zip(root: Path) -> None:
    _wheel(root, {})
    (root / "bad" / "index.html").unlink()
    file = root / "bad" / "bad-1.0-py3-none-any.whl"
    file.write_bytes(b"odd")
    (root / "bad" / "index.html").write_text(f'<a href="{file.name}">{file.name}</a>')


WHEELS: dict[str, tuple[Callable[[Path], None], str]] = {
    "runs code": (
        lambda root: publish_sdist(root, "bad", "1.0", {"setup.py": SETUP.format(trace=str(root / TRACE))}),
        "no wheel for every machine",
    ),
    "needs one that runs code": (_needs_an_sdist, "uv pip compile .*failed"),
    "unreadable commands": (
        lambda root: _wheel(root, {f"{ABOUT}/entry_points.txt": "bad = bad:main"}),
        "entry_points.txt of the wheel cannot be read",
    ),
    "a command that is code": (
        lambda root: _wheel(root, {f"{ABOUT}/entry_points.txt": "[console_scripts]\nbad = bad:f(1)"}),
        "is not a MODULE:FUNCTION",
    ),
    "leaves its folder": (lambda root: _wheel(root, {"../../../evil.py": CODE}), "evil"),
    "a bomb": (lambda root: _wheel(root, {"zeros.py": "0" * (70 << 20)}), "it holds more than"),
    "no archive": (_not_a_zip, "bad"),
    "absent": (lambda _: None, "uv lock .*failed"),
}


@pytest.mark.parametrize("name", WHEELS)
def test_a_bad_package_of_pypi_is_refused_and_nothing_of_it_runs(
    index: Path, client: Callable[[str], Path], name: str
) -> None:
    publish, reason = WHEELS[name]
    publish(index)
    assert re.search(reason, _refused(lambda: look_up("pypi", "bad", "1.0", client, print)))
    assert not (index / TRACE).exists()


CLI = {"cli.js": "#!/usr/bin/env node\nconsole.log('usage: bad')\n"}
RUNS = {"postinstall": f"node -e \"require('fs').writeFileSync('{TRACE}', '')\""}
NPM: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "runs code": ({"scripts": RUNS}, {}, "needs a script at its installation .postinstall."),
    "is compiled": ({}, {"binding.gyp": "{}"}, "needs a compiler at its installation"),
    "needs one that runs code": (
        {"dependencies": {"worse": "1.0.0"}},
        {},
        "node_modules/worse has machine code or a script at its installation",
    ),
    "a command elsewhere": ({"bin": {"bad": "../../../bin/sh"}}, {}, "is not a relative path"),
    "unreadable": ({}, {"package.json": "{"}, "has no package.json that can be read"),
    "of another form": ({}, {"package.json": "[]"}, "is not an object"),
    "leaves its folder": ({}, {"evil": "->/etc/passwd"}, "is a link that leads outside"),
    "needs what cannot be": (
        {"dependencies": {"worse": "file:///etc"}},
        {},
        "is not a package of the registry|failed",
    ),
    "absent": ({"version": "2.0.0"}, {}, "has no bad@1.0.0|failed"),
}


@pytest.mark.parametrize("name", NPM)
def test_a_bad_package_of_npm_is_refused_and_nothing_of_it_runs(
    registry: tuple[Path, str],
    tmp_path: Path,
    client: Callable[[str], Path],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    about, files, reason = NPM[name]
    monkeypatch.chdir(tmp_path)
    base = {"name": "bad", "version": "1.0.0", "bin": {"bad": "cli.js"}}
    publish_package(*registry, {**base, **about}, {**CLI, **files})
    publish_package(*registry, {"name": "worse", "version": "1.0.0", "scripts": RUNS}, {})
    assert re.search(reason, _refused(lambda: look_up("npm", "bad", "1.0.0", client, print)))
    assert not list(tmp_path.rglob(TRACE))


@pytest.mark.parametrize("integrity", ["", "sha1-AAAA", f"sha512-{'A' * 86}=="])
def test_a_package_of_npm_without_the_digest_of_its_archive_is_refused(
    registry: tuple[Path, str], client: Callable[[str], Path], integrity: str
) -> None:
    publish_package(*registry, {"name": "bad", "version": "1.0.0", "bin": "cli.js"}, CLI, integrity=integrity)
    why = _refused(lambda: look_up("npm", "bad", "1.0.0", client, print))
    assert re.search(r"gives no SHA-512 digest|EINTEGRITY", why)
