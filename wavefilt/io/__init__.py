"""Reading and writing recordings: one module per format, found by content, never by the name of the file."""

from wavefilt.io.atomic import check_destination, replacing, write_atomically
from wavefilt.io.detection import Probe
from wavefilt.io.layout import Layout
from wavefilt.io.reading import read
from wavefilt.io.registry import FORMATS, Format, register_format
from wavefilt.io.writing import encode, write

__all__ = [
    "FORMATS",
    "Format",
    "Layout",
    "Probe",
    "check_destination",
    "encode",
    "read",
    "register_format",
    "replacing",
    "write",
    "write_atomically",
]
