"""What the scaling study holds its times against: transfers and copies of the same run, and the SKE model."""

from __future__ import annotations

from typing import Any

from wavefilt.benchmarks.common.measuring import events
from wavefilt.benchmarks.gpu.denoise import LEVEL
from wavefilt.benchmarks.scaling.implementations import Problem


def calibration(device: str | None, no_gpu: str | None) -> tuple[Any, str | None]:
    """The calibration for the estimates, or why there are none.

    Raises ValueError or OSError for one that is unknown or of another device than this GPU.
    """
    from wavefilt.ske import calibration as shipped

    if no_gpu:  # the counts need neither a GPU nor a compiler
        if device is None:
            return None, "no GPU to estimate for; choose a calibration with --device"
        return shipped.load(device), None
    from wavefilt.benchmarks.ske.calibration import Device

    here = Device.current().name
    if device is not None:
        chosen = shipped.load(device)
        chosen.require(here)
        return chosen, None
    try:
        return shipped.of(here), None
    except shipped.WrongDevice as error:
        return None, str(error)


def floors(samples: int, repeats: int) -> dict[str, float]:
    """Pinned samples to the GPU and back, and 12 bytes a sample (read, read again, write) at a copy's bandwidth."""
    from wavefilt.backends.cuda.runtime.target import cuda

    host = cuda.pinned_array(samples, "float32")
    x, y = (cuda.device_array(samples, "float32") for _ in range(2))
    up = events(lambda stream: x.copy_to_device(host, stream=stream), repeats)["median"]
    down = events(lambda stream: x.copy_to_host(host, stream=stream), repeats)["median"]
    copy = events(lambda stream: y.copy_to_device(x, stream=stream), repeats)["median"]
    return {"up": up, "down": down, "copy": copy, "transfer": up + down, "memory": 12 / 8 * copy}


def estimates(problem: Problem, device: Any) -> dict[str, float]:
    """The kernels' time by the SKE model, calibrated and classic."""
    from wavefilt.backends.cuda.work_counts.statistics import denoise
    from wavefilt.benchmarks.ske import estimate
    from wavefilt.benchmarks.ske.baselines import classic

    wanted = estimate.problem(problem.wavelet, problem.samples, level=LEVEL)
    return {
        "calibrated": 1e3 * sum(one.seconds for one in estimate.estimates(wanted, device)),
        "classic": 1e3 * sum(classic(launch, device) for launch in denoise(wanted)),
    }
