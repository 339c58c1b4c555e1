"""Right answers pass every check, in every form; spoiled ones do not.

One element, or one field, of a right answer is changed at random, by value, shape or kind.  Where
the result is no answer, by the definition or because there is just one, the check must refuse it:
with `CheckFailed`, or with TypeError where it cannot be an answer at all.  Nothing else may come
out.  MATCHWOOD_ATTACK_SECONDS is the time for each problem; MATCHWOOD_ATTACK_ANSWERS=100000 goes on
until so many were spoiled.  `pytest -s` tells how many there were.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np
import pytest

import matchwood
from adversarial.clock import attempts
from adversarial.problems import PROBLEMS, Case
from adversarial.spoiling import FORMS, KINDS, spoils

BATCH = 50  # spoiled answers between two looks at the clock
SECONDS = 0.1
WANTED = int(os.environ.get("MATCHWOOD_ATTACK_ANSWERS", "0"))  # for each problem, at least

LOOSE = {
    ("rms_wavefront", "float"),
    ("weights", "float"),
    ("graph.indices", "long"),  # a matrix of SciPy's may have room for more entries
    ("graph.data", "long"),
    ("B.data", "float"),
    ("B.data", "complex"),
    ("B.data", "truth"),
}
"""(field, way) that leave the same number in a form that may pass."""


@functools.cache
def cases(problem: str) -> list[Case]:
    return list(PROBLEMS[problem]())


def refused(case: Case, fields: dict[str, Any]) -> str | None:
    """What is wrong with how the check takes these fields; None when it refuses them."""
    try:
        case.check(case.build(fields))
    except matchwood.CheckFailed as error:
        return None if str(error) else "no reason is given"
    except TypeError as error:
        return None if str(error).startswith("check_") else f"TypeError: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


def one_spoiled(problem: str, rng: np.random.Generator) -> tuple[Case, str, str, Any] | None:
    """A case, a field, a way and the spoiled value; None when the answer is still right."""
    case = cases(problem)[int(rng.integers(len(cases(problem))))]
    name = list(case.fields)[int(rng.integers(len(case.fields)))]
    ways = spoils(case.fields[name])
    way = list(ways)[int(rng.integers(len(ways)))]
    value = ways[way](case.fields[name], rng, case.n)
    if value is None or (name, way) in LOOSE:
        return None
    if way not in KINDS and case.is_right({**case.fields, name: value}):
        return None
    return case, name, way, value


@pytest.mark.parametrize("problem", PROBLEMS)
def test_spoiled_answers_are_refused(problem, record_property):
    rng = np.random.default_rng(list(PROBLEMS).index(problem))
    done = 0
    faults: dict[tuple[str, str], str] = {}
    clock = attempts(SECONDS)
    while done < WANTED or next(clock, None) is not None:
        for _ in range(BATCH):
            spoiled = one_spoiled(problem, rng)
            if spoiled is None:
                continue
            case, name, way, value = spoiled
            fault = refused(case, {**case.fields, name: value})
            done += 1
            if fault is not None:
                was = case.fields[name]
                faults.setdefault((name, way), f"{fault}\n    was {was!r}\n    is {value!r}")
    record_property("refused", done)
    print(f"{problem}: {done} spoiled answers")
    assert not faults, "\n".join(f"{key}: {text}" for key, text in faults.items())
    assert done > 0


@pytest.mark.parametrize("problem", PROBLEMS)
def test_right_answers_pass_in_every_form(problem):
    """Two forms for each answer, in turn: there are more answers than forms."""
    forms = list(FORMS.values())
    for k, case in enumerate(cases(problem)):
        case.check(case.build(case.fields))
        for name, value in case.fields.items():
            if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu" or "." in name:
                continue
            for convert in (forms[k % len(forms)], forms[(k + 3) % len(forms)]):
                other = convert(value)
                if np.array_equal(other, value):  # it fits
                    case.check(case.build({**case.fields, name: other}))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_right_answers_of_every_engine_pass(problem, engine):
    for case in PROBLEMS[problem](engine=engine):
        case.check(case.build(case.fields))
