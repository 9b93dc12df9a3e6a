"""One image in every form that people have it in is one image."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import small, whole
from PIL import Image

FORMS = {
    "bytes": lambda image: image,
    "float64": lambda image: image / 255,
    "float32": lambda image: (image / 255).astype(np.float32),
    "float16": lambda image: (image / 255).astype(np.float16),
    "Fortran's order": np.asfortranarray,
    "a view": lambda image: np.repeat(image, 2, axis=1)[:, ::2],
    "PIL": Image.fromarray,
    "PIL, palette": lambda image: Image.fromarray(image).convert("RGBA"),
    "read-only": lambda image: np.frombuffer(image.tobytes(), np.uint8).reshape(image.shape),
}


@pytest.mark.parametrize("form", FORMS)
def test_one_image_in_every_form(form, clothes):
    images, labels = (part[:12] for part in clothes)
    expected, learner = small(), small()
    expected.learn_many(images, labels)
    learner.learn_many([FORMS[form](image) for image in images[:6]], labels[:6])
    for image, label in zip(images[6:], labels[6:], strict=True):
        learner.learn_one(FORMS[form](image), label)
    assert whole(learner) == whole(expected)


def test_grey_images_have_three_equal_colours(clothes):
    images, labels = (part[:8] for part in clothes)
    grey = images[..., 0]
    expected = small()
    expected.learn_many(np.stack([grey] * 3, axis=-1), labels)
    for form in (grey, grey[..., np.newaxis], [Image.fromarray(image) for image in grey]):
        learner = small()
        learner.learn_many(form, labels)
        assert whole(learner) == whole(expected)


def test_floats_are_rounded_and_what_resizing_leaves_is_cut(clothes):
    image = clothes[0][0]
    beyond = np.clip(image / 255, 0, 1).astype(np.float64)
    beyond[beyond == beyond.max()] += 1e-4
    beyond[beyond == 0] -= 1e-4
    expected, learner = small(), small()
    expected.learn_one(image, 0)
    learner.learn_one(beyond, 0)
    assert whole(learner) == whole(expected)


def test_images_of_another_size_are_taken_by_a_learner_for_them(clothes):
    images, labels = (part[:8] for part in clothes)
    learner = small(size=16)
    learner.learn_many(images[:, ::2, ::2], labels)
    assert learner.config["size"] == 16 and learner.samples == 8
