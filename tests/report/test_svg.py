"""The SVG writer: valid XML, bounded, and what was asked for is in it."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
import scipy.sparse as sp

from matchwood.report import pictures, svg
from matchwood.report.svg import Svg

SPACE = "{http://www.w3.org/2000/svg}"


def parts(picture: Svg, kind: str) -> list[ET.Element]:
    return ET.fromstring(picture.markup()).findall(f".//{SPACE}{kind}")


def test_an_empty_picture_is_valid() -> None:
    root = ET.fromstring(Svg(30, 20, "a <title> & more").markup())
    assert root.get("viewBox") == "0 0 30 20"
    title = root.find(f"{SPACE}title")
    assert title is not None
    assert title.text == "a <title> & more"


def test_points_of_one_colour_are_one_path() -> None:
    picture = Svg(10, 10)
    picture.dots(np.array([[1.0, 2.0], [3.5, 4.126]]), color="#fff", radius=2)
    (path,) = parts(picture, "path")
    assert path.get("d") == "M1 2h0M3.5 4.13h0"
    assert path.get("stroke-width") == "4"


def test_nothing_to_draw_leaves_no_trace() -> None:
    picture, nothing = Svg(10, 10), np.empty((0, 2))
    picture.dots(nothing)
    picture.segments(nothing, nothing)
    picture.line(nothing)
    picture.boxes([], color="#000")
    assert parts(picture, "path") == []


def test_text_is_escaped() -> None:
    picture = Svg(10, 10)
    picture.text(1, 2, "a < b & c")
    assert parts(picture, "text")[0].text == "a < b & c"


def test_saved_picture_can_be_read(tmp_path) -> None:
    Svg(5, 5, "ü").save(tmp_path / "p.svg")
    assert ET.parse(tmp_path / "p.svg").getroot().tag == f"{SPACE}svg"


@pytest.mark.parametrize("values", [[], [4], [1, 2, 3], list(range(1000)), [7, 7, 7]])
def test_steps_of_colour(values: list[int]) -> None:
    step, shades = svg.steps(values)
    assert step.size == len(values)
    assert len(shades) <= 24
    assert all(0 <= k < len(shades) for k in step)
    assert all(len(shade) == 7 and shade.startswith("#") for shade in shades)
    assert np.all(np.diff(step[np.argsort(values)]) >= 0)


GRAPHS = {
    "one vertex": sp.csr_array((1, 1)),
    "no edges": sp.csr_array((5, 5)),
    "pair": sp.csr_array([[0, 1], [1, 0]]),
    "rectangular": sp.csr_array(np.ones((3, 7))),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_matrix_pictures_of_awkward_graphs(name: str) -> None:
    A = GRAPHS[name]
    ET.fromstring(pictures.spy(A).markup())
    ET.fromstring(pictures.distribution(np.diff(A.indptr), "x", "y", "t").markup())


@pytest.mark.parametrize("name", ["one vertex", "no edges", "pair"])
def test_point_pictures_of_awkward_graphs(name: str) -> None:
    A = GRAPHS[name]
    n = A.shape[0]
    points = np.random.default_rng(0).random((n, 2))
    label = np.arange(n)
    ET.fromstring(pictures.coloured_parts(points, A, label).markup())
    level = np.full(n, -1)
    level[0] = 0
    parent = np.where(level == 0, 0, -1)
    ET.fromstring(pictures.mesh_levels(points, A, level, parent).markup())
    ET.fromstring(pictures.level_sizes(level).markup())


def test_ratios_show_every_value() -> None:
    picture = pictures.ratios([("a", [("g", 0.4), ("h", 130.0)]), ("b", [("g", 1.0)])], "title")
    texts = [element.text for element in parts(picture, "text")]
    assert {"0.4x", "130.0x", "1.0x", "a", "b", "g", "h"} <= set(texts)
