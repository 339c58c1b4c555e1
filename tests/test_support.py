"""The helpers of the tests themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support import in_time, looped, until


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


def test_the_best_of_some_tries_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    times: Iterator[float | None] = iter([5.0, None, 0.2, 0.05])
    in_time(lambda: next(times), 0.1)
    assert next(times, None) is None
    in_time(lambda: None, 0.1)  # it ends before one can measure it
    monkeypatch.setattr("support.PATIENCE_SECONDS", 0.0)
    with pytest.raises(AssertionError, match=r"never below 0.1 s, at best 5.000 of 1 tries"):
        in_time(lambda: 5.0, 0.1)
    with pytest.raises(AssertionError, match="it did not come"):
        until(lambda: False)
