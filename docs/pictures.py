"""Draw the pictures of the problem pages: `python docs/pictures.py FOLDER`.

They are the same as in `matchwood demo`, the matching of two records, and the layout of a graph
on ranks.
"""

from __future__ import annotations

import sys
from pathlib import Path

from matchwood.report import joins, layouts
from matchwood.report.problems import PROBLEMS


def draw(folder: Path) -> list[Path]:
    """Write one SVG for each drawing of each problem; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for problem in PROBLEMS:
        if problem.picture is None:
            continue
        for number, drawing in enumerate(problem.picture().drawings):
            path = folder / f"{problem.short}{number or ''}.svg"
            drawing.save(path)
            written.append(path)
    path = folder / "join.svg"
    joins.example().save(path)
    written.append(path)
    for name, made in (("layout", layouts.drawing()), ("ranks", layouts.ownership())):
        path = folder / f"{name}.svg"
        made.save(path)
        written.append(path)
    return written


if __name__ == "__main__":
    print("\n".join(map(str, draw(Path(sys.argv[1])))))
