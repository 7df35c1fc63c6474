"""Make a package index: files of the simple repository API, for `tests.support.module_proxy.served`."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping
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
    """Put a wheel of these modules into the index. Its list of files is empty unless it is among them."""
    about = f"{name}-{version}.dist-info"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        if f"{about}/RECORD" not in files:
            archive.writestr(f"{about}/RECORD", "")
    _publish(root / name, f"{name}-{version}-py3-none-any.whl", packed.getvalue())


def _publish(project: Path, file: str, content: bytes) -> None:
    project.mkdir(parents=True, exist_ok=True)
    (project / file).write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    with (project / "index.html").open("a") as page:
        page.write(f'<a href="{file}#sha256={digest}">{file}</a>\n')
