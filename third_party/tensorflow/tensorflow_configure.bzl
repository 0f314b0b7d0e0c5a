"""Finds the installed TensorFlow: its headers and its framework library."""

# Of the include folder, what kernels and ops reach. `external` (10,000 files
# of other projects) stays out.
_HEADER_FOLDERS = [
    "Eigen",
    "absl",
    "google",
    "ml_dtypes",
    "tensorflow",
    "tsl",
    "unsupported",
    "xla",
]

def _tensorflow_configure_impl(rctx):
    python = rctx.os.environ.get("PYTHON_BIN_PATH")
    if not python:
        python = str(rctx.path(rctx.attr.workspace_marker).dirname) + "/.venv/bin/python"
    located = rctx.execute([python, rctx.path(rctx.attr.locate)])
    if located.return_code != 0:
        fail("{} cannot import TensorFlow. Set PYTHON_BIN_PATH to the Python that has it.\n{}".format(
            python,
            located.stderr[-2000:],
        ))
    tensorflow = json.decode(located.stdout.strip().split("\n")[-1])
    library = tensorflow["library"].split("/")[-1]

    all_of_it = library.replace("_framework", "_cc")

    rctx.symlink(tensorflow["library"], library)
    rctx.symlink(tensorflow["library"].replace(library, all_of_it), all_of_it)
    for folder in _HEADER_FOLDERS:
        rctx.symlink(tensorflow["headers"] + "/" + folder, "include/" + folder)
    rctx.file("version.txt", tensorflow["version"] + "\n")
    rctx.template("BUILD", rctx.attr.build_template, {
        "{defines}": repr(tensorflow["defines"]),
        "{library}": library,
        "{all_of_it}": all_of_it,
    })

tensorflow_configure = repository_rule(
    implementation = _tensorflow_configure_impl,
    attrs = {
        "build_template": attr.label(default = "//third_party/tensorflow:BUILD.tpl"),
        "locate": attr.label(default = "//third_party/tensorflow:locate.py"),
        "workspace_marker": attr.label(default = "//:WORKSPACE"),
    },
    # TENSORFLOW_STAMP is not read: build_tools/bazel sets it, so that another
    # TensorFlow in the same environment is noticed.
    environ = [
        "PYTHON_BIN_PATH",
        "PYTHONPATH",
        "TENSORFLOW_STAMP",
    ],
)
