"""litellm is fully loaded before a trial calls its model, and no later garbage collection visits it."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CALLS = """
import gc, json, sys, tempfile
from pathlib import Path
import httpx
from runner.gateway import Gateway, SessionSpec
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.records import Model, Prices

scratch = Path(sys.argv[1])
requests = json.loads(sys.argv[3])
with FakeUpstream(Behaviour(text="ok")) as upstream, Gateway(scratch / "run") as gateway:
    base = upstream.url.removesuffix("/v1") if sys.argv[2].startswith("anthropic/") else upstream.url
    model = Model(name="m", id=sys.argv[2], api_base=base, prices=Prices(input=1.0, output=1.0))
    with gateway.open(SessionSpec(trial="t", task="t", model=model, seconds=60.0, ledger=scratch / "l")) as session:
        loaded = set(sys.modules)
        transport = httpx.HTTPTransport(uds=str(session.socket_dir / "gateway.sock"))
        headers = {"Authorization": "Bearer " + session.key}
        with httpx.Client(transport=transport, base_url="http://gateway", headers=headers) as client:
            statuses = [client.post(path, json=body).status_code for path, body in requests]
        ours = {"litellm", "openai", "anthropic", "httpx2", "mcp", "mcp_types"}
        late = sorted(name for name in set(sys.modules) - loaded if name.partition(".")[0] in ours)
        print(json.dumps([statuses, late, gc.get_freeze_count(), len(gc.get_objects())]))
"""
ASKED = [{"role": "user", "content": "hello"}]
REQUESTS = [
    ("/v1/chat/completions", {"messages": ASKED}),
    ("/v1/messages", {"messages": ASKED, "max_tokens": 9}),
    ("/v1/responses", {"input": "hello"}),
]


@pytest.mark.parametrize("model", ["openai/x", "anthropic/x", "deepseek/x"])
def test_a_call_was_refused_because_litellm_was_importing_itself_in_another_thread(
    tmp_path: Path, model: str
) -> None:
    """The calls run in a process of their own, since this one has imported everything already."""
    asked = [sys.executable, "-c", CALLS, str(tmp_path), model, json.dumps(REQUESTS)]
    ended = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    statuses, late, frozen, collected = json.loads(ended.stdout)
    assert (statuses, late) == ([200, 200, 200], [])
    assert frozen > 200_000, "litellm's objects; a full collection of them holds every call for 0.12 s"
    assert collected < frozen / 2


def test_nothing_is_frozen_where_nothing_was_imported() -> None:
    from runner.heavy_imports import uncollected  # noqa: PLC0415

    frozen = gc.get_freeze_count()
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() <= frozen
