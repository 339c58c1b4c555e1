"""Rows of similarities, made one at a time from the tokens that a row shares with the columns.

Most similarities are 0.  So the tokens of the columns go into a hash table, each with the chain of
columns that have it, and a row is made by walking the chains of its own tokens.  Where few elements
are left, merging token lists is quicker.

Edit similarity has no such table: every element pair is compared.  Short plain texts are compared
sixteen rows at a time; else a row is made alone, with a cut-off where only its best is wanted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.applications.join.arrays import Elements
from matchwood.applications.join.similarity.cpu_lanes import (
    LANES,
    LONGEST,
    clear_lane,
    fits_lane,
    set_lane,
    sweep,
)
from matchwood.applications.join.similarity.cpu_levenshtein import (
    WORD,
    Pattern,
    clear_pattern,
    distance_to,
    long_distance,
    set_pattern,
)
from matchwood.applications.join.similarity.cpu_phi import (
    JACCARD,
    ONE,
    fixed,
    jaccard,
    most_edits,
    text_of,
)
from matchwood.applications.join.verification.cpu_scratch import Edges, Scratch, Sides, Table
from matchwood.engines.cpu import Team, device

FEW = 16  # element pairs; up to so many are compared one by one.  Measured on the Yelp sample
_SPREAD = 2654435769  # 2^32 / golden ratio
MARKS_PER_TOKEN = 16  # bytes that say which tokens are there: few tokens share one by chance
MOST_MARKS = 1 << 16  # so that they stay in the cache
FREE = np.int64(-1)  # a slot without a token
END = np.int64(0xFFFFFFFF)  # instead of an entry: the end of a chain; and the bits of an entry


@device
def take_equal(left: np.ndarray, right: np.ndarray, sides: Sides) -> Any:
    """Match equal elements; the others go to `sides`.  (equal, rows, columns).

    The elements of a record ascend, so one merge meets every element that is in both.
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
    """All elements go to `sides`: where matching equal ones first would be wrong."""
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
    """Put the tokens of the columns into the table.  Returns how far a hash is shifted."""
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
    """Count the tokens that each column shares with the element; how many columns share any."""
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
    """Columns in rising order: by looking at all where many were touched, else by insertion."""
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
    """The most that each row can weigh (in `row_dual`) and their sum, by tokens that are there.

    A row of n tokens, p of which occur in any column, weighs at most p / n.  One byte for each hash
    of a token tells which occur; two tokens of one hash make the bound larger, never wrong.
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
    """Write the row's similarities behind `starts[row]`; how many, also where there is no room."""
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
    """The same for edit similarity: the pattern is made once for the row."""
    sides, edges = space.sides, space.edges
    element = sides.rows[row]
    place, count = edges.starts[row], 0
    first = text_of(elements, element)
    short = open_pattern(elements, element, space.pattern)
    for c in range(columns):
        other = sides.columns[c]
        weight = row_edit(team, elements, element, other, np.int64(1), space.pattern, short)
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
def open_pattern(elements: Elements, element: int, pattern: Pattern) -> bool:
    """Note the element's text as the pattern; False where it is too long for one word."""
    lo, hi = text_of(elements, element)
    if hi - lo > WORD:
        return False
    set_pattern(pattern, elements.text, lo, hi)
    return True


@device
def row_edit(
    team: Team,
    elements: Elements,
    element: int,
    other: int,
    least: int,
    pattern: Pattern,
    short: bool,
) -> Any:
    """Similarity to the row's element, whose pattern is noted if it is short; -1 below `least`."""
    if element == other:
        return ONE
    first, second = text_of(elements, element), text_of(elements, other)
    length, size = first[1] - first[0], second[1] - second[0]
    longer = max(length, size)
    most = most_edits(longer, least)
    if abs(length - size) > most:
        return np.int64(-1)
    if short:
        edits = distance_to(pattern, length, elements.text, second[0], second[1], most)
    else:
        edits = long_distance(team, pattern, elements.text, first, second, most)
    return fixed(longer - edits, longer) if edits <= most else np.int64(-1)


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
        weight = row_edit(team, elements, element, other, least, space.pattern, short)
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
    """All rows of edit similarities, some at once; also those that are 0.  What the rows lose.

    Ends where they lose more than `slack`: the other rows are then not made.
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
    """Before the first row."""
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
    if similarity != JACCARD or rows * columns <= FEW:
        return -1
    return index_columns(elements, sides, columns, table)
