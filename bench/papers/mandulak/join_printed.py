"""The figures of M. Mandulak's thesis, chapter 5 (2025), beside which ours are put.

Times are of one thread of an EPYC 7742, its Python code, Jaccard similarity, delta 0.7; hours or
minutes rounded up, as its figures have them.
"""

from __future__ import annotations

METHODS = ("HG", "EV", "LD", "GD", "PS")

# table 5.1: sets, elements of a set on average and at most
DATA = {
    "LIVEJ": ("3.1M", 36, "300"), "AOL": ("1.8M", 3, "73"), "KOSARAK": ("610K", 12, "2.5K"),
    "ENRON": ("518K", 134, "3.2K"), "DBLP": ("500K", 13, "189"), "FLICKR": ("500K", 9, "361"),
    "GDELT": ("500K", 19, "396"), "BMS-POS": ("320K", 6, "164"), "YELP": ("160K", 6, "47"),
    "MIND": ("123K", 32, "357"),
}  # fmt: skip

# figure 5.3, all sets, in the order of METHODS
TOTAL = {
    "KOSARAK, h": (36, 14, 6, 5, 5), "FLICKR, min": (80, 55, 46, 44, 45),
    "YELP, min": (24, 14, 12, 11, 11), "BMS-POS, min": (18, 15, 14, 14, 14),
}  # fmt: skip
VERIFICATION = {
    "KOSARAK, h": (32, 10, 2, 2, 2), "FLICKR, min": (56, 33, 24, 22, 23),
    "YELP, min": (17, 7, 4, 4, 4), "BMS-POS, min": (6, 3, 2, 2, 2),
}  # fmt: skip
# edit similarity, verification of 20 % of the sets
EDIT = {
    "KOSARAK, h": (19, 5, 2, 2, 2), "FLICKR, min": (8, 4, 3, 2, 2), "YELP, min": (4, 3, 2, 2, 2),
    "BMS-POS, min": (6, 4, 3, 2, 3),
}  # fmt: skip
# figure 5.5: peak memory in MB, KOSARAK, 10 % of the sets
MEMORY = {"HG": 944, "EV": 591, "PS": 512}

# table 5.2: recall by weight and missing pairs of GD and PS, precision by bound and extra pairs
ACCURACY = {
    "LIVEJ": ((1.0, 0), (1.0, 0), (0.9998, 2), (0.9999, 1)),
    "KOSARAK": ((0.9999, 1), (0.9999, 1), (0.9999, 4), (0.9999, 4)),
    "ENRON": ((0.9293, 4515), (0.9757, 593), (0.9871, 835), (0.9879, 778)),
    "FLICKR": ((0.9994, 115), (0.9995, 91), (0.9994, 114), (0.9995, 109)),
    "GDELT": ((0.9992, 937), (0.9996, 481), (0.9992, 843), (0.9993, 806)),
    "MIND": ((0.9995, 38), (0.9999, 8), (0.9998, 14), (0.9998, 13)),
}
