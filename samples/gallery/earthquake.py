"""
A local earthquake with ObsPy
=============================

``obspy.read()`` without arguments returns the example stream of ObsPy: three components of a local earthquake recorded
at station RJOB with a sampling rate of 100 Hz. No network access is needed.
"""

import matplotlib.pyplot as plt
import numpy as np
import obspy

import wavefilt.obspy
from wavefilt import quality

record = obspy.read()

# %%
# The record is nearly free of noise, and denoising hardly changes it. The long-period oscillation is microseism, which
# is contained in the approximation coefficients and therefore kept; use ``filter("highpass")`` to remove it.

_, removed = wavefilt.obspy.denoise(record, return_residual=True)
shares = [float(np.sum(noise.data**2) / np.sum(trace.data**2)) for noise, trace in zip(removed, record, strict=True)]
print("share of the energy removed:", ", ".join(f"{100 * share:.3f} %" for share in shares))

# %%
# Add white noise, so that the result can be compared with a known reference.

noisy = record.copy()
random = np.random.default_rng(5)
for trace in noisy:
    trace.data += 200 * random.standard_normal(trace.stats.npts)
denoised = wavefilt.obspy.denoise(noisy, transform="modwt")

figure, rows = plt.subplots(3, 1, figsize=(10, 7), sharex=True, layout="constrained")
for row, before, after, clean in zip(rows, noisy, denoised, record, strict=True):
    row.plot(before.times(), before.data, color="0.75", linewidth=0.8, label="with noise")
    row.plot(clean.times(), clean.data, color="black", linewidth=0.8, label="as recorded")
    row.plot(after.times(), after.data, color="#0072B2", linewidth=1, label="denoised")
    row.set(ylabel=f"{before.stats.channel}, counts", xlim=(2, 14))
rows[0].legend(ncols=3, loc="upper right")
rows[-1].set_xlabel("time in s")
plt.show()

# %%
# The first arrival, between 4.5 and 7 s, is shifted by a fraction of a sample at most. Headers are kept, and the
# processing history records the options.

gains, shifts = {}, {}
for before, after, clean in zip(noisy, denoised, record, strict=True):
    gains[after.id] = float(quality.snr(clean.data, after.data) - quality.snr(clean.data, before.data))
    shifts[after.id] = float(quality.arrival_shift(clean.data, after.data, 450, 700))
    print(f"{after.id}: {gains[after.id]:+.1f} dB, arrival shifted by {shifts[after.id]:+.2f} samples")
print(denoised[0].stats.processing[-1].replace("::", "\n    "))
