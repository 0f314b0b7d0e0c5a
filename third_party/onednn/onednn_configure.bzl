"""oneDNN for the layer benchmark: an installation with include/ and lib/ under ONEDNN_ROOT."""

def _onednn_configure_impl(rctx):
    root = rctx.os.environ.get("ONEDNN_ROOT")
    if not root or not rctx.path(root + "/include/oneapi/dnnl/dnnl.hpp").exists:
        fail("No oneDNN: set ONEDNN_ROOT to where it is installed, or run the benchmark by `make bench`.")
    rctx.symlink(root + "/include/oneapi", "include/oneapi")
    rctx.template("BUILD", rctx.attr.build_template, {"{root}": root})

onednn_configure = repository_rule(
    implementation = _onednn_configure_impl,
    attrs = {"build_template": attr.label(default = "//third_party/onednn:BUILD.tpl")},
    environ = ["ONEDNN_ROOT"],
)
