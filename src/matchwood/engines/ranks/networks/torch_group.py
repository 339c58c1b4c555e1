"""A group of torch.distributed: programs under torchrun, and workers that Ray or Dask has started.

Read protocol.py and polled.py first.  All data travel by backends of Gloo that are made here,
whatever the program's own backend is; arrays on GPUs travel by NCCL (nccl.py), or through the host.
Notices are put into the store by which the processes found each other: each rank has keys of its
own there, and looks at them every few milliseconds while it waits.
"""

from __future__ import annotations

import base64
import datetime
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines.ranks.checks import Counts
from matchwood.engines.ranks.networks import staging
from matchwood.engines.ranks.networks.polled import Control, Path, Polled
from matchwood.engines.ranks.networks.staging import described, header
from matchwood.engines.ranks.protocol import Communicator, Session, Traffic

LOOK_SECONDS = 0.01  # between two looks for notices, each a request to the store
LAST_WORDS_SECONDS = 0.5  # to wait for a notice that says why a connection broke
BACKEND_SECONDS = 30  # that Gloo waits longer than this module, which can say for whom

_abandoned: list[Any] = []  # arrays and operations that never end: Gloo may still write to them
_opened = 0  # communicators of all ranks so far: each has keys of its own


class StoreControl(Control):
    """Notices in a store of torch.distributed."""

    def __init__(self, store: Any, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._store = store
        self._next = 1
        self._looked = 0.0
        self._backends: list[Any] = []

    def connected(self, path: Path, rank: int, size: int, patience: float) -> Any:
        """A backend of Gloo for the ranks of a communicator, which all call this.

        A group of torch.distributed would be sorted, and could not be made by its members alone.
        """
        import torch.distributed as dist

        store = dist.PrefixStore("gloo/" + "/".join(map(str, path)), self._store)
        wait = datetime.timedelta(seconds=patience + BACKEND_SECONDS)
        made = dist.ProcessGroupGloo(store, rank, size, wait)
        self._backends.append(made)
        return made

    def look(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        while self._store.check([f"{self.rank}/{self._next}"]):
            text = self._store.get(f"{self.rank}/{self._next}")
            self._next += 1
            self.hear(base64.b64decode(text))

    def send(self, rank: int, notice: bytes) -> None:
        number = self._store.add(f"{rank}/last", 1)
        self._store.set(f"{rank}/{number}", base64.b64encode(notice).decode())

    def finish(self) -> None:
        self._backends.clear()

    def abandon(self, held: Any) -> None:
        _abandoned.append((held, self._backends))


class Torch(Polled):
    """A rank of a group of torch.distributed; its backend `gloo` is of `StoreControl.connected`."""

    kind = "torch"
    cuda_aware = False  # Gloo reads the host's memory only

    def __init__(
        self,
        gloo: Any,
        members: Sequence[int],
        rank: int,
        control: StoreControl,
        path: Path = (),
        session: Session | None = None,
        traffic: Traffic | None = None,
    ) -> None:
        session = Session() if session is None else session
        super().__init__(rank, members, 1, control, path, session, traffic)
        self._gloo = gloo
        self._ear = control

    def _finish(self, works: Sequence[Any], *arrays: Any) -> None:
        """Wait for operations that were started; their errors are raised here."""
        self._held = (works, arrays)
        self.wait_until(lambda: all(work.is_completed() for work in works))
        try:
            for work in works:
                work.wait()
        except RuntimeError:  # a connection broke: perhaps its rank has sent a notice why
            self._hear_why()
            raise
        self._held = None

    def _hear_why(self) -> None:
        deadline = time.monotonic() + LAST_WORDS_SECONDS
        while time.monotonic() < deadline:
            self._control.look()
            self._raise_failures()
            time.sleep(LOOK_SECONDS)

    def raw_barrier(self) -> None:
        self.raw_lengths(0)

    def raw_lengths(self, length: int) -> Counts:
        return self.raw_gather(np.array([length], np.int64), np.ones(self.size, np.int64))

    def _swapped(self, pairs: Counts) -> Counts:
        twos = np.full(self.size, 2, np.int64)
        return self.raw_exchange(pairs.reshape(-1), twos, twos, 0).reshape(self.size, 2)

    @staging.through_host
    def raw_gather(self, array: Any, counts: Counts) -> Any:
        result = np.empty(int(counts.sum()), array.dtype)
        parts = np.split(result, np.cumsum(counts)[:-1])
        if result.size == 0:
            return result
        if int(counts.min()) == int(counts.max()):
            views, mine = [_tensor(part) for part in parts], _tensor(array)
            self._finish([self._gloo.allgather([views], [mine])], result, mine, views)
            return result
        parts[self.rank][:] = array
        self._finish([self._cast(part, k) for k, part in enumerate(parts) if part.size], result)
        return result

    def _cast(self, array: Any, root: int) -> Any:
        from torch.distributed import BroadcastOptions

        options = BroadcastOptions()
        options.rootRank = root
        return self._gloo.broadcast([_tensor(array)], options)

    @staging.through_host
    def raw_exchange(self, array: Any, sends: Counts, receives: Counts, total: int) -> Any:
        result = np.empty(int(receives.sum()), array.dtype)
        into, out = _tensor(result), _tensor(array)
        lengths = [(counts * array.itemsize).tolist() for counts in (receives, sends)]
        self._finish([self._gloo.alltoall_base(into, out, *lengths)], result, into, out)
        return result

    def raw_broadcast(self, array: Any, root: int) -> Any:
        head = header(array if self.rank == root else None)
        self._finish([self._cast(head, root)], head)
        on_gpu, dtype, shape = described(head)
        data = staging.on_host(array) if self.rank == root else np.empty(shape, dtype)
        if data.size:
            self._finish([self._cast(data.reshape(-1), root)], data)
        if self.rank == root:
            return array.copy()
        return engines.moved(data, "gpu") if on_gpu else data

    def raw_split(self, color: int | None, ranks: Sequence[int]) -> Communicator | None:
        self._splits += 1
        if color is None:
            return None
        path = (*self.path, self._splits, color)
        place = ranks.index(self.rank)
        # all ranks are here, so nobody waits for long
        gloo = self._ear.connected(path, place, len(ranks), self.session.timeout)
        members, traffic = [self.members[rank] for rank in ranks], Traffic(self.traffic)
        made = Torch(gloo, members, place, self._ear, path, self.session, traffic)
        made.threads = self.threads
        return made


def _tensor(array: np.ndarray[Any, Any]) -> Any:
    """The bytes of an array, where they lie; a copy of one that may not be written."""
    import torch

    return torch.from_numpy((array if array.flags.writeable else array.copy()).view(np.uint8))


def open_world(patience: float) -> Torch:
    """A communicator of the program's default group, which is made where there is none."""
    import torch.distributed as dist

    global _opened
    if not dist.is_initialized():
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=patience))
    size, rank = dist.get_world_size(), dist.get_rank()
    _opened += 1
    store = dist.PrefixStore(f"matchwood/{_opened}", dist.distributed_c10d._get_default_store())
    control = StoreControl(store, rank, size)
    return Torch(control.connected((), rank, size, patience), range(size), rank, control)
