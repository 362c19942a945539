"""Denoise a real-time stream from standard input: one number per line, or with --raw little-endian float32.

    python denoise_stream.py --window 4000 < numbers.txt
    source | python denoise_stream.py --raw --noise 0.3 > denoised.f32

NaN is a gap: the segments before and after it are denoised separately. At any other invalid sample the program writes
all preceding samples, reports the position and exits with code 1.
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
parser.add_argument("--rule", default="bayes", choices=["bayes", "universal", "minimax", "js"])
parser.add_argument("--noise", type=float, help="standard deviation of the noise (default: estimated in the window)")
parser.add_argument("--window", type=int, default=4096, help="number of samples to estimate noise and power from")
options = parser.parse_args()
noise = "running" if options.noise is None else options.noise
try:
    denoiser = wavefilt.OnlineDenoiser(
        options.wavelet, options.level, options.rule, noise=noise, window=options.window, dtype="float32"
    )
except ValueError as error:
    parser.error(str(error))
np.seterr(over="ignore")  # a number too large for float32 becomes infinite, which is reported below


def blocks():
    """Blocks of input as they arrive, each with its position."""
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


def process(block):
    """Denoise a block. Raises ValueError at the first invalid sample, after processing all preceding ones."""
    samples = np.frombuffer(block, "<f4") if options.raw else np.array(block.split(), np.float32)
    for segment in np.split(samples, np.flatnonzero(np.diff(np.isnan(samples))) + 1):
        if np.isnan(segment).any():
            write(denoiser.flush())
            write(segment)
        else:
            denoise(segment)


def denoise(samples):
    """Denoise samples without gaps."""
    try:
        write(denoiser.push(samples))
    except ValueError:  # no sample was consumed
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


signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the program without a traceback
if hasattr(signal, "SIGPIPE"):  # not on Windows
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends this silently
print(f"latency: {denoiser.latency} samples", file=sys.stderr)
problem = None
for position, block in blocks():
    try:
        process(block)
    except ValueError as error:
        problem = f"{position}: {error}"
        break
write(denoiser.flush())
sys.exit(problem)
