"""Networks that other people built (requirements-strangers.txt), for strangers.py.

Each is made by its authors' own code, small and with random weights; nothing is downloaded. Their
code runs on tf_keras unless the row says Keras 3, so that each version has a process of its own.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass(frozen=True)
class Network:
    """A network.

    Attributes:
        build: makes it, with the packages of its author.
        inputs: the shapes of the tensors that it reads, drawn from a normal distribution; those
            of a dict of names are integers where their names begin with a C.
        keras: the version of Keras that its authors' code needs.
    """

    build: Callable
    inputs: tuple | dict
    keras: int = 2

    def sample(self):
        """What a call gets."""
        random = np.random.default_rng(0)

        def draw(name: str, shape: tuple) -> np.ndarray:
            if name.startswith("C"):
                return random.integers(0, _WORDS, shape, np.int32)
            return random.normal(size=shape).astype(np.float32)

        if isinstance(self.inputs, dict):
            return {name: draw(name, shape) for name, shape in self.inputs.items()}
        drawn = [draw("", shape) for shape in self.inputs]
        return drawn if len(drawn) > 1 else drawn[0]


_WORDS = 50
_CLICKS = {f"C{i}": (32, 1) for i in range(10)} | {f"I{i}": (32, 1) for i in range(4)}


def _of(module: str, name: str, *args, **kwargs) -> Callable:
    """Calls what a module has by that name."""
    return lambda: getattr(importlib.import_module(module), name)(*args, **kwargs)


def _picture(side: int) -> tuple:
    return ((1, side, side, 3),)


def _attention(module: str, name: str) -> Network:
    build = _of(f"keras_cv_attention_models.{module}", name, pretrained=None)
    return Network(build, _picture(224))


def _zoo(name: str, side: int = 96) -> Network:
    build = _of("kimm.models", name, input_shape=[side, side, 3], weights=None)
    return Network(build, _picture(side), keras=3)


def _yolo(name: str) -> Network:
    return Network(_of("kyolo", name, 20, (128, 128, 3)), _picture(128), keras=3)


def _image_model(module: str, name: str, shape: tuple, *sizes) -> Network:
    return Network(_of(f"k3im.{module}", name, *sizes), ((1, *shape),), keras=3)


def _clicks(name: str) -> Network:
    def build():
        from deepctr import models
        from deepctr.feature_column import DenseFeat, SparseFeat

        columns = [
            SparseFeat(key, _WORDS, 8) if key.startswith("C") else DenseFeat(key, 1)
            for key in _CLICKS
        ]
        return getattr(models, name)(columns, columns)

    return Network(build, _CLICKS)


def _temporal():
    import tf_keras
    from tcn import TCN

    steps = tf_keras.Input((200, 12))
    return tf_keras.Model(steps, TCN(64, use_layer_norm=True, return_sequences=True)(steps))


def _unet(dimensions: int):
    from csbdeep.internals.nets import common_unet

    build = common_unet(n_dim=dimensions, n_depth=2, n_first=16, n_channel_out=1)
    return build((*[None] * dimensions, 1))


def _classifier():
    from classification_models.tfkeras import Classifiers

    return Classifiers.get("resnext50")[0]((64, 64, 3), weights=None)


def _volumes():
    from classification_models_3D.tfkeras import Classifiers

    return Classifiers.get("seresnet18")[0](input_shape=(32, 32, 32, 3), weights=None)


def _sonnet():
    import sonnet
    import tensorflow as tf

    network = sonnet.nets.ResNet50(10)
    network(tf.zeros((1, 96, 96, 3)), is_training=True)
    random = np.random.default_rng(0)
    for variable in network.trainable_variables:  # some of its scales are 0
        if variable.shape.rank < 4:
            variable.assign(random.normal(0, 0.1, variable.shape))
    return lambda x: network(x, is_training=False)


def _graph():
    import tf_keras
    from spektral.layers import GATConv, GCNConv

    nodes, edges = tf_keras.Input((30, 16)), tf_keras.Input((30, 30))
    hidden = GCNConv(32, activation="relu")([nodes, edges])
    return tf_keras.Model([nodes, edges], GATConv(16, attn_heads=4)([hidden, edges]))


def _forecast():
    from nbeats_keras.model import NBeatsNet

    return NBeatsNet(backcast_length=50, forecast_length=10).models["forecast"]


def _activity(name: str, *sizes: int) -> Network:
    build = _of("mcfly.models", name, (None, 128, 9), 5)
    return Network(lambda: build().create_model(*sizes), ((4, 128, 9),), keras=3)


def _detector(name: str, shape: tuple) -> Network:
    def build():
        network = _of(f"mtcnn.network.{name.lower()}", name)()
        network.build((None, *shape[1:]))
        return network

    return Network(build, (shape,), keras=3)


_COLLECTION, _SEGMENTATION = "keras_unet_collection.models", "segmentation_models"
NETWORKS = {
    "attention/EfficientViT_B1": _attention("efficientvit", "EfficientViT_B1"),
    "attention/GCViT_XXTiny": _attention("gcvit", "GCViT_XXTiny"),
    "attention/CoaTLiteTiny": _attention("coat", "CoaTLiteTiny"),
    "clicks/DCNMix": _clicks("DCNMix"),
    "clicks/AutoInt": _clicks("AutoInt"),
    "clicks/xDeepFM": _clicks("xDeepFM"),
    "csbdeep/care": Network(lambda: _unet(2), ((1, 64, 64, 1),)),
    "csbdeep/care_volume": Network(lambda: _unet(3), ((1, 16, 16, 16, 1),)),
    "k3im/CaiT": _image_model("cait", "CaiTModel", (64, 64, 3), 64, 16, 10, 64, 2, 4, 128, 1),
    "k3im/gMLP": _image_model("gmlp", "gMLPModel", (64, 64, 3), 64, 8, 64, 2, 0.0, 10),
    "k3im/CCT_volume": _image_model(
        *("cct_3d", "CCT3DModel", (16, 32, 32, 3)),
        *((16, 32, 32, 3), 4, 64, 3, 2, 1, [128, 64], 0.0, 2, 10),
    ),
    "kimm/GhostNetV2": _zoo("GhostNetV2W100"),
    "kimm/InceptionNeXt": _zoo("InceptionNeXtTiny"),
    "kimm/MobileViTV2": _zoo("MobileViTV2W050", 128),
    "kyolo/8n": _yolo("yolov8n"),
    "kyolo/10n": _yolo("yolov10n"),
    "kyolo/12n": _yolo("yolo12n"),
    "mcfly/InceptionTime": _activity("InceptionTime", 32),
    "mcfly/ResNet": _activity("ResNet", 16, 9),
    "mlp_mixer": Network(
        _of("mlp_mixer_keras", "MlpMixerModel", (32, 32, 3), 10, 3, 4, 64, 64, 128), _picture(32)
    ),
    "mtcnn/PNet": _detector("PNet", (1, 97, 83, 3)),
    "mtcnn/ONet": _detector("ONet", (4, 48, 48, 3)),
    "nbeats": Network(_forecast, ((4, 50, 1),)),
    "segmentation/FPN": Network(
        _of(_SEGMENTATION, "FPN", "mobilenetv2", encoder_weights=None), _picture(64)
    ),
    "segmentation/PSPNet": Network(
        _of(_SEGMENTATION, "PSPNet", "seresnet18", (96, 96, 3), encoder_weights=None), _picture(96)
    ),
    "segmodels/Unet": Network(
        _of("segmodels_keras", "Unet", "resnet18", (64, 64, 3), encoder_weights=None),
        _picture(64),
        keras=3,
    ),
    "tfswin": Network(
        _of("tfswin", "SwinTransformerTiny224", weights=None), _picture(224), keras=3
    ),
    "volumes/SEResNet": Network(_volumes, ((1, 32, 32, 32, 3),)),
    "sonnet/ResNet50": Network(_sonnet, _picture(96), keras=3),
    "spektral": Network(_graph, ((2, 30, 16), (2, 30, 30))),
    "classifiers/ResNeXt50": Network(_classifier, _picture(64)),
    "efficientnet/B0": Network(
        _of("efficientnet.tfkeras", "EfficientNetB0", weights=None), _picture(224)
    ),
    "tcn": Network(_temporal, ((1, 200, 12),)),
    "unets/swin_unet": Network(
        _of(
            *(_COLLECTION, "swin_unet_2d", (64, 64, 3), 16, 2, 3, 2, 2, (2, 2)),
            *([2, 4, 4, 4], [4, 2, 2, 2], 64),
        ),
        _picture(64),
    ),
    "unets/u2net": Network(
        _of(_COLLECTION, "u2net_2d", (64, 64, 3), 2, [8, 16, 32, 64]), _picture(64)
    ),
    "vit_keras/ViT": Network(
        _of("vit_keras.vit", "vit_b16", 96, pretrained=False, pretrained_top=False), _picture(96)
    ),
}
