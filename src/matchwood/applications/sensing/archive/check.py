"""Whether a file is an archive of given matrices: it is read again, by other code."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from matchwood.applications.sensing.archive import reference
from matchwood.applications.sensing.packets import elements
from matchwood.applications.sensing.traffic import TrafficMatrix
from matchwood.arguments import path as file_name
from matchwood.arguments import shown
from matchwood.errors import CheckFailed


def check_archive(path: str | os.PathLike[str], matrices: Iterable[Any]) -> None:
    """Raise CheckFailed unless a file holds these matrices, in this order, and no others.

    The file is read by the tar module of the standard library and by plain Python, one link after
    the other.

    Parameters
    ----------
    path : str or PathLike
    matrices : iterable of TrafficMatrix

    Raises
    ------
    CheckFailed
        With the first matrix and link that differ.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from matchwood.check import check_archive
    >>> from matchwood.sensing import traffic_matrix, write_archive
    >>> A = traffic_matrix(np.array([7, 7, 9]), np.array([8, 8, 7]))
    >>> folder = Path(tempfile.mkdtemp())
    >>> written = write_archive(folder / "windows.tar", [A], compression=None)
    >>> check_archive(folder / "windows.tar", [A])
    """
    caller = "check_archive"
    given = list(elements(caller, "matrices", matrices, "an iterable"))
    with open(file_name(caller, "path", path), "rb") as stream:
        content = stream.read()
    try:
        stored = reference.links_of_archive(content)
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # the plain reader trusts the file, so damage may raise anything
        raise CheckFailed(
            f"{caller}: the file is no archive of matrices: {shown(error)}"
        ) from error
    if len(stored) != len(given):
        raise CheckFailed(f"{caller}: the file has {len(stored)} matrices, got {len(given)}")
    for k, (links, matrix) in enumerate(zip(stored, given, strict=True)):
        if not isinstance(matrix, TrafficMatrix):
            kind = type(matrix).__name__
            raise TypeError(f"{caller}: matrices must be TrafficMatrix objects, got {kind}")
        matrix.check()
        columns = [part.tolist() for part in matrix.tocoo()]
        seen = {(src, dst): packets for src, dst, packets in zip(*columns, strict=True)}
        if seen == links:
            continue
        for link in sorted(seen.keys() | links.keys()):
            if seen.get(link) != links.get(link):
                raise CheckFailed(
                    f"{caller}: link {link} of matrix {k} has {links.get(link, 0)} packets in "
                    f"the file, got {seen.get(link, 0)}"
                )
