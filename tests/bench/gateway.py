"""The gateway beside litellm's own proxy and a bare forwarder, in one run: same upstream, same clients.

python -m tests.bench.gateway

Each is a process of its own (`tests.bench.gateway_roles`). What is compared is measured in turn, pair by pair, and the
load average stands beside each figure: the clients and the upstream share the machine with what is measured.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

from tests.bench.gateway_roles import ATTACKS, Target

ROOT = Path(__file__).resolve().parents[2]
CLIENTS, SESSIONS, ROUNDS, SECONDS = 32, 256, 3, 3.0
ATTACK_SECONDS, CROWD_SECONDS, THOUGHT_SECONDS = 8.0, 12.0, 3.0
"""Length of one attack and of one round with all sessions, and mean time between two calls of a quiet trial."""
PROXY_KEY = "sk-bench-of-the-proxy"
START_SECONDS = 120.0
Calls = list[tuple[float, float]]
"""When each call began and ended."""


def main() -> None:
    """Print the figures with their bounds."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-bench-")))
        upstream = stack.enter_context(_role("upstream"))
        url = f"http://127.0.0.1:{upstream[0]['port']}/v1"
        forwarder = stack.enter_context(_role("forwarder", url))
        gateway = stack.enter_context(_role("gateway", url, str(SESSIONS), "chat"))
        _added("chat", upstream, forwarder, gateway)
        _crowded(upstream, forwarder, gateway)
        _attacked(gateway[:CLIENTS])
        proxy = stack.enter_context(_proxy(scratch, upstream[0]["port"]))
        _rates(proxy, forwarder, gateway)
        for api in ("messages", "responses"):
            _other_api(api, upstream, forwarder, url)


def _other_api(api: str, upstream: list[Target], forwarder: list[Target], url: str) -> None:
    """Time added to one client, and calls per second of many, in another API than chat."""
    upstream, forwarder = ([one[0] | {"api": api}] for one in (upstream, forwarder))
    with _role("gateway", url, str(CLIENTS), api) as gateway:
        _added(api, upstream, forwarder, gateway)
        over_bare = []
        for number in range(1, ROUNDS + 1):
            ours, bare = _rate(gateway), _rate(forwarder * CLIENTS)
            over_bare.append(ours / bare)
            print(f"  pair {number}: gateway {ours:.1f} calls/s, forwarder {bare:.1f} ({_load()})")
    print(
        f"gateway over a bare forwarder, {api} of {CLIENTS} streaming clients: {statistics.median(over_bare):.2f}"
    )


def _added(api: str, upstream: list[Target], forwarder: list[Target], gateway: list[Target]) -> None:
    """Milliseconds added to one client's median, pair by pair."""
    bare, ours = [], []
    for number in range(1, ROUNDS + 1):
        direct, forwarded, served = (_p50(one[:1]) for one in (upstream, forwarder, gateway))
        bare.append(forwarded - direct)
        ours.append(served - direct)
        print(
            f"  pair {number}: direct {direct:.2f} ms, forwarder +{bare[-1]:.2f}, gateway +{ours[-1]:.2f} ({_load()})"
        )
    print(
        f"gateway: {statistics.median(ours):.1f} ms added to one client's p50 in {api} (bound 3 ms); a bare forwarder "
        f"in the same server adds {statistics.median(bare):.1f} ms"
    )


def _crowded(upstream: list[Target], forwarder: list[Target], gateway: list[Target]) -> None:
    """Milliseconds added to the 99th percentile of many sessions that think between their calls, pair by pair."""
    bare, ours = [], []
    for number in range(1, ROUNDS + 1):
        direct, forwarded, served = (
            _p99(one) for one in (upstream * SESSIONS, forwarder * SESSIONS, gateway)
        )
        bare.append(forwarded - direct)
        ours.append(served - direct)
        print(
            f"  pair {number}: direct p99 {direct:.1f} ms, forwarder +{bare[-1]:.1f}, gateway +{ours[-1]:.1f} "
            f"({_load()})"
        )
    print(
        f"gateway: {statistics.median(ours):.0f} ms added to the p99 of {SESSIONS} sessions (bound 100 ms); a bare "
        f"forwarder adds {statistics.median(bare):.0f} ms"
    )


def _rates(proxy: list[Target] | None, forwarder: list[Target], gateway: list[Target]) -> None:
    """Calls per second of clients that never pause, pair by pair."""
    over_proxy, over_bare, crowd = [], [], []
    for number in range(1, ROUNDS + 1):
        theirs = _rate(proxy * CLIENTS) if proxy else 0.0
        ours, bare, all_of_ours = (
            _rate(one) for one in (gateway[:CLIENTS], forwarder * CLIENTS, gateway[:SESSIONS])
        )
        over_proxy += [ours / theirs] if theirs else []
        over_bare.append(ours / bare)
        crowd.append(all_of_ours / ours)
        print(
            f"  pair {number}: proxy {theirs:.1f} calls/s, gateway {ours:.1f}, forwarder {bare:.1f}, gateway with "
            f"{SESSIONS} clients {all_of_ours:.1f} ({_load()})"
        )
    beside = f"with {CLIENTS} streaming clients"
    if over_proxy:
        print(f"gateway over litellm's proxy, {beside}: {statistics.median(over_proxy):.1f} (bound 15)")
    else:
        print("gateway over litellm's proxy: not measured")
    print(f"gateway over a bare forwarder, {beside}: {statistics.median(over_bare):.2f}")
    print(
        f"gateway with {SESSIONS} clients that never pause over {CLIENTS}: {statistics.median(crowd):.2f} (flat: 1)"
    )


def _attacked(gateway: list[Target]) -> None:
    """The worst call of 31 quiet trials, alone and while the last one attacks, attack by attack."""
    *quiet, attacker = gateway
    alone = _worst(quiet)
    print(f"  worst call of {len(quiet)} quiet trials, alone: {alone:.2f} s")
    worst = 0.0
    for name in ATTACKS:
        with _role("attacker", name, json.dumps(attacker)):
            attacked = _worst(quiet)
        worst = max(worst, attacked)
        print(f"  while one sends {name}: {attacked:.2f} s")
    print(f"gateway: worst call of {len(quiet)} quiet trials while one attacks: {worst:.2f} s (bound 1 s)")


def _worst(targets: list[Target]) -> float:
    """Seconds of the longest call of clients that think between their calls, as agents do."""
    calls = _clients(targets, ATTACK_SECONDS, THOUGHT_SECONDS)
    return max(ended - began for began, ended in calls)


def _rate(targets: list[Target]) -> float:
    """Calls per second until the last call that was begun in time has ended."""
    calls = _clients(targets, SECONDS)
    return len(calls) / max(ended for _, ended in calls)


def _p99(targets: list[Target]) -> float:
    """Milliseconds of the slowest hundredth of the calls of clients that think between their calls."""
    calls = _clients(targets, CROWD_SECONDS, THOUGHT_SECONDS)
    return 1000 * statistics.quantiles((ended - began for began, ended in calls), n=100)[-1]


def _p50(targets: list[Target]) -> float:
    """Milliseconds of one streamed call, one after the other."""
    return 1000 * statistics.median(ended - began for began, ended in _clients(targets, 1.0))


def _clients(targets: list[Target], seconds: float, thought: float = 0.0) -> Calls:
    """When each call of one client per target began and ended; they make one each before the clock starts."""
    times = [str(seconds), str(thought)]
    command = [sys.executable, "-m", "tests.bench.gateway_roles", "clients", *times, json.dumps(targets)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"a client failed:\n{done.stderr[-2000:]}")
    return [(began, ended) for began, ended in json.loads(done.stdout)]


def _load() -> str:
    return f"load {os.getloadavg()[0]:.1f}"


@contextmanager
def _role(*arguments: str) -> Iterator[list[Target]]:
    """One of the processes; what it says first are its targets."""
    command = [sys.executable, "-m", "tests.bench.gateway_roles", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


@contextmanager
def _proxy(scratch: Path, upstream: int) -> Iterator[list[Target] | None]:
    """The proxy of litellm, in the version that we pin and an environment of its own; None where it cannot be had."""
    wanted = f"litellm[proxy]=={version('litellm')}"
    uv, venv = str(Path(sys.executable).with_name("uv")), scratch / "venv"
    steps = (
        [uv, "venv", "--quiet", "--python", sys.executable, str(venv)],
        [uv, "pip", "install", "--quiet", "--python", str(venv / "bin/python"), wanted],
    )
    for step in steps:
        ended = subprocess.run(step, capture_output=True, text=True, check=False)
        if ended.returncode:
            print(f"  {wanted} cannot be installed: {ended.stderr.strip().splitlines()[-1:]}")
            yield None
            return
    parameters = {"model": "openai/x", "api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": "none"}
    configuration = {
        "model_list": [{"model_name": "fake", "litellm_params": parameters}],
        "general_settings": {"master_key": PROXY_KEY},
    }
    (scratch / "proxy.json").write_text(json.dumps(configuration))  # which is YAML
    port = _free_port()
    command = [str(venv / "bin/litellm"), "--config", str(scratch / "proxy.json"), "--port", str(port)]
    environment = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with (
        (scratch / "proxy.log").open("w") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            _wait_for(f"http://127.0.0.1:{port}/health/liveliness")
            yield [{"port": port, "key": PROXY_KEY}]
        finally:
            process.terminate()


def _wait_for(url: str) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        with suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.5)
    raise SystemExit(f"{url} does not answer")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
