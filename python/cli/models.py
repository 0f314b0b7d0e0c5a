"""The commands that take a model: optimize, inspect, benchmark."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pathlib
from typing import Annotated

import rich.markup
import typer

from .. import folders
from ..errors import UserError
from ..options import Options
from .shared import (
    CalibrationData,
    CustomObjects,
    Example,
    InterOp,
    Json,
    Signature,
    Source,
    Verbose,
    import_objects,
    parse_integers,
    print_json,
    print_warnings,
    print_written,
    result_console,
    steps,
    takes_options,
)


@takes_options
def optimize(
    source: Source,
    destination: Annotated[
        pathlib.Path, typer.Argument(help="Folder to write.", metavar="OUT", show_default=False)
    ],
    force: Annotated[
        bool,
        typer.Option(
            "--force", "-f", help="Replace the SavedModel in OUT; other files there are kept."
        ),
    ] = False,
    signature: Signature = None,
    calibration: CalibrationData = None,
    example: Example = None,
    custom_objects: CustomObjects = None,
    as_json: Json = False,
    verbose: Verbose = False,
    *,
    options: Options,
) -> None:
    """Make every signature of a model faster and write it to OUT, as a SavedModel.

    Load the result with tf.saved_model.load(OUT) after `import tf_blockdnn`.
    """
    folders.check_model(source)
    folders.check_destination(destination, source=source, force=force)
    _check_calibration(options.precision, calibration)
    with steps(verbose=verbose) as step:
        from ..rewriter import read_arrays
        from ..saved_model import TAKES_EXAMPLE, optimize_saved_model

        report = optimize_saved_model(
            source,
            destination,
            signatures=signature,
            options=options,
            calibration=calibration,
            example=example and read_arrays(example),
            custom_objects=import_objects(custom_objects),
            force=force,
            on_step=step,
            on_batch=step.batch,
        )
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
    if options.precision is not None:
        result_console.print(tables.precision(report), soft_wrap=True)
    for name, part in report.signatures.items():
        for note in part.notes:
            if note.startswith(TAKES_EXAMPLE):
                line = rich.markup.escape(f"{name}: {note}")
                result_console.print(line, soft_wrap=True, highlight=False)
    print_written(destination, "   (load it after [bold]import tf_blockdnn[/])")


@takes_options
def inspect(
    source: Source,
    signature: Signature = None,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="Every op and node, not only what fits a screen.")
    ] = False,
    html: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="Write a page to this file: the graph before and after.", show_default=False
        ),
    ] = None,
    benchmark: Annotated[
        bool,
        typer.Option(
            "--benchmark", help="Measure the model before and after, and each of its regions."
        ),
    ] = False,
    why: Annotated[
        str | None,
        typer.Option(
            metavar="NODE",
            help="Say where each rule ends that might convert this node or layer.",
            show_default=False,
        ),
    ] = None,
    calibration: CalibrationData = None,
    example: Example = None,
    custom_objects: CustomObjects = None,
    as_json: Json = False,
    verbose: Verbose = False,
    *,
    options: Options,
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
    _check_calibration(options.precision, calibration)
    with steps(verbose=verbose) as step:
        from ..rewriter import read_arrays
        from ..saved_model import rewrite_saved_model, why_not
        from ..targets import Settings

        settings = Settings(
            dataclasses.replace(options, measure=benchmark),
            custom_objects=import_objects(custom_objects),
            calibration=calibration,
            example=example and read_arrays(example),
            signatures=signature,
            on_step=step,
            on_batch=step.batch,
        )
        loaded, fast, report = rewrite_saved_model(source, settings)
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
    from . import tables

    if why is None:
        result_console.print(tables.summary(report, all=everything), soft_wrap=True)
    for line in reasons:
        result_console.print(rich.markup.escape(line), soft_wrap=True, highlight=False)


def _check_calibration(precision: str | None, calibration: pathlib.Path | None) -> None:
    if calibration is not None and not calibration.exists():
        raise UserError(f"--calibration {calibration}: no such file or folder")
    if calibration is not None and precision is None:
        raise UserError("--calibration is for --precision, which is not given")
    if precision == "int8" and calibration is None:
        raise UserError(
            "--precision int8 needs --calibration: a .npz file or a folder of .npy files"
        )


def _parse_size(text: str) -> tuple[int, int]:
    """ "H,W" or one number for both, as (H, W)."""
    sizes = parse_integers("--size", text, "H,W, such as 480,640")
    if len(sizes) > 2 or min(sizes) < 1:
        raise UserError(f"--size {text}: not H,W, both at least 1")
    return sizes[0], sizes[-1]


def benchmark(
    source: Source,
    batch: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Batch, where the signature leaves it open; 1 by default.",
            show_default=False,
        ),
    ] = None,
    size: Annotated[
        str | None,
        typer.Option(
            help="H,W of image inputs, where the signature leaves them open; 224,224 by default.",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Counted runs of each model.")] = 30,
    signature: Annotated[
        str | None,
        typer.Option("--signature", "-s", help="By default serving_default, or the only one."),
    ] = None,
    peers: Annotated[
        bool,
        typer.Option(
            "--peers",
            help="Also ONNX Runtime, OpenVINO and LiteRT, where they are installed.",
        ),
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="For --peers: threads of each library; all cores by default.",
            show_default=False,
        ),
    ] = None,
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
