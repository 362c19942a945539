"""Wavelet packets with PyWavelets' node names and values, through a backend.

Both outputs of a level are split again (Coifman and Wickerhauser 1992), so that level j has 2^j nodes of one length. A
node is named by the filters that led to it: "aad" is twice low-pass, then high-pass.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wavefilt import backends
from wavefilt.arrays import dtype_name
from wavefilt.decomposition.wavedec import as_axis, as_floating, check_reflection, from_rows, mode_name, to_rows
from wavefilt.transforms import DWT, Pyramid
from wavefilt.vocabulary import Mode, check
from wavefilt.wavelets.filters import WaveletLike, as_wavelet, detail_lengths, max_level, synthesis_length

Array = NDArray[Any]


class WaveletPackets(Mapping[str, Array]):
    """Wavelet packets by their names: ``packets["aad"]``; the data themselves are ``packets[""]``.

    Attributes
    ----------
    level : int
        Letters of the longest names.
    samples : int
        Length of the data along the axis of the transform.
    """

    def __init__(self, nodes: dict[str, Array], level: int, samples: int) -> None:
        self._nodes, self.level, self.samples = nodes, level, samples

    def __getitem__(self, name: str) -> Array:
        return self._nodes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __repr__(self) -> str:
        return f"<WaveletPackets to level {self.level} of {self.samples} samples>"

    def names(self, level: int | None = None, order: Literal["natural", "freq"] = "natural") -> list[str]:
        """Names of the nodes of a level, by default the deepest, as `pywt.WaveletPacket.get_level` orders them.

        ``"natural"`` is alphabetical; ``"freq"`` is by frequency, the lowest first: decimation mirrors the spectrum of
        a high-pass output, below which "d" is the lower half. Raises ValueError for a level or an order that is not
        there.
        """
        check("order", order, ("natural", "freq"))
        level = self.level if level is None else operator.index(level)
        if not 0 <= level <= self.level:
            raise ValueError(f"level={level} must be at least 0 and at most {self.level}")
        found = ["".join(letters) for letters in product("ad", repeat=level)]
        if order == "freq":
            found = [found[place ^ place >> 1] for place in range(len(found))]  # Gray code
        return found


def wavelet_packets(
    x: ArrayLike,
    wavelet: WaveletLike,
    mode: Mode = "symmetric",
    level: int | None = None,
    axis: int = -1,
    *,
    backend: str = "auto",
) -> WaveletPackets:
    """Wavelet packets along one axis: every node of every level, with the values of `pywt.WaveletPacket`.

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
        A mapping from names to arrays of the shape of ``x`` except along ``axis``. Its ``names(level, order)`` are
        those of the nodes of a level, in alphabetical order or in that of frequency.

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
    mode, bank, array = mode_name(mode), as_wavelet(wavelet), as_floating(x)
    axis = as_axis(array, axis)
    samples = array.shape[axis]
    if samples == 0:
        raise ValueError(f"data of shape {array.shape} has no samples along axis {axis}")
    if level is None:
        level = max_level(samples, bank)
    elif operator.index(level) < 0:
        raise ValueError(f"level={level} must be at least 0")
    check_reflection([samples, *detail_lengths(samples, bank.dec_len, mode, level)], mode)
    rows, batch = to_rows(array, axis)
    one = DWT.analysis(bank, mode, 1)
    chosen = backends.choose(backend, dtype_name(rows.dtype), rows.shape, one)
    names, nodes = [""], {"": array}
    for _ in range(level):  # all nodes of a level are rows of one batch
        low, high = chosen.decompose(rows, one).coefficients
        rows = np.concatenate([low, high])
        low, high = rows.reshape(2, len(names), *batch, low.shape[-1])
        nodes |= {name + "a": np.moveaxis(c, -1, axis) for name, c in zip(names, low, strict=True)}
        nodes |= {name + "d": np.moveaxis(c, -1, axis) for name, c in zip(names, high, strict=True)}
        names = [name + letter for letter in "ad" for name in names]
    ordered = sorted(nodes, key=lambda name: (len(name), name))
    return WaveletPackets({name: nodes[name] for name in ordered}, level, samples)


def iwavelet_packets(
    nodes: Mapping[str, ArrayLike],
    wavelet: WaveletLike,
    mode: Mode = "symmetric",
    samples: int | None = None,
    axis: int = -1,
    *,
    backend: str = "auto",
) -> Array:
    """The samples from the nodes of any basis of wavelet packets.

    Parameters
    ----------
    nodes : mapping from str to array_like
        Names and coefficients of nodes that cover the spectrum once, such as "a", "da" and "dd". Of the mapping that
        `wavelet_packets` returned, which has them all, those of the deepest level are taken.
    wavelet, mode, axis, backend
        As in `wavelet_packets`.
    samples : int, optional
        Length of the result along ``axis``. By default that of the data of a mapping by `wavelet_packets`, or else the
        longest whose nodes have the given lengths.

    Returns
    -------
    ndarray of the nodes' common floating dtype.

    Raises
    ------
    ValueError
        For a node that is a part of another one, or that is missing, and a length that does not fit the others, each
        with its name; for names with other letters than a and d, and as `wavelet_packets`.
    """
    mode, bank = mode_name(mode), as_wavelet(wavelet)
    if isinstance(nodes, WaveletPackets):
        samples = nodes.samples if samples is None else samples
        nodes = {name: nodes[name] for name in nodes.names()}
    _check_basis(nodes)
    given = {name: as_floating(c) for name, c in nodes.items()}
    dtype, any_node = np.result_type(*given.values()), next(iter(given.values()))
    axis = as_axis(any_node, axis)
    batch = tuple(np.delete(any_node.shape, axis).tolist())
    for name, c in given.items():
        if c.ndim != any_node.ndim or tuple(np.delete(c.shape, axis).tolist()) != batch:
            raise ValueError(f"node {name!r} of shape {c.shape} does not fit one of shape {any_node.shape}")
    lengths = _lengths({name: c.shape[axis] for name, c in given.items()}, bank.dec_len, mode, samples)
    rows = {name: to_rows(c.astype(dtype, copy=False), axis)[0] for name, c in given.items()}
    one = DWT.analysis(bank, mode, 1)
    chosen = backends.choose(backend, dtype_name(dtype), (max(int(np.prod(batch)), 1), lengths[0]), one)
    for level in range(len(lengths) - 1, 0, -1):
        parents = sorted({name[:-1] for name in rows if len(name) == level})
        children = (np.concatenate([rows.pop(name + letter) for name in parents]) for letter in "ad")
        found = chosen.reconstruct(Pyramid(tuple(children), one, (lengths[level - 1],)))
        rows |= zip(parents, np.split(found, len(parents)), strict=True)
    return from_rows(rows[""], batch, axis)


def _check_basis(nodes: Mapping[str, Any]) -> None:
    """Raise ValueError, naming a node, unless these cover the spectrum once."""
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


def _lengths(given: dict[str, int], taps: int, mode: str, samples: int | None) -> list[int]:
    """Coefficients of the nodes of every level, of the samples first. Raises ValueError where they do not fit."""
    known = {len(name): length for name, length in given.items()}
    deepest = max(known)
    if samples is None:
        samples = known[deepest]
        for level in range(deepest - 1, -1, -1):
            samples = known.get(level, synthesis_length(samples, taps, mode))
    elif operator.index(samples) < 1:
        raise ValueError(f"samples={samples} must be at least 1")
    lengths = [samples, *detail_lengths(samples, taps, mode, deepest)] if samples > 0 else [0] * (deepest + 1)
    for name, length in given.items():
        if length != lengths[len(name)] or length < 1:
            wanted = f"{lengths[len(name)]} of {samples} samples" if samples > 0 else f"more for {taps} taps"
            raise ValueError(f"node {name!r} has {length} coefficients, not {wanted}; samples= is the length of all")
    check_reflection(lengths, mode)
    return lengths
