"""Records, tables, options and results of joins that are not what they seem.

Lists whose length lies, lists that another thread changes, texts of classes that lie, Arrow arrays
over hostile buffers, options of every wrong kind, and pairs that were overwritten.  What comes of
it is the answer for the plain lists, by the definition, or an error that begins with the name of
the function.  Wrong sparse matrices are in public_calls.py.

Run as a program: ``join_inputs.py FIRST END [SEED]``; children.py says how that is told.
"""

from __future__ import annotations

import collections
import copy
import enum
import functools
import inspect
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import matchwood as mw
from adversarial.children import Attack, make
from adversarial.join_cases import LEAST, pairs_of_sets, triples
from matchwood import check
from matchwood.errors import CheckFailed, EngineUnavailable

ROWS = [["ab", "cd"], ["cd", "ab"], ["ab", "x"], ["xyz"], [], ["ab", "cd", "xyz"]]
NUMBERS = [[1, 2], [2, 1], [1, 3], [7], [], [1, 2, 7]]


def judged(call: Callable[[], Any], wanted: Any, *names: str) -> str:
    """What is wrong with what a call gives; "" for the answer wanted, or an error with a name.

    `wanted` None: any answer will do.
    """
    try:
        found = call()
    except (TypeError, ValueError, CheckFailed, EngineUnavailable) as error:
        if str(error).startswith(tuple(f"{name}: " for name in ("fuzzy_join", *names))):
            return ""
        if isinstance(error, EngineUnavailable):  # no GPU here
            return ""
        return f"an error without a name: {type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    right = wanted is None or (type(found) is type(wanted) and found == wanted)
    return "" if right else f"{found!r:.100} instead of {wanted}"


def joined(data: Any, **options: Any) -> Any:
    return triples(mw.fuzzy_join(data, delta=LEAST, similarity="equal", **options))


# Lists that lie


def lying(base: type, length: Any) -> type:
    """A class of lists whose length is not that of what it holds."""

    def told(self: Any) -> Any:
        if isinstance(length, Exception):
            raise length
        return length

    return type(f"Lying{base.__name__}", (base,), {"__len__": told})


class Protocol:
    """Iterated, and nothing else but a length."""

    def __init__(self, items: Any) -> None:
        self.items = list(items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)


class Changing(list):
    """Another list at each iteration, the first as it should be."""

    def __iter__(self) -> Iterator[Any]:
        items = [*super().__iter__()]
        self.extend(["more", "and", "more"] * 50)
        return iter(items)


class Shrinking(list):
    """Nothing is left after it was asked for its length."""

    def __len__(self) -> int:
        size = super().__len__()
        self.clear()
        return size


class Itself(Protocol):
    """Its own iterator, which also says how long it is."""

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if not self.items:
            raise StopIteration
        return self.items.pop(0)

    def __length_hint__(self) -> int:
        return 10**15


class Indexed:
    def __init__(self, items: Any) -> None:
        self.items = list(items)

    def __getitem__(self, at: int) -> Any:
        return self.items[at]

    def __len__(self) -> int:
        return len(self.items)


LENGTHS = (0, 1, 3, 10**6, 10**9, 10**15, sys.maxsize, -1, 2.5, RuntimeError("no length"))
FORMS: dict[str, Callable[[Any], Any]] = {
    **{
        f"{base.__name__} of length {length!r}": lying(base, length)
        for base in (list, tuple, Protocol, collections.deque, collections.UserList)
        for length in LENGTHS
    },
    "changing": Changing,
    "shrinking": Shrinking,
    "its own iterator": Itself,
    "indexed only": Indexed,
    "iterator": iter,
    "generator": lambda items: (item for item in items),
    "map": functools.partial(map, copy.copy),
    "dict keys": lambda items: dict.fromkeys(
        tuple(item) if type(item) is list else item for item in items
    ).keys(),
    "dict values": lambda items: dict(enumerate(items)).values(),
    "dict": lambda items: dict(enumerate(items)),
    "deque": collections.deque,
    "number": len,
    "array": lambda items: np.array([*items, None], object)[:-1],
    "0-d": lambda items: np.array(None),
}


def lists_that_lie() -> Iterator[Attack]:
    for rows in (ROWS, NUMBERS):
        wanted = pairs_of_sets(rows)
        for (outer, whole), (inner, part) in itertools.chain(
            itertools.product(FORMS.items(), [("list", list)]),
            itertools.product([("list", list), ("tuple", tuple)], FORMS.items()),
        ):
            what = f"{outer} of {inner} of {type(rows[0][0]).__name__}"

            def attack(whole: Any = whole, part: Any = part, rows: Any = rows, w: Any = wanted):
                empty = [] if part is len else None  # a number is no record, and never an empty one
                return judged(lambda: joined(whole([part(r) for r in rows])), empty or w)

            yield what, attack


def changed_by_a_thread(seed: int, size: int) -> str:
    """Each record repeats an element of its own, so that at no time there is a pair."""
    rows: list[Any] = [[f"r{i}"] * 2 for i in range(size)]
    over = threading.Event()

    def change() -> None:
        rng = np.random.default_rng(seed)
        while not over.is_set():
            for at, way, count in rng.integers((size, 20, 60), size=(100, 3)).tolist():
                if seed % 2 and way == 0:
                    rows.append([f"r{len(rows)}"])
                elif seed % 2 and way == 1 and len(rows) > size:
                    rows.pop()
                else:
                    rows[at][:] = [f"r{at}"] * count

    thread = threading.Thread(target=change)
    kept = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        return judged(lambda: joined(rows), [])
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(kept)


# Elements


class Text(str):
    """Lies about all that a text can be asked."""

    __slots__ = ()

    def __len__(self) -> int:
        return 10**9

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        return True

    def __str__(self) -> str:
        return Text("a lie")

    def __iter__(self) -> Any:
        return iter("lies")

    def split(self, *_: Any) -> Any:  # type: ignore[override]
        return [1, None, "lies"]


class Raising(str):
    __slots__ = ()

    def _raise(self, *_: Any) -> Any:
        raise RuntimeError("of the text")

    __hash__ = __eq__ = __str__ = __len__ = split = _raise  # type: ignore[assignment]


class Whole(int):
    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        return True

    def __int__(self) -> int:
        return 3

    def __index__(self) -> int:
        return 3


class Word(str, enum.Enum):  # noqa: UP042 - its str() is not its text
    ab, cd, x, xyz = "ab", "cd", "x", "xyz"


class Unhashable:
    __hash__ = None  # type: ignore[assignment]


def elements() -> Iterator[Attack]:
    same: dict[str, tuple[list[Any], Callable[[Any], Any]]] = {
        "texts that lie": (ROWS, Text),
        "texts that raise": (ROWS, Raising),
        "texts of NumPy": (ROWS, np.str_),
        "words of an enumeration": (ROWS, Word),
        "integers that lie": (NUMBERS, Whole),
        "small integers": (NUMBERS, np.uint8),
        "large integers": (NUMBERS, lambda number: number + 2**64),
        "texts with NUL": (ROWS, lambda text: f"\0{text}\0"),
        "long texts": (ROWS, lambda text: text * 20_000),
    }
    for what, (rows, form) in same.items():
        made = [[form(item) for item in row] for row in rows]
        wanted = pairs_of_sets(rows)
        yield what, lambda made=made, wanted=wanted: judged(lambda: joined(made), wanted)
    texts = [";".join(row) for row in ROWS]
    for form in (Text, Raising, np.str_):
        made = [form(text) for text in texts]
        yield (
            f"split {form.__name__}",
            lambda made=made: judged(lambda: joined(made, separator=";"), pairs_of_sets(ROWS)),
        )
    wrong = (
        None, np.nan, np.float32("nan"), 1.0, True, 3j, b"ab", bytearray(b"ab"), "\ud800", "\udfff",
        [], {}, set(), ("ab",), Unhashable(), object(), type, mw, Ellipsis, np.void(b"12"),
        np.datetime64("NaT"), np.array("ab"), np.array(["ab"]), np.ma.masked,
    )  # fmt: skip
    for similarity in ("equal", "jaccard", "edit"):
        for item in wrong:
            for row in ([item], [item, "ab"], ["ab", item], ["ab", item, 1]):
                yield (
                    f"{similarity} of {row!r:.60}",
                    lambda row=row, s=similarity: refused(
                        lambda: mw.fuzzy_join([["ab"], row], similarity=s)
                    ),
                )


def refused(call: Callable[[], Any], *names: str) -> str:
    """As `judged`, but there must be an error."""
    return judged(call, "an error", *names)


# Arrow


def arrow_columns(pa: Any) -> list[Any]:
    lists, numbers = [*ROWS, None], [*NUMBERS, None]
    texts = [";".join(row) for row in ROWS] + [None]
    coded = pa.dictionary(pa.int8(), pa.string())
    kinds = (pa.list_(pa.string()), pa.large_list(pa.large_string()), pa.list_view(pa.string()),
             pa.list_(pa.string_view()), pa.list_(coded))  # fmt: skip
    return [
        *(pa.array(lists, kind) for kind in kinds),
        pa.array(numbers, pa.list_(pa.int32())),
        pa.array([[1, 2], [2, 3], [1, 2]], pa.list_(pa.int64(), 2)),
        *(pa.array(texts, kind) for kind in (pa.string(), pa.large_string(), pa.string_view())),
        pa.array(texts).dictionary_encode(),
    ]


def spoilt_buffer(buffer: Any, rng: np.random.Generator) -> bytes:
    raw = np.frombuffer(buffer, np.uint8).copy()
    words = raw[: raw.size // 4 * 4].view(np.int32)
    way = int(rng.integers(4))
    if way == 0 and words.size:
        words[int(rng.integers(words.size))] = rng.choice([-1, 7, 10**8, 2**31 - 1, -(2**31)])
    elif way == 1:
        raw = raw[: int(rng.integers(raw.size + 1))]
    elif way == 2 and raw.size:
        raw[int(rng.integers(raw.size))] = rng.integers(256)
    else:
        raw[:] = rng.integers(256)
    return raw.tobytes()


def rebuilt(pa: Any, array: Any, rng: np.random.Generator) -> Any:
    """The array over other memory, of which a buffer, a length or an offset may be spoilt."""
    kind = array.type
    if isinstance(array, pa.DictionaryArray):
        codes = rebuilt(pa, array.indices, rng)
        return pa.DictionaryArray.from_arrays(codes, array.dictionary, safe=False)
    children = [rebuilt(pa, array.values, rng)] if kind.num_fields else []
    own = len(array.buffers()) - sum(len(child.buffers()) for child in children)
    buffers = array.buffers()[:own]
    if rng.random() < 0.5 and own:
        at = int(rng.integers(own))
        if buffers[at] is not None:
            buffers[at] = pa.py_buffer(spoilt_buffer(buffers[at], rng))
    length = len(array) if rng.random() < 0.8 else int(rng.integers(0, 60))
    nulls = -1 if rng.random() < 0.8 else int(rng.integers(0, 9))
    offset = array.offset if rng.random() < 0.8 else int(rng.integers(0, 5))
    return pa.Array.from_buffers(kind, length, buffers, nulls, offset, children)


def hostile_arrow(seed: int, draw: int) -> str:
    import pandas as pd
    import pyarrow as pa

    rng = np.random.default_rng((seed, draw))
    columns = arrow_columns(pa)
    column = columns[int(rng.integers(len(columns)))]
    try:
        made = rebuilt(pa, column, rng)
    except (ValueError, TypeError, NotImplementedError):
        return ""  # pyarrow itself refuses
    options = {} if column.type.num_fields else {"separator": ";"}
    try:
        made.validate(full=True)
        size = getattr(made.type, "list_size", 0)
        if len(getattr(made, "values", ())) < (made.offset + len(made)) * size:
            raise ValueError("pyarrow forgets the offset")
        rows = made.to_pylist()
        wanted = None if "separator" in options or None in rows else pairs_of_sets(rows)
    except (ValueError, IndexError):
        wanted = "an error"
    forms: tuple[Callable[[], Any], ...] = (
        lambda: joined(made, **options),
        lambda: joined(pa.chunked_array([made]), **options),
        lambda: joined(pa.table({"a": made}), on="a", **options),
        lambda: joined(pd.Series(made, dtype=pd.ArrowDtype(made.type)), **options),
        lambda: joined([["ab"]] * len(made), by=made),
        lambda: joined(type("S", (), {"__arrow_c_array__": made.__arrow_c_array__})(), **options),
    )
    way = int(rng.integers(len(forms)))
    return judged(forms[way], None if way == 4 and wanted != "an error" else wanted)


# Options

WRONG = (None, True, -1, 1, 2**31, 10**30, -(10**30), 0.0, 0.5, 5e-324, np.nan, np.inf, 3j, "",
         "ab", "\ud800", b"cpu", (), (0, 1), (0, 10**30), [[]], {}, object(), Unhashable(), len,
         np.array(3), np.array([1, 2]), np.zeros((2, 2)), np.datetime64("NaT"), iter(()),
         ("strip", None))  # fmt: skip


def options() -> Iterator[Attack]:
    for name, value in itertools.product(inspect.signature(mw.fuzzy_join).parameters, WRONG):
        if name == "engine" and isinstance(value, np.ndarray):
            continue  # engines.py reads it, for all functions
        what = f"{name} = {value!r:.40}"
        given = {"left": ROWS, "delta": 0.3, name: value}
        if name in ("k", "per_left"):
            del given["delta"]
        data = given.pop("left")
        call = functools.partial(mw.fuzzy_join, data, **given)
        yield f"fuzzy_join, {what}", functools.partial(judged, call, None)
    table = {"a": ROWS, "g": [1] * len(ROWS)}
    found = mw.fuzzy_join(ROWS, delta=0.3)
    calls: dict[str, Callable[..., Any]] = {
        "collection": lambda **o: mw.collection(**{"data": ROWS, **o}),
        "explain": lambda **o: mw.explain(**{"R": ROWS[0], "S": ROWS[1], **o}),
        "check_fuzzy_join": lambda **o: check.check_fuzzy_join(
            **{"pairs": found, "left": ROWS, "delta": 0.3, **o}
        ),
        "merge": lambda **o: found.merge(**{"left": ROWS, **o}),
    }
    public: dict[str, Any] = {
        "collection": mw.collection, "explain": mw.explain,
        "check_fuzzy_join": check.check_fuzzy_join, "merge": found.merge,
    }  # fmt: skip
    for function, call in calls.items():
        for name, value in itertools.product(inspect.signature(public[function]).parameters, WRONG):
            if name != "options":
                yield (
                    f"{function}, {name} = {value!r:.40}",
                    lambda call=call, function=function, g={name: value}: judged(
                        lambda: call(**g), None, function, "fuzzy join"
                    ),
                )
    for value in WRONG:
        for name in ("on", "by"):
            given = {"on": "a", name: value}
            yield (
                f"{name} = {value!r:.40} of a table",
                lambda g=given: judged(lambda: mw.fuzzy_join(table, **g), None),
            )
        yield (
            f"record {value!r:.40}",
            lambda v=value: judged(lambda: mw.collection(ROWS).record(v), None, "record"),
        )


# Results


def spoilt_results() -> Iterator[Attack]:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    arrays = [
        np.array([0, 1, -1]), np.array([0, 1, 10**9]), np.array([0, 1, 6]), np.array([0, 1]),
        np.array([0.0, 1.0, 2.0]), np.array([[0, 1, 2]]), np.array(["a", "b", "c"]), [0, 1, 9],
        None, 7, np.array([0, 1, 2**63], np.uint64), np.array([], np.int64), np.full(3, np.nan),
        np.array([0, 1, 2], object), "abc",
    ]  # fmt: skip
    plain = {"name": list("abcdef"), "tags": ROWS}
    uses: dict[str, Callable[[Any], Any]] = {
        "merge a list": lambda p: p.merge(ROWS),
        "merge left": lambda p: p.merge(ROWS, how="left"),
        "merge anti": lambda p: p.merge(ROWS, how="anti"),
        "merge pandas": lambda p: p.merge(pd.DataFrame(plain)),
        "merge polars": lambda p: p.merge(pl.DataFrame(plain), how="left"),
        "merge arrow": lambda p: p.merge(pa.table(plain)),
        "graph": lambda p: p.graph(),
        "check": lambda p: p.check(ROWS),
        "to_pandas": lambda p: p.to_pandas(),
        "to_polars": lambda p: p.to_polars(),
        "to_arrow": lambda p: p.to_arrow(),
        "repr": repr,
    }
    found = mw.fuzzy_join(ROWS, delta=0.5)
    for (use, call), name in itertools.product(uses.items(), ("left", "right", "score")):
        for array in arrays:
            pairs = copy.copy(found)
            setattr(pairs, name, array)
            wrong = judged_pairs(pairs, use)
            yield (
                f"{use} with {name} = {array!r:.40}",
                lambda p=pairs, call=call, wrong=wrong, use=use: judged(
                    lambda: call(p), "an error" if wrong else None,
                    use.split()[0], "check_fuzzy_join", "fuzzy join",
                ),
            )  # fmt: skip
    made = mw.collection(ROWS)
    for name, value in itertools.product(("q", "similarity", "table", "data"), WRONG):
        yield f"collection.{name} = {value!r:.40}", lambda n=name, v=value: overwritten(made, n, v)
    yield "the arrays of a collection", written_into


def judged_pairs(pairs: Any, use: str) -> bool:
    """Whether rows of these pairs are none of the six, so that no method may use them."""
    rows = [pairs.left, pairs.right]
    if use in ("check", "repr"):  # looked at one by one; not looked at
        return False
    return any(
        r.ndim != 1 or r.dtype.kind not in "iu" or np.any((r < 0) | (r >= len(ROWS)))
        for r in map(np.asarray, rows)
    ) or np.size(rows[0]) != np.size(rows[1])  # fmt: skip


def overwritten(made: Any, name: str, value: Any) -> str:
    """A collection that was changed is refused, or cannot be changed."""
    forged = copy.copy(made)
    try:
        setattr(forged, name, value)
    except AttributeError:
        return ""
    wanted = mw.fuzzy_join(ROWS, delta=0.3)
    return judged(lambda: triples(mw.fuzzy_join(forged, delta=0.3)), triples(wanted))


def written_into() -> str:
    """Nobody can write to the arrays that kernels will trust."""
    made = mw.collection(ROWS)
    held: list[Any] = [value for value in vars(made).values() if isinstance(value, tuple)]
    arrays = [array for value in held for array in value if isinstance(array, np.ndarray)]
    for array in arrays:
        try:
            array.setflags(write=True)
            array[:] = 10**8
        except ValueError:
            continue
        return "an array of a collection was written to"
    return judged(lambda: triples(mw.fuzzy_join(made, delta=0.3)), None) if arrays else "no arrays"


def attacks(end: float, seed: int) -> Iterator[Attack]:
    """Each in turn, and then lists under threads and hostile buffers until the time is over."""
    joined(ROWS)  # what compiles does so before anything is attacked

    def drawn() -> Iterator[Attack]:
        for k in itertools.count():
            thread = functools.partial(changed_by_a_thread, seed + k, 20_000)
            yield f"a thread, seed {seed}, draw {k}", thread
            for j in range(30 * k, 30 * k + 30):
                yield f"arrow, seed {seed}, draw {j}", functools.partial(hostile_arrow, seed, j)

    at_random = drawn()
    yield from lists_that_lie()
    yield from elements()
    yield from itertools.islice(at_random, 310)
    yield from options()
    yield from spoilt_results()
    for attack in at_random:
        if time.time() > end:
            return
        yield attack


if __name__ == "__main__":
    first, end, seed = [*sys.argv[1:], "0"][:3]
    make(attacks(float(end), int(seed)), int(first))
