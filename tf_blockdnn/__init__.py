"""tf_blockdnn: convolution networks faster on CPU, in TensorFlow.

Importing it loads the custom ops, which is all that running an optimised
SavedModel needs.
"""

from pathlib import Path as _Path

# In a checkout the sources live beside this folder, in `python/`; a wheel
# installs them as the sub-package of that name.
_checkout = _Path(__file__).resolve().parent.parent
if (_checkout / "python" / "_native.py").exists():
    __path__.append(str(_checkout))

from .python._launch import is_command_line as _is_command_line  # noqa: E402
from .python.version import VERSION as __version__  # noqa: E402

__all__ = [
    "PostOps",
    "TensorDesc",
    "__version__",
    "info",
    "ops",
    "optimize",
    "optimize_saved_model",
]

# The command line answers --help and bad paths before it loads TensorFlow.
if not _is_command_line():
    from .python._native import library as _library

    _library()  # First of all: with the wrong TensorFlow it says so.

    from . import ops
    from .python.info import info
    from .python.ops.post_ops import PostOps
    from .python.ops.tensor_desc import TensorDesc
    from .python.saved_model import optimize_saved_model
    from .rewriter import optimize
