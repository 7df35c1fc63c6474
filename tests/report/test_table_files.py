"""Tables of the report as CSV and LaTeX: whole, the same again, and harmless whatever others call their things."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.records import PlannedRow, TrialRecord
from runner.report.blocks import Column, Table, Value
from runner.report.latex import escaped, figure
from runner.report.latex_tables import FiledTable, latex
from runner.report.page import chapters_of
from runner.report.table_files import files
from tests.report.conftest import Report, findings
from tests.report.plans import TASKS, record, row, sweep_of_four
from tests.report.test_page import Elements

HOSTILE = (
    "=HYPERLINK(1)",
    r"\input{/etc/passwd}",
    "} & \\\\ \\end{tabular} % $x^2_1$ #1 ~",
    "[9cm] * 任务 \u202eevil\x1b[2J",
    r"\write18{id}\end{document}",
    "@SUM(1)\n\n-1+1;=2",
)
OURS = re.compile(
    r"begin|end|centering|small|caption|label|toprule|midrule|bottomrule|emph|scriptsize|textbf|char"
    r"|resizebox|ifdim|width|linewidth|else|fi|shortstack|rightskip|relax|allowbreak|tablename|thetable|par|medskip"
)
"""Commands of the layout; those of `escaped` are `text…` and symbols."""
SNAPSHOT = Path(__file__).with_name("main_table.tex")


def hostile() -> tuple[list[PlannedRow], dict[str, TrialRecord]]:
    """A sweep whose agents, models, datasets and tasks are named to break out of a table."""
    planned = [
        row(agent, f"{task}{name}", model=model, dataset=HOSTILE[2], budget=HOSTILE[5])
        for agent in HOSTILE[:3]
        for model in HOSTILE[2:]
        for task, name in zip(TASKS, HOSTILE, strict=True)
    ]
    return planned, {p.key: record(p, passed=n % 3 > 0) for n, p in enumerate(planned)}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the tables of that sweep."""
    from runner.report.page import write_report  # noqa: PLC0415

    return write_report(findings(tmp_path_factory.mktemp("hostile"), *hostile())).parent / "tables"


def filed(
    *rows: list[Value], columns: Sequence[Column] = (Column("a", text=True), Column("b"))
) -> FiledTable:
    return FiledTable("a-table", Table("A table", columns, rows), "a section")


def test_each_table_of_the_page_has_its_files_and_links_to_them(four: Path, tmp_path: Path) -> None:
    chapters = chapters_of(findings(tmp_path, *sweep_of_four()))
    tables = sum(
        isinstance(block, Table) for each in chapters for section in each.sections for block in section.blocks
    )
    links = [link["href"] or "" for link in Elements(four.read_text()).all("a")]
    for ending in (".csv", ".tex"):
        linked = [link for link in links if link.endswith(ending)]
        assert len(linked) == len(set(linked)) == tables
        own = {f"tables/{file.name}" for file in four.parent.glob(f"tables/*{ending}")}
        assert own - {"tables/about_columns.csv"} == set(linked)


def test_tables_of_two_datasets_and_of_one_section_have_names_of_their_own(report: Report) -> None:
    planned = [
        row(agent, task, dataset=dataset, attempt=attempt)
        for agent in ("codex", "kimi_cli")
        for task in TASKS
        for dataset, attempt in (("one", 1), ("two", 2))
    ]
    page = report(planned, {p.key: record(p) for p in planned})
    names = {file.stem for file in page.parent.glob("tables/same-model*.tex")}
    assert names == {"same-model", "same-model_2", "same-model-2", "same-model_2-2"}


def test_a_csv_file_has_the_number_behind_each_figure_and_the_ends_of_each_interval(four: Path) -> None:
    with (four.parent / "tables" / "leaderboard.csv").open(newline="") as file:
        first = next(csv.DictReader(file))
    assert (first["agent"], first["AMS"], first["AMS (number)"]) == ("codex", "0.494", "0.49375")
    assert (first["0 to 1 (low)"], first["0 to 1 (high)"]) == ("0.4", "0.775")
    assert (first["passed"], first["passed (beneath)"]) == ("4/7", "0.25-0.84")
    with (four.parent / "tables" / "about_columns.csv").open(newline="") as file:
        meanings = {(line["file"], line["column"]): line["meaning"] for line in csv.DictReader(file)}
    assert meanings["leaderboard.csv", "reward"].startswith("mean over the tasks planned")


def test_columns_of_one_title_are_named_after_what_they_belong_to() -> None:
    titles = ("SD", "rate", "SD", "AMS", "SD", "SD", "")
    table = filed([Value("x")] * 7, columns=tuple(Column(title, text=True) for title in titles))
    heads = files([table])["tables/a-table.csv"].decode().splitlines()[0].split(",")
    assert heads == ["SD", "rate", "rate: SD", "AMS", "AMS: SD", "AMS: SD 2", "column"]


def test_no_cell_of_a_csv_file_is_a_formula(attacked: Path) -> None:
    cells = 0
    for path in attacked.glob("*.csv"):
        with path.open(newline="") as file:
            for cell in (cell for line in csv.reader(file) for cell in line):
                cells += 1
                assert cell.isprintable()
                assert not re.search(r"(\A|;)\s*[=@]", cell)
                assert not re.match(r"[+-]", cell) or re.fullmatch(r"-|[+-]?[\d.]+(e[+-]\d+)?%?", cell), cell
    assert cells > 500


def test_no_name_of_others_is_a_command_in_latex(attacked: Path) -> None:
    """Each row keeps the table's columns, and each command is of our layout or an escape."""
    for path in attacked.glob("*.tex"):
        text = path.read_text()
        commands = set(re.findall(r"\\([a-zA-Z]+)", text.replace(r"\\", "").split("\n", 1)[1]))
        others = {each for each in commands if not OURS.fullmatch(each) and not each.startswith("text")}
        assert others <= {"Delta", "ldots", "times", "leq", "geq"}, path.name
        parts = 1 + text.count("(continued)")
        assert text.count(r"\begin{") == text.count(r"\end{") == 2 * parts
        heads, *rows = re.findall(r"(.*) \\\\\n", text)
        ampersand = r"(?<!\\)&"
        assert {len(re.findall(ampersand, line)) for line in rows} <= {len(re.findall(ampersand, heads))}
        assert not re.search(
            r"(?<!\\)[#%$_^~]", "".join(re.findall(r"\\\\\n(?!\\)(.*)", text)).replace("$-$", "")
        )
        assert text.isascii()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a_b & 5% #1 {x}", r"a\_b \& 5\% \#1 \{x\}"),
        ("\\", r"\textbackslash{}"),
        ("[1] *", "{[}1{]} {*}"),
        ("--help", "-{}-help"),
        ("?`", r"?{}\textasciigrave{}"),
        ("Δ ≥ é 任", r"$\Delta$ $\geq$ é (U+4EFB)"),
        ("a\n\nb", r"a\textbackslash{}n\textbackslash{}nb"),
    ],
)
def test_signs_of_latex_are_shown(text: str, shown: str) -> None:
    assert escaped(text) == shown


@given(st.text())
def test_every_text_is_one_line_in_which_only_braces_of_pairs_stand(text: str) -> None:
    shown = escaped(text)
    assert len(shown.splitlines()) <= 1
    bare = re.sub(r"\\[{}$&#%_]", "", shown)
    depth = 0
    for sign in bare:
        depth += {"{": 1, "}": -1}.get(sign, 0)
        assert depth in (0, 1)
    assert depth == 0
    assert not set(bare) & set("&#%_^")


def test_a_negative_figure_has_a_minus_sign() -> None:
    assert [figure(text) for text in ("-25.0%", "-.5", "0.40-0.78", "-x")] == [
        r"$-$25.0\%",
        "$-$.5",
        "0.40-0.78",
        "-x",
    ]


def test_a_group_of_rows_names_its_subject_once() -> None:
    rows = [
        [Value(model), Value(str(at), float(at), "0.1-0.2" if at else "")] for at, model in enumerate("xxy")
    ]
    given_table = filed(*rows)
    lines = latex(given_table._replace(table=given_table.table._replace(grouped=True))).splitlines()
    body = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    small = r" & {\scriptsize 0.1\textendash{}0.2} \\"
    assert body == [r"x & 0 \\", r" & 1 \\", small, r"\midrule", r"y & 2 \\", small]


def test_all_scores_stand_in_one_table_as_in_the_paper(four: Path) -> None:
    """To accept a change, write the new text into the file."""
    assert (four.parent / "tables" / "main-table.tex").read_text() == SNAPSHOT.read_text()


def test_no_value_is_the_best_of_a_column_with_a_bound(report: Report) -> None:
    planned = [row(agent, task) for agent in ("codex", "kimi_cli") for task in TASKS]
    records = {p.key: record(p) for p in planned}
    records[planned[0].key] = records[planned[0].key].model_copy(update={"cost_usd": None})
    table = (report(planned, records).parent / "tables" / "main-table.tex").read_text()
    codex, kimi = (next(line for line in table.splitlines() if name in line) for name in ("codex", "kimi"))
    assert r"\textbf{6/6}" in codex
    assert r"& \textgreater{}=0.012 & \textgreater{}=0.733 & \textbf{1.000} & \textgreater{}=0.867 &" in codex
    assert r"& 0.015 & 0.800 & \textbf{1.000} & 0.900 &" in kimi
    assert kimi.endswith(r"& \textasciitilde{}0.000 \\"), "the other may be as good"


def pages(table: FiledTable) -> list[str]:
    """Return the parts of a table in LaTeX, each from its beginning to its end."""
    return re.findall(r"\\begin\{(?:sideways)?table\}.*?\\end\{(?:sideways)?table\}", latex(table), re.DOTALL)


def test_a_long_table_continues_with_its_heads_and_without_its_caption() -> None:
    rows = [[Value(f"row-{number}"), Value("1", 1.0, "0.5-0.9")] for number in range(200)]
    parts = pages(filed(*rows))
    assert [r"\caption" in part for part in parts] == [True, *[False] * (len(parts) - 1)]
    assert len(parts) > 200 * 2 * 11 / 550
    assert all("\\toprule\na & b \\\\" in part for part in parts)
    assert re.findall(r"row-\d+", "".join(parts)) == [f"row-{number}" for number in range(200)]


def test_a_table_too_wide_to_be_read_lies_on_its_side_and_names_the_package() -> None:
    columns = [Column(f"column {at}") for at in range(12)]
    narrow, wide = (filed([Value("x" * size)] * 12, columns=columns) for size in (2, 9))
    assert r"\begin{table}" in latex(narrow)
    assert "rotating" not in latex(narrow)
    assert r"\begin{sidewaystable}" in latex(wide)
    assert latex(wide).startswith(r"% Needs \usepackage{booktabs,graphicx,rotating}.")


def test_heads_that_are_longer_than_their_columns_are_broken_between_words() -> None:
    columns = (Column("model", text=True), Column("easy TierScore"), Column("no pass at all", text=True))
    table = filed([Value("gpt"), Value("0.5"), Value("eight or nine")], columns=columns)
    heads = latex(table).splitlines()[8]
    assert heads == r"model & \shortstack[r]{easy\\TierScore} & \shortstack[l]{no pass at\\all} \\"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no TeX here")
def test_pdflatex_sets_every_table_within_the_page_whatever_is_in_it(attacked: Path, tmp_path: Path) -> None:
    many = [[Value(HOSTILE[n % 6] * 2), Value("1", 1.0, "0.5-0.9"), *[Value("x")] * 9] for n in range(150)]
    heads = [Column(f"a column {at}", "Its meaning. " * at, text=True) for at in range(11)]
    for name, count in (("long", 2), ("long-and-wide", 11)):
        own = filed(*(line[:count] for line in many), columns=heads[:count])
        (tmp_path / f"{name}.tex").write_text(latex(own._replace(name=name)))
    tables = (*sorted(attacked.glob("*.tex")), *sorted(tmp_path.glob("*.tex")))
    inputs = "".join(f"\\input{{{path}}}\\clearpage\n" for path in tables)
    start = r"\documentclass{article}\usepackage{booktabs,rotating}\begin{document}\listoftables"
    (tmp_path / "all.tex").write_text(f"{start}\n{inputs}\\end{{document}}")
    order = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "all.tex"]
    for _ in range(2):  # the second time with the list of tables
        ended = subprocess.run(
            order, cwd=tmp_path, capture_output=True, text=True, check=False, errors="replace"
        )
        assert ended.returncode == 0, ended.stdout[-2000:]
    _, *after_inputs = ended.stdout.split("(./all.lot)")
    wide = re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide\) in paragraph", "".join(after_inputs))
    assert not [points for points in wide if float(points) > MARGIN], ended.stdout[-2000:]
    assert "too large for page" not in ended.stdout


MARGIN = 72
"""Points that LaTeX's `article` leaves beside its text. A long name in a caption may stand out into them."""
