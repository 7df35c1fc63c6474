"""`job=kappa_sample` and `job=kappa_agreement` on the command line, over a made-up sweep with judged pairs."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.benchmarks.cli_tool_bench.labels import read_labels
from runner.benchmarks.cli_tool_bench.semantic import Pair
from runner.sweeps.store import Store
from tests.report.plans import record, row, write_sweep
from tests.support.sweeps import Cli

Rows = list[dict[str, str]]
SECRETS = ("true", "codex", "kimi", "scripted", "because")
"""Words that would tell an annotator the verdict or whose tool it is."""


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Return a command line over a sweep `mine` of two agents on six tasks, each with ten judged pairs."""
    monkeypatch.chdir(tmp_path)
    outputs = tmp_path / "outputs"
    planned = [
        row(agent, f"{tier}-{n}")
        for agent in ("codex", "kimi")
        for tier in ("easy", "hard")
        for n in range(3)
    ]
    write_sweep(outputs, planned, {one.key: record(one) for one in planned}, "mine")
    for one in planned:
        judged = [judgement(f"{one.task} {one.agent} {n}", equivalent=n < 7) for n in range(9)]
        judged.append(judgement(f"{one.task} of both", equivalent=True))
        (Store(outputs).folder(one.key) / "differential.json").write_text(
            json.dumps({"judged": judged, "cases": []})
        )
    return Cli(outputs, monkeypatch, capsys)


def judgement(text: str, *, equivalent: bool) -> dict[str, object]:
    """Return an entry of `judged`: two outputs with a formula, a control sequence and several lines."""
    word = text.replace("codex", "a").replace("kimi", "b")
    pair = Pair.of(f"=HYPERLINK({word})\nsecond\x07 line\n", f"{word}, other layout")
    verdict = {"equivalent": equivalent, "reason": "because"}
    return {"line": 1, "class": "COUNT", "pair": pair.digest, **verdict, **pair._asdict()}


def read(path: Path) -> Rows:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def annotate(path: Path, label: Callable[[dict[str, str]], str]) -> None:
    """Fill in the labels, as a person does with a spreadsheet that also folds the lines of texts."""
    rows = [
        {**line, "label": label(line), "reference": line["reference"].replace("\n", "\r\n")}
        for line in read(path)
    ]
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_a_sample_is_blind_stratified_and_the_same_for_both(cli: Cli, tmp_path: Path) -> None:
    told = cli("job=kappa_sample", "name=mine", "job.pairs=40")
    assert told.code == 0, told.err
    assert "40 of 114 pairs, in proportion from 4 strata" in told.out
    folder = tmp_path / "outputs" / "mine" / "kappa"
    first, second = (folder / f"annotator_{n}.csv" for n in (1, 2))
    assert first.read_bytes() == second.read_bytes()
    text = first.read_text()
    assert not [word for word in SECRETS if word in text.lower()]
    lines = read(first)
    assert list(lines[0]) == ["pair", "class", "reference", "candidate", "label"]
    assert {line["label"] for line in lines} == {""}
    assert all(line["reference"].startswith("'=HYPERLINK") for line in lines)
    assert all("\nsecond" in line["reference"] and "\x07" not in text for line in lines)
    key = json.loads((folder / "key.json").read_text())
    assert [one["pair"] for one in key["pairs"]] == [line["pair"] for line in lines]
    # 45 of 57 pairs of each tier are equivalent: 15.8 of 20, and 4.2 others.
    strata = [one["stratum"] for one in key["pairs"]]
    assert {name: strata.count(name) for name in set(strata)} == {
        "easy, python, equivalent": 16, "hard, python, equivalent": 16,
        "easy, python, different": 4, "hard, python, different": 4,
    }  # fmt: skip


def test_labels_in_a_sample_are_not_overwritten(cli: Cli, tmp_path: Path) -> None:
    assert cli("job=kappa_sample", "name=mine").code == 0
    again = cli("job=kappa_sample", "name=mine", "job.seed=1")
    assert again.code == 2
    assert "has annotator_1.csv, annotator_2.csv, key.json already. Move the folder away" in again.err
    assert len(read(tmp_path / "outputs" / "mine" / "kappa" / "annotator_1.csv")) == 114


def test_agreement_consensus_and_judge(cli: Cli, tmp_path: Path) -> None:
    """The first annotator says what the judge says; the second errs twice, and one error is settled."""
    assert cli("job=kappa_sample", "name=mine", "job.pairs=40").code == 0
    folder = tmp_path / "outputs" / "mine" / "kappa"
    key = json.loads((folder / "key.json").read_text())
    verdicts = {one["pair"]: one["equivalent"] for one in key["pairs"]}
    judge = {pair: "Equivalent" if verdict else "no" for pair, verdict in verdicts.items()}
    yes = [pair for pair, verdict in verdicts.items() if verdict]
    annotate(folder / "annotator_1.csv", lambda line: judge[line["pair"]])
    annotate(
        folder / "annotator_2.csv",
        lambda line: (
            "" if line["pair"] == yes[2] else "different" if line["pair"] in yes[:2] else judge[line["pair"]]
        ),
    )
    told = cli("job=kappa_agreement", "name=mine")
    assert told.code == 0, told.err
    assert "39 of 40 pairs have labels of both annotators; 1 count nowhere." in told.out
    # 37 of 39 alike; by chance 31/39 and 29/39 yes.
    chance = (31 * 29 + 8 * 10) / 39**2
    kappa = (37 / 39 - chance) / (1 - chance)
    assert f"annotators:          94.9% [83.1%, 98.6%] of 39 alike, κ = {kappa:.3f}" in told.out
    assert (
        "consensus and judge: 100.0% [90.6%, 100.0%] of 37 alike, κ = 1.000 [1.000, 1.000] (95%)" in told.out
    )
    assert "2 are open and left out" in told.out
    open_pairs = read(folder / "disagreements.csv")
    assert {line["pair"] for line in open_pairs} == set(yes[:2])
    assert not [word for word in SECRETS if word in (folder / "disagreements.csv").read_text().lower()]
    annotate(folder / "disagreements.csv", lambda line: "different" if line["pair"] == yes[0] else "")
    for _ in range(2):  # what was settled is kept
        settled = cli("job=kappa_agreement", "name=mine")
        assert "37 pairs on which both agree and 1 that were settled; 1 are open" in settled.out
    details = json.loads((folder / "kappa_agreement.json").read_text())
    assert details["consensus_unlike_judge"] == [yes[0]]
    assert details["unsettled"] == [yes[1]]
    assert details["consensus_and_judge"]["alike"] == 37
    assert details["consensus_and_judge"]["n"] == 38
    # Another judge can be compared with the same people.
    labels = {label.digest: label.equivalent for label in read_labels(folder / "consensus.csv")}
    assert labels == {pair: verdict for pair, verdict in verdicts.items() if pair not in yes[1:3]} | {
        yes[0]: False
    }


def test_one_label_throughout_has_no_kappa(cli: Cli, tmp_path: Path) -> None:
    assert cli("job=kappa_sample", "name=mine", "job.pairs=5").code == 0
    folder = tmp_path / "outputs" / "mine" / "kappa"
    for n in (1, 2):
        annotate(folder / f"annotator_{n}.csv", lambda _: "yes")
    told = cli("job=kappa_agreement", "name=mine")
    assert "annotators:          100.0% [56.6%, 100.0%] of 5 alike; κ is undefined" in told.out
    assert json.loads((folder / "kappa_agreement.json").read_text())["annotators"]["kappa"] is None


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            "pair,label\nP,yes\n",
            "pair,label\nP,maybe\n",
            "b.csv, row 2: label 'maybe' is none of equivalent, yes",
        ),
        (
            "pair,label\nP,yes\n",
            "pair,label\nQ,yes\n",
            "b.csv, row 2: pair 'Q' is not in this sweep's sample",
        ),
        ("pair,label\nP,yes\nP,no\n", "pair,label\nP,no\n", "a.csv, row 3: the same pair as row 2"),
        ("pair;label\nP;yes\n", "", "a.csv, row 1: the columns pair and label are needed, with a comma"),
        ("pair,label\nP,\n", "pair,label\nP,no\n", "a.csv has no label: write equivalent or different"),
        ("pair,label\nP,yes,3\n", "", "a.csv, row 2: more cells than the header has"),
        ("pair,label\n", "", "a.csv has no row below its header"),
    ],
)
def test_annotations_that_cannot_be_used_are_a_sentence(
    cli: Cli, tmp_path: Path, first: str, second: str, message: str
) -> None:
    assert cli("job=kappa_sample", "name=mine", "job.pairs=1").code == 0
    pair = read(tmp_path / "outputs" / "mine" / "kappa" / "annotator_1.csv")[0]["pair"]
    for name, text in (("a", first), ("b", second)):
        (tmp_path / f"{name}.csv").write_text(text.replace("P", pair))
    told = cli("job=kappa_agreement", "name=mine", f"job.annotations=[{tmp_path}/a.csv,{tmp_path}/b.csv]")
    assert told.code == 2
    assert message.replace("P", pair) in " ".join(told.err.split())


def test_what_is_missing_is_said(cli: Cli, tmp_path: Path) -> None:
    told = cli("job=kappa_agreement", "name=mine")
    assert (told.code, "mine has no sample: draw one with job=kappa_sample." in told.err) == (2, True)
    assert cli("job=kappa_sample", "name=mine").code == 0
    one = cli("job=kappa_agreement", "name=mine", "job.annotations=[a.csv]")
    assert "name two files, one of each annotator" in one.err
    lost = cli("job=kappa_agreement", "name=mine", "job.annotations=[a.csv,b.csv]")
    assert "job.annotations: cannot read" in lost.err
    planned = [row("codex", "easy-9")]
    write_sweep(tmp_path / "outputs", planned, {}, "unjudged")
    bare = cli("job=kappa_sample", "name=unjudged")
    assert (bare.code, "no pair of outputs on which a judge gave a verdict" in bare.err) == (2, True)


def test_pairs_with_unlike_verdicts_are_left_out(cli: Cli, tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    planned = [row("codex", "easy-7"), row("kimi", "easy-7")]
    write_sweep(outputs, planned, {one.key: record(one) for one in planned}, "torn")
    for one, verdict in zip(planned, (True, False), strict=True):
        judged = [judgement("torn", equivalent=verdict), judgement("alike", equivalent=True)]
        (Store(outputs).folder(one.key) / "differential.json").write_text(json.dumps({"judged": judged}))
    told = cli("job=kappa_sample", "name=torn")
    assert "Pairs left out, as judges of this sweep gave unlike verdicts on them: 1." in told.out
    assert "1 of 1 pairs" in told.out
