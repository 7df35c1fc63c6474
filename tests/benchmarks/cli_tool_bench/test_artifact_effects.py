r"""Compare `semantics=artifact` with the authors' own method, effect by effect.

The authors publish their engine (`run_differential_test/DiffTestEngine.py` of their artifact). `AUTHORS` follows its
rules in our own code. Each side runs as root in one container and starts in `/`. Before each case `/test_data` and the
tool's folder are emptied and filled again. Before and after the command `find` lists all regular files of both folders
except 21 names: one line per file with path, size and checksum between tabs, which is then split as text. (Theirs is
the CRC-32 of `cksum`. Here it is zlib's, which differs only in the order of bits.) Differences are ADD, MOD or DEL; the
first two carry the first 2,000 characters that a shell's `cat '<path>'` prints. Standard output and error are one text,
from which escapes are removed, and here all white space as well, as in the paper's exact match. Two sides are the same
if their exit codes, texts and changes are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from metrics.differential import Phase, Rules, judge_case
from runner.benchmarks.cli_tool_bench.reference_runs import observe
from runner.benchmarks.cli_tool_bench.verifier import _merge_streams
from runner.records import Environment, ExecSpec, Image, SandboxSpec
from runner.records.cases import Case, CaseLimits, CaseSide
from runner.sandbox.cases.box import stream
from runner.sandbox.docker import base_image
from runner.sandbox.docker.provider import DockerSandboxes
from tests.support.cases_factory import prepared

FILES = {"a": "a\n", "b": "b\n", "d/one": "1\n", "d/two": "2\n", "it's": "quoted\n"}
PREP = (
    "cd /test_data && mkdir empty && ln -s a link && printf '\\377' > bytes && printf 'x%.0s' $(seq 2001) > long "
    "&& printf '\\0\\0\\0\\0\\0' > five"
)
COLLISION = r"\101\006\161\333\001"
"""The generator polynomial of CRC-32: five bytes whose checksum is that of five zeros."""
READS_ANOTHER = "n'; cd test_data; cat dist; : '"
"""A name which the authors' engine executes when it asks for the file's content; `dist` is an ignored name."""
FLAT = "head -c 600000 /dev/zero | tr '\\0' o"

AUTHORS = r'''
import json, os, re, shutil, subprocess, sys, zlib

IGNORED = """.git .hg .svn __pycache__ .pytest_cache .mypy_cache .ruff_cache .tox .nox .venv venv env node_modules
dist build target coverage .coverage .next .nuxt .parcel-cache""".split()
ROOTS = ("/workspace", "/test_data")

def shell(script):
    done = subprocess.run(["sh", "-c", script], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode(errors="replace")

def listed():
    text = b""
    for root in ROOTS:
        prune = " -o ".join(f"-name {name}" for name in IGNORED)
        find = f"find . \\( {prune} \\) -prune -o -type f -print"
        for line in subprocess.run(find, shell=True, cwd=root, stdout=-1).stdout.split(b"\n"):
            path = os.path.join(root.encode(), line.removeprefix(b"./"))
            if line and os.path.isfile(path):
                content = open(path, "rb").read()
                text += path + f"\t{len(content)}\t{zlib.crc32(content)}\n".encode()
    fields = [line.strip().split("\t") for line in text.decode(errors="replace").splitlines()]
    return {entry[0]: entry[1:] for entry in fields if len(entry) == 3}

def content(path):
    code, text = shell(f"cat '{path}'") if path.startswith(ROOTS) else (1, "")
    if code:
        return "unreadable"
    return text[:2000] + " and more" if len(text) > 2000 else text

def side(case, command):
    for root in ROOTS:
        shutil.rmtree(root, ignore_errors=True)
        os.makedirs(root)
    for name, text in case["files"].items():
        os.makedirs(os.path.dirname(f"/test_data/{name}"), exist_ok=True)
        open(f"/test_data/{name}", "w").write(text)
    assert shell(case["prep"])[0] == 0
    before = listed()
    code, text = shell(command)
    after = listed()
    changes = {path: "DEL" for path in before.keys() - after.keys()}
    for path in after:
        if before.get(path) != after[path]:
            changes[path] = ("MOD" if path in before else "ADD", content(path))
    text = re.sub(r"\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])", "", text)
    return code, "".join(text.split()), changes

case = json.load(open("/effects.json"))
print(json.dumps([side(case, one) == side(case, other) for one, other in case["effects"]]))
'''


@dataclass(frozen=True)
class Effect:
    """An effect of a reference and of a candidate, each by a shell command in `/test_data`."""

    name: str
    reference: str
    candidate: str
    same: bool
    """Verdict of the authors' method."""
    ruling: str = ""
    """Row of the table in docs/metrics.md that says why our verdict is another; empty if it is not."""


EFFECTS = (
    Effect("nothing", "true", "true", same=True),
    Effect("a new file", "echo x > n", "true", same=False),
    Effect("a new file of another content", "echo x > n", "echo y > n", same=False),
    Effect("a file written again as it was", "echo a > a", "true", same=True),
    Effect("an appended line", "echo x >> a", "printf 'a\\nx\\n' > a", same=True),
    Effect("a changed file", "echo x > a", "true", same=False),
    Effect("a removed file", "rm a", "true", same=False),
    Effect("a file replaced by a folder", "rm a; mkdir a", "true", same=False),
    Effect("a folder in a removed file's place", "rm a; mkdir a", "rm a", same=True),
    Effect("a file replaced by a link", "rm a; ln -s b a", "true", same=False),
    Effect("a link in a removed file's place", "rm a; ln -s b a", "rm a", same=True),
    Effect("a folder replaced by a file", "rm -r d; echo x > d", "rm -r d", same=False),
    Effect("a renamed file", "mv a n", "true", same=False),
    Effect("a copied and removed file", "mv a n", "cp a n; rm a", same=True),
    Effect("a renamed folder", "mv d n", "true", same=False),
    Effect("permissions", "chmod 700 a d", "true", same=True),
    Effect("times", "touch -d 2001-01-01 a", "true", same=True),
    Effect("a new empty folder", "mkdir n", "true", same=True),
    Effect("a removed empty folder", "rmdir empty", "true", same=True),
    Effect("a new link", "ln -s a n", "true", same=True),
    Effect("a removed link", "rm link", "true", same=True),
    Effect("a link that leads elsewhere", "ln -sf b link", "true", same=True),
    Effect("a link replaced by a file", "rm link; echo a > link", "true", same=False),
    Effect("a second name of a file", "ln a n", "true", same=False),
    Effect("a pipe", "mkfifo n", "true", same=True),
    Effect("bytes that are not UTF-8", "printf '\\377' > n", "printf '\\376' > n", same=True),
    Effect("bytes written out", "printf '\\377' > n", "printf '\\\\xff' > n", same=False),
    Effect("other bytes than before", "printf '\\376' > bytes", "true", same=False),
    Effect("the 2,001st character", "printf y >> long", "printf z >> long", same=True),
    Effect("the first character", "{ printf y; cat long; } > n", "{ printf z; cat long; } > n", same=False),
    Effect("2,000 characters and more", "head -c 2000 long > n", "cat long > n", same=False),
    Effect("2,001 long characters", "sed s/x/é/g long > n", "{ sed s/x/é/g long; echo; } > n", same=True),
    Effect("a hidden file", "echo x > .n", "true", same=False),
    Effect("bytecode", "echo x > n.pyc", "true", same=False),
    Effect("a file in an ignored folder", "mkdir build; echo x > build/n", "true", same=True),
    Effect("a file of an ignored name", "echo x > dist", "true", same=True),
    Effect("a file elsewhere", "echo x > /tmp/n; echo x > ~/n", "true", same=True),
    Effect("a name with a newline", "echo x > 'n\nm'", "true", same=True),
    Effect("a name with a tab", "echo x > 'n\tm'", "true", same=True),
    Effect("a name with a quote", "echo x > \"n'm\"", "true", same=False),
    Effect("its content", "echo x > \"n'm\"", "echo y > \"n'm\"", same=True),
    Effect("a changed name with a quote", "echo x > \"it's\"", "true", same=False),
    Effect("a name with another break", "echo x > 'n\u2028m'", "echo y > 'n\u2028m'", same=True),
    Effect("a name with a backslash", "echo x > 'n\\m'", "echo y > 'n\\m'", same=False),
    Effect("a name that is not UTF-8", "echo x > $(printf 'n\\377')", "true", same=False),
    Effect("that one's content", "echo x > $(printf 'n\\377')", "echo y > $(printf 'n\\377')", same=True),
    Effect("the last byte of 1.2 MB", f"{FLAT}; {FLAT}; echo x", f"{FLAT}; {FLAT}; echo y", same=False),
    Effect("1.2 MB twice", f"{FLAT}; {FLAT}; echo x", f"{FLAT}; {FLAT}; echo x", same=True),
    Effect("standard error", "echo x >&2", "echo x", same=True),
    Effect("no output", "echo x", "true", same=False),
    Effect("blanks and colours", "echo x y", "printf '\\033[1mx\\ny\\033[0m'", same=True),
    Effect("an exit code", "true", "exit 3", same=False),
    Effect("the start folder", "cd -; cd /test_data", "echo /", same=True),
    Effect("a file beside it", "echo x > /n && echo made", "echo made", same=True),
    Effect("the user", "id -un", "echo root", same=True, ruling="user"),
    Effect("a file beside the tool", "echo x > /workspace/n", "echo x > /workspace/n", same=True, ruling="user"),
    Effect("two bytes for one", "printf '\\377'", "printf '\\376'", same=True, ruling="output that is not UTF-8"),
    Effect("1.2 MB with a blank", f"{FLAT}; {FLAT}; echo ' '", f"{FLAT}; {FLAT}; echo", same=True,
           ruling="output beyond 1 MiB"),
    Effect("two names for one", "echo x > $(printf 'n\\377')", "echo x > $(printf 'n\\376')", same=True,
           ruling="names that are not UTF-8"),
    Effect("a name that is an order", f'echo x > dist; echo > "{READS_ANOTHER}"',
           f'echo y > dist; echo > "{READS_ANOTHER}"', same=False, ruling="names that are orders"),
    Effect("a collision", f"printf '{COLLISION}' > five", "true", same=True, ruling="checksums"),
    Effect("a title", "printf '\\033]0;x\\007'", "true", same=False, ruling="escapes"),
    Effect("a flood", "head -c 68M /dev/zero", "head -c 68M /dev/zero", same=True, ruling="limits"),
)  # fmt: skip


def commands() -> list[tuple[str, str]]:
    """Return the commands of both sides for each effect."""
    enter = "cd /test_data; "
    return [(enter + effect.reference, enter + effect.candidate) for effect in EFFECTS]


def authors_verdicts(sandboxes: DockerSandboxes, image: Image) -> list[bool]:
    """Return for each effect whether the authors' method finds both sides the same."""
    settings = {"files": FILES, "prep": PREP, "effects": commands()}
    with sandboxes.open(SandboxSpec(name="authors", image=image, user="root")) as place:
        files = {"/effects.json": json.dumps(settings), "/authors.py": AUTHORS}
        ran = place.exec(ExecSpec(argv=("python3", "/authors.py"), user="root", files=files))
    assert ran.exit_code == 0, ran.stderr
    found: list[bool] = json.loads(ran.stdout)
    return found


def our_verdicts(sandboxes: DockerSandboxes, image: Image) -> list[bool]:
    """Return for each effect whether it passes under `semantics=artifact`."""
    cases = [
        _merge_streams(Case(command_class="t", command=command, files=FILES, prep=PREP, start="/"))
        for pair in commands()
        for command in pair
    ]
    side = CaseSide(name="effects", image=image, limits=CaseLimits(seconds=30), lanes=2, how="overlay")
    with sandboxes.cases(side) as box:
        results = dict(stream(box, cases))
    observations = [observe(results[index]) for index in range(len(cases))]
    pairs = zip(observations[::2], observations[1::2], strict=True)
    rules = Rules(semantics="artifact")
    return [judge_case(*pair, rules, same_meaning=False).phase is Phase.PASSED for pair in pairs]


@pytest.mark.docker
def test_the_artifact_says_of_each_effect_what_its_authors_say_unless_a_ruling_says_why_not() -> None:
    sandboxes = prepared()
    image = sandboxes.image(Environment(image=base_image.tag()))
    names = [effect.name for effect in EFFECTS]
    authors = dict(zip(names, authors_verdicts(sandboxes, image), strict=True))
    assert authors == {effect.name: effect.same for effect in EFFECTS}
    ours = dict(zip(names, our_verdicts(sandboxes, image), strict=True))
    assert ours == {effect.name: effect.same is not bool(effect.ruling) for effect in EFFECTS}


def test_every_ruling_on_an_effect_stands_in_the_documents() -> None:
    text = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    rulings = {effect.ruling for effect in EFFECTS if effect.ruling}
    assert {ruling for ruling in rulings if f"| {ruling} |" not in text} == set()
