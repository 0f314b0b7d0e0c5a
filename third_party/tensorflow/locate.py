"""Prints where the TensorFlow of this interpreter is, as JSON.

`headers` is its include folder, `library` libtensorflow_framework, `defines`
what every file that includes its headers has to be compiled with (Eigen's
alignment and the C++ ABI are part of the binary interface).
"""

import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf  # noqa: E402

library = next(f[3:] for f in tf.sysconfig.get_link_flags() if f.startswith("-l:"))
print(
    json.dumps(
        {
            "version": tf.__version__,
            "headers": tf.sysconfig.get_include(),
            "library": os.path.join(tf.sysconfig.get_lib(), library),
            "defines": [f[2:] for f in tf.sysconfig.get_compile_flags() if f.startswith("-D")],
        }
    )
)
