"""A registry of one image, from which the engine pulls as usual: real HTTP, real digests, no login."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from tests.support.serving import serving

KIND = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG, LAYER = (
    "application/vnd.docker.container.image.v1+json",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
)


@contextmanager
def registry(name: str, *triggers: str) -> Iterator[str]:
    """Serve an image that contains only an empty file of this name, and yield its reference.

    `triggers` are ONBUILD instructions of that image.
    """
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(name))
    layer = gzip.compress(tar.getvalue())
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"OnBuild": triggers},
            "rootfs": {"type": "layers", "diff_ids": [_digest(tar.getvalue())]},
        }
    ).encode()
    parts = {_digest(part): part for part in (layer, config)}
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": KIND,
            "config": {"mediaType": CONFIG, "size": len(config), "digest": _digest(config)},
            "layers": [{"mediaType": LAYER, "size": len(layer), "digest": _digest(layer)}],
        }
    ).encode()

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            part = parts.get(self.path.rpartition("/")[2], manifest)
            self.send_response(200)
            self.send_header("Content-Type", KIND if part is manifest else "application/octet-stream")
            self.send_header("Content-Length", str(len(part)))
            self.send_header("Docker-Content-Digest", _digest(part))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(part)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with serving(Registry) as port:
        yield f"127.0.0.1:{port}/{name}:1"


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
