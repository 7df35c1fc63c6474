"""Commands of a shell script, and the programs and phases that follow from them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.shell import called, commands
from metrics.terminal import PHASES, phase, programs


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("make . && make test", ["make", "make"]),
        ("a || b; c | d |& e\nf", list("abcdef")),
        ("\n  \n# nothing; at all\nmake # && no more", ["make"]),
        ("git commit -m 'a; b && c' # isn't", ["git"]),
        ('a "b \\" ; c" d\ne', ["a", "e"]),
        ("a b#c | d", ["a", "d"]),
        ("apt-get install -y \\\n  gcc \\\n  make && rm x", ["apt-get", "rm"]),
        ("cat <<EOF > f\nx; y && z\nEOF\nmake", ["cat", "make"]),
        ("cat <<-'END' <<B | sort; c\n\tx\n\tEND\ny\nB\nd", ["cat", "sort", "c", "d"]),
        ("cat <<A\r\nx; y\r\nA\r\nb", ["cat", "b"]),
        ("cat <<EOF\nnobody ends it\n; a", ["cat"]),
        ("cat <<< 'x' && b", ["cat", "b"]),
        ("a 2>&1 >log &> x >| y | tee log", ["a", "tee"]),
        ("redis-server & pytest", ["redis-server"]),
        ("if [ -f x ]; then make; else\n ninja\nfi", ["[", "make", "ninja"]),
        ("for x in a b; do make $x; done < list", ["make"]),
        ("for ((i = 0; i < 3; i++)); do make; done; ((x++)) && f", ["make", "((x++))", "f"]),
        ("while ! read x; do time make; done | sort", ["read", "make", "sort"]),
        ('case "$1" in a) make ;; b|c) ninja ;;& *) exit ;; esac', ["make", "ninja", "exit"]),
        ("f() { make; }; function g { ninja; }; f", ["make", "ninja", "f"]),
        ("(cd x && make) > log", ["cd", "make"]),
        ("(cd x); case $a in b) make ;; esac", ["cd", "make"]),
        ("x=$(a | b; c (d)) make `e; f` ${x:-g;h}", ["make"]),
        ("diff <(a; b) <(c)\narr=(a b c) make", ["diff", "make"]),
        ("> f\n'unclosed ; a\n b", ["'unclosed ; a\n b"]),
        ("a;;b\\", ["a", "b"]),
        ("", []),
    ],
)
def test_a_script_is_split_as_documented(text: str, names: list[str]) -> None:
    assert [called(command)[0] for command in commands(text)] == names


def test_an_assignment_is_a_command_that_calls_nothing() -> None:
    assert [called(command) for command in commands("A=1\nB[0]+=2 make all")] == [(), ["make", "all"]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sudo -E DEBIAN_FRONTEND=x apt-get install", ["apt-get", "install"]),
        ("env -i nohup make", ["make"]),
        ("sudo", []),
        ("-x", ["-x"]),
    ],
)
def test_what_runs_another_command_is_passed_over(text: str, words: list[str]) -> None:
    assert [list(called(command)) for command in commands(text)] == [words]


@settings(deadline=None)  # a busy machine pauses whatever it runs
@given(st.text(alphabet="ab \n;|&()<>'\"`\\$#{}=-E"))
def test_any_text_is_split_and_no_command_is_empty(text: str) -> None:
    assert all(command and all(command) for command in commands(text))


@settings(deadline=None)  # a busy machine pauses whatever it runs
@given(st.lists(st.sampled_from(["make", "cd x", "A=1 b -c", "x 'a;b'", '"p" q']), min_size=1), st.data())
def test_commands_between_separators_are_as_many(parts: list[str], data: st.DataObject) -> None:
    text = parts[0]
    for part in parts[1:]:
        text += data.draw(st.sampled_from([" && ", "||", ";", " | ", "\n", "\n\n# x\n"])) + part
    assert len(list(commands(text))) == len(parts)


@pytest.mark.parametrize(
    "piece", ["$(", "=(", "$(x(a)", "<<A\n", "<<A ", "(", "$(()", "`'\"", "((", "a(b", "<(", "${", "\\"]
)
def test_a_hostile_script_takes_time_linear_in_its_length(piece: str) -> None:
    """This takes a tenth of a second; in quadratic time it would take more than a minute."""
    began = time.process_time()
    list(commands(piece * 100_000))
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("cd /workspace && ls -la", ["cd", "ls"], "setup"),
        ("sudo apt-get update && apt install -y x", ["apt update", "apt install"], "dependencies"),
        ("python3.11 -m pip install -r test-requirements.txt", ["pip"], "dependencies"),
        ("pip3 list", ["pip"], "dependencies"),
        ("python3 -m pytest -q tests", ["pytest"], "testing"),
        ("python -m", ["python"], "setup"),
        ("python -c \"print('test')\"", ["python"], "setup"),
        ("/usr/bin/python3 setup.py test", ["python"], "testing"),
        ("make -j4", ["make"], "dependencies"),
        ("make check -j4", ["make"], "testing"),
        ("./configure --x", ["./file"], "dependencies"),
        ("../autogen.sh", ["./file"], "setup"),
        ("npm ci", ["npm"], "dependencies"),
        ("npm ci && npm run test:unit", ["npm", "npm"], "testing"),
        ("npx jest", ["npx"], "testing"),
        ("./gradlew :core:test", ["gradle"], "testing"),
        ("bash run_tests.sh", ["bash"], "testing"),
        ("/workspace/runtests", ["./file"], "testing"),
        ("ls tests; grep -r test .", ["ls", "grep"], "setup"),
        ("FOO=1", [], "other"),
        ("$(which python) x\x07", ["other"], "setup"),
        ("", [], "other"),
        ("tape 'test/**/*.js'", ["tape"], "testing"),
        ("ls && pip install x; cat x", ["ls", "pip", "cat"], "dependencies"),
        ("apt-get -y --no-install-recommends install x", ["apt install"], "dependencies"),
        ("grep -m 1 pytest setup.cfg", ["grep"], "setup"),
        ("python run.py -m pip", ["python"], "setup"),
        ("npm install test-utils", ["npm"], "dependencies"),
        ("bash -c 'test -f x'", ["bash"], "setup"),
        ("./bin/tool", ["./file"], "setup"),
    ],
)
def test_programs_and_phase_of_what_a_terminal_is_given(text: str, names: list[str], expected: str) -> None:
    assert programs(text) == names
    assert phase("execute", text) == expected


def test_phases_of_other_kinds() -> None:
    found = [phase(kind) for kind in ("read", "search", "edit", "plan", "finish", "other")]
    assert found == ["setup", "setup", "dependencies", "other", "other", "other"]
    assert {*found, "testing"} == {*PHASES, "other"}


def test_a_long_chain_of_modules_is_no_recursion() -> None:
    assert programs("python -m " * 5000) == ["python"]
