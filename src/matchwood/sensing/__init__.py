"""Network sensing: captures to traffic matrices."""

from matchwood.sensing.capture import (
    Capture as Capture,
)
from matchwood.sensing.capture import (
    Packets as Packets,
)
from matchwood.sensing.capture import (
    iter_capture as iter_capture,
)
from matchwood.sensing.capture import (
    read_capture as read_capture,
)
from matchwood.sensing.capture import (
    write_capture as write_capture,
)
from matchwood.sensing.anonymity import (
    Anonymizer as Anonymizer,
    anonymize as anonymize,
    new_key as new_key,
)
