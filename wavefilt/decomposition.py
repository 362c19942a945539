"""Wavelet transforms of arrays along one axis or two, with PyWavelets' signatures, lengths and values.

The functions convert the array to C-contiguous blocks (batch, *transformed axes), choose a backend and convert the
coefficients back. Formulas: Mallat (1989) for the DWT, lengths in `wavefilt.wavelets.filters`; Percival and Walden
(2000), chapter 5, for the MODWT; Coifman and Wickerhauser (1992) for wavelet packets, which split both outputs of a
level again. The dual-tree transform has the values of the package dtcwt.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import pywt
from numpy.typing import ArrayLike

from wavefilt import backends
from wavefilt.arrays import Array, as_array, dtype_name, refuse_kinds
from wavefilt.backends.interface import Backend
from wavefilt.transforms import Analysis, Pyramid, find
from wavefilt.transforms.dual_tree import decomposed, recomposed
from wavefilt.vocabulary import MODES, Mode, check
from wavefilt.wavelets.boundary import EXTENSIONS, check_single, modwt_length
from wavefilt.wavelets.dual_tree import DualTree, deepest
from wavefilt.wavelets.filters import (
    WaveletLike,
    as_reconstructing,
    as_wavelet,
    detail_lengths,
    lengths_from,
    max_level,
)

Wavelets: TypeAlias = "WaveletLike | tuple[WaveletLike, WaveletLike]"
Modes: TypeAlias = "Mode | tuple[Mode, Mode]"
Axes: TypeAlias = tuple[int, ...]
Sizes: TypeAlias = list[tuple[int, ...]]
"""Lengths of the transformed axes: of the approximation, then of the bands of each level, the coarsest first."""


def wavedec(
    data: ArrayLike,
    wavelet: WaveletLike,
    mode: Mode = "symmetric",
    level: int | None = None,
    axis: int = -1,
    *,
    backend: str = "auto",
) -> list[Array]:
    """Compute the multilevel discrete wavelet transform along one axis.

    Parameters
    ----------
    data : array_like, shape (..., n, ...)
        float32, float64, complex64 and complex128 keep their dtype, float16 is computed in float32, everything
        else in float64 (complex128).
    wavelet : str, pywt.Wavelet or object with four filters
    mode : str
        One of PyWavelets' nine boundary modes.
    level : int, optional
        Number of levels, at least 0; by default `pywt.dwt_max_level`. All coefficients of deeper levels depend on the
        boundary.
    axis : int
        Time axis; all other axes are a batch.
    backend : str
        ``"auto"`` or a name of `wavefilt.backends.names`.

    Returns
    -------
    list of ndarray
        ``[cA_n, cD_n, ..., cD_1]``, each of the shape of ``data`` except along ``axis``.

    Raises
    ------
    ValueError
        For an unknown wavelet, mode or backend, a negative level, no samples, masked samples, an axis out of range, or
        a reflection that would have to extend a single sample.
    BackendUnavailable
        If the requested backend cannot run here.
    """
    return _decomposed(data, analysis_of("dwt", 1, wavelet, mode), level, (axis,), backend)


def wavedec2(
    data: ArrayLike,
    wavelet: Wavelets,
    mode: Modes = "symmetric",
    level: int | None = None,
    axes: tuple[int, int] = (-2, -1),
    *,
    backend: str = "auto",
) -> list[Any]:
    """Compute the multilevel discrete wavelet transform of two axes; errors and other parameters are as for `wavedec`.

    Parameters
    ----------
    wavelet, mode
        As for `wavedec`, or a pair with one for each axis.
    level : int, optional
        Number of levels, at least 0; by default `pywt.dwtn_max_level` of the two axes.
    axes : pair of int
        Two different axes; all others are a batch.

    Returns
    -------
    list
        ``[cA_n, (cH_n, cV_n, cD_n), ..., (cH_1, cV_1, cD_1)]``, of the shape of ``data`` except along the two axes.
        cH is high-pass along ``axes[0]``, cV along ``axes[1]``, cD along both.
    """
    return _by_level(_decomposed(data, analysis_of("dwt", 2, wavelet, mode), level, axes, backend))


def waverec(
    coeffs: Sequence[ArrayLike | None],
    wavelet: WaveletLike,
    mode: Mode = "symmetric",
    axis: int = -1,
    *,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of `wavedec`. If the length was odd, the result is one sample longer, as in PyWavelets.

    Parameters
    ----------
    coeffs : sequence
        ``[cA_n, cD_n, ..., cD_1]``; None counts as zeros.
    wavelet, mode, axis, backend
        As in `wavedec`.

    Returns
    -------
    ndarray of the coefficients' common floating dtype.

    Raises
    ------
    ValueError
        For an empty list, coefficients with inconsistent shapes, and as `wavedec`.
    """
    return _recomposed(coeffs, analysis_of("dwt", 1, wavelet, mode), (axis,), backend)


def waverec2(
    coeffs: Sequence[Any],
    wavelet: Wavelets,
    mode: Modes = "symmetric",
    axes: tuple[int, int] = (-2, -1),
    *,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of `wavedec2`. An axis of odd length is one sample longer, as in PyWavelets.

    Parameters
    ----------
    coeffs : sequence
        ``[cA_n, (cH_n, cV_n, cD_n), ..., (cH_1, cV_1, cD_1)]``; None for a band, or for all three, counts as zeros.
    wavelet, mode, axes, backend
        As in `wavedec2`. Errors are as for `waverec`.
    """
    return _recomposed(coeffs, analysis_of("dwt", 2, wavelet, mode), axes, backend)


def dwt(
    data: ArrayLike, wavelet: WaveletLike, mode: Mode = "symmetric", axis: int = -1, *, backend: str = "auto"
) -> tuple[Array, Array]:
    """Compute one level of `wavedec`: ``(cA, cD)``, as `pywt.dwt`. Raises as `wavedec`."""
    approximation, detail = wavedec(data, wavelet, mode, 1, axis, backend=backend)
    return approximation, detail


def idwt(
    cA: ArrayLike | None,
    cD: ArrayLike | None,
    wavelet: WaveletLike,
    mode: Mode = "symmetric",
    axis: int = -1,
    *,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of `dwt`, as `pywt.idwt`: one argument may be None, which counts as zeros.

    Raises ValueError if both are None or their shapes differ.
    """
    if cA is not None and cD is not None and np.shape(cA) != np.shape(cD):
        raise ValueError(f"cA of shape {np.shape(cA)} and cD of shape {np.shape(cD)} do not belong together")
    return waverec([cA, cD], wavelet, mode, axis, backend=backend)


def modwt(
    data: ArrayLike,
    wavelet: WaveletLike,
    level: int | None = None,
    mode: Mode = "periodic",
    axis: int = -1,
    *,
    backend: str = "auto",
) -> list[Array]:
    """Compute the maximal overlap discrete wavelet transform along one axis, for any length.

    The filters of level j are PyWavelets' filters over sqrt 2, their taps 2^(j-1) apart. With h half the number of taps
    and V_0 the samples,

        V_j[t] = sum_l lo[l]/sqrt 2 V_{j-1}[t + 2^(j-1) (h - l)],   W_j[t] the same with hi,
        V_{j-1}[t] = sum_l (lo'[l] V_j[t + 2^(j-1) (h - 1 - l)] + hi'[l] W_j[...])/sqrt 2.

    Coefficient t of any level is computed from samples around t. In Percival and Walden's alignment, coefficients are
    computed from the samples up to t and stand (2^j - 1) h columns further on.

    Parameters
    ----------
    data : array_like, shape (..., n, ...)
        Dtypes as in `wavedec`.
    wavelet : str, pywt.Wavelet or object with four filters
        With "dmey", whose filters are truncated, `imodwt` warns: it reconstructs only to about 1 %, as PyWavelets.
    level : int, optional
        Number of levels, from 0 to log2(n); beyond this the filter taps would be more than half the signal apart. By
        default `pywt.dwt_max_level`, at which some coefficients are independent of the boundary.
    mode : str
        Boundary mode, one of the nine of PyWavelets; the samples are extended once for all levels. With
        ``"periodic"`` (identical to ``"periodization"``) the transform is circular.
    axis : int
        Time axis; all other axes are a batch.
    backend : str
        ``"auto"`` or a name of `wavefilt.backends.names`.

    Returns
    -------
    list of ndarray
        ``[V_J, W_J, ..., W_1]``. In the periodic modes each has the shape of ``data``, and for orthogonal wavelets the
        sum of squares is preserved. In the other modes level j has (2^j - 1)(taps - 1) additional columns, the
        boundary coefficients that `imodwt` needs for perfect reconstruction: sample t is at column
        t + (2^j - 1) taps/2.

    Raises
    ------
    ValueError
        For an unknown wavelet, mode or backend, a level out of range, no samples, an axis out of range, or a
        reflection of a single sample.
    """
    return _decomposed(data, analysis_of("modwt", 1, wavelet, mode), level, (axis,), backend)


def modwt2(
    data: ArrayLike,
    wavelet: Wavelets,
    level: int | None = None,
    mode: Modes = "periodic",
    axes: tuple[int, int] = (-2, -1),
    *,
    backend: str = "auto",
) -> list[Any]:
    """Compute the maximal overlap discrete wavelet transform of two axes, for any lengths.

    Each level filters both axes as `modwt`; errors and other parameters are as for `modwt`.

    Parameters
    ----------
    wavelet, mode
        As for `modwt`, or a pair with one for each axis.
    level : int, optional
        Number of levels, from 0 to log2 of the shorter axis; by default `pywt.dwtn_max_level` of the two axes.
    axes : pair of int
        Two different axes; all others are a batch.

    Returns
    -------
    list
        ``[A_n, (H_n, V_n, D_n), ..., (H_1, V_1, D_1)]``: H is high-pass along ``axes[0]``, V along ``axes[1]``, D along
        both. In the periodic modes each has the shape of ``data``, with the values of
        ``pywt.swt2(norm=True, trim_approx=True)`` for the lengths that it supports, and for orthogonal wavelets the sum
        of squares is preserved. In the other modes level j has (2^j - 1)(taps - 1) more along either axis, the boundary
        coefficients that `imodwt2` needs: sample t is at t + (2^j - 1) taps/2.
    """
    return _by_level(_decomposed(data, analysis_of("modwt", 2, wavelet, mode), level, axes, backend))


def imodwt(
    coeffs: Sequence[ArrayLike | None],
    wavelet: WaveletLike,
    mode: Mode = "periodic",
    axis: int = -1,
    *,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of `modwt`, in the coefficients' common floating dtype.

    Parameters
    ----------
    coeffs : sequence
        ``[V_J, W_J, ..., W_1]``; None counts as zeros.
    wavelet, mode, axis, backend
        As in `modwt`.

    Raises
    ------
    ValueError
        For an empty list, coefficients with inconsistent shapes, and as `modwt`.
    """
    return _recomposed(coeffs, analysis_of("modwt", 1, as_reconstructing(wavelet), mode), (axis,), backend)


def imodwt2(
    coeffs: Sequence[Any],
    wavelet: Wavelets,
    mode: Modes = "periodic",
    axes: tuple[int, int] = (-2, -1),
    *,
    backend: str = "auto",
) -> Array:
    """Compute the inverse of `modwt2`.

    Parameters
    ----------
    coeffs : sequence
        ``[A_n, (H_n, V_n, D_n), ..., (H_1, V_1, D_1)]``; None for a band, or for all three, counts as zeros.
    wavelet, mode, axes, backend
        As in `modwt2`. Errors are as for `imodwt`.
    """
    return _recomposed(coeffs, analysis_of("modwt", 2, wavelet, mode), axes, backend)


def swt(
    data: ArrayLike,
    wavelet: WaveletLike,
    level: int | None = None,
    start_level: int = 0,
    axis: int = -1,
    trim_approx: bool = False,
    norm: bool = False,
    *,
    backend: str = "auto",
) -> list[Any]:
    """Compute the stationary wavelet transform, with the signature and the values of `pywt.swt`.

    Parameters
    ----------
    data, wavelet, axis, backend
        As in `modwt`.
    level : int, optional
        Number of levels, at least 1; the length must be a multiple of 2^(start_level + level). By default the maximum.
    start_level : int
        Number of levels to skip: the taps of the first level are spaced 2^start_level apart.
    trim_approx : bool
        Return ``[cA_n, cD_n, ..., cD_1]`` instead of pairs.
    norm : bool
        Divide the filters by √2, so that orthogonal wavelets preserve the sum of squares: the periodic MODWT.

    Returns
    -------
    list of tuple of ndarray
        ``[(cA_n, cD_n), ..., (cA_1, cD_1)]``, or as ``trim_approx`` specifies, each of the shape of ``data``.

    Raises
    ------
    ValueError
        For an odd length or one with fewer levels (use `modwt` for these), and as `modwt`.
    """
    array = as_floating(data)
    axes = as_axes(array, (axis,), 1)
    (samples,) = transformed_shape(array, axes)
    start_level, most = operator.index(start_level), _halvings(samples)
    level = most - start_level if level is None else operator.index(level)
    if level < 1 or start_level < 0 or start_level + level > most:
        raise ValueError(
            f"level={level} from start_level={start_level} of {samples} samples: level must be at least 1, and "
            f"2^(start_level + level) divide the length, which 2^{most} does; modwt takes any length"
        )
    analysis = analysis_of("modwt", 1, _swt_filters(as_wavelet(wavelet), norm), "periodic")
    analysis = replace(analysis, level=level, start_level=start_level)
    if trim_approx:
        return _transformed(array, axes, analysis, backend)
    chosen = backends.choose(backend, dtype_name(array.dtype), (array.size // samples, samples), analysis)
    pairs = []
    for j in range(start_level, start_level + level):
        array, detail = _transformed(array, axes, replace(analysis, level=1, start_level=j), chosen)
        pairs.append((array, detail))
    return pairs[::-1]


def iswt(
    coeffs: Sequence[Any], wavelet: WaveletLike, norm: bool = False, axis: int = -1, *, backend: str = "auto"
) -> Array:
    """Compute the inverse of `swt` (with ``start_level`` 0) in either form, as `pywt.iswt`.

    Only the approximation of the coarsest pair is used. Raises ValueError for an empty list, coefficients with
    inconsistent shapes, and as `swt`.
    """
    if len(coeffs) == 0:
        raise ValueError("coeffs must hold at least one level")
    if isinstance(coeffs[0], (tuple, list)):
        coeffs = [coeffs[0][0], *(detail for _, detail in coeffs)]
    array, level = np.asarray(coeffs[0]), len(coeffs) - 1
    (samples,) = transformed_shape(array, as_axes(array, (axis,), 1))
    if level > _halvings(samples):
        raise ValueError(f"{samples} samples cannot have {level} levels: 2^{level} does not divide them")
    filters = _swt_filters(as_wavelet(wavelet), norm)
    return _recomposed(coeffs, analysis_of("modwt", 1, filters, "periodic"), (axis,), backend)


class WaveletPackets(dict[str, Array]):
    """Wavelet packets by name: ``packets["aad"]``; ``packets[""]`` are the data themselves.

    A node is named by the filters that lead to it: "aad" is twice low-pass, then high-pass.

    Attributes
    ----------
    level : int
        Number of letters of the longest names.
    samples : int
        Length of the data along the axis of the transform.
    """

    def __init__(self, nodes: dict[str, Array], level: int, samples: int) -> None:
        super().__init__(nodes)
        self.level, self.samples = level, samples

    def __repr__(self) -> str:
        return f"<WaveletPackets to level {self.level} of {self.samples} samples>"

    def names(self, level: int | None = None, order: Literal["natural", "freq"] = "natural") -> list[str]:
        """Return the names of the nodes of a level, by default the deepest, as `pywt.WaveletPacket.get_level` does.

        ``"natural"`` is alphabetical. ``"freq"`` is by frequency, the lowest first: decimation mirrors the spectrum of
        a high-pass output, below which "d" is the lower half. Raises ValueError for an unknown level or order.
        """
        check("order", order, ("natural", "freq"))
        level = self.level if level is None else operator.index(level)
        if not 0 <= level <= self.level:
            raise ValueError(f"level={level} must be at least 0 and at most {self.level}")
        names = ["".join(letters) for letters in product("ad", repeat=level)]
        if order == "freq":
            names = [names[place ^ place >> 1] for place in range(len(names))]  # Gray code
        return names


def wavelet_packets(
    x: ArrayLike,
    wavelet: WaveletLike,
    mode: Mode = "symmetric",
    level: int | None = None,
    axis: int = -1,
    *,
    backend: str = "auto",
) -> WaveletPackets:
    """Compute wavelet packets along one axis: all nodes of all levels, with the values of `pywt.WaveletPacket`.

    Parameters
    ----------
    x : array_like, shape (..., n, ...)
        Dtypes as for `wavefilt.wavedec`. All other axes are a batch.
    wavelet, mode, axis, backend
        As for `wavefilt.wavedec`.
    level : int, optional
        Number of levels, at least 0; by default `pywt.dwt_max_level`. Level j has 2^j nodes, and all of them about as
        many values as ``x``.

    Returns
    -------
    WaveletPackets
        A mapping from names to arrays of the shape of ``x`` except along ``axis``. ``names(level, order)`` lists the
        nodes of a level, in alphabetical order or in the order of frequency.

    Raises
    ------
    ValueError, BackendUnavailable
        As `wavefilt.wavedec`.

    References
    ----------
    Coifman and Wickerhauser, Entropy-based algorithms for best basis selection, IEEE Trans. Inf. Theory 38 (1992).

    Examples
    --------
    >>> import wavefilt
    >>> packets = wavefilt.wavelet_packets([1, 2, 3, 4, 5, 6, 7, 8], "haar")
    >>> packets.names(2, "freq")
    ['aa', 'ad', 'dd', 'da']
    >>> packets["aa"]
    array([ 5., 13.])
    """
    array, axes, analysis = prepared(x, analysis_of("dwt", 1, wavelet, mode), level, (axis,))
    rows, batch = to_blocks(array, axes)
    one = replace(analysis, level=1)
    chosen = backends.choose(backend, dtype_name(rows.dtype), rows.shape, one)
    names, nodes = [""], {"": array}
    for _ in range(analysis.level):  # all nodes of a level are rows of one batch
        low, high = chosen.decompose(rows, one).coefficients
        rows = np.concatenate([low, high])
        for letter, coefficients in zip("ad", rows.reshape(2, len(names), *batch, low.shape[-1]), strict=True):
            nodes |= {name + letter: np.moveaxis(c, -1, axes[0]) for name, c in zip(names, coefficients, strict=True)}
        names = [name + letter for letter in "ad" for name in names]
    ordered = sorted(nodes, key=lambda name: (len(name), name))
    return WaveletPackets({name: nodes[name] for name in ordered}, analysis.level, array.shape[axes[0]])


def iwavelet_packets(
    nodes: Mapping[str, ArrayLike],
    wavelet: WaveletLike,
    mode: Mode = "symmetric",
    samples: int | None = None,
    axis: int = -1,
    *,
    backend: str = "auto",
) -> Array:
    """Reconstruct the samples from the nodes of any basis of wavelet packets.

    Parameters
    ----------
    nodes : mapping from str to array_like
        Names and coefficients of nodes that cover the spectrum once, such as "a", "da" and "dd". From the mapping
        returned by `wavelet_packets`, which has all nodes, only the deepest level is used.
    wavelet, mode, axis, backend
        As in `wavelet_packets`.
    samples : int, optional
        Length of the result along ``axis``. By default the length of the data for a mapping by `wavelet_packets`, and
        otherwise the longest whose nodes have the given lengths.

    Returns
    -------
    ndarray of the nodes' common floating dtype.

    Raises
    ------
    ValueError
        For a node that is a part of another one, or that is missing, and a length that does not fit the others, each
        with its name; for names with other letters than a and d, and as `wavelet_packets`.
    """
    one = replace(analysis_of("dwt", 1, wavelet, mode), level=1)
    if isinstance(nodes, WaveletPackets):
        samples = nodes.samples if samples is None else samples
        nodes = {name: nodes[name] for name in nodes.names()}
    _check_basis(nodes)
    given = {name: as_floating(c) for name, c in nodes.items()}
    dtype, any_node = np.result_type(*given.values()), next(iter(given.values()))
    axes = as_axes(any_node, (axis,), 1)
    rows, batch = {}, to_blocks(any_node, axes)[1]
    for name, c in given.items():
        rows[name], others = to_blocks(c.astype(dtype, copy=False), axes) if c.ndim == any_node.ndim else (c, ())
        if c.ndim != any_node.ndim or others != batch:
            raise ValueError(f"node {name!r} of shape {c.shape} does not fit one of shape {any_node.shape}")
    lengths = _packet_lengths({name: c.shape[1] for name, c in rows.items()}, one.taps, one.modes[0], samples)
    chosen = backends.choose(backend, dtype_name(dtype), (max(prod(batch), 1), lengths[0]), one)
    for level in range(len(lengths) - 1, 0, -1):
        parents = sorted({name[:-1] for name in rows if len(name) == level})
        children = (np.concatenate([rows.pop(name + letter) for name in parents]) for letter in "ad")
        merged = chosen.reconstruct(Pyramid(tuple(children), one, (lengths[level - 1],)))
        rows |= zip(parents, np.split(merged, len(parents)), strict=True)
    return from_blocks(rows[""], batch, axes)


@dataclass(frozen=True, eq=False)
class DualTreeCoefficients:
    """Coefficients of `wavefilt.dtcwt`, the argument of `wavefilt.idtcwt`.

    To change coefficients, change the arrays in place, or replace them with `dataclasses.replace`.

    Attributes
    ----------
    lowpass : ndarray
        Real low-pass coefficients, alternately from both trees, with the transformed axes in place: n samples become
        about n / 2^(level - 1), and are unchanged for ``level`` 0.
    highpasses : tuple of ndarray
        Complex coefficients of each level, the finest first: about n / 2^j along transformed axes at level j. With two
        axes, the last axis has six bands, for edges at 15, 45, 75, 105, 135 and 165 degrees.
    axes : tuple of int
        The transformed axes of the data, counted from the front.
    samples : tuple of int
        Their lengths.
    tree : DualTree
        The filters.
    """

    lowpass: Array
    highpasses: tuple[Array, ...]
    axes: tuple[int, ...]
    samples: tuple[int, ...]
    tree: DualTree


def dtcwt(
    x: ArrayLike,
    biort: str = "near_sym_b",
    qshift: str = "qshift_b",
    level: int | None = None,
    axis: int = -1,
    axes: tuple[int, int] | None = None,
) -> DualTreeCoefficients:
    """Compute the dual-tree complex wavelet transform along one axis or two (Kingsbury 2001).

    Two trees of real wavelet filters give the real and the imaginary parts of complex coefficients. Their magnitudes
    depend little on the position of an event between samples; in two dimensions the six bands of a level separate
    directions. There are two numbers per sample along one axis, four along two.

    Parameters
    ----------
    x : array_like, real
        float32 and float64 are kept, float16 is computed in float32, everything else in float64.
    biort : {"antonini", "legall", "near_sym_a", "near_sym_b"}
        Biorthogonal filters of the first level.
    qshift : {"qshift_06", "qshift_a", "qshift_b", "qshift_c", "qshift_d"}
        Quarter-shift filters of all other levels. Both: `wavefilt.wavelets.dual_tree`.
    level : int, optional
        Number of levels, at least 0; by default the largest that leaves at least two coefficients along each axis.
    axis : int
        The axis to transform; all others are a batch.
    axes : pair of int, optional
        Two axes to transform, instead of ``axis``.

    Returns
    -------
    DualTreeCoefficients
        With ``lowpass`` and ``highpasses`` in the order and with the values of the package dtcwt. If a length is odd,
        or at deeper levels not a multiple of 4, samples at the ends are repeated.

    Raises
    ------
    ValueError
        For unknown filters, a negative level, no samples, complex data, and axes that the data do not have.
    """
    tree, array = DualTree(biort, qshift), as_floating(x)
    if np.iscomplexobj(array):
        raise ValueError("complex data: transform their real and imaginary parts one by one")
    transformed = as_axes(array, (axis,), 1) if axes is None else as_axes(array, axes, 2)
    samples = transformed_shape(array, transformed)
    level = deepest(samples) if level is None else operator.index(level)
    if level < 0:
        raise ValueError(f"level={level} must be at least 0")
    last = range(-len(transformed), 0)
    low, levels = decomposed(np.moveaxis(array, transformed, last), tree, level, len(transformed))
    levels = [[np.moveaxis(band, last, transformed) for band in bands] for bands in levels]
    highpasses = tuple(bands[0] if axes is None else np.stack(bands, -1) for bands in levels)
    return DualTreeCoefficients(np.moveaxis(low, last, transformed), highpasses, transformed, samples, tree)


def idtcwt(pyramid: DualTreeCoefficients) -> Array:
    """Compute the inverse of `dtcwt`: the samples, to rounding, in the shape of the data.

    Raises ValueError for coefficients whose shapes do not belong together.
    """
    axes, last = pyramid.axes, range(-len(pyramid.axes), 0)
    low = np.moveaxis(pyramid.lowpass, axes, last)
    levels = [[c] if len(axes) == 1 else list(np.moveaxis(c, -1, 0)) for c in pyramid.highpasses]
    levels = [[np.moveaxis(band, axes, last) for band in bands] for bands in levels]
    shapes, size = [], pyramid.samples
    for _ in levels:
        size = tuple(-(-n // 2) for n in size)
        shapes += [(*low.shape[: -len(axes)], *size)] * (1 if len(axes) == 1 else 6)
    size = tuple(2 * n for n in size) if levels else size
    if [low.shape[-len(axes) :], *(band.shape for bands in levels for band in bands)] != [size, *shapes]:
        given = ", ".join(str(c.shape) for c in (pyramid.lowpass, *pyramid.highpasses))
        raise ValueError(f"coefficients of shapes {given} are not those of {pyramid.samples} samples")
    return np.moveaxis(recomposed(low, levels, pyramid.tree, pyramid.samples), last, axes)


def _halvings(samples: int) -> int:
    """Return how often 2 divides the length (`pywt.swt_max_level`)."""
    return (samples & -samples).bit_length() - 1


def _swt_filters(filters: pywt.Wavelet, norm: bool) -> pywt.Wavelet:
    """Return the filters whose MODWT is the SWT by these."""
    if not norm:
        return _undivided(filters)
    if not filters.orthogonal:
        warnings.warn(f"norm=True: {filters.name} is not orthogonal, so the sum of squares is not kept", stacklevel=3)
    return filters


@lru_cache(maxsize=64)
def _undivided(filters: pywt.Wavelet) -> pywt.Wavelet:
    """Undo the division by sqrt 2 of the MODWT: the SWT's analysis does not divide, its synthesis divides twice."""
    analysis = [(np.array(taps) * np.sqrt(2)).tolist() for taps in (filters.dec_lo, filters.dec_hi)]
    synthesis = [(np.array(taps) / np.sqrt(2)).tolist() for taps in (filters.rec_lo, filters.rec_hi)]
    return pywt.Wavelet(filters.name, filter_bank=analysis + synthesis)


def mode_name(mode: Mode | int) -> Mode:
    """Return the name of a mode given by its name, PyWavelets' number (`pywt.Modes`) or PyWavelets' old name.

    Raises ValueError for an unknown mode, TypeError for anything but a name or a number.
    """
    if not isinstance(mode, str | int):
        raise TypeError(f"mode={mode!r} must be a name")
    if mode not in EXTENSIONS:
        try:
            number = pywt.Modes.from_object(mode)  # warns of old names
        except ValueError:
            check("mode", mode, EXTENSIONS)
        else:
            return cast(Mode, next(name for name in MODES if getattr(pywt.Modes, name) == number))
    return cast(Mode, mode)


def analysis_of(word: str, ndim: int, wavelet: Wavelets, mode: Modes) -> Analysis:
    """Return a transform of no levels of one axis or two, for a wavelet and a mode or, for two axes, pairs of them."""
    filters, modes = _of_each_axis(wavelet, ndim, as_wavelet), _of_each_axis(mode, ndim, mode_name)
    return Analysis(find(word, ndim), filters, modes, 0)


def _of_each_axis(option: Any, ndim: int, convert: Callable[[Any], Any]) -> tuple[Any, ...]:
    values = option if ndim == 2 and isinstance(option, (tuple, list)) else (option,) * ndim
    if len(values) != ndim:
        raise ValueError(f"{len(values)} wavelets or modes for two axes: give one, or a pair")
    return tuple(map(convert, values))


def check_reflection(lengths: Sequence[int], mode: str) -> None:
    """Raise ValueError if a level would reflect a single sample; ``lengths`` are the lengths of each level."""
    if 1 in lengths[:-1] and mode in ("reflect", "antireflect"):
        raise ValueError(f"mode={mode!r} cannot extend a single sample, the input of level {lengths.index(1) + 1}")


def as_floating(data: ArrayLike) -> Array:
    """Return ``data`` in the dtype in which PyWavelets computes.

    Raises TypeError for data that are not numbers, and ValueError for masked samples.
    """
    refuse_kinds(data)
    array = as_array(data)
    if np.ma.is_masked(array):
        raise ValueError("data have masked samples: fill or interpolate them first, such as data.filled(0)")
    array = np.asarray(array)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"data of dtype {array.dtype} is not numeric")
    native = array.dtype.newbyteorder("=")
    if native.name == "float16":
        native = np.dtype(np.float32)
    if native.name not in ("float32", "float64", "complex64", "complex128"):
        native = np.dtype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return array.astype(native, copy=False)


def as_axes(array: Array, axes: Iterable[int], ndim: int) -> Axes:
    """Return ``ndim`` different axes of the array, counted from the front.

    Raises ValueError for another number of axes, equal axes, and axes that the array does not have.
    """
    found = np.lib.array_utils.normalize_axis_tuple(tuple(axes), array.ndim, "axes")
    if len(found) != ndim:
        raise ValueError(f"axes={found} must be a pair of axes")
    return found


def transformed_shape(array: Array, axes: Axes) -> tuple[int, ...]:
    shape = tuple(int(array.shape[axis]) for axis in axes)
    if 0 in shape:
        named = f"axis {axes[0]}" if len(axes) == 1 else f"axes {axes[0]} and {axes[1]}"
        raise ValueError(f"data of shape {array.shape} has no samples along {named}")
    return shape


def prepared(
    data: ArrayLike, analysis: Analysis, level: int | None, axes: Iterable[int]
) -> tuple[Array, Axes, Analysis]:
    """Return the array to transform, its axes counted from the front, and the transform with its number of levels."""
    array = as_floating(data)
    axes = as_axes(array, axes, len(analysis.modes))
    shape = transformed_shape(array, axes)
    along = list(zip(shape, analysis.wavelets, analysis.modes, strict=True))
    level = min(max_level(n, filters) for n, filters, _ in along) if level is None else operator.index(level)
    if level < 0:
        raise ValueError(f"level={level} must be at least 0")
    if analysis.transform.word == "modwt" and level > (most := min(shape).bit_length() - 1):
        raise ValueError(f"level={level} must be at most log2 of {min(shape)} samples, {most}")
    for n, filters, mode in along:
        if analysis.transform.word == "modwt":
            check_single(n, mode)
        else:
            check_reflection([n, *detail_lengths(n, filters.dec_len, mode, level)], mode)
    return array, axes, replace(analysis, level=level)


def _decomposed(
    data: ArrayLike, analysis: Analysis, level: int | None, axes: Iterable[int], backend: str
) -> list[Array]:
    """Return the approximation and the bands of each level, the coarsest first."""
    array, axes, analysis = prepared(data, analysis, level, axes)
    return _transformed(array, axes, analysis, backend)


def _transformed(array: Array, axes: Axes, analysis: Analysis, backend: str | Backend) -> list[Array]:
    blocks, batch = to_blocks(array, axes)
    chosen = backends.choose(backend, dtype_name(blocks.dtype), blocks.shape, analysis)
    return [from_blocks(c, batch, axes) for c in chosen.decompose(blocks, analysis).coefficients]


def _by_level(coefficients: list[Array]) -> list[Any]:
    """Group the bands of two axes by level."""
    return [coefficients[0], *(tuple(coefficients[i : i + 3]) for i in range(1, len(coefficients), 3))]


def _recomposed(coeffs: Sequence[Any], analysis: Analysis, axes: Iterable[int], backend: str) -> Array:
    """Return the samples from coefficients in the order of `_decomposed`, of which some may be None."""
    word, ndim = analysis.transform.word, len(analysis.modes)
    if not isinstance(coeffs, Sequence if word == "dwt" else Sequence | np.ndarray) or len(coeffs) == 0:
        raise ValueError("coeffs must be a list of at least one array: the approximation, and details of each level")
    levels = [
        None if coeffs[0] is None else (np.asarray(coeffs[0]),),
        *(_bands(c, i, ndim) for i, c in enumerate(coeffs[1:], 1)),
    ]
    known = [as_floating(band) for bands in levels for band in bands or ()]
    if not known or (word == "dwt" and levels[:2] in ([None], [None, None])):
        raise ValueError("at least one of the two coarsest coefficients in coeffs must be an array")
    dtype, axes = np.result_type(*known), as_axes(known[0], axes, ndim)
    batch = _without(known[0].shape, axes)
    for i, bands in enumerate(levels):
        shape = known[0].shape if bands is None else bands[0].shape
        if len(shape) != known[0].ndim or _without(shape, axes) != batch:
            raise ValueError(f"coeffs[{i}] of shape {shape} does not belong together with the other coefficients")
    given = [None if bands is None else tuple(bands[0].shape[axis] for axis in axes) for bands in levels]
    analysis = replace(analysis, level=len(levels) - 1)
    sizes, shape = _sizes(given, analysis)
    coefficients = list[Array]()
    for i, (bands, size) in enumerate(zip(levels, sizes, strict=True)):
        if bands is None:
            coefficients += [np.zeros((prod(batch), *size), dtype)] * (1 if i == 0 else 2**ndim - 1)
        for band in bands or ():
            block = to_blocks(np.asarray(band, dtype), axes)[0]
            coefficients.append(np.ascontiguousarray(block[(slice(None), *map(slice, size))]))
    chosen = backends.choose(backend, dtype_name(dtype), (prod(batch), *shape), analysis)
    return from_blocks(chosen.reconstruct(Pyramid(tuple(coefficients), analysis, shape)), batch, axes)


def _bands(bands: Any, place: int, ndim: int) -> tuple[Array, ...] | None:
    """Return the bands of a level as arrays, with zeros for None; None if all are. Raises ValueError for others."""
    if bands is None:
        return None
    if ndim == 1:
        bands = (bands,)
    if not isinstance(bands, (list, tuple)) or len(bands) != 2**ndim - 1 or isinstance(bands[0], (dict, tuple)):
        what = "an array" if ndim == 1 else "the three arrays (cH, cV, cD)"
        raise ValueError(f"coeffs[{place}]: Unexpected detail coefficient type {type(bands).__name__}, not {what}")
    arrays = [np.asarray(band) for band in bands if band is not None]
    if len({array.shape for array in arrays}) > 1:
        raise ValueError(f"coeffs[{place}]: bands of one level have different shapes")
    return tuple(np.zeros_like(arrays[0]) if band is None else np.asarray(band) for band in bands) if arrays else None


def _without(shape: tuple[int, ...], axes: Axes) -> tuple[int, ...]:
    return tuple(n for axis, n in enumerate(shape) if axis not in axes)


def _sizes(given: Sequence[tuple[int, ...] | None], analysis: Analysis) -> tuple[Sizes, tuple[int, ...]]:
    """Return the lengths of all coefficients, boundary coefficients included, and of the samples.

    If a length is odd, an approximation reconstructed by the DWT is one longer than the details of its level.
    """
    levels, decimated, along = [analysis.level, *range(analysis.level, 0, -1)], analysis.transform.word == "dwt", []
    for axis, (filters, mode) in enumerate(zip(analysis.wavelets, analysis.modes, strict=True)):
        known = {level: size[axis] for level, size in zip(levels, given, strict=True) if size}
        if decimated:
            along.append(lengths_from(known, filters.dec_len, mode))
        else:
            more = [modwt_length(0, filters.rec_len, mode, level) for level in range(analysis.level + 1)]
            along.append([known[max(known)] - more[max(known)] + n for n in more])
    shape, *sizes = zip(*along, strict=True)
    sizes = [*sizes[-1:], *reversed(sizes)] or [shape]
    for i, (own, size) in enumerate(zip(given, sizes, strict=True)):
        more = [n - m for n, m in zip(own or size, size, strict=True)]
        if min(shape) < min(analysis.level, 1) or not set(more) <= {0, int(decimated and i == 0)}:
            what = f"belong together with the others, or is too short for filters of {analysis.taps} taps"
            raise ValueError(f"coeffs[{i}] of lengths {own} does not {what}")
    return sizes, shape


def to_blocks(array: Array, axes: Axes) -> tuple[Array, tuple[int, ...]]:
    """Return C-contiguous blocks (batch, *transformed axes), and the shape of the batch."""
    count = len(axes)
    moved = np.moveaxis(array, axes, range(-count, 0))
    batch = moved.shape[:-count]
    return np.ascontiguousarray(moved.reshape(prod(batch), *moved.shape[-count:])), batch


def from_blocks(blocks: Array, batch: tuple[int, ...], axes: Axes) -> Array:
    count = len(axes)
    return np.moveaxis(blocks.reshape(*batch, *blocks.shape[-count:]), range(-count, 0), axes)


def _check_basis(nodes: Mapping[str, Any]) -> None:
    """Raise ValueError, naming a node, unless the nodes cover the spectrum once."""
    if not nodes:
        raise ValueError("nodes must be a mapping of at least one name, such as 'a' and 'd'")
    inner = set()
    for name in nodes:
        if not isinstance(name, str) or not set(name) <= {"a", "d"}:
            raise ValueError(f"node {name!r}: names of nodes consist of the letters a and d")
        inner |= {name[:i] for i in range(len(name))}
    for name in nodes:
        if name in inner:
            part = min(other for other in nodes if other.startswith(name) and other != name)
            raise ValueError(f"node {part!r} is a part of node {name!r}: give one of them")
    for name in sorted(inner):
        for child in (name + "a", name + "d"):
            if child not in inner and child not in nodes:
                raise ValueError(f"node {child!r} is missing, or the nodes that it consists of")


def _packet_lengths(given: dict[str, int], taps: int, mode: str, samples: int | None) -> list[int]:
    """Return the length of the nodes of every level, the samples first. Raises ValueError if they do not fit."""
    if samples is not None and operator.index(samples) < 1:
        raise ValueError(f"samples={samples} must be at least 1")
    known = {len(name): length for name, length in given.items()} | ({} if samples is None else {0: samples})
    lengths = lengths_from(known, taps, mode)
    for name, length in given.items():
        if length != lengths[len(name)] or length < 1:
            wanted = f"{lengths[len(name)]} of {lengths[0]} samples" if lengths[0] else f"more for {taps} taps"
            raise ValueError(f"node {name!r} has {length} coefficients, not {wanted}; samples= is the length of all")
    check_reflection(lengths, mode)
    return lengths
