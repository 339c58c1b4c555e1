"""The functions that NetworkX may call, by name, and how often it has."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

CALLS: Counter[str] = Counter()
"""Calls that reached this backend, by name.  NetworkX answers itself what it is refused, and tells
nobody but its log; this shows which answers were ours."""


def dispatched(function: F) -> F:
    """Count the calls of a function that NetworkX dispatches to."""

    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        CALLS[function.__name__] += 1
        return function(*args, **kwargs)

    return counted  # type: ignore[return-value]
