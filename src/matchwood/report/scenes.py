"""The graphs on which the demo and `matchwood bench` run every problem."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import matchwood
from matchwood import generators


@dataclass(frozen=True)
class Scene:
    """A graph, its name, and why it is here."""

    name: str
    about: str
    matrix: Any

    @functools.cached_property
    def graph(self) -> matchwood.Graph:
        """The matrix, prepared."""
        return matchwood.graph(self.matrix)


Maker = tuple[str, str, Callable[[], Any]]


def demo(size: str = "full", every: bool = True) -> Iterator[Scene]:
    """A few kinds of graph, large enough to time; `size` "tiny" is for tests.

    Without `every` two of them, quickly made, of one type and a million entries.
    """
    tiny = size == "tiny"
    scale = 7 if tiny else 17 if every else 15
    side, depth, points = (12, 5, 200) if tiny else (700, 48, 150_000)
    makers: list[Maker] = [
        (
            f"R-MAT {scale}",
            "Few vertices have very many neighbours, most have few, as in social networks.",
            lambda: generators.rmat(scale, rng=1),
        ),
        (
            f"grid {side} x {side}",
            "A vertex and its four neighbours in the plane: the longest paths of all these.",
            lambda: generators.grid((side, side)),
        ),
        (
            f"mesh {depth}^3",
            "A cube of cells, each joined to the 26 around it, as in a solid body.",
            lambda: generators.mesh((depth,) * 3),
        ),
        (
            f"Delaunay {points:,}",
            "Random points in the plane, triangulated; neighbours lie far apart in memory.",
            lambda: generators.delaunay(points, rng=1),
        ),
        (
            f"geometric {points:,}",
            "Random points joined when close: hundreds of separate parts.",
            lambda: generators.random_geometric(points, degree=6.0, rng=1),
        ),
        (
            f"anisotropic {side // 2} x {side // 2}",
            "A matrix: nine-point stencil of a problem that is strong along one diagonal.",
            lambda: generators.aniso(2, (side // 2, side // 2)),
        ),
    ]
    yield from _made(*(makers if every else (makers[0], makers[4])))


def standard() -> Iterator[Scene]:
    """The four graphs of the benchmarks, made by matchwood.generators."""
    yield from _made(
        ("R-MAT 18", "skewed degrees", lambda: generators.rmat(18, rng=1)),
        ("grid 1000 x 1000", "long and thin", lambda: generators.grid((1000, 1000))),
        ("mesh 64^3", "many neighbours each", lambda: generators.mesh((64,) * 3)),
        ("Delaunay 300,000", "no locality", lambda: generators.delaunay(300_000, rng=1)),
    )


def _made(*makers: Maker) -> Iterator[Scene]:
    for name, about, make in makers:
        yield Scene(name, about, make())
