"""No option of a public function, however odd, is accepted wrongly, ignored or hard to understand.

The values and what may come of them are in odd_options.py, the calls that they spoil in
option_calls.py.  Some seconds in an order drawn from the seed; hours by MATCHWOOD_ATTACK_SECONDS.
"""

from __future__ import annotations

import inspect
import time

import numpy as np
import pytest

import matchwood as mw
from adversarial import odd_options, option_calls, public_calls
from adversarial.children import faults_of
from adversarial.clock import seconds, seed
from adversarial.odd_options import allowed
from test_house_public import PUBLIC

ENGINES_ONLY = {"Graph", "DistributedGraph", "dist.Communicator", "dist.Serial", "dist.Traffic"}
"""Classes with methods for the engines, which pass what was checked.  Users call some: METHODS."""


def test_every_public_function_and_method_is_attacked():
    """One that is new must be given a call: in public_calls.py, ARGUMENTS or METHODS."""
    functions = {name for name, value in PUBLIC.items() if not inspect.isclass(value)}
    known = set(public_calls.table()) | {f"matchwood.{name}" for name in option_calls.ARGUMENTS}
    assert functions <= known
    assert {f"matchwood.{name}" for name in option_calls.ARGUMENTS} <= functions
    methods = {
        f"{name.removeprefix('matchwood.')}.{method}"
        for name, value in PUBLIC.items()
        if inspect.isclass(value) and name.removeprefix("matchwood.") not in ENGINES_ONLY
        for method, body in inspect.getmembers_static(value)
        if not method.startswith("_") and inspect.isfunction(body)
        and len(inspect.signature(body).parameters) > 1
    }  # fmt: skip
    assert methods <= set(option_calls.METHODS)


def test_every_parameter_is_attacked():
    """What is left out is there, and says why."""
    left_out = {(name, parameter) for name, parameter in odd_options.NOT_DRAWN}
    for name, parameter in left_out:
        assert parameter in inspect.signature(option_calls.call_of(name).function).parameters
    assert all(odd_options.NOT_DRAWN.values())


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_odd_options_get_an_error_that_names_them_or_a_right_answer():
    end = time.time() + seconds(6)
    found = faults_of("odd_options.py", str(end), str(seed()))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("check.is_pagerank", {"nonsense": 1}), ("warmup", {"report": 3}),
        ("check.check_label_propagation", {"nonsense": 1, "replay": True}),
        ("pseudo_peripheral_vertex", {"vertex": 10**5000}),
        ("generators.random_geometric", {"radius": 1e308}),
        ("generators.random_geometric", {"degree": "x" * 5000}),
        ("primitives.path_scan.path_scan", {"op": len}),
        ("io.write", {"base": odd_options.Unequal()}), ("louvain", {"max_rounds": 2**63 - 1}),
        ("Collection.beside", {"other": 3}), ("collection", {"separator": odd_options.Unequal()}),
        ("traffic_histograms", {"engine": "auto"}), ("sensing.archive_writer", {"each": 0}),
        ("check.check_sensing", {"anonymize": 3}), ("sense", {"source": np.array(3)}),
    ],
)  # fmt: skip
def test_options_that_are_easily_overlooked(name, given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # calls go to a folder of theirs: back from there at the end
    assert odd_options.outcome(name, given) == ""


@pytest.mark.parametrize(
    ("annotation", "value", "right"),
    [
        ("int", 3, True), ("int", np.int8(3), True), ("int", True, False), ("int", 3.0, False),
        ("int | None", None, True), ("int", None, False), ("float", 3, True), ("float", "3", False),
        ("bool", 1, False), ("str", b"cpu", False), ("Any", object(), True),
        ("int", np.timedelta64(3, "s"), False), ("Callable[[str], object] | None", 3, False),
        ("Callable[[Any, int | None], object] | None", len, True), ("tuple[int, ...]", 3, True),
    ],
)  # fmt: skip
def test_what_an_annotation_allows(annotation: str, value: object, right: bool):
    assert allowed(annotation, value) == right


def test_faults_are_seen(monkeypatch):
    """The search must be able to fail."""

    def careless(A, *, rounds: int = 5, engine: str | None = None) -> int:
        if rounds == "nonsense":
            raise ValueError("invalid literal")
        if isinstance(rounds, list):
            A.data[0] = 7
        if rounds == 9:
            raise OverflowError("too large")
        return 1 if engine == "reference" and rounds == 2 else 0

    call = option_calls.OptionCall(careless, {"A": public_calls.matrix().copy()}, ("careless",))
    monkeypatch.setattr(odd_options, "call_of", lambda name: call)
    told = {
        "nonsense": "without the function's name", 9: "OverflowError", 2: "the reference says",
        3.5: "accepted ['rounds']",
    }  # fmt: skip
    for value, why in told.items():
        assert why in odd_options.outcome("careless", {"rounds": value})
    assert "the input was changed" in odd_options.outcome("careless", {"rounds": []})
    assert odd_options.outcome("careless", {"rounds": 4}) == ""


@pytest.mark.parametrize("ranks", [10**6, 2**63, 10**30, 4097])
def test_more_ranks_than_can_be_started_are_refused(ranks: int):
    with pytest.raises(ValueError, match=r"^run: ranks must be at most \d+"):
        mw.dist.run(lambda comm: comm.rank, ranks)


def test_ranks_that_cannot_be_started_end_those_that_were(monkeypatch):
    from matchwood.engines.ranks import threads as running

    begun = running._Rank.start

    def start(rank):
        if rank.name.endswith(" 3"):
            raise RuntimeError("can't start new thread")
        begun(rank)

    monkeypatch.setattr(running._Rank, "start", start)
    with pytest.raises(mw.EngineUnavailable, match=r"^run: only 3 of 8 ranks could be started"):
        mw.dist.run(lambda comm: comm.barrier(), 8)
