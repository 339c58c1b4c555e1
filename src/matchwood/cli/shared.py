"""Options that nearly every verb has, as one argument of its function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from matchwood.cli.options import Check, Compact, Engine, Json, Output, Read, Threads


class Shared(NamedTuple):
    """Where a verb runs, how it reads the graph, and what it does with the answer."""

    engine: str | None
    threads: int | None
    check: bool
    compact: bool
    read: list[str] | None
    output: Path | None
    as_json: bool


_OPTIONS: dict[str, tuple[Any, Any]] = {
    "engine": (Engine, None),
    "threads": (Threads, None),
    "check": (Check, False),
    "compact": (Compact, False),
    "read": (Read, None),
    "output": (Output, None),
    "as_json": (Json, False),
}


def with_shared(command: Callable[..., None]) -> Callable[..., None]:
    """Turn the last argument of `command`, a `Shared`, into options of the command line."""
    hints = get_type_hints(command, include_extras=True)
    own = list(inspect.signature(command).parameters.values())[:-1]
    shown = [parameter.replace(annotation=hints[parameter.name]) for parameter in own]
    for name, (kind, default) in _OPTIONS.items():
        option = inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
        )
        shown.append(option)

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        shared = Shared(*(options.pop(name) for name in _OPTIONS))
        command(*arguments, **options, shared=shared)

    del run.__wrapped__  # type: ignore[attr-defined]  # Typer would look at that one's arguments
    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run
