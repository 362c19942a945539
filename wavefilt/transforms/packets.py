"""Wavelet packets of traces, and denoising in a basis of them that suits each trace.

Both outputs of a level are split again, as by `wavefilt.wavelet_packets`. The low-pass output of all levels is always
split, and kept as the approximation, as in the DWT. Below each of the high-pass outputs a basis is chosen; that of the
DWT is one possible choice. Costs add up, so the best basis is found from the deepest nodes upwards: a node is split if
its children cost less (Coifman and Wickerhauser 1992).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.vocabulary import BASES
from wavefilt.wavelets.filters import detail_lengths

from .base import Analysis, Band, Pyramid, Refusal, Shape, Transform
from .separable import DWT

if TYPE_CHECKING:
    from wavefilt.options import Options
    from wavefilt.thresholding.shrinkage import Shrinkage

Merge = Callable[[Array, Array, int], Array]
"""One inverse level: from rows of low-pass and of high-pass coefficients to rows of a number of samples."""


class PacketTransform(Transform):
    """Wavelet packets in the basis of least risk, of least entropy, or of all nodes of the deepest level ("full").

    Its coefficients are, after the approximation, the nodes of each level (nodes, batch, coefficients), the deepest
    first. Node i of level j comes from nodes i and i + 2^j of the next level: bit k of i is set if letter k of its name
    is "d".
    """

    name = word = "wp"
    workspace = 2.0

    def __init__(self, basis: str) -> None:
        self.basis = basis

    def refusals(self, options: Options) -> Iterable[Refusal]:
        yield from super().refusals(options)
        yield "sigma", isinstance(options.sigma, tuple), ": give a number, or leave it out"
        yield "rule", options.rule.together is not None, ", whose bases have no neighbouring bands"

    def bands(self, level: int, filters: Any = None, approximation: bool = False) -> tuple[Band, ...]:
        """Return all nodes but the approximations, level by level; a band's ``level`` is its octave in the DWT."""
        return _bands(level)

    def sizes(self, analysis: Analysis, shape: Shape) -> list[int]:
        lengths = detail_lengths(shape[0], analysis.wavelets[0].dec_len, analysis.modes[0], analysis.level)
        return [length for j, length in enumerate(lengths, 1) for _ in range(1, 1 << j)]

    def analyse(self, x: Array, analysis: Analysis) -> tuple[Array, ...]:
        return analysed(x, analysis, DWT.analyse)

    def synthesise(self, approximation: Array, details: Iterator[Array], analysis: Analysis, shape: Shape) -> Array:
        return self.merged(Pyramid((approximation, *details), analysis, shape), None, _merge(analysis))

    def reconstructed(self, pyramid: Pyramid, shrinkage: Shrinkage | None) -> Array:
        return self.merged(pyramid, shrinkage, _merge(pyramid.analysis))

    def counted(self, coefficients: tuple[Any, ...], analysis: Analysis, shape: Shape) -> tuple[Any, ...]:
        approximation, *levels = coefficients
        return (*(node for nodes in reversed(levels) for node in nodes[1:]), approximation)

    def merged(self, pyramid: Pyramid, shrinkage: Shrinkage | None, merge: Merge) -> Array:
        """Return the samples (batch, samples) from the shrunk nodes of the best basis of each trace, or of the record.

        Without shrinkage, from the deepest nodes.
        """
        (approximation, *levels), best, cost = pyramid.coefficients, np.empty(0), np.empty(0)
        if not levels:
            return np.asarray(approximation)
        band = sum(len(nodes) - 1 for nodes in levels)
        total = np.square(np.abs(levels[-1]), dtype=np.float64).sum(axis=(0, 2))  # the energy of each trace
        if shrinkage is not None and shrinkage.pooled:
            total[:] = total.sum()
        for height, nodes in enumerate(levels):
            count, length = len(nodes), nodes.shape[2]
            band -= count - 1
            own, own_cost = self._shrunk_nodes(nodes, shrinkage, band, total, height)
            if height:
                merged = merge(_rows(best[:count]), _rows(best[count:]), length).reshape(nodes.shape)
                children = cost[:count] + cost[count:]
                split = children < own_cost
                split[0] = True
                own, own_cost = np.where(split[..., None], merged, own), np.where(split, children, own_cost)
            best, cost = own, own_cost
        return merge(best[0], best[1], pyramid.shape[0])

    def _shrunk_nodes(
        self, nodes: Array, shrinkage: Shrinkage | None, band: int, total: Floats, height: int
    ) -> tuple[Array, Floats]:
        """Return the shrunk nodes of a level and their costs (nodes, batch); ``band`` is the band of node 1."""
        if shrinkage is None:
            return nodes, np.full(nodes.shape[:2], np.inf if height else 0.0)
        shrunk, cost = np.empty_like(nodes), np.zeros(nodes.shape[:2])
        shrunk[0] = nodes[0]
        for i, node in enumerate(nodes[1:], 1):
            shrunk[i] = shrinkage.of_level(band + i - 1, node)
            cost[i] = self.cost(node, shrinkage, band + i - 1, total, height)
        if shrinkage.pooled:
            cost[:] = cost.sum(axis=1, keepdims=True)
        return shrunk, cost

    def cost(self, node: Array, shrinkage: Shrinkage, band: int, total: Floats, height: int) -> Floats:
        """Return the cost for each trace of this node (batch, coefficients), ``height`` levels above the deepest.

        "risk" is Stein's unbiased estimate of the risk of soft thresholding, with noise σ and threshold t of the node:
        Σ min(|d|², t²) + σ² (m - 2 m_t), where m_t of its m coefficients have |d| <= t (Donoho and Johnstone 1995; for
        the choice of a basis Krim, Tucker, Mallat and Donoho 1999); also with other threshold functions. "entropy" is
        -Σ p ln p, where p are the coefficients' shares of the energy ``total`` (Coifman and Wickerhauser 1992).
        """
        if self.basis == "full":
            return np.full(len(node), float(height))
        squares = np.square(np.abs(node), dtype=np.float64)
        if self.basis == "entropy":
            share = squares / np.where(total > 0, total, 1)[:, None]
            return np.asarray(-(share * np.log(np.where(share > 0, share, 1))).sum(axis=1))
        assert shrinkage.sigma is not None
        noise, limit = shrinkage.sigma[band] ** 2, shrinkage.thresholds[band] ** 2
        below = np.count_nonzero(squares <= limit[:, None], axis=1)
        risk = np.minimum(squares, limit[:, None]).sum(axis=1) + noise * (squares.shape[1] - 2 * below)
        return np.asarray(risk)


PACKETS = {basis: PacketTransform(basis) for basis in BASES}
"""The transform for each value of the option ``basis``."""


def one_level(analysis: Analysis) -> Analysis:
    """Return the transform that splits a node."""
    return DWT.analysis(analysis.wavelets[0], analysis.modes[0], 1)


def analysed(x: Array, analysis: Analysis, split: Callable[[Array, Analysis], tuple[Array, ...]]) -> tuple[Array, ...]:
    """Return the result of `Transform.analyse`; ``split`` splits rows, all nodes of a level at a time."""
    one, levels, rows = one_level(analysis), list[Array](), x
    for j in range(1, analysis.level + 1):
        rows = np.concatenate(split(rows, one))
        levels.append(rows.reshape(1 << j, len(x), rows.shape[1]))
    return (levels[-1][0] if levels else x, *reversed(levels))


def _merge(analysis: Analysis) -> Merge:
    return lambda low, high, length: DWT.synthesise(low, iter((high,)), one_level(analysis), (length,))


def _rows(nodes: Array) -> Array:
    return nodes.reshape(-1, nodes.shape[-1])


@cache
def _bands(level: int) -> tuple[Band, ...]:
    found = []
    for j in range(1, level + 1):
        for i in range(1, 1 << j):
            name = "".join("ad"[i >> k & 1] for k in range(j))
            found.append(Band(name, name.index("d") + 1))
    return tuple(found)
