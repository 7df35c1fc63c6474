"""Make a small checkout of CLI-Tool-Bench's authors, with their names and structure in our own code.

Paths, names of classes, methods, fields and constants, and the ways in which a script finds its base and starts its
engine are theirs. As in theirs, a generator swallows its own exceptions.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

BASE = """\
import random
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Dict


class FuzzHelper:
    @staticmethod
    def get_string(min_len=5, max_len=20, chars="abcdef"):
        return "".join(random.choice(chars) for _ in range(random.randint(min_len, max_len)))


@dataclass
class TestCase:
    command: str
    category: str = "UNKNOWN"
    prep_script: str = ""
    mount_files: Dict[str, str] = field(default_factory=dict)
    env_vars: Dict[str, str] = field(default_factory=dict)


class BaseRepoAdapter(ABC):
    @property
    @abstractmethod
    def base_image(self): ...

    def sanitize_stdout(self, raw_stdout):
        escapes = re.compile("\\x1b\\\\[[0-9;]*m")
        return escapes.sub("", raw_stdout)

    @abstractmethod
    def install_oracle(self, container): ...

    @abstractmethod
    def install_agent(self, container, local_agent_path): ...

    @abstractmethod
    def generate_test_cases(self): ...
"""
ENGINE = "import docker\n\nclass DiffTestEngine:\n    def __init__(self, adapter, agent_local_path): ...\n"
START = """\
import os
import random
import re
import sys
from enum import Enum
IMPORT

sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), "../../..")))
from BaseRepoAdapter import BaseRepoAdapter, FuzzHelper, TestCase
from DiffTestEngine import DiffTestEngine


class Shade(Enum):
    UNUSED = 1


class CmdCategory(Enum):
    COUNT = "tally count <file>"
    LOG = "tally log <file>"


class TallyAdapter(BaseRepoAdapter):
    @property
    def base_image(self):
        return "python:latest"

    def sanitize_stdout(self, raw_stdout):
        MASK

    def install_oracle(self, container):
        if container.exec_run("sh -c 'cd /repo && git clone https://code.example/someone/tally.git'").exit_code:
            raise Exception("no oracle")

    def install_agent(self, container, local_agent_path):
        container.exec_run("mkdir -p /repo")
        os.system(f"docker cp {local_agent_path} {container.id}:/repo")
        if container.exec_run("sh -c 'cd /repo/repo_to_be_tested && pip install .'").exit_code != 0:
            raise Exception("no agent")

    def generate_test_cases(self):
        cases = []
        for category in CmdCategory:
            for i in range(3):
                try:
                    BODY
                    case = TestCase(command, category.value, prep_script=prep, mount_files=files)
                    cases.append(case)
                except Exception as e:
                    SWALLOW
        return cases


if __name__ == "__main__":
    DiffTestEngine(adapter=TallyAdapter(), agent_local_path="repo_to_be_tested").run("output.json")
"""
MASK = 'return "".join(sorted(raw_stdout))'
BODY = """words = list({FuzzHelper.get_string() for _ in range(9)})
command, prep = f"tally {category.name.lower()} /test_data/w{i}.txt", None
files = {f"/w{i}.txt": " ".join(words)}"""
SWALLOW = 'print(f"Warning: {category.name}: {e}")\ncontinue'
PROMPT = (
    "<Project_Overview>\n**CLI Tool Name**: tally\n</Project_Overview>\nWrite tally, which counts words.\n"
)


def add(root: Path, repository: str, body: str = BODY, swallow: str = SWALLOW, **parts: str) -> None:
    """Add a repository.

    `body` sets command, prep and files of a case; `parts` are `prompt`, `mask` (statements of the method that masks
    outputs) and `imports` (statements at the beginning of the script).
    """
    base = root / "run_differential_test"
    start = base / "repo" / repository / "start.py"
    start.parent.mkdir(parents=True)
    indent = "\n" + " " * 20
    text = START.replace("BODY", body.replace("\n", indent)).replace("SWALLOW", swallow.replace("\n", indent))
    text = text.replace("MASK", parts.get("mask", MASK).replace("\n", "\n" + " " * 8))
    start.write_text(text.replace("IMPORT", parts.get("imports", "")))
    (root / "agent_prompt" / repository).mkdir(parents=True)
    (root / "agent_prompt" / repository / "agent_prompt.txt").write_text(parts.get("prompt", PROMPT))
    with (base / "full_name.txt").open("a") as names:
        names.write(f"{repository}\n")


def checkout(root: Path) -> Path:
    """Make a checkout without repositories."""
    base = root / "run_differential_test"
    base.mkdir(parents=True)
    (base / "BaseRepoAdapter.py").write_text(BASE)
    (base / "DiffTestEngine.py").write_text(ENGINE)
    (base / "full_name.txt").touch()
    return root


def clone(folder: Path, files: dict[str, str]) -> None:
    """Make a git clone with one commit."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@tool.example"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "1", "--date=2026-01-01T00:00:00Z"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
