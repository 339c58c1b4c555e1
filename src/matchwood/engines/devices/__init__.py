"""Graphs larger than one GPU, and several GPUs: what the engines called `devices` share.

A user says `engine=matchwood.Devices(...)`.  The vertices are cut into partitions, one for each
device, and the rows of a partition into batches, which pass through two buffers.  While a row
passes, its first edges are packed into a list that stays on the device.  Later rounds read the
lists; a row travels again only when its list has run out.

    machine.py     `Devices`: which devices, how much memory, how many batches.  The machine behind
                   it; a ledger counts what each device holds, and no array is made without it
    plan.py        partitions, batches and lists; the memory that they need, before any work
    stats.py       what the result reports: entries, rows, words and seconds of each round
    sending.py     copies and kernels side by side, buffers in turn
    pinned.py      host memory that a device reads.  cpu.py: threads that fill it
    workers.py     what the workers of all problems share; words from one device to another

The rounds themselves are in the folder `devices` of each problem, their steps in gpu.py and gpu.cu
there.  Tests install another machine, with steps of its own (`machine.machine_of`).
"""

from __future__ import annotations

from matchwood.engines.devices.machine import Devices
from matchwood.engines.devices.stats import RoundStats, Stats

__all__ = ["Devices", "RoundStats", "Stats"]
