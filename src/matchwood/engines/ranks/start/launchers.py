"""What started this process: mpiexec, srun, torchrun or a shell, by its environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

OPEN_MPI = "Open MPI's mpiexec"

SIZES = {
    "OMPI_COMM_WORLD_SIZE": OPEN_MPI,
    "PMI_SIZE": "mpiexec of MPICH or Intel MPI",
    "MV2_COMM_WORLD_SIZE": "MVAPICH's mpiexec",
    "SLURM_STEP_NUM_TASKS": "Slurm's srun",
    "JSM_NAMESPACE_SIZE": "jsrun",
    "FLUX_JOB_SIZE": "flux run",
    "PALS_SIZE": "PALS' mpiexec",
}
"""Variables that tell how many processes a launcher of MPI programs has started."""


def mpi_launchers(environ: Mapping[str, str] = os.environ) -> dict[str, int]:
    """The launchers found, and how many processes each says it started."""
    found = {}
    for name, launcher in SIZES.items():
        text = environ.get(name, "")
        if text.isascii() and text.isdecimal():
            found[launcher] = int(text)
    return found


def torchrun(environ: Mapping[str, str] = os.environ) -> bool:
    """This process was started by torchrun, or by something that sets what torchrun sets."""
    return all(name in environ for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"))


def library_of(MPI: Any) -> str:
    """The name and version of the library that mpi4py uses."""
    first = MPI.Get_library_version().strip("\0 \n").splitlines()[0]
    return " ".join(first.split(",")[0].split())
