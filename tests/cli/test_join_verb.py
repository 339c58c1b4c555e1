"""`matchwood join`: files in, pairs and a page out."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest
from typer.testing import CliRunner

from matchwood.cli import app
from matchwood.cli.sets import read, safe_cell
from support import run_verb as run
from support import run_verb_json as run_json

TABLE = 'id,tags,shop\n1,red;blue,a\n2,blue;red,a\n3,=cmd|x;red,b\n4,"=cmd|x;reds",b\n'


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "a.csv"
    path.write_text(TABLE)
    return path


def test_pairs_a_file_and_a_page(table: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "pairs.csv", tmp_path / "page.html"
    facts = run_json(
        "join", str(table), "--on", "tags", "--delta", "0.4", "--check", "-o", str(out),
        "--html", str(page),
    )  # fmt: skip
    assert facts["pairs"] == 2
    assert facts["checked"] is True
    assert facts["records"] == [4]
    rows = list(csv.reader(out.open()))
    assert rows[0] == ["left", "right", "score", "left_set", "right_set"]
    assert rows[1] == ["0", "1", "1.0", "red; blue", "blue; red"]
    assert rows[2][3:] == ["'=cmd|x; red", "'=cmd|x; reds"]  # no spreadsheet runs it
    text = page.read_text()
    assert "The best pairs" in text
    assert "Closest to the threshold" in text
    assert "<svg" in text


def test_groups_best_pairs_and_estimates(table: Path) -> None:
    named = ("join", str(table), "--on", "tags")
    assert run_json(*named, "--by", "shop", "--top", "1")["pairs"] == 1
    assert run_json(*named, "--per-left", "1")["pairs"] == 4
    assert run_json(*named, "--estimate", "--delta", "0.4")["estimate"]["pairs"] == 2
    assert "about 2" in run(*named, "--estimate", "--delta", "0.4").stdout
    assert "best pairs" in run(*named).stdout


def test_files_of_every_kind(tmp_path: Path, table: Path) -> None:
    lines = tmp_path / "lines.txt.gz"
    lines.write_bytes(gzip.compress(b"red;blue\nblue;red\n\ngreen\n"))
    assert run_json("join", str(lines))["pairs"] == 1
    fimi = tmp_path / "items.dat"
    fimi.write_text("1 2 3\n2 3 4\n1 2 3\n")
    assert run_json("join", str(fimi), "--similarity", "equal", "--delta", "0.5")["pairs"] == 3
    tabs = tmp_path / "b.tsv"
    tabs.write_text("words\tn\nred;blue\t1\n")
    found = run_json("join", str(table), str(tabs), "--on", "tags", "--right-on", "words")
    assert found["records"] == [4, 1]
    assert found["pairs"] == 2
    other = tmp_path / "pipes.csv"
    other.write_text("id|tags\n1|red;blue\n2|blue;red\n")
    assert run_json("join", str(other), "--on", "tags")["pairs"] == 1


def test_only_ends_of_lines_end_records(tmp_path: Path) -> None:
    """Other characters that Python takes for ends of lines are text."""
    path = tmp_path / "lines.txt"
    path.write_bytes("red;blue\r\nsea\u2028side;a\x85b\n\n\x0csea;x\x1ey\nblue;red".encode())
    lines = ["red;blue", "sea\u2028side;a\x85b", "", "\x0csea;x\x1ey", "blue;red"]
    assert read(path, None).data == lines
    out = tmp_path / "pairs.csv"
    assert run_json("join", str(path), "-o", str(out))["records"] == [5]
    assert list(csv.reader(out.open()))[1][:2] == ["0", "4"]


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (b"tags,n\na;b,1,2\n", "a.csv", "line 2: 3 cells, but there are 2 columns"),
        (b"tags,tags\na,b\n", "a.csv", "a column comes twice"),
        (b"", "a.csv", "no line with the names"),
        (b"tags\n\xff\xfe\n", "a.csv", "line 2: not UTF-8"),
        (b"broken", "a.csv.gz", "damaged"),
        (b"tags\na\n", "a.dat", "only csv, tsv and parquet"),
        (b"other\na\n", "a.csv", "has no column 'tags'"),
    ],
)
def test_bad_files_are_told(tmp_path: Path, text: bytes, name: str, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(text)
    result = CliRunner().invoke(app, ["join", str(path), "--on", "tags"])
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_table_asks_for_its_column(table: Path, tmp_path: Path) -> None:
    """Else ids and prices would be compared as parts of sets, and the header as one of them."""
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"id": [1, 2], "tags": ["a", "b"]}), tmp_path / "a.parquet")
    packed = tmp_path / "b.csv.gz"
    packed.write_bytes(gzip.compress(TABLE.encode()))
    for path in (table, packed, tmp_path / "a.parquet"):
        result = CliRunner().invoke(app, ["join", str(path)])
        assert result.exit_code == 2
        assert "--on" in result.stderr
        assert "id, tags" in " ".join(result.stderr.split())


def test_bad_options_are_told(table: Path, tmp_path: Path) -> None:
    for options, message in (
        (("-o", str(tmp_path / "x.txt")), "must end in .csv"),
        (("--html", str(tmp_path / "x.csv")), "must end in .html"),
        (("--delta", "2"), "delta must be"),
        (("--by", "none"), "has no column 'none'"),
        (("--limit", "0"), "limit is 0"),
        (("--right-on", "id"), "--right-on names a column of B"),
        (("--estimate", "--top", "3"), "--top is for the join itself"),
        (("--estimate", "-o", str(tmp_path / "x.csv")), "-o is for the join itself"),
        (("--estimate", "--check"), "--check is for the join itself"),
        (("-o", str(table)), "that is an input, which would be lost"),
    ):
        result = CliRunner().invoke(app, ["join", str(table), "--on", "tags", *options])
        assert result.exit_code == 2
        assert message in result.stderr


def test_cells_that_a_spreadsheet_would_run() -> None:
    for text in ("=1+1", "+1", "-1", "@sum", "\tx"):
        assert safe_cell(text).strip('"').startswith("'")
    assert safe_cell("plain") == "plain"
    assert safe_cell('a "b", c') == '"a ""b"", c"'


def test_nothing_in_a_file_steers_a_terminal(tmp_path: Path) -> None:
    """Records went to the screen with their escape sequences."""
    path = tmp_path / "a.txt"
    path.write_text("[/red];\x1b[31ma\x00b;\x9bx\n" * 2)
    result = run("join", str(path))
    assert "[/red]" in result.stdout
    assert not set(result.stdout) & set("\x1b\x00\x9b")
    result = CliRunner().invoke(app, ["join", str(tmp_path / "\x1b[31m.txt")])
    assert result.exit_code == 2
    assert "\x1b" not in result.stderr


def test_a_line_of_text_is_a_set(tmp_path: Path) -> None:
    path = tmp_path / "sets.txt"
    path.write_text("a;b\nc\n")
    assert read(path, None).data == ["a;b", "c"]


def test_parquet(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    lists = [["red", "blue"], ["blue", "red"], None]
    table = pyarrow.table({"lists": lists, "tags": ["red;blue", "blue;red", None]})
    parquet.write_table(table, path)
    for column in ("lists", "tags"):
        assert run_json("join", str(path), "--on", column)["pairs"] == 1
