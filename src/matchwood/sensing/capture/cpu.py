"""A capture in memory to packets, on a team of threads.

Records form a chain: only the end of one tells where the next begins.  So a member that starts in
the middle must guess.  In each round member k takes the k-th part of the bytes ahead; member 0
begins where the chain is known to be, the others at the first place from which several records in
a row look right.  Then the parts are walked in order: a part counts only if the part before it
ended exactly where it began, and the first one that does not fit ends the round.  So the packets
are those of the serial walk, whatever was guessed; a wrong guess costs time only.

Shared: the rows of `parts`, one for each member, in two sets used in turns.  A member writes its
own row before the barrier, and all read all rows after it.  A set is written again two rounds
later, when everybody has passed the barrier in between, so one barrier a round is enough.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.sensing.capture.cpu_link import REASONS
from matchwood.sensing.capture.cpu_records import (
    BEGIN,
    COUNT,
    END,
    GOES_ON,
    LEAST_RECORD,
    SKIPPED,
    STATUS,
    Format,
    Output,
    Table,
    guess_block,
    guess_record,
    parse_blocks,
    parse_records,
)
from matchwood.teams import Team, advance, barrier, device, kernel

Array = np.ndarray[Any, Any]

# What the host and the kernel tell each other, one int64 each
POSITION, LIMIT, FILLED, TARGET, OUTCOME, TALLY = range(6)
STATE_WORDS = TALLY + REASONS
ROW_WORDS = 16  # of a part: a cache line, or two, for each member


class Parts(NamedTuple):
    """What members tell each other: parts[round & 1, rank] is a row of cpu_records."""

    rows: Array
    scratch: Output  # packets of the members 1, 2, ..., `each` places for one
    each: int


def most_packets(part: int) -> int:
    """Packets that records which begin within so many bytes can hold."""
    return part // LEAST_RECORD + 1


@kernel
def scan(
    team: Team, data: Array, form: Format, table: Table, out: Output, parts: Parts, state: Array
) -> None:
    """Read records from state[POSITION] on until TARGET packets are there or something stops it.

    `data` is there up to state[LIMIT].  `out` has room for what a round may find beyond TARGET.
    """
    position, filled, status = state[POSITION], state[FILLED], GOES_ON
    limit, target = state[LIMIT], state[TARGET]
    side = 0
    while status == GOES_ON and position < limit and filled < target:
        row = parts.rows[side, team.rank]
        _parse_part(team, data, form, table, out, parts, position, limit, filled, row)
        if barrier(team):
            return
        start, mine, valid = position, -1, True
        for rank in range(team.size):
            part = parts.rows[side, rank]
            valid = valid and status == GOES_ON and part[BEGIN] == position and position < limit
            if valid:
                if rank == team.rank:
                    mine = filled
                position, status = part[END], part[STATUS]
                filled += part[COUNT]
                if team.rank == 0:
                    for reason in range(REASONS):
                        state[TALLY + reason] += part[SKIPPED + reason]
        if mine >= 0 and team.rank > 0:
            _copy(parts.scratch, (team.rank - 1) * parts.each, row[COUNT], out, mine)
        if team.rank == 0:
            advance(team, position - start)
        side = 1 - side
    if team.rank == 0:
        state[POSITION], state[FILLED], state[OUTCOME] = position, filled, status


@device
def _parse_part(
    team: Team, data: Array, form: Format, table: Table, out: Output, parts: Parts,
    position: int, limit: int, filled: int, row: Array,
) -> None:  # fmt: skip
    """Member 0 writes where the packets belong, the others beside it until their place is known."""
    for word in range(ROW_WORDS):
        row[word] = 0
    begin = position + team.rank * form.part
    stop = min(begin + form.part, limit)
    row[BEGIN] = -1
    if begin >= limit:
        return
    if team.rank > 0:
        if form.blocks:
            begin = guess_block(data, begin, stop, limit, form)
        else:
            begin = guess_record(data, begin, stop, limit, form)
        if begin < 0:
            return
    goal = out if team.rank == 0 else parts.scratch
    at = filled if team.rank == 0 else (team.rank - 1) * parts.each
    if form.blocks:
        parse_blocks(data, begin, stop, limit, form, table, goal, at, row)
    else:
        parse_records(data, begin, stop, limit, form, table, goal, at, row)


@device
def _copy(source: Output, start: int, count: int, goal: Output, place: int) -> None:
    for k in range(count):
        goal.src[place + k] = source.src[start + k]
        goal.dst[place + k] = source.dst[start + k]
        goal.time[place + k] = source.time[start + k]
        goal.length[place + k] = source.length[start + k]
        goal.protocol[place + k] = source.protocol[start + k]
