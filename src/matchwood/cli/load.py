"""The graph that a verb works on: a file, or a generator with its arguments."""

from __future__ import annotations

import ast
import inspect
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Loaded:
    """A SciPy matrix, what it was called on the command line, and how long it took."""

    name: str
    matrix: Any
    seconds: float


def load(text: str, *, compact: bool = False) -> Loaded:
    """The graph named by a GRAPH argument: a path, or ``generator:arguments``."""
    from matchwood.cli.progress import progress

    start = time.perf_counter()
    name, colon, arguments = text.partition(":")
    if not Path(text).exists() and colon and name in generators():
        with progress(f"making {name}"):
            matrix = make(name, split(arguments))
    else:
        import matchwood

        with progress(f"reading {text}"):
            matrix = (
                matchwood.io.read(text, compact=compact) if compact else matchwood.io.read(text)
            )
    return Loaded(text, matrix, time.perf_counter() - start)


def generators() -> dict[str, Callable[..., Any]]:
    """Every public generator by name."""
    from matchwood import generators as family

    return {name: getattr(family, name) for name in family.__all__}


def make(name: str, words: Iterable[str], **extra: Any) -> Any:
    """Call a generator with arguments as they were typed: ``16``, ``seed=3``, ``shape=30x40``."""
    known = generators()
    if name not in known:
        raise ValueError(f"there is no generator {name!r}; there are {', '.join(sorted(known))}")
    function = known[name]
    parameters = inspect.signature(function).parameters
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            positional.append(parsed(word))
            continue
        key = key.replace("-", "_")
        if key == "seed" and "seed" not in parameters:
            key = "rng"
        if key not in parameters:
            raise ValueError(f"{name} has no argument {key!r}; it has {', '.join(parameters)}")
        named[key] = parsed(value)
    named.update({key: value for key, value in extra.items() if key in parameters})
    try:
        inspect.signature(function).bind(*positional, **named)
    except TypeError as error:
        raise ValueError(f"{name}{inspect.signature(function)}: {error}") from None
    return function(*positional, **named)


def parsed(text: str) -> Any:
    """A typed value: number, true or false, none, a shape like 30x40, a list, else the word."""
    known = {"true": True, "false": False, "yes": True, "no": False, "none": None}
    if text.lower() in known:
        return known[text.lower()]
    sides = text.split("x")
    if len(sides) > 1 and all(side.isdecimal() for side in sides):
        return tuple(int(side) for side in sides)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def split(text: str) -> list[str]:
    """``a,b=(1,2),c`` at the commas outside brackets."""
    words, depth, word = [], 0, ""
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            words.append(word)
            word = ""
        else:
            word += letter
    words.append(word)
    return [word.strip() for word in words if word.strip()]
