"""Valid calls of convolutions, of random shapes; each takes a Draw."""

from call import BLOCK, Call
from references import ELTWISE, POSITIVE_ONLY, SMOOTH_BINARY, STEPS

_CHANNELS = (1, 3, 16, 17, 20, 32, 40, 64, 96)
_SAFE = sorted(set(ELTWISE) - POSITIVE_ONLY - STEPS - {"exp", "expm1", "pow", "square"})


def some_channels(d):
    return d.of(*_CHANNELS)


def some_plane(d, least=1, most=12):
    """Batch, height, width; sometimes there is nothing."""
    n = 0 if d.chance(0.1) else d.to(1, 3)
    h, w = (0 if d.chance(0.02) else d.to(least, most) for _ in range(2))
    return n, h, w


def some_window(d, kernel, size, dilation=1):
    """Padding and explicit paddings with which a window fits, as TensorFlow demands it."""
    reach = [(k - 1) * dilation + 1 for k in kernel]
    fits = all(r <= s for r, s in zip(reach, size, strict=True))
    padding = d.of("SAME", "EXPLICIT", "VALID") if fits else d.of("SAME", "EXPLICIT")
    explicit = []
    if padding == "EXPLICIT":
        for k, r, s in zip(kernel, reach, size, strict=True):
            before, after = d.to(0, k - 1), d.to(0, k - 1)
            explicit += [before, after]
            if before + after + s < r:
                return "SAME", []
    return padding, explicit


def some_chain(d, layout, channels, dst):
    """A chain and its operands; `dst` is (n, h, w), or the plain shape without the last axis."""
    entries, args = [], []
    if d.chance(0.25):
        offset = d.of(0, 3)
        entries.append(f"binary(add,channel,#0{f'@{offset}' if offset else ''})")
        args.append(d.array(offset + channels))
    for _ in range(d.of(0, 0, 1, 2, 3)):
        kind = d.of("eltwise", "eltwise", "binary", "sum")
        if kind == "eltwise":
            name = d.of(*_SAFE)
            numbers = ELTWISE[name][0]
            entries.append(f"eltwise({name}{',' if numbers else ''}{numbers})")
            continue
        whole = (
            d.activation(layout, dst[0], channels, *dst[1:]) if layout else d.array(*dst, channels)
        )
        if kind == "sum":
            entries.append(f"sum(#{len(args)},scale={d.of('1', '0.5', '-2')})")
            args.append(whole)
            continue
        shape = d.of("scalar", "channel", "tensor")
        offset = d.of(0, 0, 3) if shape != "tensor" else 0
        count = 1 if shape == "scalar" else channels
        name = d.of(*SMOOTH_BINARY)
        entries.append(f"binary({name},{shape},#{len(args)}{f'@{offset}' if offset else ''})")
        args.append(whole if shape == "tensor" else d.array(offset + count))
    return ";".join(entries), args


def some_dst_part(d, channels, n, h, w, allowed=True):
    """The attributes dst_part and num_into, and the input `into`."""
    if not allowed or d.chance(0.8):
        return {"dst_part": [], "num_into": 0}, []
    first = BLOCK * d.to(0, 2)
    total = first + channels + (BLOCK * d.to(0, 1) if channels % BLOCK == 0 else 0)
    return {"dst_part": [first, total], "num_into": 1}, [d.blocked(n, total, h, w)]


def some_src_part(d, channels, n, h, w):
    if d.chance(0.85):
        return [], d.blocked(n, channels, h, w)
    first = BLOCK * d.to(0, 2)
    total = first + channels + (BLOCK * d.to(0, 1) if channels % BLOCK == 0 else 0)
    return [first, total], d.blocked(n, total, h, w)


def window_results(padding, explicit, kernel, strides, size, dilation=1):
    """Pixels of the result along each axis."""
    result = []
    for i, (k, s, n) in enumerate(zip(kernel, strides, size, strict=True)):
        if padding == "SAME":
            result.append(-(-n // s))
            continue
        n += sum(explicit[2 * i : 2 * i + 2])
        result.append(max(0, (n - (k - 1) * dilation - 1) // s + 1))
    return result


def conv(d):
    ic, oc, groups = some_channels(d), some_channels(d), 1
    src_layout, dst_layout = d.of("nhwc", "nChw16c", "nChw16c"), d.of("nhwc", "nChw16c", "nChw16c")
    algorithm = d.of("auto", "auto", "direct", "winograd", "winograd", "paired", "auto_small")
    kernel = [d.of(1, 2, 3, 3, 5), d.of(1, 3, 3, 4, 7)]
    dilation, strides = d.of(1, 1, 2), [d.of(1, 1, 2, 3), d.of(1, 1, 2, 5)]
    if algorithm == "winograd":  # what it computes
        kernel = d.of([3, 3], [3, 3], [5, 5], [1, 3], [3, 1], [1, 7], [7, 1])
        dilation, strides = 1, [1, 1]
    elif d.chance(0.3):
        oc = groups = ic
    elif d.chance(0.2):
        ic, oc, groups = d.of((32, 32, 2), (32, 64, 2), (20, 30, 5), (10, 20, 10))
    if groups > 1:
        src_layout = dst_layout = "nChw16c"
    n, h, w = some_plane(d, most=d.of(12, 12, 28))
    padding, explicit = some_window(d, kernel, (h, w), dilation)
    out = window_results(padding, explicit, kernel, strides, (h, w), dilation)
    chain, args = some_chain(d, dst_layout, oc, (n, *out))
    part, into = some_dst_part(d, oc, n, *out, allowed=dst_layout != "nhwc" and groups == 1)
    src_part, src = [], d.activation(src_layout, n, ic, h, w)
    if src_layout != "nhwc":
        src_part, src = some_src_part(d, ic, n, h, w)
    offset = d.of(0, 0, 5)
    # What Winograd's tiles hold whole windows of.
    may_pool = kernel in ([3, 3], [5, 5]) and strides == [1, 1] and dilation == groups == 1
    may_pool = may_pool and algorithm in ("auto", "winograd")
    may_pool = may_pool and dst_layout != "nhwc" and not args and not into and min(out) > 1
    return Call(
        "BlockdnnConv",
        [[src], [d.array(offset + kernel[0] * kernel[1] * ic // groups * oc)], args, [], [], into],
        {
            "num_args": len(args),
            "src_layout": src_layout,
            "dst_layout": dst_layout,
            "channels": ic,
            "weights_shape": [*kernel, ic // groups, oc],
            "weights_offset": offset,
            "groups": groups,
            "strides": strides,
            "dilations": [dilation, dilation],
            "padding": padding,
            "explicit_paddings": explicit,
            "post_ops": chain,
            "pool": [2, 2] if may_pool and d.chance() else [],
            "algorithm": algorithm,
            "constant_weights": d.chance(),
            "src_part": src_part,
            "src_blocks": [],
            "scratchpad_mode": d.of("user", "library"),
            **part,
        },
    )


def conv_depthwise(d):
    ic, oc = some_channels(d), some_channels(d)
    n, h, w = some_plane(d)
    kernel = [d.of(1, 2, 3, 5), d.of(1, 3, 4)]
    dilation, strides = d.of(1, 1, 2), [d.of(1, 2), d.of(1, 2, 3)]
    padding, explicit = some_window(d, kernel, (h, w), dilation)
    out = window_results(padding, explicit, kernel, strides, (h, w), dilation)
    chain, args = some_chain(d, "nChw16c", oc, (n, h, w))
    deep_chain, deep_args = some_chain(d, "nChw16c", oc, (n, *out))
    src_part, src = some_src_part(d, ic, n, h, w)
    weights = [[d.array(1, 1, ic, oc)], [d.array(*kernel, 1, oc)]]
    return Call(
        "BlockdnnConvDepthwise",
        [[src], *weights, args, deep_args],
        {
            "num_args": len(args),
            "num_depthwise_args": len(deep_args),
            "channels": ic,
            "weights_shape": [1, 1, ic, oc],
            "depthwise_weights_shape": [*kernel, 1, oc],
            "strides": strides,
            "dilations": [dilation, dilation],
            "padding": padding,
            "explicit_paddings": explicit,
            "post_ops": chain,
            "depthwise_post_ops": deep_chain,
            "algorithm": d.of("auto", "direct", "paired"),
            "constant_weights": d.chance(),
            "src_part": src_part,
            "src_blocks": [],
            "scratchpad_mode": d.of("user", "library"),
        },
    )


def conv_transpose(d):
    ic, oc = some_channels(d), some_channels(d)
    n, h, w = some_plane(d, most=7)
    kernel, strides = [d.to(1, 5), d.to(1, 4)], [d.to(1, 4), d.to(1, 6)]
    out, crops = [], []
    for size, k, s in zip((h, w), kernel, strides, strict=True):
        whole = (size - 1) * s + k
        most = max(0, min(d.of(k - 1, k - 1, k + 1), whole // 2))
        before, after = d.to(0, most), -1 if d.chance(0.1) else d.to(0, most)
        crops += [before, after]
        out.append(whole - before - after if size else 0)
    layout = "nhwc" if oc < BLOCK and d.chance() else "nChw16c"
    chain, args = some_chain(d, layout, oc, (n, *out))
    part, into = some_dst_part(d, oc, n, *out, allowed=layout != "nhwc")
    src_part, src = some_src_part(d, ic, n, h, w)
    return Call(
        "BlockdnnConvTranspose",
        [[src], [d.array(*kernel, oc, ic)], args, into],
        {
            "num_args": len(args),
            "dst_layout": layout,
            "channels": ic,
            "weights_shape": [*kernel, oc, ic],
            "strides": strides,
            "crops": crops,
            "post_ops": chain,
            "algorithm": d.of("auto", "auto", "direct", "winograd", "paired"),
            "constant_weights": d.chance(),
            "src_part": src_part,
            "scratchpad_mode": d.of("user", "library"),
            **part,
        },
    )


def conv_volume(d):
    ic, oc = some_channels(d), some_channels(d)
    n, h, w = some_plane(d, most=7)
    depth, kernel = d.to(1, 5), [d.to(1, 3), d.to(1, 3), d.to(1, 4)]
    strides = d.of([1, 1, 1], [d.to(1, 3), d.to(1, 3), d.to(1, 4)])
    fits = all(k <= s for k, s in zip(kernel, (depth, h, w), strict=True))
    padding = d.of("SAME", "VALID") if fits else "SAME"
    out = window_results(padding, [], kernel, strides, (depth, h, w))
    src_layout, dst_layout = d.of("nhwc", "nChw16c"), d.of("nhwc", "nChw16c")
    chain, args = some_chain(d, dst_layout, oc, (n * out[0], *out[1:]))
    volumes = d.of([], [d.array(n, *d.of([], [d.to(0, 3)]))])
    return Call(
        "BlockdnnConvVolume",
        [
            [d.activation(src_layout, n * depth, ic, h, w)],
            [d.array(*kernel, ic, oc)],
            args,
            volumes,
        ],
        {
            "num_args": len(args),
            "num_volumes": len(volumes),
            "src_layout": src_layout,
            "dst_layout": dst_layout,
            "channels": ic,
            "depth": 0 if volumes else depth,
            "weights_shape": [*kernel, ic, oc],
            "strides": strides,
            "padding": padding,
            "post_ops": chain,
            "algorithm": d.of("auto", "auto", "direct", "winograd", "paired"),
            "constant_weights": d.chance(),
            "scratchpad_mode": d.of("user", "library"),
        },
    )


def splits_blocks(a):
    """Whether groups are neither depthwise nor whole blocks: TensorFlow differentiates these."""
    sizes = a["weights_shape"][2], a["weights_shape"][3] // a["groups"]
    return a["groups"] > 1 and sizes != (1, 1) and any(size % BLOCK for size in sizes)


def backward_weights(d):
    call = conv(d)
    while any(call.attrs[name] for name in ("dst_part", "src_part")) or splits_blocks(call.attrs):
        call = conv(d)
    a = call.attrs
    src = call.inputs[0][0].shape
    n, h, w = src[:3] if a["src_layout"] == "nhwc" else (src[0], *src[2:4])
    kernel, oc = a["weights_shape"][:2], a["weights_shape"][3]
    geometry = (a["padding"], a["explicit_paddings"], kernel, a["strides"], (h, w))
    ddst = d.activation(a["dst_layout"], n, oc, *window_results(*geometry, a["dilations"][0]))
    kept = ("src_layout", "dst_layout", "channels", "weights_shape", "groups", "strides")
    kept += ("dilations", "padding", "explicit_paddings")
    attrs = {name: a[name] for name in kept}
    return Call("BlockdnnConvBackwardWeights", [call.inputs[0], [ddst]], attrs)
