load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

exports_files(["version.txt"])

# Headers and the framework library, and nothing else of TensorFlow.
cc_library(
    name = "tensorflow",
    srcs = ["{library}"],
    hdrs = glob(
        [
            "include/**/*.def",
            "include/**/*.h",
            "include/**/*.inc",
            "include/Eigen/**",
            "include/unsupported/**",
        ],
        exclude_directories = 1,
    ),
    defines = {defines},
    includes = ["include"],
)

# All of it, as programs without Python use it.
cc_library(
    name = "tensorflow_c",
    srcs = ["{all_of_it}"],
    deps = [":tensorflow"],
)
