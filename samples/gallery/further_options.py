"""
Transform and noise options
===========================

When to use options other than ``rule``: ``transform`` and ``spins`` near edges, ``keep`` and ``sigma`` for levels that
contain more signal than noise.
"""

import matplotlib.pyplot as plt
import numpy as np

import wavefilt
from wavefilt import quality

random = np.random.default_rng(3)
time = np.arange(1024) / 1000


def show(noisy, clean, methods, span):
    """Plot the result of each method in one row and return the gains in dB."""
    gains = {}
    size = (10, 1.8 * len(methods))
    _, rows = plt.subplots(len(methods), 1, figsize=size, sharex=True, sharey=True, layout="constrained")
    for row, (name, options) in zip(rows, methods.items(), strict=True):
        denoised = wavefilt.denoise(noisy, **options)
        gains[name] = float(quality.snr(clean, denoised) - quality.snr(clean, noisy))
        row.plot(time, noisy, color="0.8", linewidth=0.8)
        row.plot(time, clean, color="black", linewidth=0.8)
        row.plot(time, denoised, color="#D55E00", linewidth=1)
        row.set_title(f"{name}: {gains[name]:+.1f} dB", loc="left", fontsize=10, pad=2, family="monospace")
    rows[0].set_xlim(*span)
    rows[-1].set_xlabel("time in s (grey: noisy, black: clean, orange: denoised)")
    plt.show()
    return gains


# %%
# **Edges.** The decimated transform is not shift-invariant, and the result oscillates near jumps. Averaging over shifts
# (cycle spinning, ``spins``) reduces this, and so does the undecimated transform (``modwt``).

steps = np.select([time < 0.2, time < 0.45, time < 0.55, time < 0.8], [0.0, 3.0, -1.0, 1.5], -0.5)
edges = show(
    steps + 0.5 * random.standard_normal(1024),
    steps,
    {
        'transform="dwt"': {"sigma": "global"},
        "spins=8": {"sigma": "global", "spins": 8},
        'transform="modwt"': {"sigma": "global", "transform": "modwt"},
    },
    (0.1, 0.65),
)

# %%
# **Dense signal.** A wave that fills the trace fills most detail coefficients of its levels. Their median then measures
# the signal, which is mistaken for noise and removed. There are three remedies: ``keep`` leaves the coarsest levels
# unchanged, including their noise; ``sigma="global"`` uses the noise estimate of the finest level for all levels, which
# is correct for white noise; a noise window is suitable for noise of any colour if part of the trace contains no
# signal, here before 0.25 s.

wave = 2 * np.sin(2 * np.pi * (14 * time + 10 * time**2)) * np.clip((time - 0.25) / 0.05, 0, 1)
dense = show(
    wave + 0.8 * random.standard_normal(1024),
    wave,
    {
        'sigma="level"': {},
        "keep=2": {"keep": 2},
        'sigma="global"': {"sigma": "global"},
        'sigma=("window", 0, 250)': {"sigma": ("window", 0, 250)},
    },
    (0, 1.02),
)
