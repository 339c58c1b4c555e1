"""Flexible methods on the GPU: coefficients stay there, and the host reads a few words a step.

Their definitions are in flexible.py.  `fcg` has kernels, and is read late; `fbicgstab` is of CuPy's
operations on arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu
from matchwood.engines.gpu.launch import BLOCK

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("measure_back<T>", "turn<T>", "measure_step<T>", "advance<T>"),
    types={"T": (np.float32, np.float64)},
)
ALONG, DONE, NUMBERS = SOURCE.constants("ALONG", "DONE", "NUMBERS")
BLOCKS = 8  # of a multiprocessor


def fcg(
    A: Any, x: Any, r: Any, allowed: float, maxiter: int, M: Any, callback: Any, late: bool
) -> tuple[Any, int]:
    """The iterations of `fcg`, from x, whose residual is r; both are overwritten.

    `late`: the callback may be called when the next iteration has been launched.
    """
    cupy = engines.cupy()
    n, kind = r.size, r.dtype
    p, q = cupy.zeros(n, kind), cupy.zeros(n, kind)
    grid = max(1, min(-(-n // BLOCK), BLOCKS * gpu.multiprocessors()))
    found, arrived = cupy.zeros(NUMBERS), cupy.zeros(1, np.uint32)
    found[ALONG] = 1
    sums = (found, cupy.empty(2 * grid), arrived)
    k = SOURCE.kernels(T=kind)
    flags = [gpu.Flag(NUMBERS, np.float64) for _ in range(2)]

    def ended(turn: int) -> int | None:
        """The result, if the iteration of this number was the last one."""
        done = flags[turn % 2].read()[DONE]
        if done < 0:
            return -1
        if callback is not None:
            callback(x)
        return 0 if done > 0 else None

    for turn in range(maxiter):
        z = r if M is None else (M @ r).astype(kind, copy=False)
        k.measure_back(None, (n, z, q, *sums), grid=grid)
        k.turn(None, (n, z, p, found), grid=grid)
        q = A @ p
        k.measure_step(None, (n, p, q, r, *sums), grid=grid)
        k.advance(None, (n, p, q, x, r, allowed, *sums), grid=grid)
        flag = flags[turn % 2]
        flag.device_words[:] = found
        flag.fetch()
        looked = turn - late
        info = ended(looked) if looked >= 0 else None
        if info is not None:
            return x, info
    info = ended(maxiter - 1) if late and maxiter else None
    return x, maxiter if info is None else info


def fbicgstab(
    A: Any, x: Any, r: Any, allowed: float, maxiter: int, M: Any, callback: Any
) -> tuple[Any, int]:
    """The iterations of `fbicgstab`, from x, whose residual is r; both are overwritten."""
    cupy = engines.cupy()
    shadow, flag, nothing = r.copy(), gpu.Flag(3, np.float64), cupy.zeros((), r.dtype)
    rho: Any = shadow @ r
    before = alpha = omega = p = v = nothing
    for turn in range(maxiter):
        p = r.copy() if turn == 0 else r + (rho / before * alpha / omega) * (p - omega * v)
        towards = p if M is None else M @ p
        v = A @ towards
        turned = shadow @ v
        sound = cupy.isfinite(rho) & cupy.isfinite(turned) & (rho != 0) & (turned != 0)
        alpha = cupy.where(sound, rho / turned, nothing)  # else x does not change
        r -= alpha * v
        x += cupy.where(sound, alpha * towards, nothing)
        goes_on = sound & (r @ r > allowed * allowed)
        towards = r if M is None else M @ r
        t = A @ towards
        size = t @ t
        omega = cupy.where(goes_on & (size > 0), (t @ r) / size, nothing)
        x += cupy.where(omega != 0, omega * towards, nothing)
        r -= omega * t
        before, rho = rho, shadow @ r
        broken = ~sound | (goes_on & ~(size > 0))
        words = (broken, r @ r, omega != 0)
        flag.device_words[:] = cupy.stack([word.astype(np.float64) for word in words])
        flag.fetch()
        failed, left, moved = flag.read()
        if failed:
            return x, -1
        if callback is not None:
            callback(x)
        if left**0.5 <= allowed:
            return x, 0
        if not moved:
            return x, -1
    return x, maxiter
