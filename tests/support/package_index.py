"""Make a package index: files of the simple repository API, for `tests.support.module_proxy.served`."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def publish_sdist(root: Path, name: str, version: str, files: Mapping[str, str]) -> None:
    """Put an sdist of these files into the index."""
    packed = io.BytesIO()
    about = {"PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"}
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in {**about, **files}.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    _publish(root / name, f"{name}-{version}.tar.gz", packed.getvalue())


def publish_wheel(root: Path, name: str, version: str, files: Mapping[str, str]) -> None:
    """Put a wheel of these modules into the index. Its list of files is empty; its own files take the place of ours."""
    about = f"{name}-{version}.dist-info"
    packed = io.BytesIO()
    ours = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in {**ours, **files}.items():
            archive.writestr(path, text)
    _publish(root / name, f"{name}-{version}-py3-none-any.whl", packed.getvalue())


def tool_files(
    name: str, version: str, code: str, commands: Mapping[str, str], requires: Sequence[str] = ()
) -> dict[str, str]:
    """Return the files of a wheel with one module, `NAME.py`, and commands: published name -> function."""
    about = f"{name}-{version}.dist-info"
    scripts = "".join(f"{command} = {name}:{function}\n" for command, function in commands.items())
    needs = "".join(f"Requires-Dist: {line}\n" for line in requires)
    return {
        f"{name}.py": code,
        f"{about}/entry_points.txt": f"[console_scripts]\n{scripts}",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        f"Summary: A command-line tool for tests\nLicense: MIT\n{needs}",
    }


def _publish(project: Path, file: str, content: bytes) -> None:
    project.mkdir(parents=True, exist_ok=True)
    (project / file).write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    with (project / "index.html").open("a") as page:
        page.write(f'<a href="{file}#sha256={digest}">{file}</a>\n')
