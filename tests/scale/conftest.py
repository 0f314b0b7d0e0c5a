"""A network, its pictures, and commands that end with their test."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import pytest
from PIL import Image
from processes import Running

import tf_blockdnn as bd

SIZE = 96
IMAGES = 400


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Folders of one network, "plain" and "fast"."""
    place = tmp_path_factory.mktemp("models")
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 3)),
            keras.layers.Rescaling(1 / 255),
            keras.layers.Conv2D(32, 3, 2, activation="relu"),
            keras.layers.Conv2D(64, 3, activation="relu"),
            keras.layers.Conv2D(64, 3, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10),
        ]
    )
    model.export(place / "plain", verbose=False)
    bd.optimize_saved_model(place / "plain", place / "fast")
    return place


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """A folder of pictures, no two of them alike."""
    place = tmp_path_factory.mktemp("images")
    generator = np.random.default_rng(1)
    for i in range(IMAGES):
        pixels = generator.integers(0, 256, (6, 8, 3), np.uint8)
        Image.fromarray(pixels).resize((800, 600)).save(place / f"{i:04}.jpg")
    return place


@pytest.fixture
def start(tmp_path):
    """Starts examples of docs/examples; ends what they left."""
    running = []

    def run(example, *arguments, **options):
        log = tmp_path / f"log{len(running)}"
        running.append(Running(log, example, *arguments, **options))
        return running[-1]

    yield run
    for each in running:
        each.close()
