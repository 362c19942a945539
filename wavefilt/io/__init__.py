"""Reading and writing recordings: one module per format; a format is recognised by content, never by name."""

from wavefilt.io.atomic import check_destination, write_atomically
from wavefilt.io.base import FORMATS, Contents, Format, Headers, Layout, Probe, register_format
from wavefilt.io.chunked import Hdf5, Zarr
from wavefilt.io.files import encode, is_store, read, write
from wavefilt.io.npy import Npy, Npz, Raw
from wavefilt.io.obspy import Mseed, ObspyFormat
from wavefilt.io.sac import Sac
from wavefilt.io.seg2 import Seg2
from wavefilt.io.segy import Segy, Su
from wavefilt.io.sources import StreamedFormat
from wavefilt.io.text import Ascii
from wavefilt.io.wav import Wav

__all__ = [
    "FORMATS",
    "Contents",
    "Format",
    "Headers",
    "Layout",
    "Probe",
    "StreamedFormat",
    "check_destination",
    "encode",
    "is_store",
    "read",
    "register_format",
    "write",
    "write_atomically",
]

for _format in (
    *(Npy(), Npz(), Raw(), Hdf5(), Zarr(), Wav(), Seg2(), Segy(), Su(), Ascii(), Sac()),
    Mseed("mseed", rb"\d{6}[DRQM][ \0]|MS\x03"),
    ObspyFormat("gse2", rb"WID2", (".gse", ".gse2")),
    ObspyFormat("tspair", rb"TIMESERIES [^\n]*TSPAIR", (".csv", ".txt")),
    ObspyFormat("slist", rb"TIMESERIES [^\n]*SLIST", (".csv", ".txt")),
    ObspyFormat("obspy", endings=(".csv", ".txt")),
):
    register_format(_format)
