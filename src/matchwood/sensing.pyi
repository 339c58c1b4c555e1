# Network sensing.  Made by `make lists` from registry.py.

from matchwood.applications.sensing.packets import AddressTable as AddressTable
from matchwood.applications.sensing.anonymity import Anonymizer as Anonymizer  # the same for many blocks, with one key
from matchwood.applications.sensing.capture import Capture as Capture  # what `iter_capture` returns
from matchwood.applications.sensing.statistics import Fit as Fit
from matchwood.applications.sensing.statistics import Histogram as Histogram
from matchwood.applications.sensing.statistics import Histograms as Histograms  # what `traffic_histograms` returns
from matchwood.applications.sensing.capture import Packets as Packets  # what they read and write
from matchwood.applications.sensing.packets import Ranges as Ranges
from matchwood.applications.sensing.stream import Sensing as Sensing  # what `sense` returns
from matchwood.applications.sensing.sliding import Sliding as Sliding  # what `sliding_statistics` returns
from matchwood.applications.sensing.statistics import Statistics as Statistics  # what `traffic_statistics` returns
from matchwood.applications.sensing.traffic import TrafficMatrix as TrafficMatrix  # what both return
from matchwood.applications.sensing.statistics import Windows as Windows
from matchwood.applications.sensing.anonymity import anonymize as anonymize  # addresses that stand for others
from matchwood.applications.sensing.archive import archive_writer as archive_writer
from matchwood.applications.sensing.capture import iter_capture as iter_capture  # the same, block after block
from matchwood.applications.sensing.anonymity import new_key as new_key  # a key in a private file
from matchwood.applications.sensing.archive import read_archive as read_archive  # matrices that GraphBLAS wrote
from matchwood.applications.sensing.capture import read_capture as read_capture  # all IPv4 packets of a capture
from matchwood.applications.sensing.stream import sense as sense  # a capture to windows, a sum and statistics
from matchwood.applications.sensing.sliding import sliding_statistics as sliding_statistics  # the nine quantities after every step
from matchwood.applications.sensing.traffic import sum_matrices as sum_matrices  # such matrices added up
from matchwood.applications.sensing.statistics import traffic_histograms as traffic_histograms  # how many have each value, and a fit
from matchwood.applications.sensing.traffic import traffic_matrix as traffic_matrix  # packets counted by source and destination
from matchwood.applications.sensing.statistics import traffic_statistics as traffic_statistics  # the nine quantities of traffic
from matchwood.applications.sensing.archive import write_archive as write_archive  # matrices that GraphBLAS reads
from matchwood.applications.sensing.capture import write_capture as write_capture  # packets as a capture

__all__: list[str]
