"""The command line, `tf-blockdnn`.

Results go to stdout (tables, or one JSON object with --json), progress and errors to stderr. Exit 0
when all went well, 2 with one line when the user can put it right.
"""

from __future__ import annotations

import signal
import sys

import typer

from ..errors import UserError, VerificationError
from ..version import VERSION
from . import models, tools
from .shared import flag

app = typer.Typer(
    name="tf-blockdnn",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Makes TensorFlow models faster on CPU, with the same inputs and outputs.",
)
# command -> the example that ends the text of --help.
COMMANDS = {
    models.optimize: "tf-blockdnn optimize resnet50.keras resnet50_fast --verify 1e-4",
    models.inspect: "tf-blockdnn inspect my_model --html graph.html",
    models.benchmark: "tf-blockdnn benchmark my_model --batch 8 --peers",
    tools.layout: "tf-blockdnn layout nChw16c --dims 1,20,4,4",
    tools.info: "tf-blockdnn info --json",
    tools.demo: "tf-blockdnn demo my_pictures",
    tools.run: "tf-blockdnn run --report report.json my_script.py",
}
# What follows the program of `run` is the program's.
AS_IT_IS = {"allow_interspersed_args": False, "ignore_unknown_options": True}
for command, example in COMMANDS.items():
    settings = AS_IT_IS if command is tools.run else {}
    app.command(epilog=f"Example: {example}", context_settings=settings)(command)


def main() -> None:
    """Runs the command line and turns what the user can put right into one line and exit 2."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        arguments = sys.argv[1:] or ["--help"]
        sys.exit(app(arguments, prog_name="tf-blockdnn", standalone_mode=False) or 0)
    except (UserError, ImportError, VerificationError) as error:
        line = str(error)
    except Exception as error:
        if not hasattr(error, "format_message"):  # Click's, of which typer may have another copy.
            raise
        command = getattr(error.ctx, "command_path", "tf-blockdnn")
        line = f"{error.format_message().rstrip('.')}; see {command} --help"
    print(f"tf-blockdnn: error: {' '.join(line.split())}", file=sys.stderr)
    sys.exit(2)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tf-blockdnn {VERSION}")
        raise typer.Exit()


@app.callback()
def _options(
    version: flag(
        bool, "Show the version.", "--version", callback=_show_version, is_eager=True
    ) = False,
):
    del version  # Its callback has done the work.
