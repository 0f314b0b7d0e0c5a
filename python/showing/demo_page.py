"""The page of the demo: a slider over each picture, between what the two models found."""

from __future__ import annotations

import base64
import html
import io

import numpy as np


def page(pictures, machine: str) -> str:
    """One HTML file that needs no other.

    Args:
      pictures: a demo.Picture each.
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
