"""Graphs larger than one GPU, and several GPUs: what the engines called `devices` share.

A user says `engine=matchwood.Devices(...)`.  The vertices are cut into partitions, one for each
device, and the rows of a partition into batches, which pass through two buffers.  While a row
passes, its first edges are packed into a list that stays on the device.  Later rounds read the
lists; a row travels again only when its list has run out.

    machine.py     `Devices`: which devices, how much memory, how many batches.  Where they are:
                   CUDA's, or simulated ones in the memory of the host; a ledger counts what each
                   holds, and no array is made without it
    plan.py        partitions, batches and lists; the memory that they need, before any work
    stats.py       what the result reports: entries, rows, words and seconds of each round
    sending.py     copies and kernels side by side, buffers in turn
    pinned.py      host memory that a device reads.  cpu.py: threads that fill it
    workers.py     what the workers of all problems share; words from one device to another

The rounds themselves are in the folder `devices` of each problem: `__init__.py` there serves
CUDA's devices (gpu.py, gpu.cu) and simulated ones (cpu.py), which tests use.
"""

from __future__ import annotations

from matchwood.engines.devices.machine import Devices, simulated
from matchwood.engines.devices.stats import RoundStats, Stats

__all__ = ["Devices", "RoundStats", "Stats", "simulated"]
