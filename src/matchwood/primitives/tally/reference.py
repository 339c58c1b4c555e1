"""The weight of each label in a row, in a dictionary."""

from __future__ import annotations

from typing import Any


def weights_of_labels(indptr: Any, indices: Any, data: Any, labels: Any, v: int) -> dict[int, Any]:
    """K(v, c) for every label c of a neighbour; an entry counts 1 where `data` is None."""
    found: dict[int, Any] = {}
    for k in range(int(indptr[v]), int(indptr[v + 1])):
        label = int(labels[indices[k]])
        weight = 1 if data is None else data[k].item()
        found[label] = found.get(label, 0) + weight
    return found
