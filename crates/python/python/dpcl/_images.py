"""Images of whatever kind people have, as one array of bytes [count, height, width, 3].

Bytes are taken as they are. Floats lie between 0 and 1 and are rounded to bytes, for the memory holds bytes. NumPy's
and PIL's colours come last, PyTorch's first, and both may be grey.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]

# Less than half the step between two bytes: what resizing leaves beyond the ends.
_BEYOND = 1e-3

_WAY_OUT = (
    "give uint8 or float (0 to 1) arrays [height, width, 3], pictures of PIL, or PyTorch's tensors [3, height, width]"
)


def one(image: Any) -> Pixels:
    """One image as an array [1, height, width, 3].

    >>> import numpy as np
    >>> one(np.zeros((8, 8), np.uint8)).shape
    (1, 8, 8, 3)
    """
    return many([image])


def many(images: Any) -> Pixels:
    """Images as an array [count, height, width, 3].

    >>> import numpy as np
    >>> many(np.full((2, 4, 4, 3), 0.5)).max()
    np.uint8(128)
    """
    if _is_array(images):
        pixels = _bytes(images, batch=True)
    elif isinstance(images, Iterable) and not isinstance(images, (str, bytes, dict)):
        pixels = _stacked([_bytes(image, batch=False) for image in images])
    else:
        raise TypeError(f"a {_kind(images)} is no list of images\nhint: {_WAY_OUT}")
    if len(pixels) == 0:
        raise ValueError("no image was given\nhint: give at least one")
    if 0 in pixels.shape:
        raise ValueError(f"images without pixels were given: shape {pixels.shape}\nhint: {_WAY_OUT}")
    return np.ascontiguousarray(pixels)


def labels(given: Any, count: int) -> list[Any]:
    """A list of `count` labels."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(f"a {_kind(given)} is no list of labels\nhint: give one label an image, in a list or an array")
    found = list(given)
    if len(found) != count:
        raise ValueError(f"{count} images and {len(found)} labels were given\nhint: give one label an image")
    return found


def _stacked(images: Sequence[Pixels]) -> Pixels:
    shapes = sorted({image.shape for image in images})
    if len(shapes) > 1:
        raise ValueError(f"images of several sizes were given: {shapes[0]} and {shapes[1]}\nhint: resize them to one")
    return np.stack(images) if images else np.empty((0, 1, 1, 3), np.uint8)


def _is_array(images: Any) -> bool:
    return hasattr(images, "__array__") and not _is_picture(images)


def _is_picture(image: Any) -> bool:
    return hasattr(image, "convert") and hasattr(image, "mode")


def _bytes(image: Any, *, batch: bool) -> Pixels:
    """One image or a batch as bytes, colours last."""
    colours_first = _is_tensor(image)
    if _is_picture(image):
        image = image.convert("RGB")
    elif colours_first:
        image = image.detach().cpu()
    elif not _is_array(image):
        raise TypeError(f"a {_kind(image)} is no image\nhint: {_WAY_OUT}")
    array = np.asarray(image)
    return _scaled(_colours_last(array, colours_first=colours_first, batch=batch))


def _is_tensor(image: Any) -> bool:
    return type(image).__module__.partition(".")[0] == "torch" and hasattr(image, "detach")


def _colours_last(array: NDArray[Any], *, colours_first: bool, batch: bool) -> NDArray[Any]:
    shape = array.shape[1:] if batch else array.shape
    what = "images" if batch else "an image"
    if len(shape) == 2:
        array, shape = array[..., np.newaxis], (*shape, 1)
    elif len(shape) != 3:
        raise ValueError(f"{what} of shape {array.shape} cannot be taken\nhint: {_WAY_OUT}")
    elif colours_first and shape[0] in (1, 3):
        array = np.moveaxis(array, -3, -1)
        shape = array.shape[-3:]
    if shape[2] not in (1, 3):
        way_out = _WAY_OUT
        if shape[0] in (1, 3):
            way_out = "colours come last in NumPy's arrays: np.moveaxis(images, -3, -1)"
        elif shape[2] == 4:
            way_out = "leave the fourth colour out: images[..., :3]"
        raise ValueError(f"{what} of shape {array.shape} cannot be taken\nhint: {way_out}")
    return np.broadcast_to(array, (*array.shape[:-1], 3))


def _scaled(array: NDArray[Any]) -> Pixels:
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind != "f":
        raise TypeError(f"pixels of type {array.dtype} cannot be taken\nhint: {_WAY_OUT}")
    if array.size == 0:
        return array.astype(np.uint8)
    # Not a number is neither above nor below.
    least, most = float(array.min()), float(array.max())
    if not (-_BEYOND <= least and most <= 1 + _BEYOND):
        if not (np.isfinite(least) and np.isfinite(most)):
            raise ValueError("pixels that are no finite numbers were given\nhint: look for damaged images")
        raise ValueError(
            f"float pixels from {least:g} to {most:g} were given, and 0 to 1 is expected\n"
            "hint: divide by 255 or give uint8; leave normalising to the learner (`mean`, `std`)"
        )
    scaled: NDArray[Any] = np.rint(np.clip(array, 0, 1) * 255)
    return scaled.astype(np.uint8)


def _kind(value: object) -> str:
    return type(value).__name__
