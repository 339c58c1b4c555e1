"""SciPy's .npz of a sparse matrix: a zip file with one array in each member.

What a member says of itself is checked before NumPy reads it: its size against the limits, its
type (objects would be unpickled, which can run anything), and its shape against its bytes (NumPy
allocates what the shape asks for).  Both ways go in small steps, so that Ctrl-C takes effect.
"""

from __future__ import annotations

import io
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from matchwood.errors import FileFormatError
from matchwood.gate.resources import interruptible, require_memory
from matchwood.io.files import read_bytes
from matchwood.io.options import NO_LIMITS, Limits, PathLike, matrix_bytes
from matchwood.io.result import Matrix

MEMBERS = (
    "data", "indices", "indptr", "row", "col", "coords", "offsets", "format", "shape", "_is_array",
)  # fmt: skip
WHOLE = ("indices", "indptr", "row", "col", "coords", "offsets", "shape")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
HEADER_BYTES = 1 << 16  # bytes of a member that hold its type and shape
BYTES_PER_STEP = 1 << 18  # bytes compressed at once: 10 ms
# What zipfile, NumPy and SciPy raise for files that are not what they should be
_FAULTS = (
    zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, ValueError, TypeError, IndexError,
    AttributeError, NotImplementedError, RuntimeError, SyntaxError, OverflowError, struct.error,
    tokenize.TokenError, RecursionError, ZeroDivisionError,
)  # fmt: skip


def read(path: PathLike, limits: Limits = NO_LIMITS) -> Matrix:
    """The matrix, with its arrays checked: SciPy takes them as they are."""
    limits = limits.checked("read")
    stream = io.BytesIO(read_bytes(path, limits))
    try:
        _require_plain_arrays(path, stream, limits)
        stream.seek(0)
        stored: Any = sp.load_npz(stream)
        _require_shape(path, stored, limits)
        if hasattr(stored, "check_format"):  # before SciPy follows an index that is out of range
            interruptible(lambda: stored.check_format(full_check=True))
        A = interruptible(sp.csr_array, stored)
        interruptible(lambda: A.check_format(full_check=True))
        interruptible(A.sum_duplicates)
    except (FileFormatError, KeyboardInterrupt):
        raise
    except _FAULTS as error:
        raise _refused(path, str(error)) from None
    return A


def _require_plain_arrays(path: PathLike, stream: io.BytesIO, limits: Limits) -> None:
    """Raise unless every member is an array of numbers or text, as large as its bytes say."""
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        names = [member.filename.removesuffix(".npy") for member in members]
        if len(set(names)) != len(names):
            raise _refused(path, "a member occurs twice")
        total = sum(member.file_size for member in members)
        limit = limits.most_bytes(stream.getbuffer().nbytes)
        if total > limit:
            raise _refused(
                path, f"its arrays take {total} bytes; pass most_bytes={total} to read them"
            )
        require_memory("read", 2 * total, os.fspath(path))
        for member, name in zip(members, names, strict=True):
            if name not in MEMBERS:
                raise _refused(path, f"it holds {name!r}")
            if member.flag_bits & 1 or member.compress_type not in METHODS:
                raise _refused(path, f"{name} is compressed as NumPy does not compress")
            with archive.open(member) as stored:
                head = io.BytesIO(stored.read(HEADER_BYTES))
            dtype, shape, start = _described(head)
            if dtype.hasobject:
                raise _refused(path, f"{name} holds Python objects, which are not read")
            if name in WHOLE and dtype.kind not in "iu":
                raise _refused(path, f"{name} must hold whole numbers, got {dtype}")
            count = 1
            for length in shape:
                if not isinstance(length, int) or length < 0:
                    raise _refused(path, f"{name} has shape {shape}")
                count *= length
            if count * dtype.itemsize != member.file_size - start:
                raise _refused(path, f"{name} has shape {shape}, which is not its number of bytes")


def _described(head: io.BytesIO) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Type and shape of an array, and the byte where its numbers start."""
    version = np.lib.format.read_magic(head)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(head)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(head)
    else:
        raise ValueError(f"a member of version {version}")
    return dtype, shape, head.tell()


def _require_shape(path: PathLike, stored: Any, limits: Limits) -> None:
    """Raise unless the values are numbers and the shape is in proportion to them."""
    if stored.ndim != 2:
        raise _refused(path, f"{stored.ndim} dimensions")
    if stored.data.dtype.kind not in "biufc":
        raise _refused(path, f"values of type {stored.data.dtype}")
    shape, entries = (int(stored.shape[0]), int(stored.shape[1])), int(stored.data.size)
    if max(shape) > limits.most_vertices(entries):
        raise _refused(
            path,
            f"{shape[0]} x {shape[1]} vertices are too many for {entries} entries; "
            f"pass most_vertices={max(shape)} to accept them",
        )
    require_memory("read", matrix_bytes(shape, entries), f"the matrix of {os.fspath(path)}")


def _refused(path: PathLike, why: str) -> FileFormatError:
    return FileFormatError(
        f"{os.fspath(path)}: not a sparse matrix as scipy.sparse.save_npz writes it, "
        f"or cut off ({why})"
    )


def pieces(A: Matrix) -> Iterator[bytes]:
    """The bytes of the file, as scipy.sparse.save_npz orders them."""
    members = {
        "indices": A.indices, "indptr": A.indptr, "format": np.array(b"csr"),
        "shape": np.array(A.shape), "data": A.data, "_is_array": np.array(True),
    }  # fmt: skip
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                for piece in array_pieces(array):
                    member.write(piece)
    yield stream.getvalue()


def array_pieces(array: np.ndarray[Any, Any]) -> Iterator[bytes]:
    """An array as numpy.save writes it, some bytes at a time."""
    head = io.BytesIO()
    plain = np.ascontiguousarray(array).reshape(array.shape)
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(plain))
    yield head.getvalue()
    content = plain.reshape(-1).view(np.uint8) if plain.nbytes else np.empty(0, np.uint8)
    for start in range(0, content.size, BYTES_PER_STEP):
        yield content[start : start + BYTES_PER_STEP].tobytes()
