"""Pictures as GR00T N1.5's recipe for LIBERO has them: a crop, resized; in training at random, in other colours.

NVIDIA's data configuration draws a crop of 95 % of each side and jitters the colours in training; afterwards, when
features are cached and when a policy acts, it takes the crop from the middle and leaves the colours alone. Both are
here, so that the two agree. All cameras of a step get the same crop and the same colours: NVIDIA's transforms
(`gr00t/data/transform/video.py` of Isaac-GR00T, tag n1.5-release) treat them as one stack of pictures.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from PIL import Image, ImageEnhance

# How far brightness, contrast and saturation move from 1 at most, and the hue from 0 in turns: those of NVIDIA's
# LiberoDataConfig (`examples/Libero/custom_data_config.py`).
BRIGHTNESS, CONTRAST, SATURATION, HUE = 0.3, 0.4, 0.5, 0.08


def middle(images: np.ndarray, crop: float, pixels: int) -> np.ndarray:
    """Pictures [n, h, w, 3] uint8 without their edges, at `pixels` a side; 0: as they are."""
    if crop == 1 and not pixels:
        return images
    return np.stack([_cut(image, crop, pixels) for image in images])


def jittered(views: Sequence[np.ndarray], crop: float, pixels: int, rng: np.random.Generator) -> list[np.ndarray]:
    """The pictures [h, w, 3] of one step, all from one place and in the same other colours."""
    place = tuple(rng.random(2))
    shares = {
        name: float(rng.uniform(1 - most, 1 + most))
        for name, most in (("Brightness", BRIGHTNESS), ("Contrast", CONTRAST), ("Color", SATURATION))
    }
    turn = float(rng.uniform(-HUE, HUE))
    order = rng.permutation([*shares, "Hue"])  # as torchvision's ColorJitter, in any order
    return [_coloured(_cut(view, crop, pixels, place), shares, turn, order) for view in views]


def _cut(image: np.ndarray, crop: float, pixels: int, place: tuple[float, ...] = ()) -> np.ndarray:
    """A share `crop` of each side: the middle, or by two numbers in [0, 1) any place, all alike."""
    height, width = image.shape[:2]
    h, w = int(crop * height), int(crop * width)
    free = (height - h, width - w)
    top, left = (
        (int(share * (n + 1)) for share, n in zip(place, free, strict=True)) if place else (round(n / 2) for n in free)
    )
    cut = np.ascontiguousarray(image[top : top + h, left : left + w])
    if not pixels or cut.shape[:2] == (pixels, pixels):
        return cut
    return np.asarray(Image.fromarray(cut).resize((pixels, pixels), Image.Resampling.BILINEAR))


def _coloured(image: np.ndarray, shares: Mapping[str, float], turn: float, order: Iterable[str]) -> np.ndarray:
    picture = Image.fromarray(image)
    for name in order:
        picture = (
            getattr(ImageEnhance, name)(picture).enhance(shares[name]) if name in shares else _turned(picture, turn)
        )
    return np.asarray(picture)


def _turned(picture: Image.Image, turn: float) -> Image.Image:
    """With the hue moved by so many turns."""
    hue, saturation, value = picture.convert("HSV").split()
    moved = Image.fromarray(((np.asarray(hue, np.int16) + round(256 * turn)) % 256).astype(np.uint8))
    return Image.merge("HSV", (moved, saturation, value)).convert("RGB")
