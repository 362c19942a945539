"""Figures of recordings by matplotlib (extra ``plot``), and `wavefilt.view` by Panel (extra ``view``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .data import PlotOptions
from .figure import plot_denoising

if TYPE_CHECKING:
    from wavefilt.backends import Backend
    from wavefilt.vocabulary import Preset

    from .viewer import Viewer

__all__ = ["PlotOptions", "check_installed", "plot_denoising", "view"]


def view(
    data: Any,
    wavelet: Any = None,
    *,
    interval: float | None = None,
    preset: Preset | None = None,
    two_dimensional: bool = False,
    output: Any = None,
    overwrite: bool = False,
    backend: str | Backend = "auto",
    **options: Any,
) -> Viewer:
    """Show traces before and after denoising and the residual, with controls for the options.

    In a notebook, the page is shown if the call is the last line of a cell. Elsewhere, ``view(data).servable()`` is a
    page of ``panel serve``, ``view(data).show()`` opens one, and the command ``wavefilt view FILE`` does so for a file.

    Raises ImportError without Panel; TypeError for other objects; ValueError for an array of more than two dimensions
    or without samples, an invalid ``interval`` and options that `Recording.denoise` refuses; FormatError or OSError if
    the file cannot be read; BackendUnavailable if the requested backend cannot run here.

    Parameters
    ----------
    data : array_like, path, Recording, or object of pandas, ObsPy, xarray or DASCore
        Traces as `wavefilt.compare` takes them, with at most two dimensions; or the path of a file. NaN and masked
        samples are gaps. For complex samples the real part is drawn.
    wavelet, **options
        The first options: wavelet, level, mode, rule, shrink, sigma, scope, keep, transform, spins, detrend and blend
        as for `Recording.denoise`, with noise windows in seconds where the sampling interval is known.
    preset : {"gentle", "section", "strong"}, optional
        As for `Recording.denoise`.
    interval : float, optional
        Sampling interval of an array in seconds; without it times are in samples.
    two_dimensional : bool
        Transform all traces together, as a section.
    output : path, optional
        Where the button "Save" writes the result, in the format of the data; without it there is no button, and
        ``view(data).denoised.write(path)`` writes the result.
    overwrite : bool
        Replace that file if it exists.
    backend : str or Backend
        As for `wavefilt.denoise`; ``"auto"`` means compiled kernels ("numba") from 128 Ki samples on.

    Returns
    -------
    wavefilt.plotting.viewer.Viewer
        A Panel object; its ``options`` and ``denoised`` (a Recording) are the current options and their result.
    """
    check_installed()
    import panel

    from wavefilt.containers import traces_of

    from .viewer import Viewer, denoise

    panel.extension()
    traces = traces_of(data, interval=interval)
    if len(traces.shape) > 1:
        raise ValueError(f"{len(traces.shape) + 1} dimensions: traces (samples,) or (traces, samples) are needed")
    first = denoise(traces, {"wavelet": wavelet, **options, "two_dimensional": two_dimensional}, backend, preset)
    return Viewer(first, output=None if output is None else str(output), overwrite=overwrite)


def check_installed() -> None:
    """Raise ImportError without Panel."""
    try:
        import panel  # noqa: F401
    except ImportError as error:
        raise ImportError(f'viewing needs Panel ({error}): pip install "wavefilt[view]"') from error
