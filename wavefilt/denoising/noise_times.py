"""The option ``sigma`` in seconds, times and picks, where it is known when a trace was sampled, as it is in samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from wavefilt.arrays import Array
from wavefilt.vocabulary import Moment, Noise, Window, is_number

SECOND = np.timedelta64(10**9, "ns")
FORMS = {
    "window": '("window", start, stop) in samples or times',
    "seconds": '("seconds", start, stop)',
    "before": '("before", pick, seconds)',
    "running": '("running", seconds)',
    "intervals": '("intervals", change points in seconds or times, or "find")',
}
"""What ``sigma`` may be beside words and numbers."""


@dataclass(frozen=True)
class Clock:
    """When a trace was sampled.

    ``interval`` is in seconds, ``start`` the time of its first sample: UTC, or a number of the coordinate that the
    samples have; None where they are not known. ``name`` is that of the trace or file, for errors.
    """

    interval: float | None
    start: np.datetime64 | float | None
    samples: int
    name: str

    def seconds(self, moment: Moment) -> float:
        """From the first sample until a time, or a number of seconds as it is.

        A number is a place on the coordinate where that has numbers.
        """
        if is_number(moment):
            number = float(moment)
            return number - self.start if isinstance(self.start, float) else number
        time = _time(moment)
        if not isinstance(self.start, np.datetime64):
            raise ValueError(f"{self.name}: the time of its first sample is not known; give seconds from there")
        return float((time - self.start.astype("datetime64[ns]")) / SECOND)

    def samples_in(self, seconds: float) -> int:
        """Sampling intervals in so many seconds. Raises ValueError where the interval is not known."""
        if not self.interval:
            raise ValueError(f"{self.name}: its sampling interval is not known; give it, or the noise as a number")
        return round(seconds / self.interval)

    def window(self, start: float, stop: float) -> Window:
        """Seconds from the first sample as a noise window in samples.

        Raises ValueError where the interval is not known, or the seconds are out of order, fewer than 4 samples, or
        not in the trace.
        """
        first, last = self.samples_in(start), self.samples_in(stop)
        assert self.interval
        window = f"the noise window from {start:g} s to {stop:g} s"
        if not start < stop:
            raise ValueError(f"{window} is out of order")
        if first < 0:
            raise ValueError(f"{window} begins before the first sample")
        if last > self.samples:
            raise ValueError(f"{window} does not lie in the traces, which end at {self.samples * self.interval:g} s")
        if last - first < 4:
            raise ValueError(f"{window} is shorter than 4 samples, {4 * self.interval:g} s")
        return ("window", first, last)


def on_coordinate(sigma: Noise, coordinate: Array, name: str) -> Noise:
    """`in_samples` of evenly spaced samples with a coordinate of times or numbers, which then are seconds.

    The coordinate is without interval if it runs backwards, is of another kind, or has fewer than two samples.
    """
    if not isinstance(sigma, tuple):
        return sigma
    count, start, interval = len(coordinate), None, None
    if count > 1 and coordinate.dtype.kind in "iufmM":
        times = coordinate.astype(f"{coordinate.dtype.kind}8[ns]") if coordinate.dtype.kind in "mM" else coordinate
        span = times[-1] - times[0]
        seconds = float(span / SECOND if times.dtype.kind in "mM" else span)
        interval = seconds / (count - 1) if seconds > 0 else None
        start = (
            times[0] if times.dtype.kind == "M" else float(times[0] / SECOND if times.dtype.kind == "m" else times[0])
        )
    return in_samples(sigma, Clock(interval, start, count, name))


def in_samples(sigma: Noise, clock: Clock) -> Noise:
    """``sigma`` as `wavefilt.denoise` takes it, of a trace with this clock.

    Words, numbers, and a window between whole numbers, which are samples, stay as they are. Raises ValueError for what
    it cannot be, and as `Clock` does.
    """
    if not isinstance(sigma, tuple) or not sigma:
        return sigma
    kind, *own = sigma
    if kind not in FORMS or len(own) != (1 if kind in ("running", "intervals") else 2):
        raise ValueError(f"sigma={sigma!r} must be {FORMS.get(str(kind)) or ' or '.join(FORMS.values())}")
    if kind == "window":
        return sigma if all(map(is_number, own)) else clock.window(*map(clock.seconds, own))
    if kind == "intervals":
        return kind, own[0] if own[0] is None or isinstance(own[0], str) else _points(own[0], clock)
    lengths = own if kind == "seconds" else own[-1:]
    if not all(is_number(length) and np.isfinite(length) for length in lengths):
        raise ValueError(f"sigma={sigma!r} must be {FORMS[kind]}")
    if kind == "seconds":
        return clock.window(*map(float, own))
    if kind == "running":
        return kind, clock.samples_in(own[0])
    pick = clock.seconds(own[0])
    return clock.window(pick - own[1], pick)


def _points(points: Moment, clock: Clock) -> tuple[int, ...]:
    """Change points within the trace, in samples; behind its end where none is, so that there is one interval."""
    if not isinstance(points, Sequence | np.ndarray):
        raise ValueError(f'change points {points!r} must be a list of seconds or times, or "find"')
    found = [clock.samples_in(clock.seconds(point)) for point in points]
    return tuple(point for point in found if 0 < point < clock.samples) or ((clock.samples,) if found else ())


def _time(moment: Moment) -> np.datetime64:
    """UTC. Raises ValueError for what is no time."""
    if isinstance(moment, str):
        try:
            moment = np.datetime64(moment.removesuffix("Z"), "ns")
        except ValueError:
            raise ValueError(f"{moment!r} is no time such as 2020-01-31T12:30:00.5") from None
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    time = np.array([moment], "M8[ns]") if isinstance(moment, datetime | np.datetime64) else np.array(["NaT"], "M8[ns]")
    if np.isnat(time[0]):
        raise ValueError(f"{moment!r} is neither a number of seconds nor a time")
    return time[0]  # type: ignore[no-any-return]
