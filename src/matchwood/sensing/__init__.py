"""Network sensing: from captures to anonymized traffic matrices to statistics.

    sense                 a capture, archive or arrays to windows, a sum and statistics
    traffic_matrix        packets counted by source and destination
    sum_matrices          matrices added up
    traffic_statistics    the nine quantities of traffic
    traffic_histograms    how many links and addresses have each value
    sliding_statistics    the nine quantities after every step of a sliding window

One folder a part: capture, anonymity, traffic, statistics, sliding, archive; stream puts them
together.
"""

from __future__ import annotations

from matchwood.sensing.sliding import Sliding, sliding_statistics
from matchwood.sensing.statistics import (
    Fit,
    Histogram,
    Histograms,
    Ranges,
    Statistics,
    Windows,
    traffic_histograms,
    traffic_statistics,
)
from matchwood.sensing.stream import Sensing, sense
from matchwood.sensing.traffic import TrafficMatrix, sum_matrices, traffic_matrix

__all__ = [
    "Fit",
    "Histogram",
    "Histograms",
    "Ranges",
    "Sensing",
    "Sliding",
    "Statistics",
    "TrafficMatrix",
    "Windows",
    "sense",
    "sliding_statistics",
    "sum_matrices",
    "traffic_histograms",
    "traffic_matrix",
    "traffic_statistics",
]
