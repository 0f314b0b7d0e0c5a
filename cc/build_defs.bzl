"""How a folder of cc/ and of tests/cc/ is built, by the names of its files.

    x_kernel.cc   compiled once per instruction set, and once more for tests with an emulation of
                  each set above AVX2; see bd_isa_library
    x.cc, x.h     in the folder's library
    x_test.cc     a GoogleTest binary x_test (bd_cc_tests)
"""

load("@rules_cc//cc:defs.bzl", "cc_library", "cc_test")

# Flags of each instruction set. GCC 12 knows no -march=znver4, hence features.
_AVX2 = [
    "-mavx2",
    "-mfma",
    "-mf16c",
    "-mbmi2",
]

_AVX512 = _AVX2 + [
    "-mavx512f",
    "-mavx512bw",
    "-mavx512dq",
    "-mavx512vl",
    "-mprefer-vector-width=512",
]

# What a kernel asks the preprocessor for (cc/simd/vec.h), whether the set is there or emulated.
_VNNI_DEFINES = ["-DBD_VNNI"]
_AVX512_DEFINES = ["-DBD_AVX512"]
_AVX512_VNNI_DEFINES = _AVX512_DEFINES + _VNNI_DEFINES
_BF16_DEFINES = _AVX512_VNNI_DEFINES + ["-DBD_AVX512_BF16"]
_AMX_DEFINES = _BF16_DEFINES + ["-DBD_AMX"]

# The names and their order are those of BD_ISAS in cc/base/cpu/isa.h.
ISA_COPTS = {
    "generic": [],
    "avx2": _AVX2,
    "avx2_vnni": _AVX2 + ["-mavxvnni"] + _VNNI_DEFINES,
    "avx512": _AVX512 + _AVX512_DEFINES,
    "avx512_vnni": _AVX512 + ["-mavx512vnni"] + _AVX512_VNNI_DEFINES,
    "avx512_bf16": _AVX512 + [
        "-mavx512vnni",
        "-mavx512bf16",
    ] + _BF16_DEFINES,
    "avx512_amx": _AVX512 + [
        "-mavx512vnni",
        "-mavx512bf16",
        "-mamx-tile",
        "-mamx-int8",
        "-mamx-bf16",
    ] + _AMX_DEFINES,
}

# On AVX2: 512-bit sets as pairs of vectors, products of bytes as those of words, AMX's tiles as
# arrays.
_IN_PAIRS = _AVX2 + ["-DBD_EMULATED"]
EMULATED_COPTS = {
    "avx2_vnni": _AVX2 + _VNNI_DEFINES,
    "avx512": _IN_PAIRS + _AVX512_DEFINES,
    "avx512_vnni": _IN_PAIRS + _AVX512_VNNI_DEFINES,
    "avx512_bf16": _IN_PAIRS + _BF16_DEFINES,
    "avx512_amx": _IN_PAIRS + _AMX_DEFINES,
}

# The sets a kernel file is compiled for if nobody says otherwise, as in BD_KERNEL_TABLE.
DEFAULT_ISAS = [
    "generic",
    "avx2",
    "avx512",
]

_VISIBILITY = [
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
]
_COPTS = [
    "-Wall",
    "-Wextra",
    "-Wshadow",
] + _VISIBILITY

# GoogleTest's macros shadow names. Most tests take longer to compile than to run: a fifth less at
# -O1.
_TEST_COPTS = [
    "-Wall",
    "-O1",
] + _VISIBILITY

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

# Later flags win. Emulated kernels are run by tests only, and take longer to compile than to run.
# Threads are looked at in the kernels of real sets; with -fsanitize=thread these would take minutes.
_EMULATED_COPTS = _KERNEL_COPTS + [
    "-O1",
    "-fno-sanitize=thread",
]

# Marks the archives that the symbols test looks into.
ISA_TAG = "bd_isa"

_HERE_AND_TESTS = [
    "//cc:__subpackages__",
    "//tests/cc:__subpackages__",
]

def _emulated(label):
    """The library of the emulated kernels of what `label` names, or None where it has none."""
    if not label.startswith("//cc/") or ":" in label:
        return None
    return "{}:{}_emulated".format(label, label.split("/")[-1])

def _emulated_deps(deps):
    return [_emulated(dep) for dep in deps if _emulated(dep) != None]

def bd_isa_library(
        name,
        srcs,
        hdrs = [],
        deps = [],
        isas = {},
        testonly = None,
        visibility = None):
    """Compiles each source once per instruction set and links all of them.

    The flags stay with the objects: dependents see headers only. Each object
    may define one global symbol, its table bd::<isa>::k...;
    //tests/cc/symbols checks that.

    `name`_emulated holds the sources once more for each set above AVX2, in namespace
    bd::<isa>_emulated and on AVX2. Where it is linked, tables run it on machines that lack the
    set (cc/base/cpu/kernel_table.h); tests link it, the library that users load does not.

    Args:
      name: the library with every object; name_<isa> holds those of one set.
      srcs: kernel files, written in namespace bd::BD_ISA.
      hdrs: headers of the tables.
      deps: libraries whose headers the kernels include.
      isas: the sets of those sources that are for others than DEFAULT_ISAS; their tables are
        declared by BD_KERNEL_TABLE_OF with the same list.
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
    parts = []
    emulated = []
    for isa, flags in ISA_COPTS.items():
        of_isa = [src for src in srcs if isa in isas.get(src, DEFAULT_ISAS)]
        if not of_isa:
            continue
        parts.append("{}_{}".format(name, isa))
        cc_library(
            name = parts[-1],
            testonly = testonly,
            srcs = of_isa,
            copts = _KERNEL_COPTS + flags + ["-DBD_ISA=" + isa] + select({
                # The register tiles of one set took 42 s to compile with -O3 -g, 20 with -O3, 15
                # with -O1 -g1.
                "//cc:with_tsan": ["-O1"],
                "//conditions:default": [],
            }),
            linkstatic = True,
            tags = [ISA_TAG],
            visibility = ["//visibility:private"],
            deps = [":{}_hdrs".format(name)],
        )
        if isa not in EMULATED_COPTS:
            continue
        emulated.append("{}_{}_emulated".format(name, isa))
        cc_library(
            name = emulated[-1],
            testonly = True,
            srcs = of_isa,
            copts = _EMULATED_COPTS + EMULATED_COPTS[isa] + [
                "-DBD_ISA={}_emulated".format(isa),
            ] + select({
                # A sanitizer looks at the kernels of the sets that the machine has.
                "//cc:with_asan": ["-fno-sanitize=all"],
                "//conditions:default": [],
            }),
            linkstatic = True,
            visibility = ["//visibility:private"],
            deps = [":{}_hdrs".format(name)],
            # Tables know them by weak references only, which draw nothing from an archive.
            alwayslink = True,
        )
    cc_library(
        name = name,
        testonly = testonly,
        hdrs = hdrs,
        visibility = visibility,
        deps = deps + [":" + part for part in parts],
    )
    cc_library(
        name = name + "_emulated",
        testonly = True,
        visibility = ["//visibility:private"],
        deps = [":" + part for part in emulated],
    )

def bd_library(
        name,
        deps = [],
        kernel_isas = {},
        linkopts = [],
        alwayslink = False,
        one_unit = False,
        visibility = None):
    """The library of a folder of cc/: its files, sorted by their names.

    Args:
      name: the folder's name.
      deps: libraries of lower floors.
      kernel_isas: as `isas` of bd_isa_library.
      linkopts: as in cc_library.
      alwayslink: True where static initialisers register something.
      one_unit: True where all sources are compiled as one: TensorFlow's headers take 12 of the 16
        seconds that one of them takes.
      visibility: a package group of //cc, so that floors hold.
    """
    hdrs = native.glob(["*.h"], allow_empty = True)
    kernels = native.glob(["*_kernel.cc"], allow_empty = True)
    plain_deps = deps
    emulated = _emulated_deps(deps)
    if kernels:
        bd_isa_library(
            name = name + "_kernels",
            srcs = kernels,
            hdrs = hdrs,
            deps = deps,
            isas = kernel_isas,
            visibility = ["//visibility:private"],
        )
        plain_deps = deps + [":{}_kernels".format(name)]
        emulated.append(":{}_kernels_emulated".format(name))

    # Its own emulated kernels and those of all below it, for tests.
    cc_library(
        name = name + "_emulated",
        testonly = True,
        visibility = _HERE_AND_TESTS,
        deps = emulated,
    )
    srcs = native.glob(["*.cc"], exclude = kernels, allow_empty = True)
    textual_hdrs = []
    if one_unit:
        native.genrule(
            name = name + "_unit",
            srcs = srcs,
            outs = [name + "_unit.cc"],
            cmd = "for src in $(SRCS); do echo \"#include \\\"$$src\\\"\"; done > $@",
        )
        textual_hdrs = srcs
        srcs = [name + "_unit.cc"]
    cc_library(
        name = name,
        srcs = srcs,
        hdrs = hdrs,
        copts = _COPTS,
        linkopts = linkopts,
        linkstatic = True,
        textual_hdrs = textual_hdrs,
        visibility = visibility,
        deps = plain_deps,
        alwayslink = alwayslink,
    )

# buildifier: disable=unnamed-macro
def bd_cc_tests(
        deps = [],
        kernel_isas = {},
        size = "medium",
        tags = [],
        tsan = [],
        tsan_kernels = []):
    """A GoogleTest binary for each *_test.cc of a folder of tests/cc/.

    The emulated kernels of `deps` are linked in, so that tests run every set of
    tests/cc/isas.h on any machine with AVX2.

    Args:
      deps: what the tests of this folder use, //tests/cc:support apart.
      kernel_isas: as `isas` of bd_isa_library, for kernels of the tests themselves.
      size: Bazel's time limit for each: small 1, medium 5, large 15 minutes.
      tags: of each; "cpu:2" keeps tests that spin a pool of threads from starving each other.
      tsan: those of the tests, x_test, that also run under ThreadSanitizer, as x_tsan_test.
      tsan_kernels: those that do so with kernels in them: minutes of compiling, which `make test`
        leaves to `make test-tsan`.
    """
    kernels = native.glob(["*_kernel.cc"], allow_empty = True)
    hdrs = native.glob(["*.h"], allow_empty = True)
    test_deps = deps + _emulated_deps(deps) + [
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
            isas = kernel_isas,
        )
        test_deps = test_deps + [
            ":test_kernels",
            ":test_kernels_emulated",
        ]
    for src in native.glob(["*_test.cc"], allow_empty = True):
        cc_test(
            name = src[:-len(".cc")],
            size = size,
            srcs = [src] + hdrs,
            copts = _TEST_COPTS,
            tags = tags,
            linkstatic = True,
            deps = test_deps,
        )
    for test in tsan + tsan_kernels:
        _tsan_test(
            name = test[:-len("test")] + "tsan_test",
            size = "small",
            # What `make test-tsan` runs, and what `make test` does not.
            tags = tags + ["tsan"] + (["tsan_kernels"] if test in tsan_kernels else []),
            test = ":" + test,
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
    # Abseil lays out types in another way where it sees the sanitizer, which TensorFlow has
    # not. Tests ask for BD_TSAN.
    flags = ["-fsanitize=thread", "-g1", "-U__SANITIZE_THREAD__", "-DBD_TSAN"]
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

_tsan_test = rule(
    implementation = _tsan_test_impl,
    doc = "Runs the cc_test `test` with ThreadSanitizer in it and in all it uses.",
    attrs = {
        "test": attr.label(mandatory = True, executable = True, cfg = _tsan_transition),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    test = True,
)
