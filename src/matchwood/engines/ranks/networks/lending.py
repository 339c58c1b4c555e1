"""Arrays that ranks lend each other, by CUDA IPC: each has those of all others mapped.

For ranks that share one GPU.  What was lent stays mapped as long as the rank keeps the `Lent` that
it got.  The lender keeps its arrays until no other rank has them mapped: each rank says which loans
are over on its side when something is lent again, and when the communicator ends.
"""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Sequence
from typing import Any

from matchwood.engines.ranks.networks.device import Cuda
from matchwood.engines.ranks.protocol import Communicator


class Lent:
    """What the ranks lent each other: ``arrays[rank]`` is the list of a rank."""

    def __init__(self, arrays: list[list[Any]]) -> None:
        self.arrays = arrays


class Lending:
    """The loans of a communicator, on one rank."""

    def __init__(self, base: Communicator, cuda: Cuda) -> None:
        self._base, self._cuda = base, cuda
        self._number = 0
        self._given: dict[int, Any] = {}  # own arrays that others may have mapped
        self._mapped: dict[int, list[int]] = {}  # of others, while this rank needs them

    def lend(self, arrays: Sequence[Any]) -> Lent | None:
        """See `Communicator.lend`; all ranks call it."""
        self._number += 1
        number, cuda = self._number, self._cuda
        over = [each for each in self._given if each not in self._mapped]
        problem, offered = "", []
        try:
            offered = [(*self._handle(each), each.size, each.dtype.str) for each in arrays]
            cuda.synchronize()  # what was written into them is there
        except cuda.errors() as error:
            problem = str(error)
        told = self._told((cuda.bus(), problem, over, offered))
        for each in set(over).intersection(*(theirs[2] for theirs in told)):
            del self._given[each]
        if len({theirs[0] for theirs in told}) > 1 or any(theirs[1] for theirs in told):
            return None
        self._given[number], self._mapped[number] = list(arrays), []
        problem, found = "", []
        try:
            for rank, (_, _, _, theirs) in enumerate(told):
                mine = rank == self._base.rank
                found.append(list(arrays) if mine else self._seen(number, theirs))
        except cuda.errors() as error:
            problem = str(error)
        if any(self._told(problem)):
            self._end(number)
            return None
        lent = Lent(found)
        weakref.finalize(lent, self._end, number).atexit = False  # CUDA may have ended by then
        return lent

    def _told(self, thing: Any) -> list[Any]:
        return [pickle.loads(each) for each in self._base.raw_bytes(pickle.dumps(thing))]

    def _handle(self, array: Any) -> tuple[bytes, int]:
        return self._cuda.exported(array) if array.size else (b"", 0)  # such lies nowhere

    def _seen(self, number: int, offered: list[Any]) -> list[Any]:
        """The arrays of another rank; memory that several lie in is mapped once."""
        begins: dict[bytes, int] = {}
        found = []
        for handle, offset, size, dtype in offered:
            if size == 0:
                found.append(self._cuda.empty(0, dtype))
                continue
            if handle not in begins:
                begins[handle] = self._cuda.mapped(handle)
                self._mapped[number].append(begins[handle])
            found.append(self._cuda.array_at(begins[handle] + offset, size, dtype))
        return found

    def _end(self, number: int) -> None:
        """This rank needs the arrays of the others no more."""
        pointers = self._mapped.pop(number, [])
        if pointers:
            self._cuda.synchronize()  # nothing reads them any more
        for pointer in pointers:
            self._cuda.unmapped(pointer)

    def close(self) -> None:
        """End all loans; all ranks call this together."""
        for number in list(self._mapped):
            self._end(number)
        if self._number:
            self._base.raw_barrier()  # nobody has own arrays mapped any more
        self._given.clear()
