"""Collections: records read, numbered and tokenised once.  Read on in inputs.py, then cpu.py.

An element's tokens are its q-grams.  The text is padded at its end to a multiple of q (with a code
point that no text has), every window of q code points is a gram, and the k-th repeat of a gram
within the element is a token of its own.  So an element of padded length L has L - q + 1 tokens.
Tokens are numbered by (rising frequency, text), elements by (length, text): neither depends on the
order of the input.
"""

from __future__ import annotations

import copy
import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.applications.join import Elements, Records
from matchwood.applications.join.collecting import inputs
from matchwood.applications.join.similarity import SIMILARITIES
from matchwood.arguments import count, integer, one_of, shown, vector

__all__ = ["Collection", "Prepared", "collection"]

LONGEST_GRAM = 64  # code points; longer grams make every element one token


def collection(
    data: Any,
    *,
    similarity: str = "jaccard",
    q: int = 3,
    on: Any = None,
    separator: str | None = None,
    normalise: Any = None,
) -> Collection:
    """Read and tokenise records once, for many joins.

    Parameters
    ----------
    data : sequence of records, column or table
        A record is a list (tuple, set, array) of elements, all of them text or all integers; or
        text that `separator` splits.  A column of pandas, polars or Arrow will do, or a table with
        the name of the column in `on`.  Of a sparse matrix of SciPy or CuPy each row is the set of
        columns in which it has an entry; one of CuPy is copied to the host, where records are read.
    similarity : {"jaccard", "edit", "edit_padded", "equal"}
        How two elements are compared; see `fuzzy_join`.  Integers are for "equal".
    q : int
        Code points of a gram, 1 to 64.
    on : column name or None
    separator : str or None
    normalise : None, function, name, or list of these
        Applied to each distinct element: a function from text to text, or "strip", "lower",
        "casefold", "nfc", "nfkc".

    Returns
    -------
    Collection

    Raises
    ------
    TypeError
        For what is no record: None or NaN inside a record, numbers where text is needed, bytes,
        text and integers mixed, a table without `on`.
    ValueError
        For lone surrogates, a column that is not there, an unknown similarity, a wrong q, a matrix
        or an Arrow array whose parts do not fit each other.

    Notes
    -----
    A missing record (None, NaN) is an empty one, and is never matched.  Empty elements are
    dropped.  An element that occurs twice in a record counts once.  `data` is not changed, and
    the records are a copy of what it holds now.

    Work and memory are linear in the text: distinct elements are tokenised once.

    Examples
    --------
    >>> import matchwood
    >>> tags = matchwood.collection(["database;systems", "databases;system"], separator=";")
    >>> tags
    Collection(2 records, 4 distinct elements, similarity='jaccard', q=3)
    >>> matchwood.fuzzy_join(tags, delta=0.4).score.round(4).tolist()
    [0.4933]
    """
    return make(data, "collection", "data", similarity, q, on, separator, normalise)


def make(
    data: Any,
    caller: str,
    name: str,
    similarity: Any,
    q: Any,
    on: Any = None,
    separator: Any = None,
    normalise: Any = None,
) -> Collection:
    """`collection`, with errors that name the public function `caller`."""
    similarity, q = _measure(caller, similarity, q)
    if on is not None:
        data = inputs.whole_table(data, caller, name)
    table = inputs.read(data, caller, name, on, separator, normalise)
    if not table.are_text and similarity != "equal" and table.distinct:
        raise TypeError(
            f"{caller}: similarity {similarity!r} compares text, and {name} holds integers; "
            "pass similarity='equal'"
        )
    return Collection(table, similarity, q, data)


def _measure(caller: str, similarity: Any, q: Any) -> tuple[str, int]:
    one_of(caller, "similarity", similarity, SIMILARITIES)
    if count(caller, "q", q, 1) > LONGEST_GRAM:
        raise ValueError(f"{caller}: q must be at most {LONGEST_GRAM}, got {q}")
    return similarity, int(q)


def _trusted(table: inputs.Table) -> inputs.Table:
    """The table with read-only arrays; raises where kernels could not trust them.

    That is where the table was made by hand, or a matrix changed while it was read.
    """
    starts, numbers = vector("Collection", "starts", table.starts, ["int64"]), table.numbers
    vector("Collection", "numbers", numbers, ["int32"])
    ascend = starts.size and starts[0] == 0 and not (starts[1:] < starts[:-1]).any()
    least, most = int(numbers.min(initial=0)), int(numbers.max(initial=-1))
    if not ascend or starts[-1] != numbers.size or least < -1 or most >= len(table.distinct):
        raise ValueError(
            "Collection: table must have starts that ascend from 0 to the elements, and numbers "
            "of distinct elements; make it by collection(...), from what nobody changes meanwhile"
        )
    return table._replace(starts=engines.frozen(starts), numbers=engines.frozen(numbers))


class Collection:
    """Records that were read and tokenised; what `collection` returns.  It cannot be changed.

    Attributes
    ----------
    similarity : str
    q : int
    data : object
        The object that the collection was made of.
    """

    def __init__(self, table: inputs.Table, similarity: str, q: int, data: Any) -> None:
        self._table = _trusted(table)
        self._similarity, self._q = _measure("Collection", similarity, q)
        self._data = data
        self._alone: Prepared | None = None
        self._with: weakref.WeakKeyDictionary[Collection, Prepared] = weakref.WeakKeyDictionary()

    @property
    def table(self) -> inputs.Table:
        """The records as numbers, in read-only arrays that kernels trust."""
        return self._table

    @property
    def similarity(self) -> str:
        return self._similarity

    @property
    def q(self) -> int:
        return self._q

    @property
    def data(self) -> Any:
        return self._data

    def __len__(self) -> int:
        return int(self.table.starts.size) - 1

    def __repr__(self) -> str:
        return (
            f"Collection({len(self)} records, {len(self.table.distinct)} distinct elements, "
            f"similarity={self.similarity!r}, q={self.q})"
        )

    def record(self, row: int) -> list[Any]:
        """The distinct elements of a record, in the order given."""
        if not 0 <= integer("record", "row", row) < len(self):
            got = shown(row)
            raise ValueError(f"record: row must be within 0..{len(self) - 1}, got {got}")
        part = self.table.numbers[self.table.starts[row] : self.table.starts[row + 1]]
        return [self.table.distinct[i] for i in dict.fromkeys(part.tolist()) if i >= 0]

    def alone(self) -> Prepared:
        """Its records, elements and tokens, for a join with itself; worked out once."""
        if self._alone is None:
            self._alone = Prepared((self.table,), self.similarity, self.q)
        return self._alone

    def beside(self, other: Collection) -> Prepared:
        """As `alone`, for two collections with one dictionary; kept while both live."""
        if not isinstance(other, Collection):
            kind = type(other).__name__
            raise TypeError(f"beside: other must be a Collection, got {kind}")
        found = self._with.get(other)
        if found is None:
            found = Prepared((self.table, other.table), self.similarity, self.q)
            self._with[other] = found
        return found


class Prepared:
    """One or two collections with one dictionary of elements and tokens.

    Attributes
    ----------
    values : sequence
        The distinct elements, by id.
    elements : Elements
    records : tuple of Records
        One for each side; a join of a collection with itself has one.
    tokens : Tokens of cpu.py
        Also the elements of each token, and the chunks of the edit similarities.
    sizes : two arrays
        Elements of each record, left and right; the same array twice where there is one side.
    largest : two integers
        The largest of them.
    """

    def __init__(self, tables: tuple[inputs.Table, ...], similarity: str, q: int) -> None:
        self.similarity = similarity
        self.q = q
        self.values, places = _numbered(tables, similarity, q)
        cpu = engines.load(__name__, "cpu")
        occurrences = np.zeros(len(self.values), np.int64)
        self.records = tuple(
            Records(*cpu.arrange(t.starts, t.numbers, ids, occurrences))
            for t, ids in zip(tables, places, strict=True)
        )
        self.elements, self.tokens = _tokenised(cpu, self.values, occurrences, similarity, q)
        self._kept: dict[Any, Any] = {}
        self._count()

    def _count(self) -> None:
        sizes = [np.diff(side.starts) for side in self.records]
        self.sizes = sizes[0], sizes[-1]
        self.largest = int(sizes[0].max(initial=0)), int(sizes[-1].max(initial=0))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_kept": {}}  # what was worked out for joins is not sent

    def part(self, rows: Sequence[np.ndarray]) -> Prepared:
        """These rows of each side, with the same dictionary."""
        return self._of(tuple(map(_taken, self.records, rows)))

    def exchanged(self) -> Prepared:
        """The right side on the left."""
        found: Prepared = self.keep("exchanged", lambda: self._of(self.records[::-1]))
        return found

    def _of(self, records: tuple[Records, ...]) -> Prepared:
        made = copy.copy(self)
        made.records, made._kept = records, {}
        made._count()
        return made

    def kinds(self) -> tuple[np.ndarray, np.ndarray]:
        """The kind of each record of both sides: two of one kind have score 1, others less."""
        found: tuple[np.ndarray, np.ndarray] = self.keep("kinds", lambda: _kinds_of(self))
        return found

    def keep(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` returns, worked out once for each key."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def keep_last(
        self, name: str, fits: Callable[[Any], bool], key: Any, make: Callable[[], Any]
    ) -> Any:
        """What was made last under this name, if its key fits; else what `make` returns."""
        known = self._kept.get(name)
        if known is None or not fits(known[0]):
            known = self._kept[name] = (key, make())
        return known[1]


def _taken(records: Records, rows: np.ndarray) -> Records:
    sizes = np.diff(records.starts)[rows]
    starts = np.zeros(rows.size + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    at = np.arange(starts[-1]) + np.repeat(records.starts[rows] - starts[:-1], sizes)
    return Records(starts, records.elements[at])


def _numbered(
    tables: tuple[inputs.Table, ...], similarity: str, q: int
) -> tuple[Sequence[Any], list[np.ndarray]]:
    """The distinct elements of all sides in order, and the place of each side's elements there."""
    sides = [table.distinct for table in tables]
    if tables[0].ascend and len(tables) == 1:
        return sides[0], [np.arange(len(sides[0]))]
    if similarity == "equal" and all(set(map(type, side)) <= {int} for side in sides):
        try:
            arrays = [np.array(side, np.int64) for side in sides]
        except OverflowError:
            pass
        else:
            values = np.sort(np.concatenate(arrays))
            values = values[np.diff(values, prepend=values[:1] - 1) != 0]
            return values.tolist(), [np.searchsorted(values, side) for side in arrays]
    ordered = _in_order({value for side in sides for value in side}, similarity, q)
    place = {value: i for i, value in enumerate(ordered)}
    return ordered, [np.fromiter(map(place.__getitem__, s), np.int32, len(s)) for s in sides]


def _in_order(values: set[Any], similarity: str, q: int) -> list[Any]:
    """Elements by (length as it is compared, text), integers by their value."""
    ordered = sorted(values)
    if similarity == "edit":
        ordered.sort(key=len)
    elif similarity != "equal":
        ordered.sort(key=lambda text: -(-len(text) // q))
    return ordered


def _tokenised(
    cpu: Any, values: Sequence[Any], occurrences: np.ndarray, similarity: str, q: int
) -> tuple[Elements, Any]:
    none, nothing = np.zeros(1, np.int64), np.empty(0, np.uint32)
    if similarity == "equal":
        order = np.argsort(occurrences, kind="stable")
        tokens = cpu.single(order)
        return Elements(tokens.starts, tokens.tokens, none, nothing), tokens
    grams = cpu.grams(values, q, similarity != "edit")
    edit = similarity != "jaccard"
    tokens = cpu.tokens(grams, occurrences, q if edit else 0)
    if edit:
        return Elements(tokens.starts, tokens.tokens, grams.text_starts, grams.text), tokens
    return Elements(tokens.starts, tokens.tokens, none, nothing), tokens


# Which records have score 1 with each other
#
# A score is 1 where every element has a partner of similarity 1.  Elements of similarity 1 are
# equal or, by Jaccard, made of the same tokens: "ab" and "ba" are for q = 1.  Either way they fall
# into kinds, and two records have score 1 exactly where they have the same kinds of elements, each
# as often.  So nothing has to be matched to know it.


def _kinds_of(prepared: Any) -> tuple[np.ndarray, np.ndarray]:
    """A number for each record of both sides."""
    kinds = _kinds_of_elements(prepared)
    known: dict[bytes, int] = {}
    found = []
    for starts, elements in prepared.records:
        owners = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        parts = kinds[elements]
        parts = parts[np.lexsort((parts, owners))]
        found.append(_alike(parts, starts, known))
    return found[0], found[-1]


def _kinds_of_elements(prepared: Any) -> np.ndarray:
    if prepared.similarity != "jaccard":
        return np.arange(len(prepared.values), dtype=np.int32)
    return _alike(prepared.elements.tokens, prepared.elements.starts, {})


def _alike(parts: np.ndarray, starts: np.ndarray, known: dict[bytes, int]) -> np.ndarray:
    """A number for each stretch of `parts`, the same for equal ones."""
    content, width = parts.tobytes(), parts.itemsize
    bounds = itertools.pairwise((starts * width).tolist())
    numbers = (known.setdefault(content[a:b], len(known)) for a, b in bounds)
    return np.fromiter(numbers, np.int32, starts.size - 1)


# The two sides of a join, and the groups of their records


def read_sides(
    caller: str, left: Any, right: Any, options: dict[str, Any]
) -> tuple[Collection, Collection | None]:
    """Both sides as collections; None on the right for a join with itself."""
    on, left_on, right_on = (options[name] for name in ("on", "left_on", "right_on"))
    if on is not None and (left_on is not None or right_on is not None):
        raise ValueError(f"{caller}: give on, or left_on and right_on, not both")
    if right is None and right_on is not None:
        raise ValueError(f"{caller}: right_on needs a right table")
    mine, theirs = on if left_on is None else left_on, on if right_on is None else right_on
    first = _side(caller, "left", left, mine, options)
    if right is None:
        return first, None
    same = mine is theirs or (isinstance(mine, (str, int)) and mine == theirs)
    if right is left and same:  # read once
        return first, first
    second = _side(caller, "right", right, theirs, options)
    if (first.similarity, first.q) != (second.similarity, second.q):
        raise ValueError(
            f"{caller}: both collections must be made with one similarity and q, got "
            f"{first.similarity!r}, {first.q} and {second.similarity!r}, {second.q}"
        )
    both = first.table.distinct and second.table.distinct
    if both and first.table.are_text != second.table.are_text:
        raise TypeError(f"{caller}: one side holds text and the other integers")
    return first, second


def _side(caller: str, name: str, data: Any, on: Any, options: dict[str, Any]) -> Collection:
    similarity, q = options["similarity"], options["q"]
    if isinstance(data, Collection):
        for option in ("separator", "normalise"):
            if options[option] is not None:
                raise ValueError(
                    f"{caller}: {option} belongs to collection(...), and {name} is one already"
                )
        return data
    return make(data, caller, name, similarity, q, on, options["separator"], options["normalise"])


def read_groups(
    caller: str, by: Any, left: Collection, right: Collection | None
) -> tuple[np.ndarray, ...] | None:
    """A number for each record, the same for equal values; -1 where the value is missing."""
    if by is None:
        return None
    sides = (left,) if right is None else (left, right)
    if isinstance(by, Iterator):  # it is read more than once
        by = list(itertools.chain(by))
    known: dict[Any, int] = {}
    found = []
    for i, side in enumerate(sides):
        values = _values(caller, by, i, side, len(sides))
        if len(values) != len(side):
            raise ValueError(
                f"{caller}: by must have a value for each record, got {len(values)} for {len(side)}"
            )
        try:
            numbers = [
                -1 if inputs.is_missing(v) else known.setdefault(v, len(known)) for v in values
            ]
        except Exception as error:  # whatever comparing them raises
            raise TypeError(
                f"{caller}: by must hold values that can be compared: {error}"
            ) from error
        found.append(np.array(numbers, np.int64).reshape(-1))
    return tuple(found)


def _values(caller: str, by: Any, side: int, collection: Collection, sides: int) -> list[Any]:
    name = ("left", "right")[side]
    if inputs.is_table(collection.data) and (isinstance(by, str) or not _iterable(by)):
        return inputs.column(collection.data, caller, name, by)
    if isinstance(by, str):
        raise TypeError(f"{caller}: by names a column, and {name} is no table")
    if inputs.is_table(collection.data) and all(isinstance(one, str) for one in by):
        columns = [inputs.column(collection.data, caller, name, one) for one in by]
        rows = zip(*columns, strict=True)
        return [None if any(map(inputs.is_missing, row)) else row for row in rows]
    if sides == 2:
        if not isinstance(by, (tuple, list)) or len(by) != 2:
            raise TypeError(f"{caller}: by must be a pair of sequences, one for each side")
        by = by[side]
    if isinstance(by, (str, bytes)) or not _iterable(by):
        kind = type(by).__name__
        raise TypeError(f"{caller}: by must hold a value for each record of {name}, got {kind}")
    return inputs.values(by, caller, "by")


def _iterable(value: Any) -> bool:
    """Whether it can be iterated over; memoryviews of some formats raise NotImplementedError."""
    try:
        iter(value)
    except (TypeError, NotImplementedError):
        return False
    return True
