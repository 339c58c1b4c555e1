"""SciPy's .npz of a sparse matrix."""

from __future__ import annotations

import io
import os
import zipfile
import zlib

import numpy as np
import scipy.sparse as sp

from matchwood.errors import FileFormatError
from matchwood.io.build import Matrix
from matchwood.io.files import PathLike, read_bytes


def read(path: PathLike) -> Matrix:
    """The matrix, with its arrays checked: SciPy takes them as they are."""
    content = read_bytes(path)
    try:
        stored = sp.load_npz(io.BytesIO(content))
        if hasattr(stored, "check_format"):  # before SciPy follows an index that is out of range
            stored.check_format(full_check=True)
        A = sp.csr_array(stored)
        if not np.issubdtype(A.dtype, np.number) and A.dtype != np.bool_:
            raise ValueError(f"values of type {A.dtype}")
        A.check_format(full_check=True)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError) as error:
        raise _refused(path, error) from None
    except (ValueError, TypeError, IndexError, AttributeError, NotImplementedError) as error:
        raise _refused(path, error) from None
    A.sum_duplicates()
    return A


def _refused(path: PathLike, error: Exception) -> FileFormatError:
    return FileFormatError(
        f"{os.fspath(path)}: not a sparse matrix as scipy.sparse.save_npz writes it, "
        f"or cut off ({error})"
    )


def content(A: Matrix) -> bytes:
    """The bytes of the file."""
    stream = io.BytesIO()
    sp.save_npz(stream, A)
    return stream.getvalue()
