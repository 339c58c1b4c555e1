"""Chapter 5 of M. Mandulak's thesis on our collections: its tables and figures.

    python -m bench.papers.mandulak.join                          all collections that are there
    python -m bench.papers.mandulak.join --only "Yelp sample" -o yelp.json
    python -m bench.papers.mandulak.join --accuracy   table 5.2 and what bounds cost
    python -m bench.papers.mandulak.join --draw docs/_static/measured/join_chapter.json

Writes one JSON file, tables as csv and pictures as svg beside it.  With `--only` the others stay in
the file as they are.  `--draw` makes the tables and pictures of a file that is there.  The
measures: join_measures.py.  The thesis' figures: join_printed.py.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matchwood
from bench import harness
from bench.applications.join import data as sets
from bench.applications.join import generated
from bench.papers.mandulak import join_measures as measures
from bench.papers.mandulak import join_pictures as pictures
from bench.papers.mandulak import join_printed as thesis
from bench.papers.mandulak.join_methods import SEED

PERCENT = (20, 40, 60, 80, 100)
CLUSTERED = "generated, long sets"
MOST_EDIT = 150  # sets; edit similarity has weaker filters
# sets with many elements, or so short ones that no filter helps
FEWER_EDIT = {"mushroom": 100, "TREC abstracts": 40, "generated, long sets": 60}
MEMORY_OF = ("kosarak head", CLUSTERED)
PARTS = ("table 5.1", "runs", "edit", "table 5.2", "bounds", "ground truth", "memory")
OUT = harness.ROOT / "docs" / "_static" / "measured" / "join_chapter.json"


def part_of(name: str, percent: int = 100, most: int | None = None) -> sets.Data | None:
    """So many percent of a collection, after it was cut to the sets that take part."""
    if name == CLUSTERED:
        data: sets.Data | None = sets.Data(generated.clustered(600, 108, SEED, edited=(0.02, 0.2)))
    else:
        data = sets.that_takes_part(name) if most is None else sets.read(name)
    if data is None:
        return None
    if most is not None and len(data.left) > most:
        data = sets.cut(data, most, SEED)
    return data if percent == 100 else sets.sample(data, percent, SEED)


def measure(
    name: str, found: dict[str, Any], say: Any = print, only_accuracy: bool = False
) -> None:
    """All numbers of one collection, or those of table 5.2 and of bounds alone, into `found`."""
    whole, data = sets.read(name) if name != CLUSTERED else part_of(name), part_of(name)
    if whole is None or data is None:
        say(f"{name}: left out, its file is not in {sets.folder()}")
        return
    if only_accuracy:
        found["table 5.2"][name] = measures.accuracy(data, 50)
        found["bounds"][name] = measures.cost_of_bounds(data)
        return
    used = len(data.left) + len(data.right or [])
    found["table 5.1"][name] = {**measures.sizes(whole), "used": used}
    for percent in PERCENT:
        say(f"{name}: {percent} %")
        found["runs"][f"{name}, {percent} %"] = measures.times(_required(name, percent))
    say(f"{name}: edit similarity")
    few = _required(name, 100, FEWER_EDIT.get(name, MOST_EDIT))
    found["edit"][name] = measures.times(few, "edit")
    say(f"{name}: accuracy")
    found["table 5.2"][name] = measures.accuracy(data, 50)
    found["bounds"][name] = measures.cost_of_bounds(data)
    if data.truth is not None:
        found["ground truth"][name] = measures.against_truth(data)
    if name in MEMORY_OF:
        say(f"{name}: memory")
        found["memory"][name] = measures.memory(name, 100)


def known_before(path: Path) -> dict[str, Any]:
    """What the file holds, or the frame of it."""
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    return {"delta": measures.DELTA, **{part: {} for part in PARTS}}


def save(found: dict[str, Any], path: Path, names: list[str], begun: dict[str, Any] | None) -> None:
    """Write the file; collections in the order of `names`.

    `begun`: the machine at the beginning, where times are new.
    """
    for part in PARTS:
        order = {key: names.index(key.rpartition(", ")[0] if "%" in key else key)
                 for key in found[part]}  # fmt: skip
        found[part] = dict(sorted(found[part].items(), key=lambda item: order[item[0]]))
    if begun is not None:
        found["config"] = matchwood.show_config(mode="dicts")
        found["environment"] = begun
    found["figure 5.2"] = measures.profile(found["runs"])
    found["thesis"] = {
        "total": thesis.TOTAL, "verification": thesis.VERIFICATION, "edit": thesis.EDIT,
        "accuracy": thesis.ACCURACY, "memory": thesis.MEMORY, "data": thesis.DATA,
    }  # fmt: skip
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _required(name: str, percent: int, most: int | None = None) -> sets.Data:
    data = part_of(name, percent, most)
    assert data is not None
    return data


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="bench.papers.mandulak.join", description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )  # fmt: skip
    known = [*sets.MAKERS, CLUSTERED]
    parser.add_argument("--only", action="append", choices=known, help="these collections only")
    parser.add_argument("--accuracy", action="store_true", help="table 5.2 and bounds alone")
    parser.add_argument("-o", "--output", type=Path, default=OUT, help="the JSON file")
    parser.add_argument("--draw", type=Path, help="draw from this JSON file instead of measuring")
    chosen = parser.parse_args(arguments)
    path = chosen.draw or chosen.output
    begun = harness.environment()
    if chosen.draw is None:
        if chosen.only is None and not chosen.accuracy:
            path.unlink(missing_ok=True)
        for name in chosen.only or known:
            found = known_before(path)
            measure(name, found, lambda text: print(text, flush=True), chosen.accuracy)
            save(found, path, known, None if chosen.accuracy else begun)
    found = json.loads(path.read_text(encoding="utf-8"))
    for written in (*pictures.tables(found, path), *pictures.draw(found, path)):
        print(written)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
