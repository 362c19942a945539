"""Wavelet packets of traces, and denoising in a basis of them that suits each trace.

Both outputs of a level are split again, as in `wavefilt.packets`. The low-pass output of all levels is
always split, and kept as the approximation, as in the DWT; below each of its high-pass outputs a basis is chosen, of
which that of the DWT is one. Costs add up, so that the best basis is found from the deepest nodes upwards: a node is
split where its children cost less (Coifman and Wickerhauser 1992).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.errors import OptionError, options
from wavefilt.wavelets.filters import detail_lengths

from .base import Analysis, Band, Pyramid, Transform
from .dwt import DWT

if TYPE_CHECKING:
    from wavefilt.options import Options
    from wavefilt.thresholding.rules import Rule
    from wavefilt.thresholding.shrinkage import Shrinkage

Merge = Callable[[Array, Array, int], Array]
"""One level back: rows of so many samples from rows of low-pass and of high-pass coefficients."""


class PacketTransform(Transform):
    """Wavelet packets in the basis of least risk.

    Its coefficients are, after the approximation, the nodes of each level (nodes, batch, coefficients), the deepest
    first. Those of node i of level j come from nodes i and i + 2^j of the next level: bit k of i tells whether letter
    k of its name is "d".
    """

    name = word = "wp"
    workspace = 2.0
    chooses_basis = True

    def check(self, method: Options) -> None:
        if isinstance(method.sigma, tuple):
            raise OptionError(options(sigma=method.sigma), f" is not for transform {self.word!r}")
        if method.rule.together is not None:
            raise OptionError(options(rule=method.rule.option), f" is not for transform {self.word!r}")

    def bands(self, level: int, bank: Any = None) -> tuple[Band, ...]:
        """All nodes but the approximations, level by level; a band's ``level`` is that of its octave in the DWT."""
        return _bands(level)

    def levels(self, bands: int) -> int:
        level = 0
        while len(_bands(level)) < bands:
            level += 1
        return level

    def sizes(self, analysis: Analysis, shape: tuple[int, ...]) -> list[int]:
        lengths = detail_lengths(shape[0], analysis.wavelets[0].dec_len, analysis.modes[0], analysis.level)
        return [length for j, length in enumerate(lengths, 1) for _ in range(1, 1 << j)]

    def analyse(self, x: Array, analysis: Analysis) -> tuple[Array, ...]:
        return analysed(x, analysis, DWT.analyse)

    def synthesise(
        self, approximation: Array, details: Iterator[Array], analysis: Analysis, shape: tuple[int, ...]
    ) -> Array:
        return self.merged(Pyramid((approximation, *details), analysis, shape), None, _merge(analysis))

    def reconstructed(self, pyramid: Pyramid, shrinkage: Shrinkage | None) -> Array:
        return self.merged(pyramid, shrinkage, _merge(pyramid.analysis))

    def counted(self, coefficients: tuple[Any, ...], analysis: Analysis, shape: tuple[int, ...]) -> tuple[Any, ...]:
        return tuple(node for nodes in coefficients[:0:-1] for node in nodes[1:])

    def on_device(self, spec: Rule) -> bool:
        return False

    def merged(self, pyramid: Pyramid, shrinkage: Shrinkage | None, merge: Merge) -> Array:
        """The samples (batch, samples) from the shrunk nodes of the best basis: of each trace, or of all together.

        Without shrinkage from the deepest nodes.
        """
        (approximation, *levels), best, cost = pyramid.coefficients, np.empty(0), np.empty(0)
        lengths = [*(nodes.shape[2] for nodes in levels), pyramid.shape[0]][1:]
        if not levels:
            return np.asarray(approximation)
        if shrinkage is None:
            best = levels[0]
            for length in lengths:
                low, high = np.split(best, 2)
                best = merge(_rows(low), _rows(high), length).reshape(*low.shape[:2], length)
            return np.asarray(best[0])
        total, place = self._energy(levels[-1], shrinkage), len(shrinkage.thresholds)
        for depth, nodes in enumerate(levels):
            count, batch, length = nodes.shape
            place -= count - 1
            own, own_cost = np.empty_like(nodes), np.zeros((count, batch))
            own[0] = nodes[0]
            for i in range(1, count):
                band = place + i - 1
                own[i] = shrinkage.of_level(band, nodes[i])
                own_cost[i] = self.cost(nodes[i], shrinkage, band, total, depth)
            if shrinkage.pooled:
                own_cost[:] = own_cost.sum(axis=1, keepdims=True)
            if depth:
                merged = merge(_rows(best[:count]), _rows(best[count:]), length).reshape(nodes.shape)
                children = cost[:count] + cost[count:]
                split = children < own_cost
                split[0] = True
                own, own_cost = np.where(split[..., None], merged, own), np.where(split, children, own_cost)
            best, cost = own, own_cost
        return merge(best[0], best[1], lengths[-1])

    def _energy(self, nodes: Array, shrinkage: Shrinkage) -> Floats:
        """Σ |x|² of each trace, or that of all."""
        energy = np.square(np.abs(nodes), dtype=np.float64).sum(axis=(0, 2))
        return np.broadcast_to(energy.sum(), energy.shape) if shrinkage.pooled else energy

    def cost(self, node: Array, shrinkage: Shrinkage, band: int, total: Floats, height: int) -> Floats:
        """What it costs each trace to have this node (batch, coefficients), ``height`` levels above the deepest.

        Stein's unbiased estimate of the risk of soft thresholding, with noise σ and threshold t of the node's own:
        Σ min(|d|², t²) + σ² (m - 2 m_t), where m_t of its m coefficients have |d| <= t (Donoho and Johnstone 1995;
        for the choice of a basis Krim, Tucker, Mallat and Donoho 1999). The same with other threshold functions.
        """
        assert shrinkage.sigma is not None
        noise, limit = shrinkage.sigma[band] ** 2, shrinkage.thresholds[band] ** 2
        squares = np.square(np.abs(node), dtype=np.float64)
        below = np.count_nonzero(squares <= limit[:, None], axis=1)
        risk = np.minimum(squares, limit[:, None]).sum(axis=1) + noise * (squares.shape[1] - 2 * below)
        return np.asarray(risk)


class _WPEntropy(PacketTransform):
    """Wavelet packets in the basis of least entropy."""

    name = word = "wp-entropy"

    def cost(self, node: Array, shrinkage: Shrinkage, band: int, total: Floats, height: int) -> Floats:
        """-Σ p ln p, where p are the coefficients' shares of the energy (Coifman and Wickerhauser 1992)."""
        share = np.square(np.abs(node), dtype=np.float64) / np.where(total > 0, total, 1)[:, None]
        return np.asarray(-(share * np.log(np.where(share > 0, share, 1))).sum(axis=1))


class _WPFull(PacketTransform):
    """All wavelet packets of the deepest level."""

    name = word = "wp-full"

    def cost(self, node: Array, shrinkage: Shrinkage, band: int, total: Floats, height: int) -> Floats:
        return np.full(len(node), float(height))


WP, WP_ENTROPY, WP_FULL = PacketTransform(), _WPEntropy(), _WPFull()


def one_level(analysis: Analysis) -> Analysis:
    """The transform by which a node is split."""
    return DWT.analysis(analysis.wavelets[0], analysis.modes[0], 1)


def analysed(x: Array, analysis: Analysis, split: Callable[[Array, Analysis], tuple[Array, ...]]) -> tuple[Array, ...]:
    """`Transform.analyse` by a function that splits rows, all nodes of a level at a time."""
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
