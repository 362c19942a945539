"""Generate the synthetic shot records in this folder: python make_seismic.py [FOLDER].

Writes seismic.dat (SEG-2), seismic.txt (the same samples as text) and seismic_clean.npy (without the noise), and
field.dat, a SEG-2 record with the noise of a survey beside a road.
Samples are multiples of 0.01 mV, as from a digitiser, so that the files are identical on every machine.
"""

import argparse
import struct
from pathlib import Path

import numpy as np

TRACES, SAMPLES, INTERVAL = 24, 1024, 0.001
OFFSETS = 10.0 + 5.0 * np.arange(TRACES)  # metres from source to geophone
TIMES = INTERVAL * np.arange(SAMPLES)  # seconds after the shot
DEAD = 16  # this trace, counted from 0, is all zeros
SNR = 6.0  # dB, over all live traces
BEFORE, AFTER, NOISY = 500, 1000, 5  # field.dat: samples before and after the shot, and its noisy trace

# two-way time at zero offset (s), velocity (m/s), frequency of the wavelet (Hz), amplitude (mV)
REFLECTIONS = [
    (0.140, 620.0, 90.0, 10.0),
    (0.270, 850.0, 70.0, -9.0),
    (0.440, 1100.0, 55.0, 8.0),
    (0.660, 1450.0, 45.0, 7.0),
]


def ricker(t, frequency):
    """Ricker wavelet of peak frequency in Hz at times t (s)."""
    square = (np.pi * frequency * t) ** 2
    return (1 - 2 * square) * np.exp(-square)


def onset(t, frequency):
    """Impulsive arrival with a sharp onset and a decaying oscillation at times t (s), frequency in Hz."""
    late = np.maximum(t, 0)
    return late * frequency * np.exp(1 - 2.2 * frequency * late) * np.sin(2 * np.pi * frequency * late) * 4


def arrivals():
    """First breaks and reflections in mV, shape (traces, samples)."""
    x, t = OFFSETS[:, None], TIMES[None, :]
    spreading = (OFFSETS[0] / x) ** 0.5
    direct = 26 * spreading**1.5 * onset(t - x / 420, 70)
    refracted = 9 * spreading * onset(t - 0.045 - x / 1700, 95)
    reflected = sum(
        size * spreading**0.6 * ricker(t - np.sqrt(t0**2 + (x / v) ** 2), f) for t0, v, f, size in REFLECTIONS
    )
    return direct + refracted + reflected


def rayleigh(f):
    """Phase velocity of Rayleigh waves in m/s at the frequency f in Hz."""
    return 150 + 200 / (1 + (f / 14) ** 2)


def ground_roll():
    """Dispersive Rayleigh wave of 8 to 35 Hz in mV, shape (traces, samples)."""
    f = np.fft.rfftfreq(2 * SAMPLES, INTERVAL)[None, :]
    velocity = rayleigh(f)
    spectrum = np.exp(-(((f - 19) / 7) ** 2)) * np.exp(-0.01 * f * OFFSETS[:, None] / velocity)
    spectrum = spectrum * np.exp(-2j * np.pi * f * (OFFSETS[:, None] / velocity + 0.04))
    roll = np.fft.irfft(spectrum)[:, :SAMPLES]
    return 20 * roll / np.abs(roll).max() * (OFFSETS[0] / OFFSETS[:, None]) ** 0.25


def wind(random, samples=SAMPLES):
    """Noise of 5 to 60 Hz with unit variance, shape (traces, samples)."""
    f = np.fft.rfftfreq(samples, INTERVAL)
    band = 1 / np.sqrt((1 + (5 / np.maximum(f, 0.1)) ** 8) * (1 + (f / 60) ** 6) * (1 + f / 15))
    noise = np.fft.irfft(band * np.fft.rfft(random.standard_normal((TRACES, samples))))
    return noise / noise.std()


def traffic(random, samples):
    """Surface waves of 6 to 16 Hz that cross the spread at an angle, with unit variance, shape (traces, samples)."""
    f = np.fft.rfftfreq(2 * samples, INTERVAL)
    source = np.exp(-(((f - 11) / 4) ** 2)) * np.fft.rfft(random.standard_normal(2 * samples))
    delays = OFFSETS[::-1, None] * np.cos(np.radians(50)) / rayleigh(f)  # the road is near the far end of the spread
    waves = np.fft.irfft(source * np.exp(-2j * np.pi * f * delays))[:, :samples]
    return waves / waves.std()


def record(seed=20240611):
    """The clean and the noisy record: two float32 arrays (traces, samples) in mV."""
    random = np.random.default_rng(seed)
    clean = arrivals() + ground_roll()
    noise = 0.35 * wind(random) + random.standard_normal(clean.shape)
    noise *= random.uniform(0.8, 1.25, (TRACES, 1))  # coupling differs between geophones
    clean[DEAD] = noise[DEAD] = 0
    noise *= np.sqrt(np.sum(clean**2) / np.sum(noise**2)) * 10 ** (-SNR / 20)
    return tuple(np.round(samples, 2).astype("<f4") for samples in (clean, clean + noise))


def field_record(seed=20240612):
    """The clean and the noisy record with 0.5 s before the shot: two float32 arrays (traces, samples) in mV."""
    random = np.random.default_rng(seed)
    clean = np.pad((arrivals() + ground_roll())[:, :AFTER], ((0, 0), (BEFORE, 0)))
    samples = BEFORE + AFTER
    hum = np.sin(2 * np.pi * 50 * INTERVAL * np.arange(samples) + random.uniform(0, 0.5, (TRACES, 1)))
    noise = 0.4 * random.standard_normal(clean.shape) + 0.7 * wind(random, samples)
    noise *= random.uniform(0.7, 1.4, (TRACES, 1))
    noise[NOISY] *= 5
    noise += traffic(random, samples) + random.uniform(0.2, 2.2, (TRACES, 1)) * hum
    clean[DEAD] = noise[DEAD] = 0
    return tuple(np.round(samples, 2).astype("<f4") for samples in (clean, clean + noise))


def strings(**entries):
    """SEG-2 free-format strings: offset to the next string, KEY value, NUL; terminated by the offset 0."""
    texts = [f"{key} {value}".encode("ascii") + b"\0" for key, value in entries.items()]
    block = b"".join(struct.pack("<H", len(text) + 2) + text for text in texts) + bytes(2)
    return block + bytes(-len(block) % 4)


def seg2_trace(number, samples, delay):
    """Trace descriptor block and samples of one trace, float32; delay of the first sample after the shot in s."""
    header = strings(
        CHANNEL_NUMBER=number + 1,
        DELAY=f"{delay:.3f}",
        DESCALING_FACTOR="1.000000E+000",
        RECEIVER_LOCATION=f"{OFFSETS[number]:.2f}",
        SAMPLE_INTERVAL=f"{INTERVAL:g}",
        SOURCE_LOCATION="0.00",
        STACK=1,
    )
    size = 32 + len(header)
    return struct.pack("<HHIIB19x", 0x4422, size, samples.nbytes, len(samples), 4) + header + samples.tobytes()


def seg2(traces, delay=0.0):
    """The bytes of a SEG-2 file, revision 1, little endian."""
    header = strings(
        ACQUISITION_DATE="11/JUN/2024",
        ACQUISITION_TIME="10:42:17",
        INSTRUMENT="SYNTHETIC wavefilt samples/make_seismic.py",
        TRACE_SORT="AS_ACQUIRED",
        UNITS="METERS",
        NOTE=f"SYNTHETIC SHOT RECORD\nUNITS OF SAMPLES: MILLIVOLT\nDEAD CHANNEL: {DEAD + 1}",
    )
    blocks = [seg2_trace(number, samples, delay) for number, samples in enumerate(traces)]
    first = 32 + 4 * TRACES + len(header)
    pointers = first + np.cumsum([0, *map(len, blocks[:-1])])
    descriptor = struct.pack("<HHHHB2sB2s18x", 0x3A55, 1, 4 * TRACES, TRACES, 1, b"\0\0", 1, b"\n\0")
    return descriptor + pointers.astype("<u4").tobytes() + header + b"".join(blocks)


def text(traces):
    """A header line, then one row per sample: time in seconds, and the traces in mV."""
    columns = " ".join(f"x={offset:g}m" for offset in OFFSETS)
    rows = [f"{t:.3f} " + " ".join(f"{x:.2f}" for x in row) for t, row in zip(TIMES, traces.T, strict=True)]
    return "\n".join([f"# time_s {columns}", *rows, ""]).encode("ascii")


def main(folder):
    clean, noisy = record()
    (folder / "seismic.dat").write_bytes(seg2(noisy))
    (folder / "seismic.txt").write_bytes(text(noisy))
    np.save(folder / "seismic_clean.npy", clean)
    (folder / "field.dat").write_bytes(seg2(field_record()[1], -BEFORE * INTERVAL))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent)
    main(parser.parse_args().folder)
