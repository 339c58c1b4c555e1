"""The arrays with which one thread verifies pairs, and rows of similarities made one at a time.

A row is made from the tokens that it shares with the columns.  Most similarities are 0.  So the
tokens of the columns go into a hash table, each with the chain of columns that have it, and a row
is made by walking the chains of its own tokens.  Where few elements are left, merging token lists
is quicker.

Edit similarity has no such table: every element pair is compared.  Short plain texts are compared
sixteen rows at a time; else a row is made alone, with a cut-off where only its best is wanted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments
from matchwood.applications.join import Elements, Records
from matchwood.applications.join.similarity import SIMILARITIES
from matchwood.applications.join.similarity.cpu import (
    DIRECT,
    EDIT,
    EQUAL,
    JACCARD,
    LANES,
    LONGEST,
    ONE,
    SLOTS,
    Lanes,
    Pattern,
    clear_lane,
    clear_pattern,
    edit_to,
    fits_lane,
    fixed,
    jaccard,
    open_pattern,
    ratios,
    set_lane,
    sweep,
    text_of,
)
from matchwood.applications.join.verification import METHODS, MODES
from matchwood.engines.cpu import Team, device, inlined, stopping
from matchwood.memory import require_memory

CERTIFIED, EXACT, EARLY, GREEDY, DOMINANT, STREAMING = 0, 1, 2, 3, 4, 5

MOST_EDGES = 1 << 19  # edges in a thread's scratch: 6 MB.  A pair with more gets a larger scratch
EDGE_BYTES = 16  # column, weight, and for the greedy matching a place in the order
LINE_ENTRIES = 16  # of 4 bytes in a cache line
STACK_ENTRIES = 4  # entries of the stack for each element, both records as large as the larger

COMPARED_PAIRS = 16  # element pairs; up to 16 are compared one by one.  Measured on the Yelp sample
_SPREAD = 2654435769  # 2^32 / golden ratio
MARKS_PER_TOKEN = 16  # bytes of `present` for each token: few tokens share one by chance
MOST_MARKS = 1 << 16  # bytes of `present`, which stay in the cache
FREE = np.int64(-1)  # a slot without a token
END = np.int64(0xFFFFFFFF)  # instead of an entry: the end of a chain; and the bits of an entry
FAR = np.int64(0x7FFFFFFFFFFFFFFF)  # a distance that nothing has
STOPPED = -2  # a verdict: the team stops


# The arrays


class How(NamedTuple):
    """How a pair is verified, as kernels read it."""

    similarity: int  # JACCARD, EDIT, EQUAL of similarity/cpu.py
    method: int  # CERTIFIED to STREAMING
    bound: int  # 1: the upper bound of the matching counts, for the last three methods
    scores: int  # 1: the weight must be the exact one, not only the verdict


class Sides(NamedTuple):
    """The elements that are left when equal ones are matched; rows and columns are numbered."""

    rows: np.ndarray  # int32: element of each row
    columns: np.ndarray  # int32: element of each column


class Table(NamedTuple):
    """In which columns each token occurs: a hash table of chains."""

    slots: np.ndarray  # int64, a power of two: token << 32 | its first entry, -1 = free
    entries: np.ndarray  # int64: column << 32 | the next entry of the same token
    shared: np.ndarray  # int32: tokens that a column shares with the row at work; else 0
    touched: np.ndarray  # int32: the columns that share any
    present: np.ndarray  # uint8, a power of two: 1 where some column has a token of that hash


class Edges(NamedTuple):
    """The similarities that are not 0, row by row."""

    starts: np.ndarray  # int64
    columns: np.ndarray  # int32
    weights: np.ndarray  # int64, units of 2^-40
    row_best: np.ndarray  # int64: the heaviest edge of a row
    row_choice: np.ndarray  # int32: its column
    column_best: np.ndarray  # int64
    column_choice: np.ndarray  # int32: its row


class Solver(NamedTuple):
    """A matching and dual variables; u[row] + v[column] >= weight for every edge."""

    row_mate: np.ndarray  # int32, -1 = free
    column_mate: np.ndarray  # int32, -1 = free
    row_dual: np.ndarray  # int64; before the solver starts, what a row can weigh at most
    column_dual: np.ndarray  # int64
    distance: np.ndarray  # int64: from the row that is being matched; FAR between two searches
    reached_from: np.ndarray  # int32: the row before a column on its shortest path
    reached: np.ndarray  # int32: columns with a distance; the finished ones first
    order: np.ndarray  # int32: edges by weight, for the greedy matching; else empty


class Stack(NamedTuple):
    """The edges that a streaming matching keeps."""

    rows: np.ndarray  # int32
    columns: np.ndarray  # int32
    weights: np.ndarray  # int64


class Scratch(NamedTuple):
    """All arrays.  The host's have a leading axis of threads; `mine` takes one thread's."""

    sides: Sides
    table: Table
    edges: Edges
    solver: Solver
    stack: Stack
    pattern: Pattern
    lanes: Lanes


@device
def least_weight(share: float, left: int, right: int) -> Any:
    """The least weight of a pair that is reported, for records of `left` and `right` elements.

    `share` is d / (1 + d) with d = delta - 1e-9.  Each of the at most min(left, right) similarities
    was rounded by half a unit, so a unit for each is given: no pair at the threshold is lost.  At
    least 1: records with nothing in common are no pair.
    """
    return max(np.int64(np.floor(share * (left + right) * ONE)) - min(left, right), 1)


def mine(scratch: Any, me: int) -> Scratch:
    """The arrays of one member of the team."""
    return Scratch(*(part._make(array[me] for array in part) for part in scratch))


def how(caller: str, similarity: str, verify: str, mode: str, scores: bool) -> How:
    """The choice of a call, checked, as kernels read it."""
    arguments.one_of(caller, "similarity", similarity, SIMILARITIES)
    arguments.one_of(caller, "verify", verify, METHODS)
    arguments.one_of(caller, "mode", mode, MODES)
    kinds = {"jaccard": JACCARD, "equal": EQUAL}
    return How(
        kinds.get(similarity, EDIT),
        METHODS.index(verify),
        int(mode == "bound"),
        int(scores),
    )


def scratch(
    elements: Elements,
    left: Records,
    right: Records,
    how: How,
    threads: int,
    *,
    edges: int | None = None,
    tokens: int | None = None,
    largest: tuple[int, int] | None = None,
) -> Scratch:
    """Arrays for `threads` threads, large enough for any pair of these records.

    Edges are the exception: `edges` of them, or at most `MOST_EDGES`.  A pair with more is not
    verified; its number of edges is returned with NO_ROOM.  `tokens`, the result of `most_tokens`,
    and `largest`, elements of the largest record of each side: given where known already.
    """
    fewer, most = sorted(largest or (_most(left.starts), _most(right.starts)))
    room = fewer * most
    is_edit = how.similarity == 1
    streams = how.method == STREAMING
    wanted = min(room, MOST_EDGES) if edges is None else edges
    stack = (STACK_ENTRIES * 2 * most if edges is None else edges) if streams else 0
    kept = most if streams else max(wanted, most)
    if edges is not None:
        require_memory(
            "fuzzy_join",
            EDGE_BYTES * edges,
            f"a pair with {edges} similar pairs of elements (verify='streaming' keeps few of them)",
        )
    if is_edit:
        tokens = 0
    elif tokens is None:
        tokens = most_tokens(elements, left)
        if right is not left:
            tokens = max(tokens, most_tokens(elements, right))
    slots = 4
    while slots < 2 * tokens:
        slots *= 2
    longest = int(np.diff(elements.text_starts).max(initial=0)) if is_edit else 0

    def arrays(size: int, *kinds: str) -> list[np.ndarray]:
        # the system clears a page when a thread first writes to it
        return [np.zeros((threads, size), kind) for kind in kinds]

    wide = apart(most)
    solver = Solver(
        *arrays(wide, "i4", "i4", "i8", "i8", "i8", "i4", "i4"),
        *arrays(kept if how.method == GREEDY else 0, "i4"),
    )
    solver.distance[:] = FAR
    ones = np.ones((2, threads, LANES), np.uint32)
    return Scratch(
        Sides(*arrays(wide, "i4", "i4")),
        Table(
            *arrays(slots, "i8"),
            *arrays(apart(tokens), "i8"),
            *arrays(wide, "i4", "i4"),
            *arrays(_marks(tokens), "u1"),
        ),
        Edges(
            *arrays(wide, "i8"), *arrays(kept, "i4", "i8"), *arrays(wide, "i8", "i4", "i8", "i4")
        ),
        solver,
        Stack(*arrays(stack, "i4", "i4", "i8")),
        Pattern(*arrays(DIRECT, "u8"), *arrays(SLOTS, "u4", "u8"), *arrays(longest, "i1")),
        Lanes(
            np.zeros((threads, DIRECT + 1, LANES), np.uint32),
            np.zeros((threads, 3 * LANES), np.uint32),
            ones[0],
            ones[1],
            np.repeat(ratios()[None], threads, axis=0),
        ),
    )


def apart(size: int) -> int:
    """A width for the rows of several members, in which `size` entries of 4 bytes or more are used.

    The unused ones are a cache line at least: what two members write is never on one line.
    """
    return -(-size // LINE_ENTRIES) * LINE_ENTRIES + LINE_ENTRIES


def _marks(tokens: int) -> int:
    size = 1
    while size < min(MARKS_PER_TOKEN * tokens, MOST_MARKS):
        size *= 2
    return size


def _most(starts: np.ndarray) -> int:
    return int(np.diff(starts).max(initial=0))


def most_tokens(elements: Elements, records: Records) -> int:
    """The most tokens of any record, a token counted once for each element that has it."""
    counts = np.diff(elements.starts)[records.elements]
    first = records.starts[:-1][np.diff(records.starts) > 0]
    return int(np.add.reduceat(counts, first).max()) if first.size else 0


# Both sides


@device
def take_equal(left: np.ndarray, right: np.ndarray, sides: Sides) -> Any:
    """Match equal elements, write the others to `sides`; returns (equal, rows, columns).

    The elements of a record ascend, so one merge finds every element that is in both.
    """
    i, j, equal, rows, columns = 0, 0, 0, 0, 0
    while i < left.size and j < right.size:
        a, b = left[i], right[j]
        if a == b:
            equal += 1
            i += 1
            j += 1
        elif a < b:
            sides.rows[rows] = a
            rows += 1
            i += 1
        else:
            sides.columns[columns] = b
            columns += 1
            j += 1
    while i < left.size:
        sides.rows[rows] = left[i]
        rows += 1
        i += 1
    while j < right.size:
        sides.columns[columns] = right[j]
        columns += 1
        j += 1
    return equal, rows, columns


@device
def keep_all(left: np.ndarray, right: np.ndarray, sides: Sides) -> None:
    """Write all elements to `sides`, where matching equal ones first would be wrong."""
    for i in range(left.size):
        sides.rows[i] = left[i]
    for j in range(right.size):
        sides.columns[j] = right[j]


@device
def exchange_sides(sides: Sides, rows: int, columns: int) -> None:
    """Rows become columns; rows < columns <= the room of both arrays or the other way round."""
    for k in range(max(rows, columns)):
        sides.rows[k], sides.columns[k] = sides.columns[k], sides.rows[k]


# Jaccard: the table of tokens


@device
def index_columns(elements: Elements, sides: Sides, columns: int, table: Table) -> Any:
    """Put the tokens of the columns into the table.  Returns the shift of its hashes."""
    total = 0
    for c in range(columns):
        element = sides.columns[c]
        total += elements.starts[element + 1] - elements.starts[element]
    bits = 2
    while (1 << bits) < 2 * total:
        bits += 1
    shift, last = 32 - bits, (1 << bits) - 1
    slots, entries = table.slots, table.entries
    slots[: 1 << bits] = FREE
    entry = 0
    for c in range(columns):
        element = sides.columns[c]
        for k in range(elements.starts[element], elements.starts[element + 1]):
            token = np.int64(elements.tokens[k])
            slot = ((token * _SPREAD) & 0xFFFFFFFF) >> shift
            while slots[slot] != FREE and slots[slot] >> 32 != token:
                slot = (slot + 1) & last
            before = END if slots[slot] == FREE else slots[slot] & END
            entries[entry] = np.int64(c) << 32 | before
            slots[slot] = token << 32 | entry
            entry += 1
    return shift


@device
def touch_columns(elements: Elements, element: int, shift: int, table: Table) -> Any:
    """Count the tokens that each column shares with the element.  Returns the columns with any."""
    slots, entries, shared = table.slots, table.entries, table.shared
    last = (1 << (32 - shift)) - 1
    touched = 0
    for k in range(elements.starts[element], elements.starts[element + 1]):
        token = np.int64(elements.tokens[k])
        slot = ((token * _SPREAD) & 0xFFFFFFFF) >> shift
        while slots[slot] != FREE and slots[slot] >> 32 != token:
            slot = (slot + 1) & last
        if slots[slot] == FREE:
            continue
        entry = slots[slot] & END
        while entry != END:
            column = entries[entry] >> 32
            if shared[column] == 0:
                table.touched[touched] = column
                touched += 1
            shared[column] += 1
            entry = entries[entry] & END
    return touched


@device
def sort_touched(table: Table, touched: int, columns: int) -> None:
    """Sort the touched columns: by a scan of all columns where many are, else by insertion."""
    if touched * touched > 4 * columns:
        k = 0
        for column in range(columns):
            if table.shared[column] > 0:
                table.touched[k] = column
                k += 1
        return
    for k in range(1, touched):
        column = table.touched[k]
        place = k
        while place > 0 and table.touched[place - 1] > column:
            table.touched[place] = table.touched[place - 1]
            place -= 1
        table.touched[place] = column


@device
def row_bounds(elements: Elements, rows: int, columns: int, space: Scratch) -> Any:
    """Upper bounds of the rows' weights (in `row_dual`), and their sum.

    A row of n tokens, p of which occur in any column, weighs at most p / n.  One byte for each hash
    of a token marks those that occur; two tokens of one hash make the bound larger, never wrong.
    """
    starts, tokens, marks = elements.starts, elements.tokens, space.table.present
    total = 0
    for c in range(columns):
        element = space.sides.columns[c]
        total += starts[element + 1] - starts[element]
    size = 1
    while size < min(MARKS_PER_TOKEN * total, MOST_MARKS):
        size *= 2
    marks[:size] = np.uint8(0)
    for c in range(columns):
        element = space.sides.columns[c]
        for k in range(starts[element], starts[element + 1]):
            marks[tokens[k] & (size - 1)] = 1
    most = np.int64(0)
    for row in range(rows):
        element = space.sides.rows[row]
        there = np.int64(0)
        for k in range(starts[element], starts[element + 1]):
            there += marks[tokens[k] & (size - 1)]
        bound = fixed(there, starts[element + 1] - starts[element])
        space.solver.row_dual[row] = bound
        most += bound
    return most


# One row


@device
def jaccard_row(
    elements: Elements, row: int, columns: int, shift: int, space: Scratch, ordered: bool
) -> Any:
    """Write the row's similarities at `starts[row]`; returns their number, also without room."""
    sides, table, edges = space.sides, space.table, space.edges
    element = sides.rows[row]
    place = edges.starts[row]
    if shift < 0:
        count = 0
        for c in range(columns):
            weight = jaccard(elements, element, sides.columns[c])
            if weight > 0:
                if place + count < edges.columns.size:
                    edges.columns[place + count] = c
                    edges.weights[place + count] = weight
                _note(edges, row, c, weight)
                count += 1
        return count
    count = touch_columns(elements, element, shift, table)
    if ordered:
        sort_touched(table, count, columns)
    size = elements.starts[element + 1] - elements.starts[element]
    for k in range(count):
        c = table.touched[k]
        other = sides.columns[c]
        both = size + elements.starts[other + 1] - elements.starts[other]
        weight = fixed(table.shared[c], both - table.shared[c])
        table.shared[c] = 0
        if place + k < edges.columns.size:
            edges.columns[place + k] = c
            edges.weights[place + k] = weight
        _note(edges, row, c, weight)
    return count


@device
def edit_row(team: Team, elements: Elements, row: int, columns: int, space: Scratch) -> Any:
    """As `jaccard_row`, for edit similarity: the pattern is made once for the row."""
    sides, edges = space.sides, space.edges
    element = sides.rows[row]
    place, count = edges.starts[row], 0
    first = text_of(elements, element)
    short = open_pattern(elements, element, space.pattern)
    for c in range(columns):
        other = sides.columns[c]
        weight = edit_to(team, elements, element, other, np.int64(1), space.pattern, short)
        if weight > 0:
            if place + count < edges.columns.size:
                edges.columns[place + count] = c
                edges.weights[place + count] = weight
            _note(edges, row, c, weight)
            count += 1
    if short:
        clear_pattern(space.pattern, elements.text, first[0], first[1])
    return count


@device
def best_edit(
    team: Team, elements: Elements, row: int, columns: int, least: int, space: Scratch
) -> Any:
    """The best similarity of a row, or -1 where none reaches `least`."""
    sides = space.sides
    element = sides.rows[row]
    first = text_of(elements, element)
    short = open_pattern(elements, element, space.pattern)
    best = np.int64(-1)
    for c in range(columns):
        other = sides.columns[c]
        weight = edit_to(team, elements, element, other, least, space.pattern, short)
        if weight > best and weight >= least:
            best = weight
            least = weight + 1
            if best == ONE:
                break
    if short:
        clear_pattern(space.pattern, elements.text, first[0], first[1])
    return best


@device
def rows_fit_lanes(elements: Elements, rows: int, columns: int, space: Scratch) -> bool:
    """True where `edit_rows` can make all rows: short plain texts, and room for all pairs."""
    if rows * columns > space.edges.columns.size:
        return False
    for row in range(rows):
        lo, hi = text_of(elements, space.sides.rows[row])
        if not fits_lane(elements.text, lo, hi):
            return False
    return True


@device
def edit_rows(elements: Elements, rows: int, columns: int, slack: int, space: Scratch) -> Any:
    """Make all rows of edit similarities, LANES at once, zeros too.  Returns their shortfall.

    Ends where they fall short by more than `slack`: the other rows are then not made.
    """
    sides, edges, lanes, text = space.sides, space.edges, space.lanes, elements.text
    lost = np.int64(0)
    for first in range(0, rows, LANES):
        count = min(LANES, rows - first)
        for k in range(count):
            lo, hi = text_of(elements, sides.rows[first + k])
            set_lane(lanes, k, text, lo, hi)
        for c in range(columns):
            start, stop = text_of(elements, sides.columns[c])
            sweep(lanes, text, start, stop)
            for k in range(count):
                longer = max(np.int64(lanes.lengths[k]), stop - start)
                edits = np.int64(lanes.state[2 * LANES + k])
                if longer <= LONGEST:
                    weight = lanes.ratios[longer, edits]
                else:
                    weight = fixed(longer - edits, longer)
                place = (first + k) * columns + c
                edges.columns[place] = c
                edges.weights[place] = weight
                _note(edges, first + k, c, weight)
        for k in range(count):
            lo, hi = text_of(elements, sides.rows[first + k])
            clear_lane(lanes, k, text, lo, hi)
            edges.starts[first + k + 1] = (first + k + 1) * columns
            lost += ONE - edges.row_best[first + k]
        if lost > slack:
            break
    return lost


@device
def _note(edges: Edges, row: int, column: int, weight: int) -> None:
    """Keep the heaviest edge of the row and of the column; the first of equal ones."""
    if weight > edges.row_best[row]:
        edges.row_best[row] = weight
        edges.row_choice[row] = column
    if weight > edges.column_best[column]:
        edges.column_best[column] = weight
        edges.column_choice[column] = row


@device
def reset_best(edges: Edges, rows: int, columns: int) -> None:
    """Set all best weights to 0, before the first row."""
    edges.starts[0] = 0
    for row in range(rows):
        edges.row_best[row] = 0
        edges.row_choice[row] = -1
    for column in range(columns):
        edges.column_best[column] = 0
        edges.column_choice[column] = -1


@device
def open_table(
    elements: Elements, sides: Sides, rows: int, columns: int, table: Table, similarity: int
) -> Any:
    """The shift of the table's hashes, or -1 where element pairs are compared one by one."""
    if similarity != JACCARD or rows * columns <= COMPARED_PAIRS:
        return -1
    return index_columns(elements, sides, columns, table)


@inlined
def token_row(
    team: Team,
    elements: Elements,
    row: int,
    columns: int,
    shift: int,
    space: Scratch,
    ordered: bool,
) -> Any:
    """The number of similarities of a row, which are written at `starts[row]`; or STOPPED."""
    if columns > 256 and stopping(team):
        return STOPPED
    return jaccard_row(elements, row, columns, shift, space, ordered)


@inlined
def text_row(
    team: Team,
    elements: Elements,
    row: int,
    columns: int,
    shift: int,
    space: Scratch,
    ordered: bool,
) -> Any:
    """As `token_row`, for edit similarity."""
    if stopping(team):
        return STOPPED
    return edit_row(team, elements, row, columns, space)


@inlined
def make_rows(
    team: Team,
    elements: Elements,
    rows: int,
    columns: int,
    shift: int,
    slack: int,
    space: Scratch,
    ordered: bool,
    make_row: Any,
) -> Any:
    """Make rows until they fall short of their bounds by more than `slack` in all.

    Returns (0, the shortfall of all rows), or (STOPPED, 0).  With a shortfall above `slack` the
    other rows were not made.  The bounds are in `row_dual`; those of edit similarities are 1.
    """
    edges = space.edges
    reset_best(edges, rows, columns)
    lost = np.int64(0)
    for row in range(rows):
        count = make_row(team, elements, row, columns, shift, space, ordered)
        if count == STOPPED:
            return STOPPED, 0
        edges.starts[row + 1] = edges.starts[row] + count
        lost += space.solver.row_dual[row] - edges.row_best[row]
        if lost > slack:
            break
    return 0, lost


@inlined
def edits_lose(
    team: Team, elements: Elements, rows: int, columns: int, slack: int, space: Scratch
) -> Any:
    """A lower bound on the shortfall of the rows' best edit similarities.  Ends at the first row
    that falls short by more than is left of `slack`."""
    lost = np.int64(0)
    for row in range(rows):
        if stopping(team):
            return STOPPED, 0
        best = best_edit(team, elements, row, columns, max(ONE - (slack - lost), 1), space)
        if best < 0 and ONE - (slack - lost) > 0:
            return 0, slack + 1
        lost += ONE - max(best, 0)
        if lost > slack:
            break
    return 0, lost
