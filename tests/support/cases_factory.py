"""Make a prepared provider of sandboxes, and an image with a real tool, for tests of cases."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from runner.records import Environment, Image
from runner.sandbox.docker import base_image, bundles, engine
from runner.sandbox.docker.provider import DockerSandboxes

FILES_TO_PROMPT = ("files-to-prompt==0.6", "click==8.3.1")
_SCRIPT = "#!/usr/bin/python3\nimport sys\nfrom files_to_prompt.cli import cli\nsys.exit(cli())\n"
_DOCKERFILE = """ARG BASE
FROM ${BASE}
COPY packages /usr/local/lib/python3.13/dist-packages
COPY --chmod=0755 files-to-prompt /usr/local/bin/
RUN python3 -m compileall -q /usr/local/lib/python3.13/dist-packages && mkdir /repository && cd /repository && \\
    for n in $(seq FILES); do echo "line $n" > file$n.py; done
WORKDIR /repository
"""


def prepared() -> DockerSandboxes:
    """Return a provider that can open machines for cases."""
    base_image.ensure(engine.connect(), print)
    sandboxes = DockerSandboxes()
    sandboxes.prepare((), print)
    return sandboxes


def files_to_prompt(sandboxes: DockerSandboxes, repository_files: int = 26) -> Image:
    """Build an image with a tool for which the benchmark's authors generate cases, and a repository of some files."""
    environment = Environment(
        build_args={"BASE": "assay-base"},
        digest=f"sha256:{'f' * 16}{repository_files:08x}",
        build_timeout_seconds=300,
    )
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder)
        install = ("pip", "install", "--quiet", "--target", str(context / "packages"), "--no-deps")
        subprocess.run([bundles._uv(), *install, "--python-version", "3.13", *FILES_TO_PROMPT], check=True)
        (context / "files-to-prompt").write_text(_SCRIPT)
        (context / "files-to-prompt").chmod(0o755)
        dockerfile = _DOCKERFILE.replace("FILES", str(repository_files)).replace("--chmod=0755 ", "")
        (context / "Dockerfile").write_text(dockerfile)
        return sandboxes.image(environment.model_copy(update={"context": context}))
