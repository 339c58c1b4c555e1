"""The weights along which a directed factor proposes: |a_ij|, without diagonal and zeros."""

from __future__ import annotations

from matchwood import engines
from matchwood.gate.graph import Graph, View
from matchwood.primitives.symmetrize import magnitudes


def directed_magnitudes(G: Graph, caller: str) -> View:
    """|a_ij| for every stored entry off the diagonal that is not zero."""
    view = G.heaviest_weights(caller)
    finite = abs(view.data) < float("inf")  # false for NaN
    if not bool(finite.all()):
        at = int(finite.argmin())
        row = int(engines.moved(view.indptr, "cpu").searchsorted(at, "right")) - 1
        raise ValueError(
            f"{caller}: weights must be finite, got {float(view.data[at])} at row {row}, "
            f"column {int(view.indices[at])}"
        )
    return View(*magnitudes(*view))
