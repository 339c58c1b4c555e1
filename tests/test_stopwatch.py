"""Seconds by phase."""

import time

from matchwood.stopwatch import Stopwatch


def test_a_phase_that_comes_again_adds_up(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    watch = Stopwatch()
    for phase, seconds in (("gather", 1.0), ("verify", 2.0), ("gather", 4.0)):
        now[0] += seconds
        watch.lap(phase)
    now[0] += 8.0
    watch.go_on()
    now[0] += 16.0
    watch.lap("verify")
    assert watch.seconds == {"gather": 5.0, "verify": 18.0}
