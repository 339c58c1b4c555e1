"""Network sensing: from captures to anonymized traffic matrices to statistics.

    sense                 a capture, archive or arrays to windows, a sum and statistics
    traffic_matrix        packets counted by source and destination
    sum_matrices          matrices added up
    traffic_statistics    the nine quantities of traffic
    traffic_histograms    how many links and addresses have each value
    sliding_statistics    the nine quantities after every step of a sliding window
    read_capture          all IPv4 packets of a capture; iter_capture: block after block
    write_capture         packets as a capture
    read_archive          traffic matrices of an archive; write_archive: an archive of them
    anonymize             anonymous addresses; new_key: a key in a private file

Implementation: applications/sensing.
"""

from __future__ import annotations

from matchwood.applications.sensing.anonymity import Anonymizer, anonymize, new_key
from matchwood.applications.sensing.archive import archive_writer, read_archive, write_archive
from matchwood.applications.sensing.capture import (
    Capture,
    Packets,
    iter_capture,
    read_capture,
    write_capture,
)
from matchwood.applications.sensing.packets import Ranges
from matchwood.applications.sensing.sliding import Sliding, sliding_statistics
from matchwood.applications.sensing.statistics import (
    Fit,
    Histogram,
    Histograms,
    Statistics,
    Windows,
    traffic_histograms,
    traffic_statistics,
)
from matchwood.applications.sensing.stream import Sensing, sense
from matchwood.applications.sensing.traffic import TrafficMatrix, sum_matrices, traffic_matrix

__all__ = [
    "Anonymizer",
    "Capture",
    "Fit",
    "Histogram",
    "Histograms",
    "Packets",
    "Ranges",
    "Sensing",
    "Sliding",
    "Statistics",
    "TrafficMatrix",
    "Windows",
    "anonymize",
    "archive_writer",
    "iter_capture",
    "new_key",
    "read_archive",
    "read_capture",
    "sense",
    "sliding_statistics",
    "sum_matrices",
    "traffic_histograms",
    "traffic_matrix",
    "traffic_statistics",
    "write_archive",
    "write_capture",
]
