"""The stencil at every point, one entry after the other."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from matchwood.generators.stencils.plans import Plan

Array = np.ndarray[Any, Any]


def apply(plan: Plan, dtype: Any, threads: int | None = None) -> tuple[Array, Array, Array]:
    points = list(product(*(range(length) for length in plan.shape)))
    if plan.starts.size:
        points.sort(key=lambda point: (sum(point), point))
    number = {point: k for k, point in enumerate(points)}
    indptr, indices, data = [0], [], []
    for z, y, x in points:
        row = {}
        for (dz, dy, dx), w in zip(plan.offsets.tolist(), plan.values.tolist(), strict=True):
            column = number.get((z + dz, y + dy, x + dx))
            if column is not None:
                row[column] = w
        for column in sorted(row):
            indices.append(column)
            data.append(row[column])
        indptr.append(len(indices))
    index = plan.index
    return np.array(indptr, index), np.array(indices, index), np.array(data, dtype)
