"""Arrays of the host between ranks of one host: through memory that all of them have mapped.

A rank writes what it has to say into its part of a board and raises its flag.  When all flags are
up, each rank reads what it needs where it lies: lengths, data of others, or the parts of a sum.  No
library copies anything in between, and one meeting does what takes MPI two (lengths, then data).

    board.py          the memory: how ranks get it, and who writes where
    cpu_flags.py      raising a flag, and looking at those of the others
    cpu_copies.py     copying what is large, by the threads of a rank
    communicator.py   the operations
"""

from matchwood.engines.ranks.networks.shared.communicator import Shared as Shared
from matchwood.engines.ranks.networks.shared.communicator import (
    among_neighbours as among_neighbours,
)
