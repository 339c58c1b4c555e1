"""A capture in memory to packets, on a team of threads.

Records form a chain: the next begins where one ends.  So a member that starts in
the middle must guess.  In each round member k takes the k-th part of the bytes ahead; member 0
begins where the chain is known to be, the others at the first place from which several records in
a row look right.  Then the parts are walked in order: a part counts only if the part before it
ended exactly where it began, and the first one that does not fit ends the round.  So the packets
are those of the serial walk, whatever was guessed; a wrong guess costs time only.

Shared: the rows of `parts`, one for each member, in two sets used in turns.  A member writes its
own row before the barrier, and all read all rows after it.  A set is written again two rounds
later, when all have passed the barrier in between, so one barrier a round is enough.

Where records are long, each is a cache miss, and the address of the next is known only when its
header has been loaded.  So a member first follows several chains of its part at once, from guessed
places again, which brings the headers into the cache; then it reads them in order.

Where all records of a round were packets of one length, more is guessed: that the next ones are
too.  Then each member knows where its part begins and where its packets belong, writes them there,
and takes a longer part.  A part counts only if both were right; the packets of others lie after
those that count.  The first guess of this kind that fails is the last one made.  Two threads read
4 million packets of one length in 12 % less time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.sensing.capture.cpu.records import (
    BEGIN,
    COUNT,
    END,
    GOES_ON,
    LEAST_RECORD,
    REASONS,
    RECORD_HEADER,
    SKIPPED,
    STATUS,
    Format,
    Output,
    Table,
    guess_block,
    guess_record,
    number_at,
    parse_blocks,
    parse_records,
    second_at,
)
from matchwood.engines.cpu import Team, advance, barrier, device, kernel, stopping

Array = np.ndarray[Any, Any]

# Words of `state`, shared by host and kernel, one int64 each
POSITION, LIMIT, FILLED, TARGET, OUTCOME, ALIKE, TALLY = range(7)
STATE_WORDS = TALLY + REASONS
ROW_WORDS = 16  # words of a part's row: one or two cache lines for each member
SEEN = ROW_WORDS - 1  # where the hops leave what they read, so that the compiler keeps them
FIRST_PART = 2  # of short records member 0 parses 1/2 more: the others must copy what they found
MIXED = -1  # in state[ALIKE]: records differ; 0: not known; else the bytes of every one
ALIKE_PART = 1 << 26  # bytes of records of one length that a member parses at once ...
ALIKE_LEAST = 4  # ... and at least a quarter of a usual part: a round costs a barrier
LANES = 8  # chains that a member hops along at once
LONG_RECORD = 256  # bytes of a record, on average, from which on this pays: 12 % or more at 600
HEADERS = 50  # bytes of a record up to the end of the IPv4 header, with Ethernet


class Parts(NamedTuple):
    """What members share: parts[round & 1, member] is a row of records.py."""

    rows: Array
    scratch: Output  # packets of the members 1, 2, ..., `each` places for one
    each: int
    lanes: Array  # lanes[member]: where the chains of a member are


class Round(NamedTuple):
    """What all members know when a round begins."""

    position: int
    limit: int
    filled: int
    length: int  # of a record in the round before, on average; 0 in the first one
    alike: int  # as state[ALIKE]
    many: int  # records of that length for each member; 0 where none are expected


def most_packets(part: int) -> int:
    """The most packets in records that begin within `part` bytes."""
    return part // LEAST_RECORD + 1


def most_of_round(part: int, size: int) -> int:
    """The most packets that a team of `size` members finds in one round."""
    return size * most_packets(part) + most_packets(part // FIRST_PART)


@kernel
def scan(
    team: Team, data: Array, form: Format, table: Table, out: Output, parts: Parts, state: Array
) -> None:
    """Read records from state[POSITION] on until TARGET packets are there or something stops it.

    `data` is there up to state[LIMIT].  `out` has room for what a round may find beyond TARGET.
    """
    position, filled, status = state[POSITION], state[FILLED], GOES_ON
    limit, target, alike = state[LIMIT], state[TARGET], state[ALIKE]
    side, length = 0, 0
    while status == GOES_ON and position < limit and filled < target:
        row = parts.rows[side, team.me]
        many = _alike_records(team, form, limit - position, target - filled, filled, out, alike)
        now = Round(position, limit, filled, length, alike, many)
        _parse_part(team, data, form, table, out, parts, now, row)
        if barrier(team):
            return
        start, first, mine, valid, records = position, filled, -1, True, 0
        for me in range(team.size):
            part = parts.rows[side, me]
            valid = valid and status == GOES_ON and part[BEGIN] == position and position < limit
            if many > 0:  # its packets are at their place, and no other's were written over them
                valid = valid and filled == first + me * many and part[COUNT] <= many
            if valid:
                if me == team.me:
                    mine = filled
                position, status = part[END], part[STATUS]
                filled += part[COUNT]
                records += part[COUNT]
                for reason in range(REASONS):
                    records += part[SKIPPED + reason]
                    if team.me == 0:
                        state[TALLY + reason] += part[SKIPPED + reason]
        if many == 0 and mine >= 0 and team.me > 0:
            _copy(parts.scratch, (team.me - 1) * parts.each, row[COUNT], out, mine)
        if team.me == 0:
            advance(team, position - start)
        if records > 0:  # all members have walked the same parts, so all know the same length
            length = (position - start) // records
        if many > 0 and not valid:
            alike = MIXED
        elif many == 0 and alike != MIXED:
            equal = 0 < records == filled - first and length * records == position - start
            alike = length if equal and length < LONG_RECORD else 0
        side = 1 - side
    if team.me == 0:
        state[POSITION], state[FILLED], state[OUTCOME] = position, filled, status
        state[ALIKE] = alike


@device
def _alike_records(
    team: Team, form: Format, ahead: int, wanted: int, filled: int, out: Output, alike: int
) -> int:
    """Records of one length that each member takes in a round; 0 where that does not pay.

    `out` has room for the packets that the last member finds where its records are shorter.
    """
    if team.size == 1 or alike <= 0:
        return 0
    room = out.src.size - filled - 1
    many = min(ALIKE_PART, ahead // team.size) // alike
    many = min(many, (wanted + team.size - 1) // team.size)
    many = min(many, room * LEAST_RECORD // (LEAST_RECORD * team.size + alike))
    return many if many * alike >= form.part // ALIKE_LEAST else 0


@device
def _parse_part(
    team: Team, data: Array, form: Format, table: Table, out: Output, parts: Parts, now: Round,
    row: Array,
) -> None:  # fmt: skip
    """Member 0 writes to `out`, the others to `scratch` until their place is known.

    Where records are expected to be of one length all write to `out`.
    """
    for word in range(ROW_WORDS):
        row[word] = 0
    row[BEGIN] = -1
    beside = now.many == 0 and team.me > 0
    if now.many > 0:
        begin = now.position + team.me * now.many * now.alike
        stop, at = begin + now.many * now.alike, now.filled + team.me * now.many
    else:
        begin, stop = _guessed_part(team, data, form, table, now)
        at = (team.me - 1) * parts.each if beside else now.filled
    if begin < 0:
        return
    if now.length >= LONG_RECORD:
        link = -1 if form.blocks else table.link[0]
        row[SEEN] = _hop_ahead(data, begin, stop, form, link, parts.lanes[team.me])
    position, place, status = begin, at, GOES_ON
    goal = parts.scratch if beside else out
    while position < stop and status == GOES_ON and not stopping(team):
        end = min(position + form.part, stop)  # a step short enough for Ctrl-C
        if form.blocks:
            parse_blocks(data, position, end, now.limit, form, table, goal, place, row)
        else:
            parse_records(data, position, end, now.limit, form, table, goal, place, row)
        position, status = row[END], row[STATUS]
        place += row[COUNT]
    row[BEGIN], row[COUNT] = begin, place - at


@device
def _guessed_part(team: Team, data: Array, form: Format, table: Table, now: Round) -> Any:
    """Where a member's part begins, -1 for nowhere, and where it stops."""
    more = 0
    if team.size > 1 and 0 < now.length < LONG_RECORD:
        more = form.part // FIRST_PART // 4 * 4  # blocks begin at multiples of 4
    begin, stop = now.position, now.position + form.part + more
    if team.me > 0:
        begin = stop + (team.me - 1) * form.part
        stop = begin + form.part
    stop = min(stop, now.limit)
    if begin >= now.limit:
        return np.int64(-1), stop
    if team.me > 0:
        if form.blocks:
            begin = guess_block(data, begin, stop, now.limit, form)
        else:
            near = second_at(data, now.position, now.limit, form)
            begin = guess_record(data, begin, stop, now.limit, form, table.link[0], near)
    return begin, stop


@device
def _hop_ahead(
    data: Array, begin: int, stop: int, form: Format, link: int, lanes: Array
) -> int:  # fmt: skip
    """Load the headers of the records in begin..stop into the cache."""
    size = (stop - begin) // LANES // 4 * 4
    near = np.int64(0) if form.blocks else second_at(data, begin, stop, form)
    for lane in range(LANES):
        start = begin + lane * size
        if lane > 0 and form.blocks:
            start = guess_block(data, start, start + size, stop, form)
        elif lane > 0:
            start = guess_record(data, start, start + size, stop, form, link, near)
        lanes[lane] = start
    seen, moving, last = 0, 1, stop - 2 * HEADERS
    while moving > 0:
        moving = 0
        for lane in range(LANES):
            place = lanes[lane]
            if 0 <= place < min(begin + (lane + 1) * size, last):
                if form.blocks:
                    step = np.int64(number_at(data, place + 4, form.swapped))
                else:
                    step = RECORD_HEADER + np.int64(number_at(data, place + 8, form.swapped))
                seen += data[place + HEADERS]
                lanes[lane] = place + max(step, RECORD_HEADER)
                moving += 1
    return seen


@device
def _copy(source: Output, start: int, count: int, goal: Output, place: int) -> None:
    _copy_field(source.src, start, count, goal.src, place)
    _copy_field(source.dst, start, count, goal.dst, place)
    _copy_field(source.time, start, count, goal.time, place)
    _copy_field(source.length, start, count, goal.length, place)
    _copy_field(source.protocol, start, count, goal.protocol, place)


@device
def _copy_field(source: Array, start: int, count: int, goal: Array, place: int) -> None:
    """A loop of its own for each field, which the compiler vectorizes."""
    for k in range(count):
        goal[place + k] = source[start + k]
