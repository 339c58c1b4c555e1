"""Every real file reads with the rows, columns and entries that the folder's README states."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchwood

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = Path(os.environ.get("MATCHWOOD_DATA", ROOT.parent / "shared" / "data"))

# What the table does not say of a file: airports are named by codes in columns 2 and 4
OPTIONS: dict[str, dict[str, Any]] = {
    "openflights_routes.dat.gz": {"names": True, "columns": (2, 4)}
}


def stated() -> list[Any]:
    """(file, rows, columns, entries, options) of every row of the README's tables."""
    readme = FOLDER / "README.md"
    if not readme.is_file():
        reason = f"no data folder at {FOLDER}; set MATCHWOOD_DATA"
        return [pytest.param("", 0, 0, 0, {}, marks=pytest.mark.skip(reason=reason))]
    rows = []
    for line in readme.read_text(encoding="utf-8").splitlines():
        match = re.match(r"\| ((?:graphs|matrices)/\S+) \|", line)
        size = re.search(r"\| (\d+) x (\d+)(?:, (\d+)| dense)? \|", line)
        if match and size:
            name = match[1]
            n, columns = int(size[1]), int(size[2])
            entries = int(size[3] or n * columns)
            options = OPTIONS.get(Path(name).name, {})
            if "rows = distinct ids" in line:
                options = {"compact": True}
            rows.append(pytest.param(name, n, columns, entries, options, id=name))
    return rows


@pytest.mark.parametrize(("name", "rows", "columns", "entries", "options"), stated())
def test_size(name: str, rows: int, columns: int, entries: int, options: dict[str, Any]) -> None:
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{name} is in the table but not in the folder")
    result = matchwood.io.read(path, **options)
    A = result.matrix if isinstance(result, matchwood.io.Compacted) else result
    assert A.shape == (rows, columns)
    assert A.nnz == entries
    assert A.indices.dtype == np.int32
    assert A.has_canonical_format


def test_nothing_is_left_out(data_folder: Path) -> None:
    """Every file of the two folders is in the table, or holds names."""
    listed = {param.id for param in stated()}
    present = {
        f"{path.parent.name}/{path.name}"
        for part in ("graphs", "matrices")
        for path in (data_folder / part).iterdir()
    }
    assert present - listed == {"graphs/debian12_names.txt.gz"}
    assert len(matchwood.io.read_names(data_folder / "graphs/debian12_names.txt.gz")) == 63459


@pytest.mark.slow
def test_weights_and_ids(data_folder: Path) -> None:
    graphs = data_folder / "graphs"
    A = matchwood.io.read(graphs / "USA-road-d.NY.gr.gz")
    assert A[0, 1] == 803
    assert (A != A.T).nnz == 0
    A, ids = matchwood.io.read(graphs / "wiki-Vote.txt.gz", compact=True)
    assert ids[0] == 3
    assert ids[-1] == 8297
    A, ids = matchwood.io.read(graphs / "as-caida20071105.txt.gz", compact=True)
    assert set(A.data.tolist()) == {-1, 0, 1, 2}
    A, ids = matchwood.io.read(graphs / "openflights_routes.dat.gz", names=True, columns=(2, 4))
    assert A.sum() == 67663
    assert np.unique(A.data).size == 15
    points = matchwood.io.read_coordinates(graphs / "USA-road-d.NY.co.gz")
    assert points.shape == (264346, 2)
    assert points[0].tolist() == [-73530767, 41085396]
    assert matchwood.io.read_coordinates(data_folder / "matrices/usroads_coord.mtx.gz").shape == (
        129164,
        2,
    )
