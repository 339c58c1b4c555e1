"""Calls of the problems of registry.py, with the data that the names of parameters ask for.

A problem whose function takes nothing else has its calls from here; for the others see
public_calls.py, sensing_calls.py and option_calls.py.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import matchwood as mw
from adversarial.wrong_arrays import Call
from matchwood import check, registry


@functools.cache
def packets() -> tuple[Any, Any]:
    return mw.generators.packets(60, "zipf", hosts=12, rng=4)


DATA: dict[str, Callable[[Any], Any]] = {  # of a pair, by the names of parameters
    "src": lambda pair: pair[0],
    "dst": lambda pair: pair[1],
    "source": lambda pair: pair,
    "traffic": lambda pair: pair,
}
EXAMPLES = {name for entry in registry.PROBLEMS for name in entry.example}


def entries() -> list[registry.Entry]:
    """The problems whose data is known by name."""
    return [entry for entry in registry.PROBLEMS if data_of(getattr(mw, entry.function))]


def data_of(function: Any) -> tuple[str, ...]:
    """The parameters that take data, where all of them are known."""
    if not inspect.isfunction(function):
        return ()
    wanted = inspect.signature(function).parameters.values()
    named = tuple(one.name for one in wanted if one.name in DATA)
    needed = {one.name for one in wanted if one.default is one.empty}
    return named if needed <= set(named) | EXAMPLES else ()


def arguments() -> dict[str, Callable[[], dict[str, Any]]]:
    """Arguments of a right call by name: of the functions, and of checks that ask for an answer."""
    found: dict[str, Callable[[], dict[str, Any]]] = {}
    for entry in entries():
        found[entry.function] = lambda entry=entry: _given(entry, packets())
        for name in entry.checks:
            found[f"check.{name}"] = lambda entry=entry, name=name: _asked(entry, name, packets())
    return found


def calls() -> dict[str, Callable[[], list[Call]]]:
    """Calls with arrays to spoil, by the public names: of functions, results and checks."""
    found: dict[str, Callable[[], list[Call]]] = {}
    for entry in entries():
        found[f"matchwood.{entry.function}"] = lambda entry=entry: [_call(entry)]
        for name in entry.also:
            found[f"matchwood.{name}"] = lambda entry=entry: [_call(entry, repr)]
        for name in entry.checks:
            found[f"matchwood.check.{name}"] = lambda entry=entry, name=name: [_check(entry, name)]
    return found


def _call(entry: registry.Entry, read: Callable[[Any], Any] = lambda answer: answer) -> Call:
    def verify(answer: Any, *pair: Any) -> None:
        for name in entry.checks:
            getattr(check, name)(**_asked(entry, name, pair, answer))

    def answer(*pair: Any) -> Any:
        return read(getattr(mw, entry.function)(**_given(entry, pair)))

    return Call(answer, packets(), verify=None if read is repr else verify)


def _check(entry: registry.Entry, name: str) -> Call:
    answer = getattr(mw, entry.function)(**_given(entry, packets()))
    return Call(lambda *pair: getattr(check, name)(**_asked(entry, name, pair, answer)), packets())


def _given(entry: registry.Entry, pair: Any) -> dict[str, Any]:
    named = data_of(getattr(mw, entry.function))
    return {**{name: DATA[name](pair) for name in named}, **entry.example}


def _asked(entry: registry.Entry, name: str, pair: Any, answer: Any = None) -> dict[str, Any]:
    """What a check is asked: the data, an answer of the function, its options."""
    given = {**_given(entry, pair), "packets": pair}
    answer = getattr(mw, entry.function)(**_given(entry, pair)) if answer is None else answer
    wanted = inspect.signature(getattr(check, name)).parameters.values()
    needed = [one.name for one in wanted if one.name in given or one.default is one.empty]
    return {name: given.get(name, answer) for name in needed}
