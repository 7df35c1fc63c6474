"""The pages of trials as files: who has one, what it shows, what it never shows, and when it is written again."""

from __future__ import annotations

import json
import os
import tarfile
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from runner.records import PhaseSeconds, PlannedRow, TrialRecord
from runner.report.projections import write_projections
from runner.report.workspace_changes import compare_with, read_workspace, written_since
from runner.sweeps.store import Store
from tests.report.plans import TASKS, record, row, sweep_of_four, write_sweep
from tests.report.test_page import Elements
from tests.report.trial_files import HOSTILE, LATER, converse, hostile_sweep, pack
from tests.support.no_page import without_page
from tests.support.records_factory import NOON


def pages(sweep: Path) -> dict[str, Path]:
    """Key -> page of each trial."""
    return {page.stem: page for page in (sweep / "report" / "trials").glob("*.html") if len(page.stem) == 32}


def text(page: Path) -> str:
    return " ".join(Elements(page.read_text()).text.split())


class Boxes(HTMLParser):
    """Texts of the entries of the matrix, row by row."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.feed(page[page.index('id="matrix"') : page.index("</section>", page.index('id="matrix"'))])

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - the parser's signature
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += f" {data.strip()}"


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep with one trial of each kind of trouble, and its report; for tests that only look."""
    outputs = tmp_path_factory.mktemp("reported")
    sweep = write_sweep(outputs, *sweep_of_four())
    write_projections(sweep, outputs)
    return sweep


@pytest.fixture
def four(tmp_path: Path, alone: None) -> Path:  # noqa: ARG001 - a fixture that is in force
    """The same sweep with the pages of its trials alone."""
    sweep = write_sweep(tmp_path, *sweep_of_four())
    write_projections(sweep, tmp_path)
    return sweep


@pytest.fixture
def alone() -> Iterator[None]:
    """Write the pages of trials without that of their sweep and the list of trials."""
    with without_page():
        yield


def one_trial(outputs: Path, agent: str = "codex", **changed: object) -> tuple[Path, Path]:
    """Write a sweep of a trial of this agent and one of nop; return its folder and that of the agent's trial."""
    planned = [row(name, TASKS[0]) for name in (agent, "nop")]
    records = {each.key: record(each, passed=each.agent == agent, **changed) for each in planned}
    return write_sweep(outputs, planned, records), Store(outputs).folder(planned[0].key)


def _keys(agent: str) -> list[str]:
    planned, records = sweep_of_four()
    return [each.key for each in planned if each.agent == agent and each.key in records]


def report(sweep: Path) -> str:
    """Make the report, and return the text of the page of the trial that is not nop's."""
    write_projections(sweep, sweep.parent)
    (page,) = [page for page in pages(sweep).values() if "nop · none" not in text(page)]
    return text(page)


def test_each_trial_that_ran_has_a_page_to_which_matrix_and_list_lead(reported: Path) -> None:
    _, records = sweep_of_four()
    assert set(pages(reported)) == set(records)
    linked = {
        name: {link["href"] for link in Elements((reported / "report" / name).read_text()).all("a")}
        for name in ("index.html", "trials/index.html")
    }
    assert {f"trials/{key}.html" for key in records} < linked["index.html"]
    assert {f"{key}.html" for key in records} < linked["trials/index.html"]
    for name, links in linked.items():
        for link in links:
            target = (link or "").partition("#")[0]
            assert not target or (reported / "report" / name).parent.joinpath(target).is_file(), link


def test_the_matrix_tells_missing_from_failed_and_no_price_from_zero(reported: Path) -> None:
    head, *rows = Boxes((reported / "report/index.html").read_text()).rows
    at = {name.split()[0]: place for place, name in enumerate(head)}
    boxes = {row[0].split()[0]: {agent: row[place].split() for agent, place in at.items()} for row in rows}
    assert boxes["easy-1"]["codex"] == ["✓", "0.015"]
    assert boxes["hard-2"]["codex"] == ["✗", "0.16"]
    assert boxes["hard-3"]["codex"] == ["!", "0.50"]
    assert boxes["hard-3"]["mini_swe_agent"] == ["–"]
    assert boxes["hard-4"]["oracle"] == ["R"]
    assert boxes["easy-1"]["nop"] == ["✗", "0.00"]
    assert boxes["easy-1"]["solved"] == ["2/2"]
    assert head[at["codex"]].split()[-2:] == ["0.72", "USD"]


def test_the_list_has_every_planned_trial_with_its_reason(reported: Path) -> None:
    planned, _ = sweep_of_four()
    listed = text(reported / "report/trials/index.html")
    assert f"All {len(planned)} trials" in listed
    for words in (
        "failed (timeout)",
        "invalid: infra_invalid",
        "EngineError: The container is gone.",
        "It needs a GPU.",
    ):
        assert words in listed


def test_a_report_made_again_writes_only_pages_of_trials_that_changed(four: Path) -> None:
    before = {key: page.stat().st_mtime_ns for key, page in pages(four).items()}
    write_projections(four, four.parent)
    assert {key: page.stat().st_mtime_ns for key, page in pages(four).items()} == before
    store, (first, second, third, *_) = Store(four.parent), _keys("codex")
    (store.folder(first) / "verifier.stdout").write_text("1 failed")
    other = store.read(second)
    assert other
    store.write(other.model_copy(update={"flags": ("no_verdict",)}))
    (store.folder(third) / "record.json").unlink()
    write_projections(four, four.parent)
    after = {key: page.stat().st_mtime_ns for key, page in pages(four).items()}
    assert {key for key in before if before[key] != after.get(key)} == {first, second, third}
    assert third not in after, "the page of a trial that is gone"
    assert "1 failed" in text(pages(four)[first])


def test_pages_follow_the_base_of_their_diffs(four: Path) -> None:
    before = {key: page.stat().st_mtime_ns for key, page in pages(four).items()}
    base = _keys("nop")[0]
    pack(Store(four.parent).folder(base), {"given.txt": "given"})
    write_projections(four, four.parent)
    after = {key: page.stat().st_mtime_ns for key, page in pages(four).items()}
    same_task = {_keys(agent)[0] for agent in ("oracle", "nop", "codex", "mini_swe_agent")}
    assert {key for key in before if before[key] != after[key]} == same_task


@pytest.mark.usefixtures("alone")
def test_a_page_asks_nothing_of_anybody_and_runs_nothing(tmp_path: Path) -> None:
    for page in pages(hostile_sweep(tmp_path)).values():
        elements = Elements(page.read_text())
        tags = {tag for tag, _ in elements.tags}
        assert not tags & {"script", "img", "svg", "iframe", "link", "base", "object", "form"}
        names = {name for _, attributes in elements.tags for name in attributes}
        assert not names & {"src", "srcdoc", "background", "action"}
        assert not [name for name in names if name.startswith("on")]
        policies = [meta["content"] for meta in elements.all("meta") if "http-equiv" in meta]
        assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
        hrefs = {link["href"] or "" for link in elements.all("a")}
        assert all(href.startswith(("#", "index.html", "../index.html")) for href in hrefs)
        for marks in ("\u202e", "\u2066", "\x1b", "\x00"):
            assert marks not in page.read_text()
        for attack in HOSTILE[:5]:
            assert attack in elements.text


@pytest.mark.usefixtures("alone")
def test_the_page_tells_what_was_asked_done_judged_and_changed(tmp_path: Path) -> None:
    sweep, folder = one_trial(tmp_path)
    converse(folder, ["Mend it.", "I look."], ["README", "ok"])
    (folder / "verifier.stdout").write_text("12 passed")
    (folder / "agent.stderr").write_text("a warning")
    pack(folder, {"new.py": "print()\n", "old.py": "one\ntwo\nthree\n"})
    store = Store(tmp_path)
    base = store.folder(row("nop", TASKS[0]).key)
    pack(base, {"old.py": "one\n2\nthree\n", "gone.py": "x\n"})
    shown = report(sweep)
    for words in (
        "Mend it.",
        "I look.",
        "10 tokens in; 5 out; 0.006 USD",
        "12 passed",
        "a warning",
        "@@ -1,4 +1,4 @@ one -2 +two three",
        "added new.py 8 bytes +print()",
        "deleted gone.py 2 bytes",
        f"job=trajectory job.key={folder.name[:12]}",
        f"dataset=quickstart budget=default 'dataset.include=[{TASKS[0]}]' attempts=1 fresh=true",
        "add outputs=DIR to both commands",
    ):
        assert words in shown


@pytest.mark.usefixtures("alone")
def test_the_workspace_that_one_trial_of_a_task_kept_is_the_base_for_all_of_them(tmp_path: Path) -> None:
    planned = [row(name, TASKS[0]) for name in ("codex", "oracle")]
    records = {each.key: record(each) for each in planned}
    sweep, store = write_sweep(tmp_path, planned, records), Store(tmp_path)
    pack(store.folder(planned[0].key), {"old.py": "one\n"}, name="given")
    for each, files in zip(planned, ({"old.py": "1\n"}, {"new.py": "two\n"}), strict=True):
        pack(store.folder(each.key), files)
    write_projections(sweep, tmp_path)
    shown = {key: text(page) for key, page in pages(sweep).items()}
    assert "changed old.py 4 bytes → 2 bytes" in shown[planned[0].key]
    assert "added new.py 4 bytes +two" in shown[planned[1].key]
    assert "deleted old.py 4 bytes -one" in shown[planned[1].key]
    (store.folder(planned[0].key) / "given.tar.gz").unlink()
    write_projections(sweep, tmp_path)
    assert "which were deleted, is not known" in text(pages(sweep)[planned[1].key])


@pytest.mark.usefixtures("alone")
def test_without_a_base_the_page_shows_what_was_written_since_and_says_so(tmp_path: Path) -> None:
    planned = [row("codex", TASKS[0])]
    started = PhaseSeconds(environment=1, agent=15)
    records = {each.key: record(each, seconds=started) for each in planned}
    sweep = write_sweep(tmp_path, planned, records)
    pack(Store(tmp_path).folder(planned[0].key), {"mine.py": "mine\n"})
    shown = report(sweep)
    assert "written mine.py 5 bytes mine" in shown
    assert "which were deleted, is not known" in shown


@pytest.mark.usefixtures("alone")
def test_no_file_is_too_large_for_its_page(tmp_path: Path) -> None:
    sweep, folder = one_trial(tmp_path, turns=500)
    converse(folder, ["<" * 40_000] * 500, ["&" * 40_000] * 500)
    for name in ("agent.stdout", "agent.stderr", "verifier.stdout"):
        with (folder / name).open("wb") as file:
            file.write(b"begins\n" + b'"' * 100_000)
            file.truncate(100 << 20)
    pack(folder, {f"{at}.txt": "<\n" * 30_000 for at in range(400)})
    pack(Store(tmp_path).folder(row("nop", TASKS[0]).key), {})
    began = time.process_time()
    shown = report(sweep)
    assert time.process_time() - began < 60
    assert "begins" in shown
    (page,) = [page for page in pages(sweep).values() if page.stem == folder.name]
    assert page.stat().st_size < 4 << 20


def test_secrets_are_on_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "correct-horse-battery"
    monkeypatch.setenv("SOME_API_KEY", secret)
    sweep, folder = one_trial(tmp_path, flags=(secret,))
    converse(folder, [f"say {secret}"] * 2, [f"got {secret}"] * 2, tool="bash")
    for name in ("agent.stdout", "agent.stderr", "verifier.stdout", "Dockerfile"):
        (folder / name).write_text(f"{secret} ghp_{'a' * 36}")
    (folder / "differential.json").write_text(json.dumps({"cases": [{"class": secret, "agreed": False}]}))
    (folder / "junit-0.xml").write_text(f"<a><testcase name='t'><failure>{secret}</failure></testcase></a>")
    pack(folder, {f"{secret}.py": f"key = '{secret}'\n"})
    shown = report(sweep)
    assert "[SOME_API_KEY]" in shown
    for page in (sweep / "report").rglob("*.html"):
        assert "ghp_" not in page.read_text()
        if page.name != "index.html":
            assert secret not in page.read_text(), page


@pytest.mark.usefixtures("alone")
def test_benchmarks_show_cases_tests_and_deliverables(tmp_path: Path) -> None:
    sweep, folder = one_trial(tmp_path)
    good = {
        "line": 1,
        "class": "BASIC",
        "valid": True,
        "agreed": True,
        "exec": True,
        "state": True,
        "exact_match": True,
    }
    bad = {**good, "line": 7, "class": "HEX", "state": False, "phase": "state"}
    (folder / "differential.json").write_text(json.dumps({"cases": [good, bad]}))
    (folder / "junit-1.xml").write_text(
        "<testsuites><testsuite><testcase classname='tests/test_a.py' name='test_x'><failure type='AssertionError'>"
        "1 != 2</failure></testcase><testcase name='fine'/></testsuite></testsuites>"
    )
    (folder / "run_tests.sh").write_text("make check")
    shown = report(sweep)
    assert "1 of 2 cases differ" in shown
    assert "7 HEX yes state yes no yes" in shown
    assert "tests/test_a.py::test_x AssertionError 1 != 2" in shown
    assert "make check" in shown


@pytest.mark.usefixtures("alone")
def test_files_that_are_damaged_leave_a_page_that_says_so(tmp_path: Path) -> None:
    sweep, folder = one_trial(tmp_path)
    for name in ("trajectory.json", "ledger.jsonl", "differential.json", "junit-0.xml", "workspace.tar.gz"):
        (folder / name).write_bytes(b"\x1f\x8b\x00<{[")
    shown = report(sweep)
    assert "The archive was read up to a member that cannot be" in shown
    assert "No instruction is kept" in shown


def plain(content: str) -> str:
    return content


def test_an_archive_is_read_to_its_first_impossible_member_and_no_further(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "w.tar.gz", "w:gz") as tar:
        for name, kind, target in (
            ("app/../../etc/passwd", tarfile.REGTYPE, ""),
            ("app/link", tarfile.SYMTYPE, "/etc/shadow"),
            ("app/pipe", tarfile.FIFOTYPE, ""),
            ("app/after", tarfile.REGTYPE, ""),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.mtime = kind, target, int(LATER)
            tar.addfile(member)
    found = read_workspace(tmp_path / "w.tar.gz")
    assert set(found.files) == {"../../etc/passwd", "link"}
    assert "is neither a file nor a folder nor a link" in found.unread
    changes = compare_with(read_workspace(tmp_path / "none"), found, plain)
    assert not changes.files, "nobody knows whether the rest of either side has them"


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "w.tar.gz", "w:gz", compresslevel=1) as tar:
        member = tarfile.TarInfo("app/zeros")
        member.size = 80 << 20
        with Path("/dev/zero").open("rb") as zeros:
            tar.addfile(member, zeros)
    found = read_workspace(tmp_path / "w.tar.gz")
    assert not found.files
    assert "read up to" in found.unread


@pytest.mark.parametrize("size", [300, 20_000])
def test_lines_that_were_chosen_to_be_hard_to_align_take_no_time(tmp_path: Path, size: int) -> None:
    for name, order in (("old", 1), ("new", -1)):
        lines = [f"{at % 7}" if at % 3 else f"{at}" for at in range(size)][::order]
        pack(tmp_path, {"a.txt": "\n".join(lines)[: 60 << 10]}, name=name)
    began = time.process_time()
    changes = compare_with(
        read_workspace(tmp_path / "old.tar.gz"), read_workspace(tmp_path / "new.tar.gz"), plain
    )
    assert time.process_time() - began < 10
    assert changes.files[0].kind == "changed"


def test_only_files_with_a_later_time_are_taken_for_the_agents(tmp_path: Path) -> None:
    pack(tmp_path, {"a": "1"}, modified=LATER)
    assert [
        change.path
        for change in written_since(
            NOON.timestamp(), read_workspace(tmp_path / "workspace.tar.gz"), plain
        ).files
    ] == ["a"]
    assert not written_since(LATER + 1, read_workspace(tmp_path / "workspace.tar.gz"), plain).files


@pytest.mark.usefixtures("alone")
def test_names_that_cannot_be_typed_are_not_put_into_a_command(tmp_path: Path) -> None:
    planned: list[PlannedRow] = [row("codex", "easy-$(touch x)")]
    records: dict[str, TrialRecord] = {each.key: record(each) for each in planned}
    sweep = write_sweep(tmp_path, planned, records)
    assert "Its names cannot be typed" in report(sweep)


def test_a_page_that_a_crash_left_empty_is_written_again(four: Path) -> None:
    page = min(pages(four).values())
    os.truncate(page, 0)
    write_projections(four, four.parent)
    assert page.stat().st_size
