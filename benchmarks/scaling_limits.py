"""What the scaling study holds its times against: transfers and copies of the same run, and the SKE model."""

from __future__ import annotations

from typing import Any

from wavefilt.benchmarks.cuda import LEVEL
from wavefilt.benchmarks.denoise_cases import Problem
from wavefilt.benchmarks.measuring import events
from wavefilt.errors import BackendUnavailable


def calibration(device: str | None, no_gpu: str | None) -> tuple[Any, str | None]:
    """The calibration for the estimates, or why there are none."""
    from wavefilt.ske import calibration as shipped

    if device is None and no_gpu:
        return None, "no GPU to estimate for; choose a calibration with --device"
    try:
        from wavefilt.benchmarks import ske_estimate  # noqa: F401
        from wavefilt.benchmarks.calibration import Device

        if device is None:
            return shipped.of(Device.current().name), None
        chosen = shipped.load(device)
        if not no_gpu:
            chosen.require(Device.current().name)
        return chosen, None
    except BackendUnavailable as error:
        return None, f"the counts of the kernels need their compiler: {error}"
    except shipped.WrongDevice as error:
        if device is not None:
            raise
        return None, str(error)


def floors(samples: int, repeats: int) -> dict[str, float]:
    """Pinned samples to the GPU and back, and 12 bytes a sample (read, read again, write) at a copy's bandwidth."""
    from wavefilt.backends.cuda.target import cuda

    host = cuda.pinned_array(samples, "float32")
    x, y = (cuda.device_array(samples, "float32") for _ in range(2))
    up = events(lambda stream: x.copy_to_device(host, stream=stream), repeats)["median"]
    down = events(lambda stream: x.copy_to_host(host, stream=stream), repeats)["median"]
    copy = events(lambda stream: y.copy_to_device(x, stream=stream), repeats)["median"]
    return {"up": up, "down": down, "copy": copy, "transfer": up + down, "memory": 12 / 8 * copy}


def estimates(problem: Problem, device: Any) -> dict[str, float]:
    """The kernels' time by the SKE model, calibrated and classic."""
    from wavefilt.backends.cuda.search_counts import denoise
    from wavefilt.benchmarks import ske_estimate
    from wavefilt.ske.baselines import classic

    wanted = ske_estimate.problem(problem.wavelet, problem.samples, level=LEVEL)
    return {
        "calibrated": 1e3 * sum(one.seconds for one in ske_estimate.estimates(wanted, device)),
        "classic": 1e3 * sum(classic(launch, device) for launch in denoise(wanted)),
    }
