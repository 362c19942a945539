"""DASCore's patches denoised: ``patch.wavefilt.denoise()``, which DASCore finds by its entry point."""

from __future__ import annotations

from typing import Any

from wavefilt.backends import Backend
from wavefilt.denoising import options as plugins
from wavefilt.denoising.traces import denoise
from wavefilt.vocabulary import check
from wavefilt.wavelets.filters import WaveletLike

try:
    import dascore as dc
    from dascore.utils.namespace import PatchNameSpace
except ImportError as error:
    raise ImportError(f'wavefilt.dascore needs DASCore ({error}): pip install "wavefilt[das]"') from error


class WavefiltNameSpace(PatchNameSpace):  # type: ignore[misc]
    """``patch.wavefilt``"""

    name = "wavefilt"

    @dc.patch_function(history=None)  # type: ignore[untyped-decorator]
    def denoise(
        patch: Any, dim: str = "time", wavelet: WaveletLike = "db8", *, backend: str | Backend = "auto", **options: Any
    ) -> Any:
        """A new patch denoised along ``dim``; coordinates and attributes are kept, the history has a line more.

        ``options`` are those of `wavefilt.denoise`: level, mode, rule, shrink, sigma, scope, keep, transform and spins.

        Raises ValueError for a dimension or an option of another name and for what `wavefilt.denoise` refuses,
        TypeError for samples that are not numbers.
        """
        check("dim", dim, patch.dims)
        method = plugins.method(wavelet, options, backend, "dim")
        axis = patch.dims.index(dim)
        samples = denoise(patch.data, wavelet, axis=axis, backend=backend, **options)
        named = getattr(backend, "name", backend)
        line = plugins.entry(method, method.level_for(patch.data.shape[axis]), dim=dim, backend=named)
        return patch.new(data=samples).update_attrs(history=[*patch.attrs.history, line])
