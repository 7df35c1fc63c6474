"""A provider's model that sets up projects and reacts to what it is shown: nothing that it writes is known beforehand
but the packages that bring a program. It samples its form: parallel calls, thoughts, and JSON that is not quite JSON.
Each form comes once before any comes again.

It reads whole files, as models do, and must find in them how the tests are run. It does not repair what it cannot see.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from typing import Any, NamedTuple

from runner.gateway.fake_upstream import Behaviour
from runner.records import Usage

CHARACTERS = 24_000
"""Context window of this model, in characters; longer requests are refused as providers refuse them."""
INSTALL = (
    "RUN apt-get update && apt-get install --yes --no-install-recommends {} && rm -rf /var/lib/apt/lists/*\n"
)
C_TOOLS = "build-essential autoconf automake libtool pkg-config cmake autopoint flex"
PACKAGES = {"node": "nodejs mocha node-tape", "cmake": C_TOOLS, "make": C_TOOLS}
"""Program that is missing -> packages that bring it."""
DOCKERFILE = "ARG BASE\nFROM ${BASE}\nCOPY project /workspace/project\n"


class Kind(NamedTuple):
    """A way to build and test that the model knows when it sees it."""

    file: str
    reads: str
    """Command by which it reads what the project says about its tests."""
    evidence: str
    """Text that it must have seen in order to know how the tests are run."""
    script: str


KINDS = (
    Kind("package.json", "cd /workspace/project && cat package.json README.md index.js test/*.js",
         r'"test:unit": "[^"]*node --test', "node --test test"),
    Kind("CMakeLists.txt", "cd /workspace/project && cat CMakeLists.txt readme.md && head -c 9000 xmltest.cpp",
         r"add_test\(", "cmake -S . -B build -DCMAKE_CXX_FLAGS=-O0\ncmake --build build -j 2\nctest --test-dir build"),
    Kind("Makefile.PL", "cd /workspace/project && cat CONTRIBUTING README INSTALL Makefile.PL Changes lib/Try/Tiny.pm",
         r"prove -lv?r? ", "perl Makefile.PL\nmake\nprove --blib --verbose t"),
)  # fmt: skip
Call = tuple[str, dict[str, Any]]
FORMS = (
    "calls", "calls, a comma too many", "calls, cut off", "json", "json, a comma too many", "json, an unknown escape",
    "json, cut off",
)  # fmt: skip
"""Forms of an answer: native tool calls or JSON in words, as a decoder takes it or with a fault that models make."""


class SetupPolicy:
    """Behaviour for each request, by what it shows."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._waiting: list[str] = []
        self.refused = self.limited = self.parallel = 0
        """Requests that were too long, or beyond a rate limit; answers with several calls."""
        self.forms: Counter[str] = Counter()
        """Form -> number of answers."""

    def __call__(self, request: dict[str, Any]) -> Behaviour:
        """Return the answer to a request."""
        prompt = "\n".join(_text(message["content"]) for message in request["messages"])
        usage = Usage(input_tokens=len(prompt) // 4, output_tokens=60)
        if len(prompt) > CHARACTERS:
            self.refused += 1
            message = (
                f"This model's maximum context length is 6000 tokens, but you sent {len(prompt) // 4} tokens."
            )
            return Behaviour(status_code=400, message=message, code="context_length_exceeded")
        if not self.limited:
            self.limited += 1
            return Behaviour(status_code=429, message="Rate limit reached.", retry_after=0.01)
        if "Write down what I must know" in prompt:  # what a summary leaves out is gone
            return Behaviour(text='{"summary": "A long text was printed."}', usage=usage)
        if "Write at most ten short points" in prompt:
            return Behaviour(text="1. Read what the project says.", usage=usage)
        history = prompt.partition("# 6.")[2].partition("# 7.")[0]
        calls = self._next(history, prompt)
        return self._formed(calls, native="tools" in request).model_copy(update={"usage": usage})

    def _next(self, history: str, prompt: str) -> list[Call]:  # noqa: PLR0911 - a policy is a list of cases
        checks = "check_scripts" in prompt
        results = "\n".join(
            re.findall(r"^Result: (.*?)(?=^--- \d+ ---|\Z)", history, re.DOTALL | re.MULTILINE)
        )
        kind = next((one for one in KINDS if re.search(rf"\b{re.escape(one.file)}\b", results)), None)
        if kind is None:
            return [_run("ls -a /workspace/project"), _run("git --version")]
        if "run_tests.sh is written" not in results:
            if not re.search(kind.evidence, results):
                return [_run(kind.reads)]
            return [_write("Dockerfile", DOCKERFILE), _write("run_tests.sh", f"set -ex\n{kind.script}\n")]
        if told := re.findall(r"(\d+) passed, (\d+) failed, (\d+) skipped", results):
            passed, failed, skipped = map(int, told[-1])
            numbers = json.dumps({"passed": passed, "failed": failed, "skipped": skipped})
            return [_write("results.json", numbers), ("task_done", {"reason": "The tests ran."})]
        last = results[results.rindex("From scratch") :] if "From scratch" in results else ""
        missing = next(
            (name for name in PACKAGES if re.search(rf"\b{name}: (command )?not found", last)), None
        )
        if missing and checks:
            new = INSTALL.format(PACKAGES[missing]) + "COPY"
            return [
                ("edit_file", {"path": "/workspace/Dockerfile", "old": "COPY", "new": new}),
                ("check_scripts", {}),
            ]
        if missing:
            return [
                _write("Dockerfile", DOCKERFILE.replace("COPY", INSTALL.format(PACKAGES[missing]) + "COPY"))
            ]
        if checks:
            return [("check_scripts", {})]
        guess = '{"passed": 1, "failed": 0, "skipped": 0}'
        if "results.json is written" not in results:
            return [_write("results.json", guess)]
        return [("task_done", {"reason": "Is anything missing?"})]

    def _formed(self, calls: list[Call], *, native: bool) -> Behaviour:
        """Return the answer in the next form; without native tools in that of words."""
        if not self._waiting:
            self._waiting = self._random.sample(FORMS, len(FORMS))
        form = self._waiting.pop(0)
        if not native:
            form = form.replace("calls", "json")
        self.forms[form] += 1
        kind, _, fault = form.partition(", ")
        if kind == "calls":
            self.parallel += len(calls) > 1
            thoughts = 'Perhaps {"tool": 1}?</think>I look for `\\d+ tests`.'
            spelled = tuple((name, _spelled(args, fault)) for name, args in calls)
            return Behaviour(text=f"<think>{thoughts}", calls=spelled)
        name, args = calls[0]
        step = {"thoughts": "Next.", "tool": {"name": name, "args": args}}
        return Behaviour(text=f"<think>I weigh it.</think>```json\n{_spelled(step, fault)}\n```")


def _spelled(value: dict[str, Any], fault: str) -> str:
    """Return JSON, with a fault that has one meaning, or cut off."""
    text = json.dumps(value)
    if fault == "a comma too many":
        return text[:-1] + ",}" if value else text
    if fault == "an unknown escape":
        return text.replace('"Next."', r'"I look for \d+ tests."')
    return text[:-1] if fault else text


def _run(command: str) -> Call:
    return "linux_terminal", {"command": command}


def _write(name: str, content: str) -> Call:
    return "write_file", {"path": f"/workspace/{name}", "content": content}


def _text(content: object) -> str:
    return content if isinstance(content, str) else "\n".join(str(part["text"]) for part in content)  # type: ignore[attr-defined]
