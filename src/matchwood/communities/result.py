"""What the functions of this family return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from matchwood import arguments, engines


@dataclass(frozen=True, eq=False)
class Communities:
    """Communities of a graph; unpacks as ``count, labels``.

    Attributes
    ----------
    count : int
        Number of communities.
    labels : (n,) integer array
        ``labels[v]`` is the community of v: 0, 1, ... in the order of their smallest vertices.
    modularity : float
        What `modularity` says of them, at the resolution of the call.
    levels : int
        Graphs that were looked at: the given one and those that were contracted.
    rounds : int
        Passes over the vertices, on all levels together.
    seconds : dict
        Time by phase.
    """

    count: int
    labels: Any
    modularity: float = 0.0
    levels: int = 1
    rounds: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.count, self.labels))

    def sizes(self) -> Any:
        """Number of vertices of each community.

        Examples
        --------
        >>> import matchwood
        >>> matchwood.louvain((5, [[0, 1], [1, 2], [0, 2], [3, 4]])).sizes().tolist()
        [3, 2]
        """
        count = arguments.count("Communities.sizes", "count", self.count)
        labels = arguments.integers(
            "Communities.sizes", "labels", self.labels, low=0, high=max(count - 1, 0)
        )
        return engines.xp(labels).bincount(labels.astype(np.int64, copy=False), minlength=count)
