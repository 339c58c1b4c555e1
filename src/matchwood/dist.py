"""Many processes, one graph: communicators, and graphs distributed over their ranks.

    with mw.dist.world() as comm:        # MPI if started under it, else one rank
        ...
    mw.dist.run(function, ranks=4)       # ranks that are threads of this process

Implementation: engines/ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchwood._lazy import attach as _attach

_HOMES = {
    "world": "matchwood.engines.ranks.opening",  # the ranks this program was started with
    "run": "matchwood.engines.ranks.threads",  # call a function on ranks that are threads
    "describe": "matchwood.engines.ranks.description",  # hosts, CPUs, GPUs, settings
    "Communicator": "matchwood.engines.ranks.protocol",  # one rank's end of a group of ranks
    "Serial": "matchwood.engines.ranks.protocol",  # a communicator of one rank
    "Traffic": "matchwood.engines.ranks.protocol",  # bytes and messages of a rank
}

__all__ = list(_HOMES)

if TYPE_CHECKING:
    from matchwood.engines.ranks.description import describe as describe
    from matchwood.engines.ranks.opening import world as world
    from matchwood.engines.ranks.protocol import Communicator as Communicator
    from matchwood.engines.ranks.protocol import Serial as Serial
    from matchwood.engines.ranks.protocol import Traffic as Traffic
    from matchwood.engines.ranks.threads import run as run
else:
    __getattr__, __dir__ = _attach(__name__, _HOMES)
