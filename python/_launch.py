"""How this process was started, and TensorFlow loaded without its notices.

`import tf_blockdnn` loads TensorFlow and the custom ops at once. The command line instead answers
--help and bad paths first, and loads them when it has work to do, with the notices hidden that
TensorFlow prints while it starts (some ignore TF_CPP_MIN_LOG_LEVEL).
"""

import contextlib
import logging
import os
import pathlib
import shutil
import sys
import tempfile
import warnings


def is_command_line() -> bool:
    """Whether this process is `tf-blockdnn …` or `python -m tf_blockdnn …`."""
    path = pathlib.Path(sys.argv[0])
    if path.name == "-m":  # What sys.argv holds while `python -m` imports the package.
        return "tf_blockdnn" in sys.orig_argv[: sys.orig_argv.index("-m") + 2]
    return path.name == "tf-blockdnn" or path.parts[-2:] == ("tf_blockdnn", "__main__.py")


def command() -> str:
    """What to type to start the command line again, from this folder."""
    name = pathlib.Path(sys.argv[0])
    if name.name != "tf-blockdnn":
        return "python -m tf_blockdnn"
    return "tf-blockdnn" if shutil.which("tf-blockdnn") else os.path.relpath(name)


@contextlib.contextmanager
def hidden_stderr():
    """Hides what is written to file descriptor 2, C++ included; shows it after all on an error."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as hidden:
        shown = os.dup(2)
        os.dup2(hidden.fileno(), 2)
        try:
            yield
        except ImportError:
            raise  # Its message says it all.
        except BaseException:
            hidden.seek(0)
            os.write(shown, hidden.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(shown, 2)
            os.close(shown)


def load_tensorflow(*, verbose: bool, inter_op_threads: int = 0) -> None:
    """Imports TensorFlow and loads the custom ops; unless `verbose`, without a word.

    Args:
      verbose: let TensorFlow print its notices.
      inter_op_threads: TensorFlow's inter-op setting; 0 leaves the choice to it.

    Raises:
      ImportError: TensorFlow or the native library is missing, or they do not match.
    """
    if verbose:
        _load(inter_op_threads)
        return
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.simplefilter("ignore")
    with hidden_stderr():
        tf = _load(inter_op_threads)
        tf.config.list_logical_devices()  # Its search for GPUs is what prints.
    tf.get_logger().setLevel(logging.ERROR)
    logging.getLogger("absl").setLevel(logging.ERROR)


def _load(inter_op_threads: int):
    from .native import import_tensorflow, library

    tf = import_tensorflow()
    if inter_op_threads:
        tf.config.threading.set_inter_op_parallelism_threads(inter_op_threads)
    library()
    return tf
