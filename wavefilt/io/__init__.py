"""Reading and writing recordings: one module per format; a format is recognised by content, never by name."""

from wavefilt.io.atomic import check_destination, replacing, write_atomically
from wavefilt.io.base import (
    FORMATS,
    MARK,
    Contents,
    Format,
    Header,
    Headers,
    Layout,
    Probe,
    endings,
    is_store,
    other_format,
    register_format,
)
from wavefilt.io.files import (
    NotStreamed,
    check_output,
    converted,
    encode,
    open_source,
    read,
    refuse_dataset,
    resolve,
    split,
    write,
)
from wavefilt.io.hdf5 import Hdf5
from wavefilt.io.npy import Npy, Npz
from wavefilt.io.obspy import Mseed, ObspyFormat
from wavefilt.io.raw import Raw
from wavefilt.io.sac import Sac
from wavefilt.io.seg2 import Seg2
from wavefilt.io.segy import Segy, Su
from wavefilt.io.sources import Source, StreamedFormat, Target
from wavefilt.io.text import Ascii
from wavefilt.io.wav import Wav
from wavefilt.io.zarr import Zarr

__all__ = [
    "FORMATS",
    "MARK",
    "Contents",
    "Format",
    "Header",
    "Headers",
    "Layout",
    "NotStreamed",
    "Probe",
    "Source",
    "StreamedFormat",
    "Target",
    "check_destination",
    "check_output",
    "converted",
    "encode",
    "endings",
    "is_store",
    "open_source",
    "other_format",
    "read",
    "refuse_dataset",
    "register_format",
    "replacing",
    "resolve",
    "split",
    "write",
    "write_atomically",
]

for _format in (
    *(Npy(), Npz(), Raw(), Hdf5(), Zarr(), Wav(), Seg2(), Segy(), Su(), Ascii(), Sac(), Mseed()),
    ObspyFormat("gse2", rb"WID2", (".gse", ".gse2")),
    ObspyFormat("tspair", rb"TIMESERIES [^\n]*TSPAIR", (".csv", ".txt")),
    ObspyFormat("slist", rb"TIMESERIES [^\n]*SLIST", (".csv", ".txt")),
    ObspyFormat("obspy", endings=(".csv", ".txt")),
):
    register_format(_format)
