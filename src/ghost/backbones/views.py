"""Pictures as GR00T N1.5's recipe for LIBERO has them: a crop, resized; in training at random, in other colours.

NVIDIA's data configuration draws a crop of 95 % of each side and jitters the colours in training; afterwards, when
features are cached and when a policy acts, it takes the crop from the middle and leaves the colours alone. Both are
here, so that the two agree.
"""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageEnhance

# How far brightness, contrast and saturation move from 1 at most, and the hue from 0 in turns; NVIDIA's.
BRIGHTNESS, CONTRAST, SATURATION, HUE = 0.3, 0.4, 0.5, 0.08


def middle(images: np.ndarray, crop: float, pixels: int) -> np.ndarray:
    """Pictures [n, h, w, 3] uint8 without their edges, at `pixels` a side; 0: as they are."""
    if crop == 1 and not pixels:
        return images
    return np.stack([_cut(image, crop, pixels, (0.5, 0.5)) for image in images])


def jittered(views: Sequence[np.ndarray], crop: float, pixels: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The pictures [h, w, 3] of one step, each from a place of its own and in other colours."""
    return [_coloured(_cut(view, crop, pixels, tuple(rng.random(2))), rng) for view in views]


def _cut(image: np.ndarray, crop: float, pixels: int, place: tuple[float, ...]) -> np.ndarray:
    """A share `crop` of each side, `place` of the way from the upper left to the lower right corner."""
    height, width = image.shape[:2]
    h, w = round(crop * height), round(crop * width)
    top, left = (round(share * free) for share, free in zip(place, (height - h, width - w), strict=True))
    cut = np.ascontiguousarray(image[top : top + h, left : left + w])
    if not pixels or cut.shape[:2] == (pixels, pixels):
        return cut
    return np.asarray(Image.fromarray(cut).resize((pixels, pixels), Image.Resampling.BILINEAR))


def _coloured(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    picture = Image.fromarray(image)
    for enhance, most in (
        (ImageEnhance.Brightness, BRIGHTNESS),
        (ImageEnhance.Contrast, CONTRAST),
        (ImageEnhance.Color, SATURATION),
    ):
        picture = enhance(picture).enhance(float(rng.uniform(1 - most, 1 + most)))
    hue, saturation, value = picture.convert("HSV").split()
    turn = round(256 * float(rng.uniform(-HUE, HUE)))
    turned = Image.fromarray(((np.asarray(hue, np.int16) + turn) % 256).astype(np.uint8))
    return np.asarray(Image.merge("HSV", (turned, saturation, value)).convert("RGB"))
