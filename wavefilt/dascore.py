"""The namespace ``wavefilt`` of DASCore patches, ``patch.wavefilt.denoise()``; DASCore finds it by its entry point."""

from __future__ import annotations

from typing import Unpack

from wavefilt.api import denoise
from wavefilt.arrays import check_even, transformed
from wavefilt.backends import Backend
from wavefilt.options import Clock, Keywords, Options, along, check_names
from wavefilt.wavelets.filters import WaveletLike

try:
    import dascore as dc
    from dascore.utils.namespace import PatchNameSpace
except ImportError as error:
    raise ImportError(f'wavefilt.dascore needs DASCore ({error}): pip install "wavefilt[das]"') from error


class WavefiltNameSpace(PatchNameSpace):  # type: ignore[misc]
    """Namespace ``patch.wavefilt``."""

    name = "wavefilt"

    @dc.patch_function(history=None)  # type: ignore[untyped-decorator]
    def denoise(
        patch: dc.Patch,
        dim: str | tuple[str, str] = "time",
        wavelet: WaveletLike | None = None,
        *,
        backend: str | Backend = "auto",
        **options: Unpack[Keywords],
    ) -> dc.Patch:
        """Denoise along ``dim`` and return a new patch; a line is added to its history.

        A pair, such as ``("time", "distance")``, transforms both dimensions together, as ``axes`` of
        `wavefilt.denoise`. The dimension called "time", otherwise the first, is along the traces. The coordinate of
        ``dim`` (of a pair, the one along the traces) must be evenly spaced to 1 % of the interval.

        ``options`` are as in `wavefilt.denoise`: level, mode, rule, shrink, sigma, scope, keep, transform, spins,
        detrend and blend; ``sigma`` takes seconds and values of the coordinate as in
        `wavefilt.xarray.DataArrayAccessor.denoise`.

        Raises ValueError for an unknown dimension or option, an uneven coordinate, and as `wavefilt.denoise`, and
        TypeError for samples that are not numbers.
        """
        dims = transformed(dim, patch.dims)
        check_names(options, "dim")
        time, axes = str(dims[-1]), [patch.dims.index(own) for own in dims]
        coordinate = patch.get_coord(time)
        if not coordinate.evenly_sampled:
            check_even(coordinate.values, f"coordinate {time!r}", "use wavefilt.denoise(patch.data, axis=...)")
        sigma = Clock.of_coordinate(coordinate.values, f"coordinate {time!r}").in_samples(options.get("sigma", "level"))
        options = {**options, "sigma": sigma}
        shape = [patch.data.shape[axis] for axis in axes]
        chosen = Options(wavelet, **options, ndim=2 if len(dims) == 2 else 1).fitting(*shape)
        samples = denoise(patch.data, wavelet, backend=backend, **along(axes), **options)
        name = backend if isinstance(backend, str) else backend.name
        line = chosen.history(chosen.level_for(*shape), dim=dim, backend=name)
        return patch.new(data=samples).update_attrs(history=[*patch.attrs.history, line])
