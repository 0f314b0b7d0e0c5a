load("@rules_cc//cc:defs.bzl", "cc_library")

cc_library(
    name = "onednn",
    hdrs = glob(["include/**"]),
    includes = ["include"],
    linkopts = [
        "-L{root}/lib",
        "-Wl,-rpath,{root}/lib",
        "-l:libdnnl.so",
        "-lgomp",
    ],
    visibility = ["//visibility:public"],
)
