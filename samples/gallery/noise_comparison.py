"""
Comparison of rules
===================

A synthetic trace with white and with pink noise, denoised with every rule.
"""

import matplotlib.pyplot as plt
import numpy as np

import wavefilt
from wavefilt import quality
from wavefilt.vocabulary import RULES

random = np.random.default_rng(11)
time = np.arange(2048) / 1000
clean = np.zeros(2048)
for arrival, frequency, size in [(0.3, 60, 4), (0.55, 45, -3), (0.9, 35, 2), (1.3, 30, 1.5), (1.65, 25, 1)]:
    late = np.maximum(time - arrival, 0)
    clean += size * 8 * frequency * late * np.exp(-frequency * late) * np.sin(2 * np.pi * frequency * late)

white = random.standard_normal(2048)
frequencies = np.fft.rfftfreq(2048)
frequencies[0] = frequencies[1]
pink = np.fft.irfft(np.fft.rfft(random.standard_normal(2048)) / np.sqrt(frequencies))
noises = {"white": white, "pink": pink / pink.std()}
noisy = {name: clean + 0.5 * clean.std() * noise / noise.std() for name, noise in noises.items()}

# %%
# Left: results for white noise. Right: their errors, magnified four times. The rules at the top leave some noise and
# preserve the signal; those at the bottom remove all noise and part of the signal.

denoised = {(noise, rule): wavefilt.denoise(x, rule=rule) for noise, x in noisy.items() for rule in RULES}
finest = {rule: wavefilt.denoise(noisy["pink"], rule=rule, sigma="global") for rule in RULES}


def gain(noise, y):
    """Gain in signal-to-noise ratio in dB."""
    return float(quality.snr(clean, y) - quality.snr(clean, noisy[noise]))


gains = {key: gain(key[0], y) for key, y in denoised.items()}
gains_finest = {rule: gain("pink", y) for rule, y in finest.items()}
ranked = sorted(RULES, key=lambda rule: -gains["white", rule])

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 9), sharex=True, sharey=True, layout="constrained")
step = 1.4 * np.abs(clean).max()
for place, rule in enumerate(["before", *ranked]):
    shown = noisy["white"] if rule == "before" else denoised["white", rule]
    left.plot(time, shown - place * step, color="#0072B2", linewidth=0.8)
    right.plot(time, 4 * (shown - clean) - place * step, color="#D55E00", linewidth=0.8)
labels = [f"{rule}\n{gains['white', rule]:+.1f} dB" for rule in ranked]
left.set_yticks(-step * np.arange(len(ranked) + 1), ["before", *labels])
left.set(xlim=(0.2, 1.2), xlabel="time in s", title="result")
right.set(xlabel="time in s", title="error x 4")
plt.show()

# %%
# Pink noise overlaps with the frequency band of the signal, and every rule gains less. With ``sigma="global"`` the
# noise estimate of the finest level, which is too low for the others, is used for all levels: ``bayes`` and ``sure``
# gain less, ``minimax`` and ``universal``, which otherwise remove too much, gain more.

bars = {
    "white": [gains["white", rule] for rule in ranked],
    "pink": [gains["pink", rule] for rule in ranked],
    'pink, sigma="global"': [gains_finest[rule] for rule in ranked],
}
figure, axes = plt.subplots(figsize=(10, 4.5), layout="constrained")
places = np.arange(len(ranked))
for i, ((name, values), colour) in enumerate(zip(bars.items(), ["#0072B2", "#D55E00", "#CC79A7"], strict=True)):
    axes.bar(places + 0.27 * (i - 1), values, 0.25, color=colour, label=name)
axes.set_xticks(places, ranked)
axes.set_ylabel("gain in dB")
axes.axhline(0, color="black", linewidth=0.8)
axes.legend()
plt.show()

for rule in ranked:
    white, pink = gains["white", rule], gains["pink", rule]
    print(f"{rule:13}  white {white:+5.1f} dB   pink {pink:+5.1f} dB   pink, global {gains_finest[rule]:+5.1f} dB")
