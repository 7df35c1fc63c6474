"""Two trials at one real gateway, and a real sandbox of the first: where an attacker would sit."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runner.gateway import Gateway, Session, SessionSpec
from runner.gateway.egress import Egress
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.records import Environment, ExecResult, ExecSpec, Model, Prices, SandboxSpec
from runner.sandbox.docker import base_image
from runner.sandbox.docker.container import DockerSandbox
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.inside import ROOT, proxied

AGENTS = f"{ROOT}/python/bin/python3"
"""The interpreter of agents: it looks at the system around it, as theirs do."""
CANARY = "sk-canary-of-the-providers-key-0123456789"


@dataclass(frozen=True)
class Cell:
    """An attacker's sandbox and what is around it."""

    sandbox: DockerSandbox
    session: Session
    other: Session
    egress: Egress

    def bash(self, script: str, **env: str) -> ExecResult:
        """Run a script as the agent would."""
        return self.sandbox.exec(ExecSpec(argv=("bash", "-c", script), env=env, timeout_seconds=120))

    def python(self, script: str, *, supervised: bool = False, **env: str) -> Any:
        """Run a script on the agents' interpreter; what it prints last, read as JSON."""
        spec = ExecSpec(argv=(AGENTS, "-I", "-c", PRELUDE + script), env=env, timeout_seconds=120)
        result = self.sandbox.exec(proxied(spec) if supervised else spec)
        assert result.exit_code == 0, result
        return json.loads(result.stdout.splitlines()[-1])


PRELUDE = """
import json, os, socket
def ask(request, path="/run/assay/gateway/gateway.sock"):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60); s.connect(path); s.sendall(request.encode())
        return b"".join(iter(lambda: s.recv(65536), b"")).decode()
def call(key):
    body = json.dumps({"model": "fake", "messages": [{"role": "user", "content": "hi"}]})
    head = f"POST /v1/chat/completions HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: Bearer {key}\\r\\n"
    return ask(f"{head}Connection: close\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}")
"""


@pytest.fixture(scope="module")
def sessions() -> Iterator[Callable[[str], Session]]:
    """Opens sessions of a model whose key is in this process's environment, at one gateway."""
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("FAKE_API_KEY", CANARY)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = stack.enter_context(FakeUpstream(Behaviour(text="hello")))
        gateway = stack.enter_context(Gateway(folder / "run"))
        model = Model(
            name="fake",
            id="openai/x",
            api_key_env="FAKE_API_KEY",
            api_base=upstream.url,
            prices=Prices(input=2.0, output=10.0, cache_hit=0.5),
        )

        def open_session(name: str) -> Session:
            ledger = Path(tempfile.mkdtemp(dir=folder)) / "ledger.jsonl"
            return stack.enter_context(
                gateway.open(SessionSpec(trial=name, task="t", model=model, ledger=ledger))
            )

        yield open_session


@pytest.fixture(scope="module", params=["root", "1000"])
def cell(request: pytest.FixtureRequest, sessions: Callable[[str], Session]) -> Iterator[Cell]:
    """A sandbox as a trial in mode `gateway` has it, once as root and once as nobody in particular."""
    base_image.ensure(connect(), print)
    provider = DockerSandboxes(network="gateway")
    provider.prepare((), print)
    environment = Environment(image=base_image.tag(), workdir="/workspace")
    mine, other = sessions("mine"), sessions("other")
    with Egress(mine.socket_dir, ()) as egress:
        spec = SandboxSpec(
            name="attacked",
            image=provider.image(environment),
            environment=environment,
            user=request.param,
            gateway_dir=mine.socket_dir,
        )
        with provider.open(spec) as sandbox:
            assert isinstance(sandbox, DockerSandbox)
            yield Cell(sandbox, mine, other, egress)


def open_files() -> int:
    """File descriptors of this process, which is the runner."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
