"""
Beyond the rule
===============

What the options beside ``rule`` are for: ``transform`` and ``spins`` at edges, ``keep`` and ``sigma`` where a level
holds more signal than noise.
"""

import matplotlib.pyplot as plt
import numpy as np

import wavefilt
from wavefilt import quality

random = np.random.default_rng(3)
time = np.arange(1024) / 1000


def show(noisy, clean, ways, span):
    """A row for each way to denoise, the clean trace in black, and the gains in dB."""
    gains = {}
    size = (10, 1.8 * len(ways))
    _, rows = plt.subplots(len(ways), 1, figsize=size, sharex=True, sharey=True, layout="constrained")
    for row, (name, options) in zip(rows, ways.items(), strict=True):
        quiet = wavefilt.denoise(noisy, **options)
        gains[name] = float(quality.snr(clean, quiet) - quality.snr(clean, noisy))
        row.plot(time, noisy, color="0.8", linewidth=0.8)
        row.plot(time, clean, color="black", linewidth=0.8)
        row.plot(time, quiet, color="#D55E00", linewidth=1)
        row.set_title(f"{name}: {gains[name]:+.1f} dB", loc="left", fontsize=10, pad=2, family="monospace")
    rows[0].set_xlim(*span)
    rows[-1].set_xlabel("time in s (grey: noisy, black: clean, orange: denoised)")
    plt.show()
    return gains


# %%
# **Edges.** The decimated transform depends on where the samples begin: beside a jump the result swings. The mean over
# shifts (``spins``) damps that, and so does the transform without decimation (``modwt``), which has all shifts.

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
# **Dense signal.** A wave that fills a trace fills most details of its levels. Their median is then that of the signal,
# which is taken for noise and removed. Three ways out: ``keep`` leaves the coarsest levels alone, noise included;
# ``sigma="global"`` takes the noise of the finest level for all, which is right if the noise is white; a noise window
# is right for noise of any colour, where there is a stretch without signal: before 0.25 s here.

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
