"""The CPU engine: a team of threads that runs one kernel, as a GPU runs a grid.

Read team.py first (what a kernel sees), then crew.py (threads, waiting, Ctrl-C), atomics.py,
compiled.py (decorators), code.py (where machine code comes from), jit.py (compiling) and cache.py
(where it is kept, and which files are trusted).

    from matchwood.engines.cpu import barrier, crew, kernel, share

    @kernel
    def double(team, x):
        lo, hi = share(team, x.size)
        for i in range(lo, hi):
            x[i] *= 2

    crew(threads, work=x.size).run(double, x)
"""

from matchwood.engines.cpu.atomics import (
    atomic_add,
    atomic_cas,
    atomic_exchange,
    atomic_max,
    atomic_min,
    atomic_or,
    load_acquire,
    load_relaxed,
    store_relaxed,
    store_release,
)
from matchwood.engines.cpu.cache import cache_folder, user_cache
from matchwood.engines.cpu.compiled import device, expanded, inlined, kernel
from matchwood.engines.cpu.cpus import available_cpus, default_threads, most_threads
from matchwood.engines.cpu.crew import (
    Crew,
    counting,
    crew,
    crew_for_step,
    on_progress,
    tell_progress,
    watching,
)
from matchwood.engines.cpu.team import (
    Team,
    advance,
    back_off,
    barrier,
    expect,
    fail,
    interrupted,
    next_chunk,
    share,
    share_rows,
    stopping,
)
from matchwood.engines.cpu.workspace import workspace

__all__ = [
    "Crew",
    "Team",
    "advance",
    "atomic_add",
    "atomic_cas",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "available_cpus",
    "back_off",
    "barrier",
    "cache_folder",
    "counting",
    "crew",
    "crew_for_step",
    "default_threads",
    "device",
    "expanded",
    "expect",
    "fail",
    "inlined",
    "interrupted",
    "kernel",
    "load_acquire",
    "load_relaxed",
    "most_threads",
    "next_chunk",
    "on_progress",
    "share",
    "share_rows",
    "stopping",
    "store_relaxed",
    "store_release",
    "tell_progress",
    "user_cache",
    "watching",
    "workspace",
]
