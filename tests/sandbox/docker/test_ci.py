"""What `.ci/run` removes before its engine starts."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from runner.resources import ROOT

HAS_TOOLS = os.geteuid() == 0 and shutil.which("ip") and shutil.which("iptables")
LEFT = """
set -e
for interface in docker0 assay0 br-d52fc82d1cf6 mine0; do ip link add "$interface" type bridge; done
iptables -t nat -A POSTROUTING -s 172.19.0.0/16 ! -o assay0 -j MASQUERADE
iptables -t nat -A POSTROUTING -s 172.20.0.0/16 ! -o br-d52fc82d1cf6 -j MASQUERADE
iptables -t nat -A POSTROUTING -s 10.9.0.0/16 -o mine0 -j MASQUERADE
"""
"""What engines leave when they end, and an interface and a rule of the user's own."""
LOOK = """
remove_traces_of_engines
remove_traces_of_engines
ip -o link show type bridge | cut -d: -f2
iptables -t nat -S POSTROUTING
"""


@pytest.mark.skipif(not HAS_TOOLS, reason="needs root, ip and iptables")
def test_an_earlier_engines_rule_rewrites_no_answer_in_a_network_of_the_next_engine() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    start = lines.index("remove_traces_of_engines() {")
    function = "\n".join(lines[start : lines.index("}", start) + 1])
    command = ("unshare", "--net", "bash", "-c", f"{LEFT}\n{function}\n{LOOK}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout.split("\n") == [
        " mine0",
        "-P POSTROUTING ACCEPT",
        "-A POSTROUTING -s 10.9.0.0/16 -o mine0 -j MASQUERADE",
        "",
    ], done.stderr
