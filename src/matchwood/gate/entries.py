"""Entries that have passed the gate: of a square matrix (`Graph`) or of any (Rectangle).

The arrays are checked once, when they are given.  Views are made when first needed, and kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from matchwood import arguments, engines
from matchwood.engines.devices import machine as machines
from matchwood.engines.devices.machine import Devices
from matchwood.gate import holding, inputs, refusals
from matchwood.gate.rules import EntryRules
from matchwood.gate.views import View, sparse_matrix
from matchwood.primitives.assemble import REDUCE, trusted_canonical
from matchwood.primitives.inspect import structure
from matchwood.primitives.patterns import NUMBERS, contiguous, one_place

DUPLICATES = (None, "sum", "min", "max", "first", "error")
RULES = tuple(rule for rule in REDUCE if rule != "keep")  # after which each entry is stored once

Same = TypeVar("Same", bound="Entries")
T = TypeVar("T")


class Entries(EntryRules):
    """Checked arrays as they were given, and views of them with sorted rows."""

    _own = False  # nobody else has the arrays
    _frozen = False  # the arrays are read-only, and watched where they are the caller's
    _watch: holding.Watch | None = None

    def __init__(
        self,
        raw: inputs.Raw,
        index_dtype: Any,
        caller: str,
        duplicates: str | None = None,
        memory: str = "borrowed",
    ) -> None:
        """`memory` says whose the arrays are: see holding.py."""
        indptr = inputs.as_indices(raw.indptr, "indptr", caller)
        indices = inputs.as_indices(raw.indices, "indices", caller)
        if indptr.dtype != indices.dtype:
            indptr, indices = (a.astype(np.int64, copy=False) for a in (indptr, indices))
        data = raw.data if memory == "borrowed" or raw.own else holding.plain_values(raw.data)
        if memory == "copied" and not raw.own:  # before it is checked: others may write to theirs
            pairs = [(indptr, raw.indptr), (indices, raw.indices), (data, raw.data)]
            indptr, indices, data = holding.copies(pairs)
        self.shape = rows, columns = raw.shape
        self.engine = engines.location(indices)
        refusals.refuse_length(indptr, rows, caller)
        self._structure = structure(indptr, indices, columns)
        if raw.spare and self._structure.fault == "indptr_end" and 0 <= int(indptr[-1]):
            end = int(indptr[-1])
            indices, data = indices[:end], data[:end]
            self._structure = structure(indptr, indices, columns)
        refusals.refuse_fault(self._structure, indptr, indices, columns, caller)
        self.nnz = int(indices.shape[0])
        kind = refusals.index_kind(max(rows, columns), self.nnz, index_dtype, caller)
        self._indptr = indptr.astype(kind, copy=False)
        self._indices = indices.astype(kind, copy=False)
        self._source = data
        self._own = raw.own or memory in ("adopted", "copied")
        self.edges = raw.edges
        self._ordered = raw.ordered
        self.duplicates = duplicates
        super().__init__()
        if memory != "borrowed":
            self.watched()
        if duplicates == "error" and self.directed_pattern().nnz < self.nnz:
            refusals.refuse_duplicates(self._indptr, self._indices, caller)

    def raw(self) -> inputs.Raw:
        """The arrays as they were given, to make another object of them."""
        self.require_unchanged("graph")
        arrays = (self._indptr, self._indices, self._source)
        raw = inputs.Raw(self.shape[0], *arrays, self.edges, self._ordered, self.shape[1])
        return raw._replace(own=self._own)

    # Memory

    @property
    def owns_memory(self) -> bool:
        """Whether nobody else has the arrays."""
        return self._own

    def watched(self: Same) -> Same:
        """This object, for one that outlives the call: our arrays become read-only, and those of
        the caller are watched."""
        with self._lock:
            if self._frozen:
                return self
            data = self._source = holding.plain_values(self._source)
            if not self._own:
                values = None if isinstance(data, inputs.Column) else data
                arrays = {"indptr": self._indptr, "indices": self._indices, "data": values}
                self._watch = holding.Watch.of(**arrays)
            else:
                self._indptr, self._indices = map(engines.frozen, (self._indptr, self._indices))
                self._source = holding.frozen(data)
            self._kept = {k: holding.frozen(value, self._watch) for k, value in self._kept.items()}
            self._frozen = True
        return self

    def require_unchanged(self, caller: str) -> None:
        """Raise if the caller's memory, where it is watched, holds something else now."""
        changed = [] if self._watch is None else self._watch.changed()
        if changed:
            raise ValueError(
                f"{caller}: A must stay as it was when its graph was made, got other values of "
                f"{' and '.join(changed)}; make the graph anew, or with graph(A, copy=True)"
            )

    def made(self, make: Callable[[], T]) -> T:
        """What `make` computes from the arrays, read-only where it is kept."""
        self.require_unchanged("graph")
        made: T = holding.frozen(make(), self._watch) if self._frozen else make()
        return made

    def __reduce__(self) -> Any:
        """A copy, or an unpickled object, has memory of its own and passes the gate."""
        raw = self.raw()
        if not raw.own:
            arrays = (raw.indptr, raw.indices, holding.plain_values(raw.data))
            indptr, indices, data = holding.copies([(array, array) for array in arrays])
            raw = raw._replace(indptr=indptr, indices=indices, data=data, own=True)
        return type(self), (raw, self.index_dtype, "graph", self.duplicates, "adopted")

    @property
    def weighted(self) -> bool:
        return self._source is not None

    @property
    def ascending(self) -> bool:
        return self._structure.ascending

    @property
    def index_dtype(self) -> Any:
        return self._indptr.dtype

    @property
    def longest_row(self) -> int:
        """Stored entries of the longest row, as given."""
        return self._structure.longest

    def given_values(self, caller: str) -> Any:
        """The values as they were given, of any type, or None.  A Column is read at first use."""
        column = self._source
        if not isinstance(column, inputs.Column):
            return column

        def read() -> Any:
            array = column.read(caller)
            if self.engine == "gpu" and isinstance(inputs.carried(array), inputs.Column):
                inputs.as_weights(array, caller)  # raises: no GPU array can hold this type
            return engines.moved(array, self.engine)

        return self.keep("column", read)

    def entries(self) -> View:
        """The arrays as they were given, checked: rows may be unsorted and hold duplicates.

        For problems whose results do not depend on that.
        """
        return View(self._indptr, self._indices)

    def joined(self, rule: str, caller: str) -> View:
        given = self.given_values(caller)
        weights = inputs.as_weights(given, caller)
        if self.ascending:
            return View(self._indptr, self._indices, weights)
        if rule != "sum":
            refusals.refuse_infinite(View(self._indptr, self._indices, weights), caller)
        view = self.canonical(weights, rule)
        if rule == "sum":
            refusals.refuse_overflow(weights, view.data, given.dtype.kind in "iu", caller)
        return view

    def canonical(self, data: Any, rule: str = "sum") -> View:
        """The entries with sorted rows and these values, duplicates joined by `rule`.

        `data` has a number for each entry as it was given, in the order of `entries`, on the same
        engine; or it is None.  `rule` is that of `primitives.assemble`, except "keep".
        """
        caller = f"{type(self).__name__}.canonical"
        self.require_unchanged(caller)
        arguments.one_of(caller, "rule", rule, RULES)
        if data is not None:
            data = contiguous(arguments.vector(caller, "data", data, NUMBERS))
            arguments.same_size(caller, "data", data, "the entries", self._indices)
            one_place(caller, self._indices, data)
        arrays = (self._indptr, self._indices, data, self.shape[1])
        return View(*trusted_canonical(*arrays, reduce=rule, ordered=self._ordered))

    def matrix(self, caller: str = "graph") -> View:
        """The matrix itself: sorted rows, values of the type that was given, or None.

        Where duplicates have to be joined, values become weights.
        """
        if not self.weighted:
            return self.directed_pattern()
        if self.ascending:
            values = self.given_values(caller)
            if values.dtype.kind not in "biufc":
                raise TypeError(f"{caller}: A must hold numbers, got dtype {values.dtype}")
            return View(self._indptr, self._indices, values)
        return self.directed_weights(caller)

    def sparse(self, caller: str = "graph") -> Any:
        """`matrix` as a SciPy or CuPy CSR matrix, over the same memory; without values, of ones."""
        return sparse_matrix(*self.matrix(caller), self.shape)

    def on(self: Same, engine: Any) -> Same:
        """The same with its arrays on that engine; itself when they are there.

        On a `Devices`: itself, on the CPU, checked that those devices are there.  What they need of
        it (pinned memory, rows that fit) stays with it from the first call on.
        """
        if isinstance(engine, Devices):
            machines.require(engine, f"{type(self).__name__}.on")
            return self.on("cpu")
        arguments.one_of(f"{type(self).__name__}.on", "engine", engine, engines.ENGINES)
        place = engines.home(engine)
        if place == self.engine:
            return self

        def make() -> Same:
            raw = self.raw()
            data = raw.data
            if not isinstance(data, inputs.Column):
                data = engines.moved(data, place)
            indptr, indices = (engines.moved(a, place) for a in (raw.indptr, raw.indices))
            there = raw._replace(indptr=indptr, indices=indices, data=data, own=True)
            return type(self)(there, indptr.dtype, "graph", self.duplicates, "adopted")

        return self.keep(place, make)
