"""`wavefilt.view`: a page on which options are chosen and their result is looked at; needs Panel (extra ``view``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wavefilt.backends import Backend

    from .page import Viewer

MISSING = 'viewing needs Panel ({}): pip install "wavefilt[view]"'


def view(
    data: Any,
    wavelet: Any = None,
    *,
    interval: float | None = None,
    two_dimensional: bool = False,
    output: Any = None,
    overwrite: bool = False,
    backend: str | Backend = "auto",
    **options: Any,
) -> Viewer:
    """Look at traces before and after denoising, and at what is removed, while options are changed.

    In a notebook the result of the last line of a cell is shown; elsewhere ``view(data).servable()`` is a page of
    ``panel serve``, ``view(data).show()`` opens one, and the command ``wavefilt view FILE`` does so for a file.

    Parameters
    ----------
    data : array_like, path, Recording, obspy.Stream, obspy.Trace or xarray.DataArray
        An array has shape (traces, samples) or (samples,), any units, NaN and masked samples are gaps; of complex
        samples the real part is drawn. A DataArray has time along "time", else its last dimension.
    wavelet, **options
        What is chosen at first: wavelet, level, mode, rule, shrink, sigma, scope, keep, transform, spins, detrend and
        blend as `Recording.denoise` takes them, with noise in seconds where the sampling interval is known.
    interval : float, optional
        Sampling interval of an array in seconds; without it times are in samples.
    two_dimensional : bool
        Transform all traces together, as a panel.
    output : path, optional
        Where the button "Save" writes the result, in the format that the data were read from; without it there is none,
        and ``view(data).denoised.write(path)`` writes it.
    overwrite : bool
        Replace that file if it exists.
    backend : str or Backend
        As in `wavefilt.denoise`; ``"auto"`` are compiled kernels ("numba") for 128 Ki samples or more.

    Returns
    -------
    wavefilt.viewer.page.Viewer
        An object of Panel; ``options`` and ``denoised`` (a Recording) are what is chosen and its result.

    Raises
    ------
    ImportError
        If Panel is not installed.
    TypeError
        For data of another kind.
    ValueError
        For an array of more than two axes or without samples, an interval that is no positive number or given for data
        that have their own, and options that `Recording.denoise` refuses.
    FormatError, OSError
        If the file cannot be read.
    BackendUnavailable
        If the requested backend cannot run here.
    """
    check_installed()
    import panel

    from .page import Viewer
    from .source import of
    from .state import backend_for, denoise

    panel.extension()
    given = {"wavelet": wavelet, **options, "two_dimensional": two_dimensional}
    source = of(data, interval)
    backend = backend_for(source, backend)
    first = denoise(source, given, backend)
    return Viewer(first, output=None if output is None else str(output), overwrite=overwrite, backend=backend)


def check_installed() -> None:
    """Raise ImportError without Panel."""
    try:
        import panel  # noqa: F401
    except ImportError as error:
        raise ImportError(MISSING.format(error)) from error
