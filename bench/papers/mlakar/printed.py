"""Table I of Mlakar et al. (IPDPS 2021), as it is printed there.

Times are milliseconds on a Ryzen 3900X (the best of 1 to 24 threads) and a TITAN V, for the order
from a given start.  The column of the largest degree is left out: in the text of the paper it does
not stand beside its matrices.
"""

from __future__ import annotations

from typing import NamedTuple


class Paper(NamedTuple):
    """A line of the table; None where nothing is printed."""

    rows: str
    entries: str
    front: int
    before: int
    after: int
    hsl: float
    reorderlib: float | None
    serial: float
    batch_basic: float
    batch: float
    gpu_leveled: float
    gpu_batch: float


TABLE_1 = """
bcspwr10 5.3k 22k 186 5189 285 1.28 1.98 .26 .33 .33 3.81 1.09
bodyy4 17.5k 122k 170 16818 248 1.49 2.24 .29 .78 .76 10.74 2.89
benzene 8.2k 243k 1303 2898 1905 2.11 2.17 .30 .56 .64 4.55 .43
ncvxqp3 75.0k 500k 1054 69996 14154 11.34 11.44 2.38 2.36 2.33 7.56 .91
ecology1 1.0M 5.0M 667 1000 1000 154.95 190.84 26.81 31.13 40.61 541.21 57.21
gupta3 16.8k 9.3M 7939 16744 15584 59.00 21.73 5.64 1.18 1.67 33.10 1.16
SiO2 155.3k 11.3M 14340 55068 20209 104.41 75.64 16.30 12.09 11.10 22.99 9.71
CurlCurl_3 1.2M 13.5M 12502 26759 20045 179.05 271.25 44.74 40.79 31.41 78.98 17.94
nd12k 36.0k 14.2M 4596 34517 6341 100.52 26.73 12.47 9.14 8.18 22.90 15.49
Si41Ge41H72 185.6k 15.0M 18438 31518 26518 144.77 72.66 22.82 16.69 15.30 28.04 16.92
great-britain_osm 7.7M 16.3M 2334 7693184 4677 1274.45 - 291.08 326.02 270.17 3875.03 223.12
human_gene2 14.3k 18.1M 6414 14257 12037 150.54 56.28 11.65 9.29 8.69 29.49 20.63
Ga41As41H72 268.1k 18.5M 23496 40195 33379 189.44 97.18 30.06 21.93 19.36 34.00 20.63
bundle_adj 513.4k 20.2M 5094 510044 20738 87.54 144.39 29.76 22.41 27.17 341.25 16.49
nd24k 72.0k 28.7M 8156 68114 11291 200.89 46.14 23.77 16.41 15.59 36.16 31.24
coPapersDBLP 540.5k 30.5M 159025 539587 254848 392.93 - 65.34 27.32 26.42 47.15 31.60
Emilia_923 923.1k 41.0M 12280 17279 16883 194.62 213.01 47.06 45.44 30.71 89.60 49.25
delaunay_n23 8.4M 50.3M 10403 8382693 16777 1557.97 - 271.13 153.71 132.41 828.79 79.03
hugebubbles-00020 21.2M 63.6M 3211 21188550 4575 9377.19 - 1598.78 1241.05 905.41 8490.28 248.43
audikw_1 943.7k 77.7M 16586 925946 34400 377.90 244.46 118.25 58.99 49.58 139.62 85.55
nlpkkt120 3.5M 96.8M 51894 1814521 86876 1411.13 837.78 383.20 203.19 132.63 200.00 114.05
Flan_1565 1.6M 117.4M 11159 20702 20849 510.34 339.62 168.81 89.83 68.62 223.86 134.16
nlpkkt160 8.3M 229.5M 92232 4249761 154236 3675.97 1912.27 1166.98 436.58 286.23 442.00 268.57
mycielskian18 196.6k 300.9M 98300 196590 196589 2770.78 - 213.77 8.73 8.58 468.59 14.02
nlpkkt200 16.2M 448.2M 144089 8240201 240796 7335.28 3402.59 2547.49 784.54 540.97 814.90 520.01
nlpkkt240 28.0M 774.5M 207467 14169841 346556 13218.79 5644.68 4574.78 1283.31 938.80 1534.99 900.77
"""


def _line(words: list[str]) -> Paper:
    counts = [int(word) for word in words[2:5]]
    times = [None if word == "-" else float(word) for word in words[5:]]
    return Paper(words[0], words[1], *counts, *times)  # type: ignore[arg-type]


PAPER = {line.split()[0]: _line(line.split()[1:]) for line in TABLE_1.split("\n") if line}
