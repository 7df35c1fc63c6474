"""`job=judge_agreement` on the command line, with a judge behind real HTTP; and defects of label files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from runner.benchmarks.cli_tool_bench.labels import read_labels
from runner.benchmarks.cli_tool_bench.semantic import Pair
from runner.errors import LabelError
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.records import Usage
from tests.support.sweeps import Cli

USAGE = Usage(input_tokens=1000, output_tokens=100)
JUDGED = ("dataset=cli_tool_bench_judged", "job=judge_agreement")


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Return a command line without a key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return Cli(tmp_path / "outputs", monkeypatch, capsys)


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def answer(word: str) -> Behaviour:
    return Behaviour(text=json.dumps({"equivalent": word == "yes", "reason": "\x1b[2J"}), usage=USAGE)


def test_kappa_table_and_classes_are_those_of_the_labels(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two raters judge ten pairs. The model is asked once; then verdicts are read by digest, without a key."""
    human = ["yes"] * 5 + ["no"] * 5
    judge = ["yes"] * 4 + ["no"] * 5 + ["yes"]
    rows = [
        {"class": "AB"[n % 2], "label": label, "reference": f"ref {n}\n", "candidate": f'line,\n"{n}"'}
        for n, label in enumerate(human)
    ]
    digests = [
        {"pair": Pair.of(row["reference"], row["candidate"]).digest, "label": row["label"]} for row in rows
    ]
    with FakeUpstream(*map(answer, judge)) as fake:
        words = (
            *JUDGED,
            "name=mine",
            f"dataset.verifier.judge.model.api_base={fake.url}",
            "dataset.verifier.judge.model.id=openai/x",
            "dataset.verifier.judge.model.prices={input: 1, output: 10}",
            "dataset.verifier.judge.at_once=1",
        )
        file = f"job.labels={write(tmp_path / 'labels.csv', rows)}"
        planned = cli(*words, file, "dry_run=true")
        with monkeypatch.context() as keyed:
            keyed.setenv("OPENAI_API_KEY", "k-0123456789")
            asked = cli(*words, file)
        stored = cli(*words, f"job.labels={write(tmp_path / 'digests.csv', digests)}")
        assert len(fake.requests) == 10
    assert planned.out.strip() == "10 labels; 10 to be asked, for at most 1 USD."
    assert asked.code == stored.code == 0, asked.err + stored.err
    # Agreement 8/10, by chance 1/2: kappa 0.6.
    assert "gpt and people on 10 pairs: κ = 0.600 [0.104, 1.000] (95%)" in asked.out
    lines = [line.split()[-2:] for line in asked.out.splitlines() if line.startswith("people ")]
    assert lines == [["4", "1"], ["1", "4"]]
    assert "A: n = 5" in asked.out
    assert "They disagree in rows: 6, 11." in asked.out
    assert "10 of 10 pairs were asked now, for 0.0200 USD." in asked.out
    assert "0 of 10 pairs were asked now, for 0.0000 USD." in stored.out
    assert "κ = 0.600" in stored.out
    found = json.loads((tmp_path / "outputs" / "mine" / "judge_agreement.json").read_text())
    assert found["kappa"] == pytest.approx(0.6)
    assert found["confusion"]["people_different_judge_equivalent"] == 1
    assert [one["row"] for one in found["disagreements"]] == [6, 11]


PAIR = {"reference": "a", "candidate": "b", "label": "yes"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([PAIR, {**PAIR, "candidate": "c", "label": "maybe"}], "labels.csv, row 3: label 'maybe' is none of"),
        ([PAIR, {**PAIR, "candidate": "c"}, PAIR], "labels.csv, row 4: the same pair as row 2"),
        ([{**PAIR, "candidate": " a\n"}], "labels.csv, row 2: both texts are an exact match"),
        ([{**PAIR, "pair": "0" * 32}], f"labels.csv, row 2: these texts are not those of pair {'0' * 32}"),
        ([{"reference": "a", "label": "yes"}], "labels.csv, row 1: the columns label, and reference"),
    ],
)
def test_a_label_that_cannot_be_used_is_refused_with_its_row(
    tmp_path: Path, rows: list[dict[str, str]], message: str
) -> None:
    with pytest.raises(LabelError) as refused:
        read_labels(write(tmp_path / "labels.csv", rows))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"label,pair\n", "no row below its header"),
        (b"", "row 1: the columns label"),
        (b"label,pair\nyes,\xff", "is not UTF-8 text (byte"),
        (b"label,pair\nyes,abc,d\n", "row 2: more cells than the header has"),
        (b'label,pair\nyes,abc\nno,"d"e\n', "the row after row 2: "),
    ],
)
def test_a_file_that_is_not_a_table_of_labels_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "labels.csv").write_bytes(content)
    with pytest.raises(LabelError) as refused:
        read_labels(tmp_path / "labels.csv")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("dataset=cli_tool_bench",), "dataset.verifier.judge: there is no judge to compare."),
        ((), "job.labels: name the CSV file"),
        (("job.labels=absent.csv",), "cannot read"),
    ],
)
def test_a_missing_judge_or_file_is_reported(cli: Cli, words: tuple[str, ...], message: str) -> None:
    ended = cli(*JUDGED[1:], *(words if "dataset=cli_tool_bench" in words else (JUDGED[0], *words)))
    assert (ended.code, message in ended.err) == (2, True), ended.err


def test_a_sweep_budget_of_zero_asks_nothing(cli: Cli, tmp_path: Path) -> None:
    words = (
        *JUDGED,
        "name=mine",
        "sweep_budget.usd=0",
        f"job.labels={write(tmp_path / 'labels.csv', [PAIR])}",
    )
    planned = cli(*words, "dry_run=true")
    assert planned.out.strip() == "1 labels; 1 to be asked, for at most 0 USD."
    asked = cli(*words)
    assert asked.code == 2
    assert "sweep_budget.usd: nothing may be spent, and 1 of 1 pairs have to be asked." in asked.err


def test_a_digest_without_a_stored_verdict_is_refused_with_its_row(cli: Cli, tmp_path: Path) -> None:
    file = write(tmp_path / "labels.csv", [{"pair": "0" * 32, "label": "no"}])
    ended = cli(*JUDGED, f"job.labels={file}")
    assert ended.code == 2
    assert f"row 2: this judge has no stored verdict on pair {'0' * 32}" in ended.err
