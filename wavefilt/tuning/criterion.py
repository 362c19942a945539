"""How much error a method leaves in samples whose signal is not known: that which it leaves in others like them.

What a few good methods make of the samples, in the mean, is taken for the signal (the pilot); noise with the spectrum
of theirs is added to it, and the error of any method on that is known: the parametric bootstrap (Efron 2004). The pilot
is of the methods with the least risk by Stein's estimate (1981) with noise that is added (Ramani, Blu and Unser 2008),

|y(x) - x|² - |n|² + 2 b·(y(x + εb) - y(x))/ε,

which needs no pilot, but varies more: see the study of ranks in docs/quality.md.
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
from wavefilt.options import NoiseForm, Options

from . import noise
from .sigma import of_rows

PROBES, STEIN_PROBES, AMPLITUDE = 4, 2, 0.5
"""How often noise is added, to the pilot and for Stein's estimate, and there by how much, over that of the samples."""
PILOTS: tuple[dict[str, Any], ...] = (
    {"rule": "js", "wavelet": "sym8", "transform": "modwt"},
    {"rule": "js", "wavelet": "sym8"},
    {"rule": "bayes", "transform": "modwt"},
    {"rule": "sure", "level": 8},
    {"rule": "fdr", "transform": "modwt"},
    {"rule": "bayes"},
)
"""Methods of which the pilot may be, with fewer levels where the samples have no more; of panels those by the DWT."""
MEANT = 3
"""How many of them it is the mean of, for each trace."""
BLOCKS = 32
"""Parts of the samples, at least, whose errors tell that of their mean."""
WHOLE = "of the whole trace, by frequency"
Methods = Mapping[NoiseForm, Options]
"""A method for each of the options ``sigma`` that samples have."""


@dataclass(frozen=True)
class Risk:
    """Estimated mean square error of blocks of denoised samples, over the variance of the noise.

    ``removed`` is Σ(x - y)²/Σx², ``seconds`` the time of a denoise, ``denoised`` its traces.
    """

    blocks: Floats
    removed: float
    seconds: float
    denoised: Array

    @property
    def mean(self) -> float:
        return float(self.blocks.mean())

    @property
    def error(self) -> float:
        """Standard error of the mean, of blocks that are taken for independent."""
        return standard_error(self.blocks)


def standard_error(values: Floats) -> float:
    """Of the mean of independent values."""
    return float(values.std(ddof=1) / math.sqrt(len(values)))


@dataclass(frozen=True)
class Criterion:
    """Samples, and what the risk of any method on them is estimated with.

    ``variance`` is that of the noise of each trace, ``probes`` is noise like that of the samples.
    """

    taken: Container
    variance: Floats
    probes: tuple[Array, ...]
    pilot: Array
    backend: str | Backend
    source: str
    """Where the noise is from, in words."""
    parts: int
    """Of a trace, whose errors are taken for independent."""

    @classmethod
    def of(cls, taken: Container, seed: int, backend: str | Backend = "auto") -> Criterion:
        """With noise of the spectrum that the option ``sigma`` tells, see `power`.

        Raises ValueError where no trace has noise, or the samples have no level.
        """
        rng, rows, samples = np.random.default_rng(seed), taken.rows, taken.rows.shape[-1]
        spectrum = power(taken, backend)
        variance = noise.variance(spectrum, samples) * taken.live
        if not variance.any():
            raise ValueError("no trace has noise to compare by: their samples are equal, missing or too few")
        made = (noise.drawn(spectrum, samples, rng).astype(rows.dtype).reshape(rows.shape) for _ in range(PROBES))
        parts = min(math.ceil(BLOCKS / np.count_nonzero(variance)), samples)
        begun = cls(taken, variance, tuple(made), rows, backend, source(taken.sigmas[0]), parts)
        return replace(begun, pilot=begun._best_pilot())

    def stein(self, methods: Methods) -> tuple[Floats, Array]:
        """Stein's estimate of the risk of a method on each trace that has noise, and what it makes of the samples."""
        x, used = self.taken.rows, self.probes[:STEIN_PROBES]
        y = denoised(x, methods, self.taken.sigmas, self.backend)
        risk = np.square(x - y, dtype=np.float64)
        for probe in used:
            moved = denoised(x + x.dtype.type(AMPLITUDE) * probe, methods, self.taken.sigmas, self.backend)
            risk += probe * (moved - y).astype(np.float64) * (2 / AMPLITUDE / len(used))
        return over_noise(risk, self.variance).mean(axis=1) - 1, y

    def _best_pilot(self) -> Array:
        """The mean of what the best of `PILOTS` make of each trace."""
        risks, outputs = [], []
        for options in PILOTS:
            if self.taken.dimensions == 2 and "transform" in options:
                continue
            (method, *_) = methods_of({**options, "level": None}, self.taken).values()
            deepest = method.deepest(*self.taken.rows.shape[1:])
            own = {**options, "level": min(options["level"], deepest)} if "level" in options else options
            risk, y = self.stein(methods_of(own, self.taken))
            risks.append(risk)
            outputs.append(y.reshape(self.taken.traces.shape))
        pilot = self.taken.traces.copy()
        used = np.flatnonzero(self.variance)
        best = np.argsort(risks, axis=0)[:MEANT]
        pilot[used] = np.array(outputs)[best, used].mean(axis=0)
        return pilot.reshape(self.taken.rows.shape)

    def risk(self, methods: Methods) -> Risk:
        """Of a method."""
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
        removed = np.nansum(np.square(x - y, dtype=np.float64)) / np.nansum(np.square(x, dtype=np.float64))
        relative = over_noise(error, self.variance)
        weight = self.parts / relative.shape[1]  # of parts that are not all of one length
        blocks = [part.sum(axis=1) * weight for part in np.array_split(relative, self.parts, axis=1)]
        return Risk(np.concatenate(blocks), float(removed), min(seconds), y.reshape(-1, y.shape[-1]))


def methods_of(options: Mapping[str, Any], taken: Container, own: NoiseForm | None = None) -> Methods:
    """Options of `denoise` as methods, with the noise of the samples, or another if it is given.

    Raises ValueError where they do not go with each other.
    """
    dimensions: Literal[1, 2] = 1 if taken.dimensions == 1 else 2
    return {
        sigma: Options(**{**options, "sigma": sigma if own is None else own}, dimensions=dimensions)
        for sigma in dict.fromkeys(taken.sigmas)
    }


def denoised(rows: Array, methods: Methods, sigmas: tuple[NoiseForm, ...], backend: str | Backend) -> Array:
    """The rows, each by the method for its option ``sigma``."""
    if len(methods) == 1:
        (method,) = methods.values()
        return run(rows, method, backend).samples
    done = np.empty_like(rows)
    for sigma, method in methods.items():
        own = [row for row, each in enumerate(sigmas) if each == sigma]
        done[own] = run(rows[own], method, backend).samples
    return done


def over_noise(error: Array, variance: Floats) -> Floats:
    """Square errors of rows as traces (traces, samples) with noise, over its variance: their mean is that of samples
    outside gaps."""
    error = error.reshape(-1, error.shape[-1])
    used = variance > 0
    error, known = error[used], ~np.isnan(error[used])
    scale = error.shape[1] / known.sum(axis=1) / variance[used]
    return np.asarray(np.where(known, error, 0) * scale[:, None])


def power(taken: Container, backend: str | Backend = "auto") -> Floats:
    """The power (traces, frequencies) of the noise of `Container.traces`, by their option ``sigma``.

    In a window its spectrum there, with "global" white noise by the finest details, a number is that of white noise;
    else the spectrum by the median over the trace.
    """
    x = taken.traces
    each = len(x) // max(len(taken.rows), 1)
    sigmas = [sigma for sigma in taken.sigmas for _ in range(each)]
    found = np.zeros((len(x), x.shape[1] // 2 + 1))
    for sigma in dict.fromkeys(sigmas):
        own = taken.live & [one == sigma for one in sigmas]
        method = Options(sigma=sigma)
        if not own.any():
            continue
        if method.noise.window is not None:
            found[own] = noise.of_window(x[own], method.noise.window_in(x.shape[1]))
        elif sigma == "global":
            finest = of_rows(x[own], [sigma] * int(own.sum()), method, backend)[0]
            found[own] = noise.white(np.nan_to_num(finest), x.shape[1])
        elif isinstance(sigma, str | tuple):
            found[own] = noise.of_traces(x[own])
        else:
            found[own] = noise.white(np.full(int(own.sum()), float(sigma)), x.shape[1])
    return found


def source(sigma: NoiseForm) -> str:
    """Where `power` has the noise from."""
    if isinstance(sigma, tuple) and sigma[0] == "window":
        return "of the window"
    if isinstance(sigma, str | tuple) and sigma != "global":
        return WHOLE
    return "white"
