"""Denoise a feed as it comes: numbers, one a line, or with --raw little-endian float32, from standard input to output.

    python denoise_stream.py --window 4000 < numbers.txt
    feed | python denoise_stream.py --raw --noise 0.3 > denoised.f32

NaN is a gap: what came before it ends there, and what comes after it begins anew.
"""

import argparse
import sys

import numpy as np

import wavefilt

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--raw", action="store_true", help="little-endian float32 in and out")
parser.add_argument("--wavelet", default="db8")
parser.add_argument("--level", type=int, default=4)
parser.add_argument("--rule", default="bayes", choices=["bayes", "universal", "minimax"])
parser.add_argument("--noise", type=float, help="standard deviation of the noise; by default that of the window")
parser.add_argument("--window", type=int, default=4096, help="samples that tell noise and power")
options = parser.parse_args()
noise = "running" if options.noise is None else options.noise
denoiser = wavefilt.OnlineDenoiser(
    options.wavelet, options.level, options.rule, noise=noise, window=options.window, dtype="float32"
)


def parts():
    """Samples as they arrive."""
    if not options.raw:
        for line in sys.stdin:
            yield np.array(line.split(), np.float32)
        return
    rest = b""
    while received := sys.stdin.buffer.read1(1 << 16):
        rest += received
        whole = len(rest) // 4 * 4
        yield np.frombuffer(rest[:whole], "<f4")
        rest = rest[whole:]


def write(samples):
    if options.raw:
        sys.stdout.buffer.write(samples.astype("<f4").tobytes())
    else:
        sys.stdout.writelines(f"{sample:.7g}\n" for sample in samples)
    sys.stdout.flush()


print(f"latency: {denoiser.latency} samples", file=sys.stderr)
for part in parts():
    edges = np.flatnonzero(np.diff(np.isnan(part))) + 1
    for piece in np.split(part, edges):
        if np.isnan(piece).any():
            write(denoiser.flush())
            write(piece)
        else:
            write(denoiser.push(piece))
write(denoiser.flush())
