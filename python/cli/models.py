"""The commands that take a model: optimize, inspect, benchmark."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pathlib
from collections.abc import Callable

import rich.markup

from .. import folders
from ..errors import UserError
from .shared import (
    CustomObjects,
    Example,
    InterOp,
    Json,
    Source,
    Verbose,
    argument,
    flag,
    import_objects,
    parse_integers,
    print_json,
    print_line,
    print_warnings,
    print_written,
    result_console,
    steps,
    takes_settings,
)


@takes_settings
def optimize(
    source: Source,
    destination: argument(pathlib.Path, "Folder to write.", "OUT"),
    force: flag(
        bool, "Replace the SavedModel in OUT; other files there are kept.", "--force", "-f"
    ) = False,
    as_json: Json = False,
    *,
    loading: Callable,
) -> None:
    """Make every signature of a model faster and write it to OUT, as a SavedModel.

    Load the result with tf.saved_model.load(OUT) after `import tf_blockdnn`.
    """
    folders.check_model(source)
    folders.check_destination(destination, source=source, force=force)
    with loading() as settings:
        from ..saved_model import TAKES_EXAMPLE, write_saved_model

        report = write_saved_model(source, destination, settings, force)
    for part in report.signatures.values():
        if part.blocked and not part.converted:
            part.warnings.append("it was optimised before: OUT is a copy of it")
    print_warnings(report.signatures)
    if as_json:
        print_json(
            {"source": str(source), "destination": str(destination), **json.loads(report.to_json())}
        )
        return
    from . import tables

    result_console.print(tables.signatures(report))
    if settings.options.precision is not None:
        result_console.print(tables.precision(report), soft_wrap=True)
    for name, part in report.signatures.items():
        for note in part.notes:
            if note.startswith(TAKES_EXAMPLE):
                print_line(f"{name}: {note}")
    print_written(destination, "   (load it after [bold]import tf_blockdnn[/])")


@takes_settings
def inspect(
    source: Source,
    everything: flag(
        bool, "Every op and node, not only what fits a screen.", "--all", "-a"
    ) = False,
    html: flag(
        pathlib.Path | None, "Write a page to this file: the graph before and after."
    ) = None,
    benchmark: flag(
        bool, "Measure the model before and after, and each of its regions.", "--benchmark"
    ) = False,
    why: flag(
        str | None,
        "Say where each rule ends that might convert this node or layer.",
        metavar="NODE",
    ) = None,
    as_json: Json = False,
    *,
    loading: Callable,
) -> None:
    """Show what would be converted and what would stay as it is, and why."""
    folders.check_model(source)
    if html is not None:
        place = html.resolve().parent
        if not place.is_dir():
            raise UserError(f"--html {html}: no such folder {place}")
        if html.is_dir():
            raise UserError(f"--html {html}: a folder; name a file to write")
        if not (html.exists() and os.access(html, os.W_OK)):
            folders.check_writable(place, f"--html {html}: {place} takes no new file")
    with loading() as settings:
        from ..saved_model import rewrite_saved_model, why_not

        step, options = settings.on_step, settings.options
        measuring = settings._replace(options=dataclasses.replace(options, measure=benchmark))
        loaded, fast, report = rewrite_saved_model(source, measuring)
        reasons = []
        if why is not None:
            step(f"asking the rules at {why}")
            reasons = why_not(loaded, report.signatures, why, options)
        if html is not None:
            from ..showing.page import write_page

            functions = {name: part.concrete for name, part in fast.signatures.items()}
            step(f"writing {html}")
            try:
                write_page(html, source.name, loaded.signatures, functions, report)
            except OSError as error:
                raise UserError(f"--html {html}: {error.strerror or error}") from None
    if as_json:
        print_json({"source": str(source), **json.loads(report.to_json()), "why": reasons})
        return
    if why is None:
        result_console.print(rich.markup.escape(report.summary(everything)), soft_wrap=True)
    for line in reasons:
        print_line(line)


def _parse_size(text: str) -> tuple[int, int]:
    """ "H,W" or one number for both, as (H, W)."""
    sizes = parse_integers("--size", text, "H,W, such as 480,640")
    if len(sizes) > 2 or min(sizes) < 1:
        raise UserError(f"--size {text}: not H,W, both at least 1")
    return sizes[0], sizes[-1]


def benchmark(
    source: Source,
    batch: flag(
        int | None, "Batch, where the signature leaves it open; 1 by default.", min=1
    ) = None,
    size: flag(
        str | None,
        "H,W of image inputs, where the signature leaves them open; 224,224 by default.",
    ) = None,
    runs: flag(int, "Counted runs of each model.", min=1) = 30,
    signature: flag(
        str | None, "By default serving_default, or the only one.", "--signature", "-s"
    ) = None,
    peers: flag(
        bool, "Also ONNX Runtime, OpenVINO and LiteRT, where they are installed.", "--peers"
    ) = False,
    threads: flag(
        int | None, "For --peers: threads of each library; all cores by default.", min=1
    ) = None,
    example: Example = None,
    inter_op_threads: InterOp = 1,
    custom_objects: CustomObjects = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Measure a model before and after optimising it, turn by turn.

    Inputs are those of --example, or made up: normally distributed floats, and zeros for integers.
    """
    folders.check_model(source)
    height_width = None if size is None else _parse_size(size)
    if example is not None and (size or batch):
        raise UserError("--batch and --size are for made-up inputs, and --example gives others")
    if threads and not peers:
        raise UserError("--threads belongs to --peers; otherwise ops use all cores")
    if peers and inter_op_threads > 1:
        raise UserError("--inter-op-threads is not for --peers: each library has one there")
    with steps(verbose=verbose, inter_op_threads=inter_op_threads) as step:
        from ..comparison import compare_saved_model
        from ..rewriter import read_arrays
        from ..showing.peers.compare import compare_peers

        compare = (
            functools.partial(compare_peers, threads=threads) if peers else compare_saved_model
        )
        result = compare(
            source,
            signature=signature,
            batch=batch,
            size=height_width,
            runs=runs,
            example=example and read_arrays(example),
            custom_objects=import_objects(custom_objects),
            on_step=step,
        )
    if as_json:
        print_json({"source": str(source), **result.to_json()})
        return
    from . import tables

    result_console.print(tables.peers(result) if peers else tables.comparison(result))
