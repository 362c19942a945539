"""Wavelet packets with PyWavelets' node names and values (Coifman and Wickerhauser 1992).

Both outputs of a level are split again, so that level j has 2^j nodes of one length.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from wavefilt import backends
from wavefilt.arrays import Array, dtype_name
from wavefilt.decomposition import analysis_of, as_axes, as_floating, check_reflection, from_blocks, prepared, to_blocks
from wavefilt.transforms import Pyramid
from wavefilt.vocabulary import Mode, check
from wavefilt.wavelets.filters import WaveletLike, lengths_from


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
                raise ValueError(f"node {child!r} is missing, or those that it consists of")


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
