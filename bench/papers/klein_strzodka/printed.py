"""Tables 3, 4 and 5 of Klein and Strzodka (ICPP 2022), as they are printed there.

In table 4 c(5) is the coverage after five rounds, c(M) that of the maximal factor, and M the number
of rounds until then: without charges, with charges off in rounds 0, 5, .., and in rounds 1, 6, ..
"""

from __future__ import annotations

from typing import NamedTuple


class Paper(NamedTuple):
    """What the paper prints for a matrix."""

    symmetric: bool  # table 3
    n: int
    entries: int
    plain: tuple[float, float, int]  # table 4
    off_at_0: tuple[float, float, int]
    off_at_1: tuple[float, float, int]
    c_id: float  # table 5
    parallel: tuple[float, ...]  # n = 1 .. 4
    greedy: tuple[float, ...]
    block: tuple[float, float]  # m = 1 and m = 5


# name, symmetric, N, nnz
TABLE_3 = """
af_shell8 y 504855 17588875
aniso1 y 6250000 56220004
aniso2 y 6250000 56220004
aniso3 y 6250000 56220004
atmosmodd n 1270432 8814880
atmosmodj n 1270432 8814880
atmosmodl n 1489752 10319760
atmosmodm n 1489752 10319760
Bump_2911 y 2911419 127729899
Cube_Coup_dt0 y 2164760 127206144
CurlCurl_3 y 1219574 13544618
CurlCurl_4 y 2380515 26515867
ecology1 y 1000000 4996000
ecology2 y 999999 4995991
G3_circuit y 1585478 7660826
Geo_1438 y 1437960 63156690
Hook_1498 y 1498023 60917445
Long_Coup_dt0 y 1470152 87088992
ML_Geer n 1504002 110879972
StocF-1465 y 1465137 21005389
thermal2 y 1228045 8580313
Transport n 1602111 23500731
"""

# name, three times c(5), c(M) and M; the last column of the paper, Algorithm 1, is in table 5 too
TABLE_4 = """
af_shell8 .20 .24 195 .23 .23 16 .22 .22 17
aniso1 .67 .67 1252 .67 .67 11 .54 .54 17
aniso2 .67 .67 1251 .67 .67 11 .57 .57 12
aniso3 .67 .67 55 .67 .67 11 .56 .56 17
atmosmodd .02 .47 164 .41 .42 16 .42 .42 17
atmosmodj .02 .47 164 .41 .42 16 .42 .42 17
atmosmodl .48 .49 297 .49 .49 16 .43 .43 12
atmosmodm .95 .95 297 .95 .95 16 .74 .74 12
Bump_2911 .81 .82 31 .81 .82 26 .64 .64 27
Cube_Coup_dt0 .26 .26 102 .26 .26 21 .22 .22 22
CurlCurl_3 .34 .34 47 .34 .34 16 .36 .36 12
CurlCurl_4 .33 .34 47 .33 .33 16 .35 .35 12
ecology1 .00 .50 1037 .46 .47 16 .46 .47 17
ecology2 .00 .50 1038 .46 .47 16 .46 .47 17
G3_circuit .56 .71 159 .70 .70 16 .59 .59 17
Geo_1438 .28 .28 18 .28 .28 16 .25 .25 17
Hook_1498 .22 .22 11 .22 .22 16 .20 .20 17
Long_Coup_dt0 .70 .70 110 .69 .69 31 .55 .55 27
ML_Geer .20 .20 383 .20 .20 11 .17 .17 17
StocF-1465 1.00 1.00 11 1.00 1.00 16 .78 .78 17
thermal2 .47 .47 7 .47 .47 16 .44 .44 12
Transport .24 .49 290 .45 .45 16 .44 .44 17
"""

# name, c_id; for n = 1 .. 4 the parallel and the sequential coverage; the blocks with m = 1 and 5
TABLE_5 = """
af_shell8 .01 .14 .14 .23 .23 .34 .34 .40 .40 .38 .43
aniso1 .68 .27 .29 .67 .67 .72 .73 .79 .79 .68 .64
aniso2 .13 .27 .29 .67 .67 .72 .73 .79 .79 .68 .64
aniso3 .68 .27 .29 .67 .67 .72 .73 .79 .79 .68 .64
atmosmodd .46 .19 .21 .41 .44 .65 .67 .93 .93 .02 .50
atmosmodj .46 .19 .21 .41 .44 .65 .67 .93 .93 .02 .50
atmosmodl .25 .21 .22 .49 .49 .60 .61 .73 .73 .41 .45
atmosmodm .03 .38 .42 .95 .95 .96 .96 .97 .97 .94 .86
Bump_2911 .01 .46 .49 .81 .82 .84 .84 .86 .86 .84 .83
Cube_Coup_dt0 .06 .11 .13 .26 .26 .33 .34 .38 .38 .29 .29
CurlCurl_3 .15 .17 .17 .34 .34 .54 .55 .76 .76 .44 .54
CurlCurl_4 .15 .17 .17 .33 .34 .53 .54 .74 .74 .40 .53
ecology1 .50 .21 .23 .46 .47 .71 .71 1.00 1.00 .00 .55
ecology2 .50 .21 .23 .46 .47 .71 .71 1.00 1.00 .00 .55
G3_circuit .29 .50 .51 .70 .70 .83 .84 1.00 1.00 .61 .73
Geo_1438 .04 .13 .14 .28 .28 .36 .37 .44 .44 .33 .33
Hook_1498 .04 .11 .11 .22 .22 .28 .28 .33 .33 .25 .25
Long_Coup_dt0 .10 .49 .50 .69 .70 .79 .79 .87 .87 .84 .83
ML_Geer .05 .09 .09 .20 .20 .25 .26 .32 .32 .23 .26
StocF-1465 .23 .92 .93 1.00 1.00 1.00 1.00 1.00 1.00 1.00 1.00
thermal2 .10 .23 .24 .47 .47 .68 .68 .84 .84 .58 .58
Transport .49 .20 .22 .45 .47 .68 .70 .98 .98 .25 .53
"""


def _lines(text: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in text.split("\n") if line}


def _printed(name: str) -> Paper:
    symmetric, n, entries = _lines(TABLE_3)[name]
    four = [float(number) for number in _lines(TABLE_4)[name]]
    five = [float(number) for number in _lines(TABLE_5)[name]]
    plain, off_at_0, off_at_1 = ((*four[k : k + 2], int(four[k + 2])) for k in (0, 3, 6))
    return Paper(
        symmetric == "y",
        int(n),
        int(entries),
        plain,
        off_at_0,
        off_at_1,
        five[0],
        tuple(five[1:9:2]),
        tuple(five[2:9:2]),
        (five[9], five[10]),
    )


PAPER = {name: _printed(name) for name in _lines(TABLE_3)}
