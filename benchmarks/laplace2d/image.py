"""Images for the 2-D Laplace study: one made from a seed, or a file through Pillow."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.benchmarks.laplace2d.variants import CHANNELS, pitch

MADE = "made from a seed"
SIZE = (4992, 3744)
"""Width and height of the document's image."""
LONGEST, LARGEST = (1 << 16) - 1, (1 << 31) - 1
"""Pixels of a side, as in JPEG, and bytes of an image: the kernels count them in 32 bits."""

Image = NDArray[np.uint8]
"""(height, width, 3), rows one after the other, red, green and blue of a pixel together."""


def check(width: int, height: int) -> tuple[int, int]:
    """The size itself. Raises ValueError unless the filter's kernels can count its bytes."""
    if not (0 < width <= LONGEST and 0 < height <= LONGEST and pitch(width) * height <= LARGEST):
        raise ValueError(
            f"{width}x{height} is no size of an image of up to 2 GiB whose sides are 1 to {LONGEST} pixels"
        )
    return width, height


def made(width: int, height: int, seed: int = 17) -> Image:
    """Waves, a disc and a grid of bars, of another contrast in every channel, in weak noise.

    So weak that half of the filtered image lies between black and white.
    """
    check(width, height)
    rng = np.random.default_rng(seed)
    y, x = np.ogrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    y, x = y.astype(np.float32), x.astype(np.float32)
    structure = 50 * np.sin(9 * x + 4 * y) * np.cos(7 * y - 3 * x) + np.where(x * x + y * y < 0.25, 40, 0)
    structure += np.where((np.abs(x % 0.4) < 0.02) | (np.abs(y % 0.4) < 0.02), -30, 0)
    image = rng.integers(-3, 4, (height, width, CHANNELS), dtype=np.int16)
    for channel, contrast in enumerate((1.0, 0.7, 0.4)):
        image[..., channel] += (115 + contrast * structure).astype(np.int16)
    return np.clip(image, 0, 255).astype(np.uint8)


def read(path: str) -> Image:
    """The image in a file. Raises ImportError without Pillow, ValueError or OSError for what is no image to filter."""
    try:
        with _pillow().open(path) as opened:
            check(*opened.size)
            image: Image = np.array(opened.convert("RGB"))
    except (ImportError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # decoders raise whatever they come upon
        raise ValueError(f"{path}: not an image that Pillow can read ({error})") from error
    if not image.any():
        raise ValueError(f"{path}: all black, there is nothing to compare results by")
    return image


def png(image: Image) -> bytes:
    """The image as a PNG file. Raises ImportError without Pillow."""
    out = io.BytesIO()
    _pillow().fromarray(image).save(out, "PNG")
    return out.getvalue()


def _pillow() -> Any:
    try:
        from PIL import Image as pillow
    except ImportError as error:
        raise ImportError(f"images are read and written with Pillow ({error}): pip install pillow") from error
    return pillow
