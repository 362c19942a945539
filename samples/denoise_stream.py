"""Denoise a feed as it comes: numbers, one a line, or with --raw little-endian float32, from standard input to output.

    python denoise_stream.py --window 4000 < numbers.txt
    feed | python denoise_stream.py --raw --noise 0.3 > denoised.f32

NaN is a gap: what came before it ends there, and what comes after it begins anew. At anything else that is no sample
the feed ends: all before it is written, one line says where it was, and the exit code is 1.
"""

import argparse
import signal
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
try:
    denoiser = wavefilt.OnlineDenoiser(
        options.wavelet, options.level, options.rule, noise=noise, window=options.window, dtype="float32"
    )
except ValueError as error:
    parser.error(str(error))
np.seterr(over="ignore")  # a number too large for float32 becomes infinite, which is told


def parts():
    """What arrives, each part with its place in the feed."""
    if not options.raw:
        for number, line in enumerate(sys.stdin.buffer, 1):
            yield f"line {number}", line
        return
    rest, before = b"", 0
    while received := sys.stdin.buffer.read1(1 << 16):
        rest += received
        whole = len(rest) // 4 * 4
        yield f"bytes {before} to {before + whole}", rest[:whole]
        rest, before = rest[whole:], before + whole
    if rest:
        yield f"the last {len(rest)} bytes", rest


def take(part):
    """Write what a part makes due; ValueError for the first that is no sample, all before it taken."""
    samples = np.frombuffer(part, "<f4") if options.raw else np.array(part.split(), np.float32)
    for piece in np.split(samples, np.flatnonzero(np.diff(np.isnan(samples))) + 1):
        if np.isnan(piece).any():
            write(denoiser.flush())
            write(piece)
        else:
            denoise(piece)


def denoise(samples):
    """The same of samples without gaps."""
    try:
        write(denoiser.push(samples))
    except ValueError:  # nothing of it was taken
        if len(samples) == 1:
            raise ValueError(f"{samples[0]:.7g} is infinite or too large") from None
        for half in np.array_split(samples, 2):
            denoise(half)


def write(samples):
    if options.raw:
        sys.stdout.buffer.write(samples.astype("<f4").tobytes())
    else:
        sys.stdout.writelines(f"{sample:.7g}\n" for sample in samples)
    sys.stdout.flush()


if hasattr(signal, "SIGPIPE"):  # not on Windows
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends this without a word
print(f"latency: {denoiser.latency} samples", file=sys.stderr)
trouble = None
for place, part in parts():
    try:
        take(part)
    except ValueError as error:
        trouble = f"{place}: {error}"
        break
write(denoiser.flush())
sys.exit(trouble)
