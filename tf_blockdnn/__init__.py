"""TensorFlow's convolutional networks, recurrent networks and transformers, faster on CPUs.

Importing it loads the custom ops, which is all that running an optimised SavedModel needs; the
names below load when they are asked for. Its sources are the sub-package `python`: in a checkout a
link to the folder of that name beside this one, in a wheel a folder in here.
"""

import typing as _typing

from .python import on_demand as _on_demand
from .python._launch import is_command_line as _is_command_line
from .python.version import VERSION as __version__

if _typing.TYPE_CHECKING:
    from . import callbacks, layers, ops, rewriter
    from .python.enable import ProgramReport, disable, enable, enabled, report
    from .python.info import info
    from .python.ops.post_ops import PostOps
    from .python.ops.tensor_desc import TensorDesc
    from .python.options import Options
    from .python.saved_model import optimize_saved_model
    from .python.targets import load, optimize
    from .python.threads import set_threads

# Module -> the names that it has here.
_NAMES = {
    **{f".{name}": name for name in ("callbacks", "layers", "ops", "rewriter")},
    ".python.enable": "ProgramReport disable enable enabled report",
    ".python.info": "info",
    ".python.ops.post_ops": "PostOps",
    ".python.ops.tensor_desc": "TensorDesc",
    ".python.options": "Options",
    ".python.saved_model": "optimize_saved_model",
    ".python.targets": "load optimize",
    ".python.threads": "set_threads",
}
__all__ = [*" ".join(_NAMES.values()).split(), "__version__"]
__getattr__ = _on_demand(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


# The command line answers --help and bad paths before it loads it.
if not _is_command_line():
    from .python.native import library as _library

    _library()  # First of all: with the wrong TensorFlow it says so.
    from .python import gradients as _gradients  # noqa: F401 (registers them)
