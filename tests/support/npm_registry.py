"""Make a registry of npm packages: files for `tests.support.module_proxy.served`."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def publish_package(
    root: Path,
    address: str,
    about: Mapping[str, Any],
    files: Mapping[str, str],
    *,
    integrity: str | None = None,
) -> None:
    """Put a package with this `package.json` into the registry, which is served at `address`.

    `files` may hold another `package.json`, which then is in the archive; `integrity` takes the place of its digest.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in {"package.json": json.dumps(about), **files}.items():
            entry = tarfile.TarInfo(f"package/{path}")
            if text.startswith("->"):
                entry.type, entry.linkname = tarfile.SYMTYPE, text[2:]
            entry.size = len(text.encode()) if entry.isreg() else 0
            archive.addfile(entry, io.BytesIO(text.encode()))
    name, version = about["name"], about["version"]
    file = f"{name}-{version}.tgz"
    (root / file).write_bytes(packed.getvalue())
    digest = base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()
    dist = {
        "tarball": f"{address}/{file}",
        "shasum": hashlib.sha1(packed.getvalue()).hexdigest(),
        "integrity": f"sha512-{digest}" if integrity is None else integrity,
    }
    scripts = about.get("scripts") or {}
    described = {**about, "dist": dist, "hasInstallScript": "postinstall" in scripts}
    document = {"name": name, "dist-tags": {"latest": version}, "versions": {version: described}}
    (root / name).write_text(json.dumps(document))
