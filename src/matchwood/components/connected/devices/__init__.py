"""Connected components of graphs larger than a device, and on several devices.

Afforest (M. Sutton, T. Ben-Nun, A. Barak. IPDPS 2018. doi:10.1109/IPDPS.2018.00012), of which each
step sends as little as it can.  First two neighbours of each row travel, and join
most vertices to one large component.  Then only the rows of vertices outside it travel whole; where
the pattern is not known to be symmetric, all rows do.

Each device joins the rows of its partition in a forest of all vertices.  The devices tell each
other the edges of their forests, after each of the two steps.  Roots are the smallest vertices of
their trees, so the forest is the same on every device then.

Read on in rounds.py, cpu.py (simulated devices), gpu.py and gpu.cu.
"""

from __future__ import annotations

from matchwood.components.connected.devices.rounds import label

__all__ = ["label"]
