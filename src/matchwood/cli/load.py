"""The graph that a verb works on: a file, or a generator with its arguments."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matchwood
from matchwood.cli.output import progress
from matchwood.report.timing import Clock, clock


@dataclass(frozen=True)
class Loaded:
    """A SciPy matrix, what it was called on the command line, and how long it took."""

    name: str
    matrix: Any
    clock: Clock
    ids: Any = None  # what the file calls the vertices, where it was read with compact or names

    def vertex(self, text: str) -> int:
        """The number of the vertex that was typed: by its id in the file, where there are ids."""
        import numpy as np

        if self.ids is None:
            if not text.removeprefix("-").isdecimal():
                raise ValueError(f"a vertex is a number, got {text!r}")
            return int(text)
        found = np.flatnonzero(np.asarray(self.ids).astype(str) == text)
        if found.size == 0:
            raise ValueError(f"{self.name} has no vertex {text!r}")
        return int(found[0])


def load(
    text: str, *, compact: bool = False, pattern: bool = False, read: Iterable[str] | None = None
) -> Loaded:
    """The graph named by a GRAPH argument: a path, or ``generator:arguments``."""
    name, colon, arguments = text.partition(":")
    ids = None
    if colon and not Path(text).exists() and name in generators():
        with clock() as taken, progress(f"making {name}"):
            matrix = make(name, split(arguments))
            if pattern:
                matrix.data[:] = 1
    else:
        options = keywords("read", matchwood.io.read, read or ())
        options.update({"compact": True} if compact else {})
        options.update({"pattern": True} if pattern else {})
        with clock() as taken, progress(f"reading {text}"):
            matrix = matchwood.io.read(text, **options)
        if isinstance(matrix, tuple):
            matrix, ids = matrix
    return Loaded(text, matrix, taken, ids)


NO_GRAPHS = ("packets", "random_points", "random_weights")  # what else the generators make


def generators() -> dict[str, Callable[..., Any]]:
    """Every generator of graphs by name."""
    from matchwood import generators as family

    return {name: getattr(family, name) for name in family.__all__ if name not in NO_GRAPHS}


def make(name: str, words: Iterable[str], **extra: Any) -> Any:
    """Call a generator with arguments as they were typed: ``16``, ``rng=3``, ``shape=30x40``."""
    known = generators()
    if name not in known:
        raise ValueError(f"there is no generator {name!r}; there are {', '.join(sorted(known))}")
    function = known[name]
    words = list(words)
    signature = inspect.signature(function)
    positional = [parsed(word) for word in words if "=" not in word]
    named = keywords(name, function, (word for word in words if "=" in word))
    named.update({key: value for key, value in extra.items() if key in signature.parameters})
    try:
        signature.bind(*positional, **named)
    except TypeError as error:
        arguments = " ".join(as_typed(p) for p in signature.parameters.values())
        raise ValueError(f"{name}: {error}; its arguments are {arguments}") from None
    made = function(*positional, **named)
    return made.get() if hasattr(made, "get") else made  # engine=gpu makes it there


def keywords(name: str, function: Callable[..., Any], words: Iterable[str]) -> dict[str, Any]:
    """Words like ``rng=3`` as keyword arguments of a function."""
    parameters = inspect.signature(function).parameters
    named: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        key = key.replace("-", "_")
        if key == "seed" and "seed" not in parameters:
            key = "rng"
        if not equals:
            raise ValueError(f"{name}: expected name=value, got {word!r}")
        if key not in parameters:
            raise ValueError(f"{name} has no argument {key!r}; it has {', '.join(parameters)}")
        named[key] = parsed(value)
    return named


def as_typed(parameter: inspect.Parameter) -> str:
    """An argument as it is typed on the command line."""
    if parameter.default is inspect.Parameter.empty:
        return parameter.name
    default = parameter.default
    return f"{parameter.name}={getattr(default, '__name__', default)}"


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
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
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
