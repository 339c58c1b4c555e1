"""The helpers of the tests themselves."""

from __future__ import annotations

import pytest

from support import looped


def test_a_failure_in_a_loop_names_its_case() -> None:
    seen = []

    @looped("kind", ["a", "b"])
    @looped(("n", "m"), [(1, 2), (3, 4), (5, 6)])
    def body(kind: str, n: int, m: int) -> None:
        seen.append((kind, n, m))
        assert (kind, m) != ("b", 4)

    with pytest.raises(AssertionError) as caught:
        body()
    assert seen == [("a", 1, 2), ("a", 3, 4), ("a", 5, 6), ("b", 1, 2), ("b", 3, 4)]
    assert caught.value.__notes__ == ["in the case {'m': 4, 'n': 3}", "in the case {'kind': 'b'}"]


@looped("n", [1, 2])
def test_other_arguments_are_fixtures(n: int, tmp_path: object) -> None:
    assert tmp_path is not None
    assert n in (1, 2)
