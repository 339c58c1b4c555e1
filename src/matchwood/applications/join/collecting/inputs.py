"""From the user's lists, columns of tables or matrices to one flat list of elements.

Nothing here needs pandas, polars or pyarrow: the values of a column are read by the methods that
it has.  `read` states the rules for values that are no text.

Kernels trust these results, so nothing that a caller's object says of itself is used.  A record is
what one iteration over it gives, whatever its length claims and whoever changes it meanwhile; an
element is the plain text or integer, whatever its class overrides.  Matrices pass the gate, and
Arrow arrays their own validation, before anything reads them.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments
from matchwood.gate.inputs import is_sparse
from matchwood.gate.rectangles import as_rectangle

NAMED: dict[str, Callable[[str], str]] = {
    "strip": str.strip,
    "lower": str.lower,
    "casefold": str.casefold,
    "nfc": lambda text: unicodedata.normalize("NFC", text),
    "nfkc": lambda text: unicodedata.normalize("NFKC", text),
}


class Table(NamedTuple):
    """Records as numbers of distinct elements."""

    starts: np.ndarray  # int64[n + 1]
    numbers: np.ndarray  # int32: an element's place in `distinct`; -1 for an empty element
    distinct: tuple[Any, ...]  # texts, or integers
    are_text: bool
    ascend: bool = False  # the distinct elements are integers in rising order


def read(
    data: Any, caller: str, name: str, on: Any = None, separator: Any = None, normalise: Any = None
) -> Table:
    """The records of `data`.

    A missing record (None, NaN, NA) is an empty one.  A missing element is a TypeError, an empty
    element is dropped, and an element that occurs twice in a record counts once.
    """
    if is_sparse(data):
        for option, value in (("on", on), ("separator", separator), ("normalise", normalise)):
            if value is not None:
                raise TypeError(f"{caller}: {option} is not for matrices, and {name} is one")
        return _columns_of(data, caller, name)
    rows = _rows(data, caller, name, on)
    if separator is not None:
        rows = _split(rows, separator, caller, name)
    flat, starts = _flat(rows, caller, name)
    flat, are_text = _checked(flat, starts, caller, name)
    places = dict.fromkeys(flat)
    distinct = list(places)
    places = dict(zip(distinct, range(len(distinct)), strict=True))
    numbers = np.fromiter(map(places.__getitem__, flat), np.int32, len(flat))
    if are_text:
        distinct, numbers = _cleaned(distinct, numbers, normalise, caller)
    elif normalise is not None:
        raise TypeError(f"{caller}: normalise is for text, and {name} holds integers")
    return Table(starts, numbers, tuple(distinct), are_text)


def _columns_of(data: Any, caller: str, name: str) -> Table:
    """Each row is the set of the columns in which it has an entry, whatever its value."""
    if len(data.shape) != 2:
        raise TypeError(f"{caller}: {name} must have rows and columns, got shape {data.shape}")
    matrix = as_rectangle(data, f"{caller}: {name}").on("cpu")
    entries = matrix.entries()
    starts, columns = entries.indptr.astype(np.int64), entries.indices
    if matrix.shape[1] > FEW_COLUMNS + 8 * columns.size:  # arrays over all columns may be too large
        distinct, numbers = np.unique(columns, return_inverse=True)
        numbers = numbers.astype(np.int32)
    else:
        used = np.zeros(matrix.shape[1], bool)
        used[columns] = True
        distinct = np.flatnonzero(used)
        places = np.empty(used.size, np.int32)
        places[distinct] = np.arange(distinct.size, dtype=np.int32)
        numbers = places[columns]
    return Table(starts, numbers, tuple(distinct.tolist()), False, ascend=True)


FEW_COLUMNS = 1 << 20  # arrays over up to this number of columns (5 MB) are always affordable


# Tables and columns


def column(data: Any, caller: str, name: str, on: Any) -> list[Any]:
    """The values of a column of a table, as a list."""
    try:
        found = data[on]
    except MemoryError:
        raise
    except Exception as error:  # polars and pyarrow have classes of their own
        kind = type(data).__name__
        if kind == "LazyFrame":
            raise TypeError(f"{caller}: {name} is a LazyFrame; collect it first") from None
        if not is_table(data):
            raise TypeError(f"{caller}: on is for tables, and {name} is a {kind}") from error
        known = getattr(data, "column_names", None)
        known = getattr(data, "columns", data) if known is None else known
        listed = ", ".join(map(arguments.shown, itertools.islice(iter(known), 20)))
        got = arguments.shown(on)
        raise ValueError(f"{caller}: {name} has no column {got}; it has {listed}") from error
    if is_table(found):
        got = arguments.shown(on)
        raise ValueError(f"{caller}: on must name one column of {name}, got {got}")
    return values(found, caller, name)


def whole_table(data: Any, caller: str, name: str) -> Any:
    """The table; a stream is read once, as several of its columns may be needed."""
    if hasattr(data, "__arrow_c_stream__") and not is_table(data):
        return _from_stream(data, caller, name)
    return data


def values(data: Any, caller: str, name: str) -> list[Any]:
    """A column, or any sequence, as a new list."""
    kind = type(data).__name__
    require_valid(data, caller, name)
    if isinstance(data, memoryview):  # NumPy reads more formats of these than Python does
        data = arguments.plain(caller, name, data)
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(data, method):
            data = getattr(data, method)()
            break
    else:
        if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
            return values(_from_stream(data, caller, name), caller, name)
    if isinstance(data, (str, bytes, Mapping)) or not hasattr(data, "__iter__"):
        raise TypeError(f"{caller}: {name} must be a list of records, got {kind}")
    return _once(data)


def _once(items: Any) -> list[Any]:
    """The items of one iteration.  `list` alone would use a length hint, which may be wrong."""
    return list(items) if type(items) in ROWS else list(itertools.chain(items))


def require_valid(data: Any, caller: str, name: str) -> None:
    """Raise unless the buffers of an Arrow array or table fit each other: pyarrow trusts them.

    Columns of pandas may have such an array inside.
    """
    if type(data).__module__.partition(".")[0] == "pandas":
        kind: Any = getattr(data, "dtype", None)
        if hasattr(kind, "categories"):
            require_valid(kind.categories, caller, name)
        if getattr(kind, "storage", None) == "pyarrow":
            data = getattr(data, "array", data).__arrow_array__()
    if type(data).__module__.partition(".")[0] == "pyarrow" and hasattr(data, "validate"):
        try:
            data.validate(full=True)
            _require_room(data)
        except MemoryError:
            raise
        except Exception as error:  # of pyarrow's own classes
            raise ValueError(f"{caller}: {name} is no valid Arrow array: {error}") from None


def _require_room(data: Any) -> None:
    """Raise for lists of a fixed size that end after their values, which `validate` accepts.

    It ignores the offset of the array.  `data` is a valid array or table of pyarrow.
    """
    if hasattr(data, "itercolumns"):
        parts = list(data.itercolumns())
    elif hasattr(data, "chunks"):
        parts = list(data.chunks)
    else:
        names = ("values", "dictionary", "storage", "keys", "items")
        parts = [getattr(data, name) for name in names if hasattr(data, name)]
        if hasattr(data, "field"):  # a struct or a union
            parts += [data.field(i) for i in range(data.type.num_fields)]
        size = getattr(data.type, "list_size", None)
        if size is not None and len(data.values) < (data.offset + len(data)) * size:
            raise ValueError(
                f"lists of {size} values, up to list {data.offset + len(data)}, "
                f"must lie within {len(data.values)} values"
            )
    for part in parts:
        _require_room(part)


def _from_stream(data: Any, caller: str, name: str) -> Any:
    """An object that only has Arrow's protocols, read by whichever package is installed."""
    ways: tuple[Callable[[Any], Any], ...]
    try:
        import pyarrow

        ways = (pyarrow.table, pyarrow.chunked_array, pyarrow.array)
    except ImportError:
        try:
            import polars
        except ImportError:
            raise TypeError(
                f"{caller}: {name} speaks only the Arrow stream protocol, and neither pyarrow nor "
                "polars is installed to read it; pass a list"
            ) from None
        ways = (polars.from_arrow,)
    reasons = []
    for way in ways:
        try:
            return way(data)
        except MemoryError:
            raise
        except Exception as error:  # pyarrow and polars have classes of their own
            reasons.append(error)
    raise TypeError(f"{caller}: {name} cannot be read by the Arrow protocol: {reasons[0]}")


def is_table(data: Any) -> bool:
    return isinstance(data, Mapping) or hasattr(data, "columns") or hasattr(data, "column_names")


def _rows(data: Any, caller: str, name: str, on: Any) -> list[Any]:
    if on is not None:
        if isinstance(data, (list, tuple, np.ndarray)):
            raise TypeError(f"{caller}: on is for tables, and {name} is a {type(data).__name__}")
        return column(data, caller, name, on)
    if is_table(data):
        raise TypeError(f"{caller}: {name} is a table; say by on= which column holds the sets")
    return values(data, caller, name)


# Rows


def is_missing(value: Any) -> bool:
    """None, NaN and NaT of any type, and what pandas calls NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, _WITH_NAN) and bool(value != value)


_WITH_NAN = (float, complex, np.inexact, np.datetime64, np.timedelta64)


def _split(rows: list[Any], separator: Any, caller: str, name: str) -> list[Any]:
    if not isinstance(separator, str) or not separator:
        raise TypeError(
            f"{caller}: separator must be text of one or more characters, "
            f"got {arguments.shown(separator)}"
        )
    try:
        return [str.split(row, separator) for row in rows]
    except TypeError:
        return [_split_one(row, separator, caller, name, i) for i, row in enumerate(rows)]


def _split_one(row: Any, separator: str, caller: str, name: str, i: int) -> list[str]:
    if isinstance(row, str):
        return str.split(row, separator)
    if is_missing(row):
        return []
    raise TypeError(
        f"{caller}: {name}[{i}] must be text, since a separator is given, got {type(row).__name__}"
    )


ROWS = (list, tuple, set, frozenset, np.ndarray)


def _flat(rows: list[Any], caller: str, name: str) -> tuple[list[Any], np.ndarray]:
    """The elements of all rows, and where each row starts: row i ends where i + 1 starts."""
    kinds = set(map(type, rows))
    if not kinds <= set(ROWS):
        rows = [_row(row, caller, name, i) for i, row in enumerate(rows)]
    if np.ndarray in kinds:
        for i, row in enumerate(rows):
            if type(row) is np.ndarray and row.ndim != 1:
                shape = row.shape
                raise TypeError(f"{caller}: {name}[{i}] must be one-dimensional, got shape {shape}")
    flat: list[Any] = []
    ends = [0]
    for row in rows:
        flat.extend(row)
        ends.append(len(flat))  # not by the row's own length: another thread may change it
    return flat, np.array(ends, np.int64)


def _row(row: Any, caller: str, name: str, i: int) -> Any:
    if type(row) in ROWS:
        return row
    if is_missing(row):
        return ()
    if isinstance(row, str):
        raise TypeError(
            f"{caller}: {name}[{i}] is text; pass separator= to split it, or a list of elements"
        )
    if isinstance(row, (bytes, Mapping)) or not hasattr(row, "__iter__"):
        kind = type(row).__name__
        raise TypeError(f"{caller}: {name}[{i}] must be a list of elements, got {kind}")
    return values(row, caller, f"{name}[{i}]")


# Elements


def _checked(flat: list[Any], starts: np.ndarray, caller: str, name: str) -> tuple[list[Any], bool]:
    """The elements, all of them text or all of them integers."""
    kinds = set(map(type, flat))
    if kinds <= {str}:
        return flat, True
    if all(issubclass(kind, str) for kind in kinds):
        return list(map(str.__str__, flat)), True  # the text itself: a subclass may override str()
    if kinds == {int}:
        return flat, False
    if all(issubclass(kind, (int, np.integer)) and kind is not bool for kind in kinds):
        lying = any(issubclass(kind, int) and kind is not int for kind in kinds)
        return list(map(_integer if lying else int, flat)), False
    text_first = isinstance(flat[0], str)
    for at, element in enumerate(flat):
        good = isinstance(element, str) if text_first else isinstance(element, (int, np.integer))
        if not good or isinstance(element, (bool, np.bool_)):
            row = int(np.searchsorted(starts, at, side="right")) - 1
            place = f"{name}[{row}][{at - int(starts[row])}]"
            wanted = "text" if text_first else "text or an integer" if at == 0 else "an integer"
            raise TypeError(f"{caller}: {place} must be {wanted}, got {_kind_of(element)}")
    raise TypeError(f"{caller}: {name} must hold text or integers")


def _integer(element: Any) -> int:
    """The number itself, whatever methods a subclass of int overrides."""
    return int.__int__(element) if isinstance(element, int) else int(element)


def _kind_of(element: Any) -> str:
    return repr(element) if is_missing(element) else type(element).__name__


def _cleaned(
    distinct: list[str], numbers: np.ndarray, normalise: Any, caller: str
) -> tuple[list[str], np.ndarray]:
    """Texts after normalising; empty ones get the number -1."""
    for step in _steps(normalise, caller):
        distinct = [step(text) for text in distinct]
        if not set(map(type, distinct)) <= {str}:
            wrong = next(kind for kind in map(type, distinct) if kind is not str)
            raise TypeError(f"{caller}: normalise must return text, got {wrong.__name__}")
    places: dict[str, int] = {}
    new = [places.setdefault(text, len(places)) if text else -1 for text in distinct]
    if len(places) < len(distinct):
        numbers = np.array([*new, -1], np.int32)[numbers]
    kept = list(places)
    try:
        "".join(kept).encode("utf-32-le")
    except UnicodeEncodeError:
        for text in kept:
            _require_encodable(text, caller)
    return kept, numbers


def _require_encodable(text: str, caller: str) -> None:
    try:
        text.encode("utf-32-le")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{caller}: text must not have lone surrogates, got one at {error.start} of "
            f"{text[:40]!r}"
        ) from None


def _steps(normalise: Any, caller: str) -> Sequence[Callable[[str], str]]:
    if normalise is None:
        return ()
    listed = normalise if isinstance(normalise, (list, tuple)) else (normalise,)
    for step in listed:
        if not callable(step) and (not isinstance(step, str) or step not in NAMED):
            known = ", ".join(map(repr, NAMED))
            raise ValueError(
                f"{caller}: normalise must be None, a function, or some of {known}, "
                f"got {arguments.shown(step)}"
            )
    return [step if callable(step) else NAMED[step] for step in listed]
