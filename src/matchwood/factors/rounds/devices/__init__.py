"""Rounds of proposals on graphs larger than a device, and on several devices.

Rows travel once.  While they pass, the k strongest edges of each are packed into a list.  In a
later round a vertex proposes to those of its list that have room, and are of the other charge where
charges are on.  Where its list does not hold as many as it may propose to, its row travels again:
the new list has the strongest neighbours with room.

Each device has the proposals of all vertices, and how many neighbours each has; lists and weights
of its own alone.  After a round the devices tell each other the new proposals; which of them are
confirmed follows on every device.

Read on in rounds.py (the rounds), cpu.py (the steps, on simulated devices), gpu.py and gpu.cu.
"""

from __future__ import annotations

from matchwood.factors.rounds.devices.rounds import find

__all__ = ["find"]
