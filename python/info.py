"""What is installed and what it runs on."""

import os

import tensorflow as tf

from .calls import eager_path_unavailable
from .native import LIBRARY_PATH, built_for, c_library
from .version import VERSION


def info() -> dict:
    """Returns versions and facts about the machine, as a dict that is ready for JSON.

    Returns:
      version: of tf_blockdnn.
      tensorflow: the running version.
      built_for: the TensorFlow version the library was compiled against.
      library: path of the loaded library.
      isa: "generic", "avx2" or "avx512": what kernels use here, after the cap
        TF_BLOCKDNN_MAX_ISA.
      threads: threads an op uses: TensorFlow's intra-op setting, or all the
        cores this process may run on.
      eager_path: "available", or why calls on eager tensors take TensorFlow's dispatch.

    Example:
      >>> bd.info()["isa"] in ("generic", "avx2", "avx512")
      True
    """
    threads = tf.config.threading.get_intra_op_parallelism_threads()
    return {
        "version": VERSION,
        "tensorflow": tf.__version__,
        "built_for": built_for(),
        "library": os.fspath(LIBRARY_PATH),
        "isa": c_library().BlockdnnActiveIsa().decode(),
        "eager_path": eager_path_unavailable() or "available",
        "threads": threads or len(os.sched_getaffinity(0)),
    }
