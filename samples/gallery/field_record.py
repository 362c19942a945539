"""
A field record
==============

The shot record in ``samples/seismic.dat``: 24 geophones in SEG-2, 6 dB of signal above white noise and wind. It is
synthetic, so the clean record is known, and what denoising gains can be measured.
"""

import matplotlib.pyplot as plt
import numpy as np

import wavefilt
from wavefilt import quality

recording = wavefilt.read("../seismic.dat")
quiet = recording.denoise()  # db8, 5 levels, rule "bayes"
removed = recording.less(quiet)

# %%
# All traces on one scale. Look at what was removed first: arrivals that can be followed from trace to trace there
# would be signal lost.

scale = np.percentile(np.abs(recording.samples), 98)
seconds = recording.interval * recording.samples.shape[1]
figure, panels = plt.subplots(1, 3, figsize=(10, 5.5), sharey=True, layout="constrained")
for panel, (name, shown) in zip(panels, {"before": recording, "after": quiet, "removed": removed}.items(), strict=True):
    panel.imshow(
        shown.samples.T, cmap="gray", vmin=-scale, vmax=scale, aspect="auto", interpolation="none",
        extent=(0.5, 24.5, seconds, 0),
    )  # fmt: skip
    panel.set(title=name, xlabel="channel")
panels[0].set_ylabel("time in s")
plt.show()

# %%
# Against the clean record, over all samples; trace by trace, and without the clean record: how what was removed
# correlates with what was left. Channel 17 is dead and stays as it is, bit for bit.

clean = np.load("../seismic_clean.npy")
before, after = (float(quality.snr(clean.ravel(), x.samples.ravel())) for x in (recording, quiet))
leakage = quality.leakage(quiet.samples, removed.samples)
print(f"signal to noise: {before:.1f} dB before, {after:.1f} dB after")
print(f"leakage: {np.abs(leakage).max():.2f} at most, {np.median(np.abs(leakage)):.2f} in the median trace")
