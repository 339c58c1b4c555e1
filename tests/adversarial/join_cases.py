"""Right answers of joins to spoil, for problems.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import matchwood
from adversarial.cases import Case, drawn
from matchwood import check

WORDS = ("database", "databases", "systems", "system", "graph", "graphs", "join", "joins")
DELTAS = (0.3, 0.5, 1.0)


def fuzzy_join_cases(engine: str | None = None) -> Iterator[Case]:
    rng = np.random.default_rng(drawn())
    for k in range(6):
        sets = [
            rng.choice(WORDS, int(rng.integers(0, 4)), replace=False).tolist() for _ in range(9)
        ]
        options: dict[str, Any] = {"delta": DELTAS[k % 3]}
        found = matchwood.fuzzy_join(sets, engine=engine, **options)
        yield Case(
            len(sets), None, {"left": found.left, "right": found.right, "score": found.score},
            lambda fields: (fields["left"], fields["right"], fields["score"]),
            lambda x, s=sets, o=options: check.check_fuzzy_join(x, s, **o),
        )  # fmt: skip
