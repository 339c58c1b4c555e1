"""The demo: every problem on every graph, all answers right, a page that stands on its own."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import matchwood
from matchwood.report import bench, demo, problems, scenes, show, timing


@pytest.fixture(scope="module")
def found() -> demo.Demo:
    return demo.run(size="tiny", every=True, threads=2)


@pytest.mark.slow
def test_a_short_demo_has_each_problem_once_and_tells_it_before_it_is_timed() -> None:
    told: list[demo.Row] = []
    found = demo.run(size="tiny", threads=2, show=told.append)
    names = [problem.name for problem in problems.PROBLEMS]
    assert [row.problem for row in told] == [row.problem for row in found.rows] == names
    assert {row.graph for row in told} == {place.name for place in found.places}
    assert all(row.prepared == 0 for row in told)
    assert all(min(row.prepared, row.raw) > 0 for row in found.rows)
    assert demo.wrong(found) == []
    assert len(found.sketches) == sum(problem.picture is not None for problem in problems.PROBLEMS)
    assert "right: " in show.line(told[0])
    title, times = list(show.tables(found))[1:]
    assert title.row_count == len(names)
    assert "SciPy" in str(times)


@pytest.mark.slow
def test_every_problem_on_every_graph(found: demo.Demo) -> None:
    pairs = {(row.problem, row.graph) for row in found.rows}
    assert len(found.places) >= 5
    assert pairs == {(p.name, place.name) for p in problems.PROBLEMS for place in found.places}
    assert demo.wrong(found) == []
    assert all(min(row.prepared, row.raw) > 0 for row in found.rows)
    assert all(row.scipy is None or row.scipy > 0 for row in found.rows)


def test_summary_says_all_right(found: demo.Demo) -> None:
    assert f"{len(found.rows)} answers, all of them right" in demo.summary(found)


def test_a_wrong_answer_is_told(found: demo.Demo) -> None:
    bad = dataclasses.replace(found.rows[0], verdict="parent of 3 is wrong")
    spoilt = dataclasses.replace(found, rows=[bad, *found.rows[1:]])
    assert "1 of them WRONG" in demo.summary(spoilt)
    assert "parent of 3 is wrong" in show.html(spoilt)
    assert not demo.as_dict(spoilt)["all_right"]


def test_a_wrong_algorithm_is_found() -> None:
    """The demo's row must notice a wrong answer, not only print one."""
    right = problems.PROBLEMS[1]

    def broken(G, threads):
        answer = right.ours(G, threads)
        labels = answer.labels.copy()
        labels[-1] = answer.count
        return dataclasses.replace(answer, count=answer.count + 1, labels=labels)

    scene = scenes.Scene("cycle", "", matchwood.generators.cycle(50))
    row = demo.row(dataclasses.replace(right, ours=broken), scene, threads=1, repeats=1)
    assert row.verdict != "right"


class Balance(HTMLParser):
    """Counts open elements, and collects what would be fetched."""

    EMPTY = ("meta", "br", "img", "link")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag, attrs) -> None:
        if tag not in self.EMPTY:
            self.open.append(tag)
        self.fetched += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def test_page_stands_on_its_own(found: demo.Demo) -> None:
    text = show.html(found)
    parser = Balance()
    parser.feed(text)
    assert parser.open == []
    assert parser.fetched == []
    assert "<script" not in text
    assert not re.search(r"url\(", text)
    assert "prefers-color-scheme: dark" in text
    for place in found.places:
        assert place.name in text
    drawings = sum(len(sketch.drawings) for _, sketch in found.sketches)
    assert text.count("<svg") == 1 + drawings + 2 * len(found.places)


def test_page_shows_pictures_first_and_says_why_something_is_slower(found: demo.Demo) -> None:
    slow = dataclasses.replace(found.rows[0], scipy=found.rows[0].prepared / 2)
    text = show.html(dataclasses.replace(found, rows=[slow, *found.rows[1:]]))
    assert text.index("<svg") < text.index("<table")
    assert text.index("<details>") < text.index("<table") < text.index("</details>")
    assert "SciPy follows one queue" in text
    assert f"CPU {show.milliseconds(slow.prepared)}" in text
    assert all(problem.slower for problem in problems.PROBLEMS if problem.scipy)


def test_tables_can_be_printed(found: demo.Demo) -> None:
    from rich.console import Console

    console = Console(width=140, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    for table in show.tables(found):
        console.print(table)
    text = console.export_text()
    assert text.count("right") >= len(found.rows)


def test_bench_refuses_unknown_problems() -> None:
    assert bench.choose([]) == list(problems.PROBLEMS)
    with pytest.raises(ValueError, match="no problem 'sorting'; there are bfs, components"):
        bench.choose(["sorting"])


def test_same_compares_all_arrays() -> None:
    G = matchwood.graph(matchwood.generators.cycle(9))
    one, other = matchwood.bfs(G, 0), matchwood.bfs(G, 1)
    assert problems.same(one, matchwood.bfs(G, 0, threads=2))
    assert not problems.same(one, other)


def test_turns_are_taken() -> None:
    calls: list[str] = []
    seconds = timing.take_turns(
        {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, repeats=3
    )
    assert calls == ["a", "b"] * 3
    assert set(seconds) == {"a", "b"}


def test_turns_stop_when_they_take_long() -> None:
    calls: list[int] = []
    timing.take_turns({"a": lambda: calls.append(1)}, repeats=100, at_most=-1.0)
    assert len(calls) == 1


def test_standard_graphs_are_the_four() -> None:
    names = [scene.name for scene in scenes.demo("tiny")]
    assert len(names) == len(set(names))
    for scene in scenes.demo("tiny"):
        assert scene.matrix.shape[0] == scene.matrix.shape[1]
        assert np.all(np.isfinite(scene.matrix.data))


# The second process


@pytest.fixture
def started(monkeypatch) -> list[tuple[str, subprocess.Popen[bytes]]]:
    """The folder and the process of every start: one that only waits for its input to end."""
    starts: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(folder: str, *how: object) -> subprocess.Popen[bytes]:
        wait = [sys.executable, "-c", "input()"]
        starts.append((folder, subprocess.Popen(wait, stdin=subprocess.PIPE)))
        return starts[-1][1]

    monkeypatch.setattr(demo, "_start_other", start)
    monkeypatch.setattr(demo, "available_cpus", lambda: 2)
    seconds = iter(range(1000))
    monkeypatch.setattr(demo, "seconds_compiling", lambda: next(seconds))
    return starts


def test_it_is_started_once_and_never_outlives_the_block(started) -> None:
    with demo.helped("tiny", False, 1) as reach:
        assert not started
        reach(0)
        reach(1)
        [(folder, other)] = started
        assert other.poll() is None
    assert other.poll() is not None
    assert not os.path.exists(folder)
    with pytest.raises(KeyboardInterrupt), demo.helped("tiny", False, 1) as reach:
        reach(0)
        raise KeyboardInterrupt
    assert started[-1][1].poll() is not None


def test_there_is_none_where_nothing_was_compiled_or_can_be_kept(started, monkeypatch) -> None:
    with monkeypatch.context() as kept, demo.helped("tiny", False, 1) as reach:
        kept.setattr(demo, "seconds_compiling", lambda: 0.0)
        reach(0)
    monkeypatch.setattr(demo, "cache_folder", lambda: None)
    with demo.helped("tiny", False, 1) as reach:
        reach(0)
    assert not started


def test_a_problem_of_the_other_is_waited_for(started) -> None:
    with demo.helped("tiny", False, 1) as reach:
        reach(0)
        [(folder, other)] = started
        assert demo._taken(folder, 5)
        assert not demo._taken(folder, 0)
        timer = threading.Timer(0.3, Path(demo._done(folder, 5)).touch)
        timer.start()
        reach(5)
        assert os.path.exists(demo._done(folder, 5))
        assert demo._taken(folder, 6)
        other.kill()  # then nothing is waited for
        reach(6)


@pytest.mark.slow
def test_it_compiles_from_the_last_on_until_they_meet(found: demo.Demo, tmp_path: Path) -> None:
    last = len(problems.PROBLEMS) - 1
    assert demo._taken(str(tmp_path), last - 1)
    other = demo._start_other(str(tmp_path), "tiny", False, 1)
    assert other is not None
    with other:
        assert other.wait(300) == 0
    names = {str(last - 1), str(last), f"{last} done"}
    assert {path.name for path in tmp_path.iterdir()} == names


@pytest.mark.slow
def test_it_ends_with_the_first(tmp_path: Path) -> None:
    other = demo._start_other(str(tmp_path), "tiny", False, 1)
    assert other is not None
    with other:
        assert other.stdin is not None
        other.stdin.close()
        assert other.wait(60) != 0
