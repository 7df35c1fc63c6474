"""Serve Go modules that a test makes, by a module proxy over real HTTP on this machine."""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

from tests.support.serving import serving


def publish(root: Path, module: str, version: str, files: Mapping[str, str]) -> str:
    """Put a module into the proxy's folder; return its two lines of a `go.sum`, the module's own first."""
    place = root / module / "@v"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{version}.info").write_text(json.dumps({"Version": version}))
    (place / f"{version}.mod").write_text(files["go.mod"])
    with zipfile.ZipFile(place / f"{version}.zip", "w") as packed:
        for name, text in files.items():
            packed.writestr(f"{module}@{version}/{name}", text)
    whole = {f"{module}@{version}/{name}": text for name, text in files.items()}
    described = hashed({"go.mod": files["go.mod"]})
    return f"{module} {version} {hashed(whole)}\n{module} {version}/go.mod {described}\n"


def hashed(files: Mapping[str, str]) -> str:
    """Return Go's digest `h1:` of files by name, which is that of the sorted list that `sha256sum` prints for them."""
    lines = [f"{hashlib.sha256(files[name].encode()).hexdigest()}  {name}\n" for name in sorted(files)]
    return f"h1:{base64.b64encode(hashlib.sha256(''.join(lines).encode()).digest()).decode()}"


@contextmanager
def served(root: Path, host: str = "127.0.0.1") -> Iterator[tuple[str, list[str]]]:
    """Serve a folder by HTTP; yield its address and the list of requests. `host` is an address of this machine."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    with serving(partial(Handler, directory=str(root)), host) as port:
        yield f"http://{host}:{port}", asked
