"""
An earthquake record of ObsPy
=============================

``obspy.read()`` without a name gives the example that ObsPy brings along: three components of a local earthquake at
100 Hz, recorded at station RJOB. No network is needed.
"""

import matplotlib.pyplot as plt
import numpy as np
import obspy

import wavefilt.obspy

stream = obspy.read().detrend("demean")

# %%
# The first four seconds came before the earthquake: they are noise alone, so they can say how much of it each level
# holds. That matters here. The noise is microseism of a second or so, which lies in the coarse levels; there the
# earthquake is long enough to be taken for noise by the median of the whole trace.

before_arrival = ("window", 0, 400)  # samples
quiet, removed = wavefilt.obspy.denoise(stream, level=7, rule="bayes", sigma=before_arrival, return_noise=True)

figure, rows = plt.subplots(3, 1, figsize=(10, 6.5), sharex=True, layout="constrained")
for row, noisy, denoised in zip(rows, stream, quiet, strict=True):
    row.plot(noisy.times(), noisy.data, color="0.7", linewidth=1, label="before")
    row.plot(denoised.times(), denoised.data, color="#0072B2", linewidth=0.8, label="after")
    row.set(ylabel=f"{noisy.stats.channel}, counts", xlim=(0, 15))
    row.axvspan(0, 4, color="#E69F00", alpha=0.15, linewidth=0, label="noise window")
rows[0].legend(ncols=3, loc="upper right")
rows[-1].set_xlabel("time in s")
plt.show()

# %%
# Headers are kept, and the processing history says what was done.


def contrast(trace):
    """The largest swing over the noise before the arrival, in dB."""
    return 20 * np.log10(np.abs(trace.data).max() / trace.data[:400].std())


for noisy, denoised in zip(stream, quiet, strict=True):
    print(f"{noisy.id}: peak over noise {contrast(noisy):.1f} dB before, {contrast(denoised):.1f} dB after")
print(quiet[0].stats.processing[-1])
