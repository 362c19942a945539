"""What a user specifies about a file that the file does not record itself."""

from __future__ import annotations

from dataclasses import dataclass

from wavefilt.errors import LayoutError, OptionError, options


@dataclass(frozen=True)
class Layout:
    """Explicit layout of a file; None where nothing was specified. Raises ValueError for invalid values.

    dtype, endian, ns
        Raw binary: ``"f4" "f8" "i2" "i4"``, ``"little" "big"``, samples per trace.
    dt
        Sampling interval in seconds, for formats that do not record one (or ASCII without a time column).
    columns
        ASCII: the columns that are traces, counted from 1; all others are kept as they are.
    delimiter
        ASCII: ``","``, ``";"``, ``"\\t"`` or ``" "`` (any blanks).
    component
        npz, HDF5, Zarr: the name of the array to denoise.
    axis
        npy, npz, HDF5, Zarr: the axis of the samples, the last by default.
    """

    dtype: str | None = None
    endian: str | None = None
    ns: int | None = None
    dt: float | None = None
    columns: tuple[int, ...] | None = None
    delimiter: str | None = None
    component: str | None = None
    axis: int | None = None

    def __post_init__(self) -> None:
        if self.dt is not None and not (isinstance(self.dt, (int, float)) and 0 < self.dt < float("inf")):
            raise OptionError(options(dt=self.dt), ": the sampling interval must be a positive number of seconds")
        if self.ns is not None and not (isinstance(self.ns, int) and self.ns > 0):
            raise OptionError(options(ns=self.ns), ": a trace has a whole number of samples, at least 1")
        if self.columns is not None and not isinstance(self.columns, tuple):
            raise TypeError(f"columns={self.columns!r}: a tuple of whole numbers counted from 1 is needed, as (2, 3)")

    def only(self, format: str, *used: str) -> None:
        """Raise LayoutError if an option was given that does not apply to this format: none is silently ignored."""
        for option, value in vars(self).items():
            if option not in used and value is not None:
                raise LayoutError(options(option), f" has no meaning for a file of format {format}")
