"""How a folder of cc/ and of tests/cc/ is built, by the names of its files.

    x_kernel.cc   compiled once per instruction set; see bd_isa_library
    x_ref.cc      reference implementation: in :<folder>_ref, for tests only
    x.cc, x.h     in the folder's library
    x_test.cc     a GoogleTest binary x_test (bd_cc_tests)
"""

load("@rules_cc//cc:defs.bzl", "cc_library", "cc_test")

# Flags of each instruction set. A later one is a superset of the earlier, as
# dispatch assumes. GCC 12 knows no -march=znver4, hence features.
_AVX2 = [
    "-mavx2",
    "-mfma",
    "-mf16c",
    "-mbmi2",
]

ISA_COPTS = {
    "generic": [],
    "avx2": _AVX2,
    "avx512": _AVX2 + [
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mprefer-vector-width=512",
    ],
}

_COPTS = [
    "-Wall",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
]

# One optimisation level whatever the compilation mode: at -O0 every inline
# function is a symbol, and the linker may pick an AVX-512 copy for everyone.
_KERNEL_COPTS = _COPTS + [
    "-O3",
    "-ffp-contract=off",
    "-fno-exceptions",
    # Against Bazel's defaults, which cost a register and a check a call.
    "-fomit-frame-pointer",
    "-fno-stack-protector",
]

# Marks the archives that the symbols test looks into.
ISA_TAG = "bd_isa"

def bd_isa_library(name, srcs, hdrs = [], deps = [], testonly = None, visibility = None):
    """Compiles each source once per instruction set and links all of them.

    The flags stay with the objects: dependents see headers only. Each object
    may define one global symbol, its table getter bd::<isa>::Get...();
    //tests/cc/symbols checks that.

    Args:
      name: the library with every object; name_<isa> holds those of one set.
      srcs: kernel files, written in namespace bd::BD_ISA.
      hdrs: headers of the tables.
      deps: libraries whose headers the kernels include.
      testonly: as everywhere.
      visibility: of `name`; the parts are private.
    """
    cc_library(
        name = name + "_hdrs",
        testonly = testonly,
        hdrs = hdrs,
        visibility = ["//visibility:private"],
        deps = deps,
    )
    for isa, flags in ISA_COPTS.items():
        cc_library(
            name = name + "_" + isa,
            testonly = testonly,
            srcs = srcs,
            copts = _KERNEL_COPTS + flags + ["-DBD_ISA=" + isa],
            linkstatic = True,
            tags = [ISA_TAG],
            visibility = ["//visibility:private"],
            deps = [":{}_hdrs".format(name)],
        )
    cc_library(
        name = name,
        testonly = testonly,
        hdrs = hdrs,
        visibility = visibility,
        deps = deps + [":{}_{}".format(name, isa) for isa in ISA_COPTS],
    )

def bd_library(
        name,
        deps = [],
        ref_deps = [],
        linkopts = [],
        alwayslink = False,
        visibility = None):
    """The library of a folder of cc/: its files, sorted by their names.

    Args:
      name: the folder's name.
      deps: libraries of lower floors.
      ref_deps: references that the folder's own reference uses.
      linkopts: as in cc_library.
      alwayslink: True where static initialisers register something.
      visibility: a package group of //cc, so that floors hold.
    """
    hdrs = native.glob(["*.h"], allow_empty = True)
    kernels = native.glob(["*_kernel.cc"], allow_empty = True)
    refs = native.glob(["*_ref.cc"], allow_empty = True)
    plain_deps = deps
    if kernels:
        bd_isa_library(
            name = name + "_kernels",
            srcs = kernels,
            hdrs = hdrs,
            deps = deps,
            visibility = ["//visibility:private"],
        )
        plain_deps = deps + [":{}_kernels".format(name)]
    cc_library(
        name = name,
        srcs = native.glob(["*.cc"], exclude = kernels + refs, allow_empty = True),
        hdrs = hdrs,
        copts = _COPTS,
        linkopts = linkopts,
        linkstatic = True,
        visibility = visibility,
        deps = plain_deps,
        alwayslink = alwayslink,
    )
    if refs:
        cc_library(
            name = name + "_ref",
            testonly = True,
            srcs = refs,
            copts = _COPTS,
            linkstatic = True,
            visibility = [
                "//cc/core:__subpackages__",
                "//tests/cc:__subpackages__",
            ],
            deps = [":" + name] + ref_deps,
        )

def bd_cc_tests(deps = [], size = "medium"):
    """A GoogleTest binary for each *_test.cc of a folder of tests/cc/.

    Args:
      deps: what the tests of this folder use, //tests/cc:support apart.
      size: Bazel's time limit for each: small 1, medium 5, large 15 minutes.
    """
    kernels = native.glob(["*_kernel.cc"], allow_empty = True)
    hdrs = native.glob(["*.h"], allow_empty = True)
    test_deps = deps + [
        "//tests/cc:support",
        "@com_google_googletest//:gtest_main",
    ]
    if kernels:
        bd_isa_library(
            name = "test_kernels",
            testonly = True,
            srcs = kernels,
            hdrs = hdrs,
            deps = deps,
        )
        test_deps = test_deps + [":test_kernels"]
    for src in native.glob(["*_test.cc"], allow_empty = True):
        cc_test(
            name = src[:-len(".cc")],
            size = size,
            srcs = [src] + hdrs,
            copts = _COPTS,
            linkstatic = True,
            deps = test_deps,
        )

def _isa_archives_aspect_impl(target, ctx):
    below = [
        dep[_IsaArchivesInfo].archives
        for dep in getattr(ctx.rule.attr, "deps", [])
        if _IsaArchivesInfo in dep
    ]
    here = target.files.to_list() if ISA_TAG in ctx.rule.attr.tags else []
    return [_IsaArchivesInfo(archives = depset(
        [f for f in here if f.extension == "a"],
        transitive = below,
    ))]

_IsaArchivesInfo = provider(
    doc = "What the aspect collects on its way up.",
    fields = {"archives": "depset of the per-ISA archives of a target and below it"},
)

_isa_archives_aspect = aspect(
    implementation = _isa_archives_aspect_impl,
    attr_aspects = ["deps"],
)

def _isa_archives_impl(ctx):
    files = depset(transitive = [dep[_IsaArchivesInfo].archives for dep in ctx.attr.deps])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(transitive_files = files))]

isa_archives = rule(
    implementation = _isa_archives_impl,
    doc = "The per-ISA archives among `deps` and all they depend on.",
    attrs = {"deps": attr.label_list(aspects = [_isa_archives_aspect])},
)

def _with_tsan(settings, _attr):
    flags = ["-fsanitize=thread", "-g"]
    return {option: settings[option] + flags for option in settings}

_OPTIONS = ["//command_line_option:copt", "//command_line_option:linkopt"]
_tsan_transition = transition(
    implementation = _with_tsan,
    inputs = _OPTIONS,
    outputs = _OPTIONS,
)

def _tsan_test_impl(ctx):
    script = ctx.actions.declare_file(ctx.label.name)
    test = ctx.attr.test[0][DefaultInfo]

    # The runtime of GCC 12 stops where the kernel randomises more than 28 bits
    # of an address, unless that is off for the process.
    ctx.actions.write(script, is_executable = True, content = """#!/bin/bash
setarch -R true 2>/dev/null && exec setarch -R {test} "$@"
exec {test} "$@"
""".format(test = ctx.executable.test.short_path))
    return [DefaultInfo(
        executable = script,
        runfiles = ctx.runfiles([ctx.executable.test]).merge(test.default_runfiles),
    )]

bd_tsan_test = rule(
    implementation = _tsan_test_impl,
    doc = "Runs the cc_test `test` with ThreadSanitizer in it and in all it uses. " +
          "The tag \"tsan\" makes it part of `make test-tsan`.",
    attrs = {
        "test": attr.label(mandatory = True, executable = True, cfg = _tsan_transition),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    test = True,
)
