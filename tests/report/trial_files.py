"""Trials on disk with all their files, for tests of the pages about them."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from runner.records import EgressAttempt, ErrorInfo, PlannedRow, Status, TrialRecord, Verdict
from runner.report.projections import write_projections
from runner.sweeps.store import Store
from tests.report.plans import record, row, write_sweep
from tests.support.records_factory import NOON, model_call

HOSTILE = (
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 2">',
    "</pre></code></details></style></title></textarea><svg onload='window.hacked = 3'>",
    "{{ 7 * 7 }}{% raw %}<!--",
    "' onmouseover='window.hacked = 6' x='",
    "\u202egpj.exe\u2066 \x1b[2J\x00 \ud7ff",
    "<meta http-equiv=refresh content='0;url=javascript:window.hacked=4'><base href=//evil/>",
    "</script><iframe srcdoc='<script>top.hacked = 5</script>'>",
)
"""Texts that try to become markup wherever they are shown."""
LATER = NOON.timestamp() + 5
"""A moment while the agent is at work."""


def pack(
    folder: Path, files: Mapping[str, str | bytes], modified: float = LATER, name: str = "workspace"
) -> None:
    """Write an archive of these files as trials keep it."""
    with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as tar:
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(f"app/{path}")
            member.size, member.mtime = len(data), int(modified)
            tar.addfile(member, io.BytesIO(data))


def converse(folder: Path, words: Sequence[str], results: Sequence[str], tool: str = "bash") -> None:
    """Write ledger and trajectory of an agent that said these words and got these results."""
    calls = [
        model_call(at, started_at=NOON + timedelta(seconds=at + 1), cost_usd=0.006)
        for at in range(len(words))
    ]
    (folder / "ledger.jsonl").write_text("".join(f"{call.model_dump_json()}\n" for call in calls))
    steps: list[dict[str, Any]] = [{"source": "user", "message": words[0]}]
    for at, (said, result) in enumerate(zip(words, results, strict=True)):
        call = {"tool_call_id": f"c{at}", "function_name": tool, "arguments": {"cmd": said}}
        observed = {"results": [{"source_call_id": f"c{at}", "content": result}]}
        steps.append({"source": "agent", "message": said, "tool_calls": [call], "observation": observed})
    (folder / "trajectory.json").write_text(json.dumps({"agent": {"version": words[-1]}, "steps": steps}))


def hostile_sweep(outputs: Path) -> Path:
    """Write a sweep in which everything that agents, tasks and verifiers chose is an attack; return its folder."""
    planned = [row("codex", f"easy-{text}", attempt=1) for text in HOSTILE]
    planned.append(row(HOSTILE[0], HOSTILE[1], model=HOSTILE[2], budget=HOSTILE[4]))
    records = {each.key: _hostile(each, at) for at, each in enumerate(planned)}
    sweep = write_sweep(outputs, planned, records)
    for each in planned:
        folder = Store(outputs).folder(each.key)
        converse(folder, HOSTILE, HOSTILE[::-1], tool=HOSTILE[1])
        for name in ("agent.stdout", "agent.stderr", "verifier.stdout", "Dockerfile", "run_tests.sh"):
            (folder / name).write_text("\n".join(HOSTILE))
        pack(folder, {text.replace("/", "\u2215"): f"{text}\n+{text}\n-{text}" for text in HOSTILE})
    write_projections(sweep, outputs)
    return sweep


def _hostile(planned: PlannedRow, at: int) -> TrialRecord:
    text = HOSTILE[at % len(HOSTILE)]
    error = ErrorInfo(type=text, message="\n".join(HOSTILE), cause=text, phase=text)
    failed = at == len(HOSTILE) - 1
    return record(
        planned,
        passed=None if failed else at % 2 == 0,
        status=Status.INFRA_INVALID if failed else Status.AGENT_ERROR,
        error=error,
        warnings=(error,),
        flags=HOSTILE,
        digests=dict.fromkeys(HOSTILE, text),
        tool_calls=dict.fromkeys(HOSTILE, 1),
        egress=(EgressAttempt(host=text, port=1, allowed=False, count=2),),
        verdict=Verdict(
            reward=float(at % 2 == 0),
            components=dict.fromkeys(HOSTILE, 1.0),
            output=text,
            error=error,
            left_out=HOSTILE,
        ),
    )
