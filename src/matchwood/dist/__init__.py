"""Many processes, one graph: communicators, and graphs laid out over their ranks.

    with mw.dist.world() as comm:        # MPI if started under it, else one rank
        ...
    mw.dist.run(function, ranks=4)       # ranks that are threads of this process

Read protocol.py first (what a rank may ask of the others), then threads/ and start/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchwood._lazy import attach as _attach

_HOMES = {
    "world": "matchwood.dist.start.opening",  # the ranks that this program was started with
    "run": "matchwood.dist.threads.running",  # call a function on ranks that are threads
    "describe": "matchwood.dist.start.description",  # hosts, CPUs, GPUs, libraries and settings
    "Communicator": "matchwood.dist.protocol",  # one rank's end of a group of ranks
    "Serial": "matchwood.dist.serial",  # a communicator of one rank
    "Traffic": "matchwood.dist.traffic",  # bytes and messages of a rank
}

__all__ = list(_HOMES)

if TYPE_CHECKING:
    from matchwood.dist.protocol import Communicator as Communicator
    from matchwood.dist.serial import Serial as Serial
    from matchwood.dist.start.description import describe as describe
    from matchwood.dist.start.opening import world as world
    from matchwood.dist.threads.running import run as run
    from matchwood.dist.traffic import Traffic as Traffic
else:
    __getattr__, __dir__ = _attach(__name__, _HOMES)
