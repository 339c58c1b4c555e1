"""Many processes, one graph: communicators, and graphs laid out over their ranks.

    with mw.dist.world() as comm:        # MPI if started under it, else one rank
        ...
    mw.dist.run(function, ranks=4)       # ranks that are threads of this process

How they are made: engines/ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchwood._lazy import attach as _attach

_HOMES = {
    "world": "matchwood.engines.ranks.start.opening",  # the ranks this program was started with
    "run": "matchwood.engines.ranks.threads.running",  # call a function on ranks that are threads
    "describe": "matchwood.engines.ranks.start.description",  # hosts, CPUs, GPUs, settings
    "Communicator": "matchwood.engines.ranks.protocol",  # one rank's end of a group of ranks
    "Serial": "matchwood.engines.ranks.serial",  # a communicator of one rank
    "Traffic": "matchwood.engines.ranks.traffic",  # bytes and messages of a rank
}

__all__ = list(_HOMES)

if TYPE_CHECKING:
    from matchwood.engines.ranks.protocol import Communicator as Communicator
    from matchwood.engines.ranks.serial import Serial as Serial
    from matchwood.engines.ranks.start.description import describe as describe
    from matchwood.engines.ranks.start.opening import world as world
    from matchwood.engines.ranks.threads.running import run as run
    from matchwood.engines.ranks.traffic import Traffic as Traffic
else:
    __getattr__, __dir__ = _attach(__name__, _HOMES)
