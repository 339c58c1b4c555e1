"""Right answers pass every check, in every form; spoiled ones do not.

One element, or one field, of a right answer is changed at random, by value, shape or kind.  Where
the result is no answer, by the definition or because there is just one, the check must refuse it:
with `CheckFailed`, or with TypeError where it cannot be an answer at all.  Nothing else may come
out.  MATCHWOOD_ATTACK_SECONDS is the time for each problem.  spoiled_answers.py, run as a program,
spoils a hundred thousand of each on many processes.
"""

from __future__ import annotations

import numpy as np
import pytest

from adversarial.clock import attempts
from adversarial.problems import CHECKS, PROBLEMS
from adversarial.spoiled_answers import cases, one_spoiled, shard
from adversarial.spoiling import FORMS
from matchwood import check, registry
from support import some

BATCH = 50  # spoiled answers between two looks at the clock
SECONDS = 0.1
SLOW = {"dissection", "layered order", "linear forest", "partition", "refinement"}  # to check


def test_every_check_is_asked():
    elsewhere = {"check_multilevel"}  # tests/preconditioners/test_multilevel.py
    asked = CHECKS | elsewhere
    assert asked == {name for name in check.__all__ if name.startswith("check_")}
    assert asked >= {name for entry in registry.PROBLEMS for name in entry.checks}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_spoiled_answers_are_refused(problem):
    rng = np.random.default_rng(list(PROBLEMS).index(problem))
    done = 0
    faults: dict[tuple[str, str], str] = {}
    for _ in attempts(SECONDS, draws=BATCH):
        for _ in range(BATCH):
            made = one_spoiled(problem, rng)
            if made is None:
                continue
            fault = made.fault()
            done += 1
            if fault is not None:
                faults.setdefault((made.name, made.way), f"{fault}: {made.told()}")
    assert not faults, "\n".join(faults.values())
    assert done > 0


def test_a_check_that_accepts_anything_is_seen(monkeypatch):
    """The test above, and the program, must be able to fail."""
    for case in cases("connected components"):
        monkeypatch.setattr(case, "check", lambda answer: None)
    rng = np.random.default_rng(1)
    assert "accepted" in {
        made.fault() for _ in range(9) if (made := one_spoiled("connected components", rng))
    }
    cases.cache_clear()
    told = shard(("connected components", 0, 30))
    assert (told.spoiled, told.accepted, told.otherwise, told.faults) == (30, 0, 0, [])


@pytest.mark.parametrize("problem", some(PROBLEMS, SLOW))
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


@pytest.mark.parametrize("problem", some(PROBLEMS, SLOW))
def test_right_answers_of_every_engine_pass(problem, engine):
    for case in PROBLEMS[problem](engine=engine):
        case.check(case.build(case.fields))
