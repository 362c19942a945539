"""Denoise the synthetic shot record with every rule and write the default result: python denoise_gather.py OUT.dat"""

import argparse
import signal
from pathlib import Path

import numpy as np

import wavefilt
from wavefilt.vocabulary import RULES

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("output", metavar="OUT.dat")
output = parser.parse_args().output
here = Path(__file__).parent
recording = wavefilt.read(here / "seismic.dat")
clean = np.load(here / "seismic_clean.npy").astype(float)
try:
    recording.denoise().write(output)
except FileExistsError:
    parser.error(f"{output} exists; name another file")
except (OSError, ValueError) as error:
    parser.error(str(error))
if hasattr(signal, "SIGPIPE"):  # not on Windows
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends this silently


def snr(samples):
    """Signal-to-noise ratio in dB."""
    return 10 * np.log10(np.sum(clean**2) / np.sum((samples - clean) ** 2))


print(f"before         {snr(recording.samples):5.2f} dB")
for rule in RULES:
    print(f"{rule:13}  {snr(recording.denoise(rule=rule).samples):5.2f} dB")
