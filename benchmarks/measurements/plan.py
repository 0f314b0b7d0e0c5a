"""What is measured, in this order: what the README shows comes first."""

from __future__ import annotations

import dataclasses

CNNS = ("resnet50", "vgg16", "inceptionv3", "densenet121")
MOBILE = ("mobilenetv2", "efficientnetb0")
TRANSFORMERS = ("minilm", "deittiny", "segformer", "swin", "bert", "vit", "whisper")
RECURRENT = ("lstm/1/100/256/256", "gru/1/100/256/256", "lstm/16/50/512/1024", "gru/16/50/512/1024")
SHOWN = {*CNNS, *MOBILE, *RECURRENT, *TRANSFORMERS}  # by the README and its chart

_TENSORFLOW = ("tensorflow", "tensorflow-plain")
_PEERS = ("tf_blockdnn", *_TENSORFLOW, "onnxruntime", "openvino", "litert", "ncnn")
_RECURRENT_PEERS = ("tf_blockdnn", *_TENSORFLOW, "onnxruntime", "openvino", "torch")
_WAYS = tuple(
    f"tf_blockdnn-{way}"
    for way in ("keyword", "numpy", "bd.load", "tf.saved_model.load", "tf.function")
)
_TRAINING_PEERS = ("layers", "onednn", "plain")
_LOW = ("tf_blockdnn", "tf_blockdnn-int8", "tf_blockdnn-bf16", "onnxruntime-int8", "openvino-int8")
_LOW += ("litert-int8", "openvino-bf16", "tensorflow")


@dataclasses.dataclass(frozen=True)
class Row:
    """One network or layer, under one condition.

    Attributes:
      kind: one of `document.KINDS`: its list in the JSON.
      name: in `models.ZOO`; of "recurrent" CELL/BATCH/STEPS/INPUTS/UNITS.
      peers: names of the table of that kind, of "serving" the servers; none for "loading".
    """

    kind: str
    name: str
    peers: tuple[str, ...] = ()
    batch: int = 1
    threads: int = 2


def _networks(names, peers=_PEERS, kind="networks", **condition) -> list[Row]:
    return [Row(kind, name, peers, **condition) for name in names]


README = [
    *_networks(MOBILE, (*_PEERS, *_WAYS)),
    *_networks(CNNS),
    *(Row("recurrent", name, _RECURRENT_PEERS, int(name.split("/")[1])) for name in RECURRENT),
    *(Row("loading", name) for name in ("resnet50", "mobilenetv2")),
    *_networks(name for name in TRANSFORMERS if name != "bert"),
    # tf2onnx takes more than 15 GB for it.
    *_networks(["bert"], tuple(peer for peer in _PEERS if peer != "onnxruntime")),
]
ROWS = [
    *README,
    *_networks((*CNNS, *MOBILE, "ssd", "yolo"), _LOW, "low_precision"),
    *_networks((*CNNS, *MOBILE), threads=1),
    *_networks((*CNNS, *MOBILE), batch=8),
    Row("serving", "mobilenetv2", ("grpc",)),
    *_networks(("resnet50", "vgg16", "mobilenetv2", "unet"), _TRAINING_PEERS, "training", batch=8),
    *_networks(("hed", "unet", "nasnetmobile", "convnexttiny", "shufflenetv2", "cnn3d", "dcgan")),
]
