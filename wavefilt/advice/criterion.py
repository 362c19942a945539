"""Estimate the error that a method leaves in samples whose signal is unknown: by its error on similar samples.

The mean result of a few good methods (the pilot) is taken as the signal. Noise with the spectrum of the noise of the
record is added to it, and the error of any method on these samples is known: the parametric bootstrap (Efron 2004). The
pilot consists of the methods with the least risk by Stein's estimate (1981) with added noise (Ramani, Blu and Unser
2008),

|y(x) - x|² - |n|² + 2 b·(y(x + εb) - y(x))/ε,

which needs no pilot but varies more; see the study of ranks in docs/quality.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from wavefilt.api import run
from wavefilt.arrays import Array, Floats
from wavefilt.backends import Backend
from wavefilt.containers import Container
from wavefilt.noise import NoiseModel, for_ranking
from wavefilt.options import NoiseForm, Options
from wavefilt.recording import supports

from . import harm

PROBES, STEIN_PROBES, AMPLITUDE = 4, 2, 0.5
"""Draws of noise that are added to the pilot and for Stein's estimate, and the amplitude of the latter over that of the
noise of the record."""
PILOTS: tuple[dict[str, Any], ...] = (
    {"rule": "js", "wavelet": "sym8", "transform": "modwt"},
    {"rule": "js", "wavelet": "sym8"},
    {"rule": "bayes", "transform": "modwt"},
    {"rule": "sure", "level": 8},
    {"rule": "fdr", "transform": "modwt"},
    {"rule": "bayes"},
)
"""Candidates for the pilot, with fewer levels where the samples allow no more; for sections only those with the DWT."""
AVERAGED = 3
"""Candidates in the mean that is the pilot of a trace."""
BLOCKS = 32
"""Fewest parts of the samples whose errors give the standard error of the mean."""
Methods = Mapping[NoiseForm, Options]
"""The method for each value of the option ``sigma`` that traces have."""


@dataclass(frozen=True)
class Risk:
    """Estimated mean square error of blocks of denoised samples, over the variance of the noise.

    ``residual`` is Σ(x - y)² over Σx² about the mean of each trace, ``seconds`` the run time, ``denoised`` the traces.
    """

    blocks: Floats
    residual: float
    seconds: float
    denoised: Array

    @property
    def mean(self) -> float:
        """The risk."""
        return float(self.blocks.mean())

    @property
    def error(self) -> float:
        """The standard error of the mean, if blocks are independent."""
        return standard_error(self.blocks)


def standard_error(values: Floats) -> float:
    """Return the standard error of the mean of independent values."""
    return float(values.std(ddof=1) / math.sqrt(len(values)))


@dataclass(frozen=True)
class Criterion:
    """Samples with a noise model, by which the risk of any method is estimated.

    ``variance`` is that of the noise of each trace, 0 for dead traces. ``probes`` are draws of the noise. ``parts`` is
    the number of parts of a trace whose errors are taken to be independent.
    """

    taken: Container
    model: NoiseModel
    variance: Floats
    probes: tuple[Array, ...]
    pilot: Array
    backend: str | Backend
    parts: int

    @classmethod
    def of(cls, taken: Container, seed: int, backend: str | Backend = "auto") -> Criterion:
        """Estimate the noise and compute the pilot.

        Raises ValueError where no trace has noise, or the samples allow no level.
        """
        rng, rows = np.random.default_rng(seed), taken.rows
        model = for_ranking(taken.traces, sigma_by_trace(taken))
        variance = model.variance * taken.live
        if not variance.any():
            raise ValueError("no trace has noise to compare by: their samples are equal, missing or too few")
        probes = (model.draw(rng).astype(rows.dtype).reshape(rows.shape) for _ in range(PROBES))
        parts = min(math.ceil(BLOCKS / np.count_nonzero(variance)), rows.shape[-1])
        begun = cls(taken, model, variance, tuple(probes), rows, backend, parts)
        return replace(begun, pilot=begun._best_pilot())

    def stein(self, methods: Methods) -> tuple[Floats, Array]:
        """Return Stein's estimate of the risk on each trace that has noise, and the denoised samples."""
        x, used = self.taken.rows, self.probes[:STEIN_PROBES]
        y = denoised(x, methods, self.taken.sigmas, self.backend)
        risk = np.square(x - y, dtype=np.float64)
        for probe in used:
            changed = denoised(x + x.dtype.type(AMPLITUDE) * probe, methods, self.taken.sigmas, self.backend)
            risk += probe * (changed - y).astype(np.float64) * (2 / AMPLITUDE / len(used))
        return over_noise(risk, self.variance).mean(axis=1) - 1, y

    def _best_pilot(self) -> Array:
        """Return the mean result of the best of `PILOTS` for each trace."""
        risks, outputs = [], []
        for options in PILOTS:
            if self.taken.ndim == 2 and "transform" in options:
                continue
            (method, *_) = methods_of({**options, "level": None}, self.taken).values()
            deepest = method.deepest(*self.taken.rows.shape[1:])
            own = {**options, "level": min(options["level"], deepest)} if "level" in options else options
            risk, y = self.stein(methods_of(own, self.taken))
            risks.append(risk)
            outputs.append(y.reshape(self.taken.traces.shape))
        pilot = self.taken.traces.copy()
        used = np.flatnonzero(self.variance)
        best = np.argsort(risks, axis=0)[:AVERAGED]
        pilot[used] = np.array(outputs)[best, used].mean(axis=0)
        return pilot.reshape(self.taken.rows.shape)

    def risk(self, methods: Methods) -> Risk:
        """Estimate the risk of a method."""
        x, seconds = self.taken.rows, []

        def timed(rows: Array) -> Array:
            start = time.perf_counter()
            found = denoised(rows, methods, self.taken.sigmas, self.backend)
            seconds.append(time.perf_counter() - start)
            return found

        y = timed(x)
        error = np.zeros(x.shape)
        for probe in self.probes:
            error += np.square(timed(self.pilot + probe) - self.pilot, dtype=np.float64) / len(self.probes)
        centred = self.taken.traces - np.nanmean(np.where(self.taken.live[:, None], self.taken.traces, 0), 1)[:, None]
        share = np.nansum(np.square(x - y, dtype=np.float64)) / np.nansum(np.square(centred, dtype=np.float64))
        relative = over_noise(error, self.variance)
        weight = self.parts / relative.shape[1]  # parts may differ in length
        blocks = [part.sum(axis=1) * weight for part in np.array_split(relative, self.parts, axis=1)]
        return Risk(np.concatenate(blocks), float(share), min(seconds), y.reshape(-1, y.shape[-1]))

    def leakages(self, methods: Methods, y: Array) -> tuple[harm.Effect, ...]:
        """Return the effect of a method with the result ``y`` (traces, samples), of sections on the first one."""
        taken, count = self.taken, self.taken.rows.shape[1] if self.taken.ndim == 2 else len(self.taken.rows)

        def again(rows: Floats, traces: Array) -> Floats:
            own = rows.astype(taken.rows.dtype)
            if taken.ndim == 2:
                return np.asarray(denoised(own[None], methods, taken.sigmas[:1], self.backend)[0], np.float64)
            sigmas = tuple(taken.sigmas[i] for i in traces)
            return np.asarray(denoised(own, methods, sigmas, self.backend), np.float64)

        return harm.find(taken.traces[:count], y[:count], again, sigma_by_trace(taken)[:count])


def sigma_by_trace(taken: Container) -> list[NoiseForm]:
    """Return the option ``sigma`` of each trace, also within sections."""
    each = len(taken.traces) // max(len(taken.rows), 1)
    return [sigma for sigma in taken.sigmas for _ in range(each)]


def methods_of(options: Mapping[str, Any], taken: Container, own: NoiseForm | None = None) -> Methods:
    """Return the methods with the noise of the traces, or with another option ``sigma`` if it is given.

    Noise windows that headers declare are left out where the other options do not support them. Raises ValueError for
    options that cannot be combined.
    """
    ndim: Literal[1, 2] = 1 if taken.ndim == 1 else 2
    found = dict[NoiseForm, Options]()
    for sigma in dict.fromkeys(taken.sigmas):
        used = sigma if own is None else own
        if own is None and "sigma" not in options and isinstance(sigma, tuple):
            plain = Options(**options, ndim=ndim)
            used = sigma if supports(plain, sigma) else "level"  # type: ignore[arg-type]
        found[sigma] = Options(**{**options, "sigma": used}, ndim=ndim)
    return found


def denoised(rows: Array, methods: Methods, sigmas: tuple[NoiseForm, ...], backend: str | Backend) -> Array:
    """Denoise rows, each by the method for its option ``sigma``."""
    if len(methods) == 1:
        (method,) = methods.values()
        return run(rows, method, backend).samples
    done = np.empty_like(rows)
    for sigma, method in methods.items():
        own = [row for row, each in enumerate(sigmas) if each == sigma]
        done[own] = run(rows[own], method, backend).samples
    return done


def over_noise(error: Array, variance: Floats) -> Floats:
    """Return square errors over the variance of the noise, (traces with noise, samples); their mean excludes gaps."""
    error = error.reshape(-1, error.shape[-1])
    used = variance > 0
    error, known = error[used], ~np.isnan(error[used])
    scale = error.shape[1] / known.sum(axis=1) / variance[used]
    return np.asarray(np.where(known, error, 0) * scale[:, None])
