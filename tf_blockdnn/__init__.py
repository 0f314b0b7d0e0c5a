"""tf_blockdnn: convolution networks faster on CPU, in TensorFlow.

Importing it loads the custom ops, which is all that running an optimised
SavedModel needs. Its sources are the sub-package `python`: in a checkout a link
to the folder of that name beside this one, in a wheel a folder in here.
"""

from .python._launch import is_command_line as _is_command_line
from .python.version import VERSION as __version__

__all__ = [
    "PostOps",
    "TensorDesc",
    "__version__",
    "info",
    "layers",
    "load",
    "ops",
    "optimize",
    "optimize_saved_model",
    "rewriter",
    "set_threads",
]

# The command line answers --help and bad paths before it loads TensorFlow.
if not _is_command_line():
    from .python.native import library as _library

    _library()  # First of all: with the wrong TensorFlow it says so.

    from . import layers, ops, rewriter
    from .python import gradients as _gradients  # noqa: F401 (registers them)
    from .python.calls import load, optimize
    from .python.info import info
    from .python.ops.post_ops import PostOps
    from .python.ops.tensor_desc import TensorDesc
    from .python.saved_model import optimize_saved_model
    from .python.threads import set_threads
