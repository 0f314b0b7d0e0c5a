"""Convolution networks of KerasHub, in published sizes unless their line says less."""

from __future__ import annotations

from keras_hub import models

SIZE = (224, 224, 3)


def _resnet(blocks, kind, *, vd=False, before=False, shape=SIZE):
    return models.ResNetBackbone(
        input_conv_filters=[32, 32, 64] if vd else [64],
        input_conv_kernel_sizes=[3, 3, 3] if vd else [7],
        stackwise_num_filters=[64, 128, 256, 512],
        stackwise_num_blocks=blocks,
        stackwise_num_strides=[1, 2, 2, 2],
        block_type=kind,
        use_pre_activation=before,
        image_shape=shape,
    )


def resnet18():
    return _resnet([2, 2, 2, 2], "basic_block")


def resnet50():
    return _resnet([3, 4, 6, 3], "bottleneck_block")


def resnet50v2():
    return _resnet([3, 4, 6, 3], "bottleneck_block", before=True)


def resnetvd18():
    return _resnet([2, 2, 2, 2], "basic_block_vd", vd=True)


def resnetvd50():
    return _resnet([3, 4, 6, 3], "bottleneck_block_vd", vd=True)


_CSP = {"block_type": "bottleneck_block", "stage_type": "csp", "image_shape": SIZE}
_STEM = {"stem_filters": 64, "stem_kernel_size": 7, "stem_strides": 4, "stem_pooling": "max"}
_DARK = {
    "stem_filters": 32,
    "stem_kernel_size": 3,
    "stem_strides": 1,
    "stem_padding": "same",
    "stackwise_depth": [1, 2, 8, 8, 4],
    "stackwise_strides": [2, 2, 2, 2, 2],
    "stackwise_num_filters": [64, 128, 256, 512, 1024],
    "block_type": "dark_block",
    "image_shape": SIZE,
}


def cspdarknet53():
    """Wang et al. 2019."""
    return models.CSPNetBackbone(
        **_DARK,
        stage_type="csp",
        bottle_ratio=(0.5, 1.0),
        block_ratio=(1.0, 0.5),
        expand_ratio=(2.0, 1.0),
        down_growth=True,
    )


def darknet53():
    return models.CSPNetBackbone(
        **_DARK, stage_type="dark", bottle_ratio=[0.5], block_ratio=[1.0], expand_ratio=[1.0]
    )


def cspresnet50():
    return models.CSPNetBackbone(
        **_CSP,
        **_STEM,
        stackwise_depth=[3, 3, 5, 2],
        stackwise_strides=[1, 2, 2, 2],
        stackwise_num_filters=[128, 256, 512, 1024],
        bottle_ratio=[0.5],
        block_ratio=[1.0],
        expand_ratio=[2.0],
        cross_linear=True,
    )


def cspresnext50():
    return models.CSPNetBackbone(
        **_CSP,
        **_STEM,
        stackwise_depth=[3, 3, 5, 2],
        stackwise_strides=[1, 2, 2, 2],
        stackwise_num_filters=[256, 512, 1024, 2048],
        groups=32,
        bottle_ratio=[1.0],
        block_ratio=[0.5],
        expand_ratio=[1.0],
        cross_linear=True,
    )


def densenet121():
    return models.DenseNetBackbone([6, 12, 24, 16], image_shape=SIZE)


def _efficientnet(lite: bool):
    return models.EfficientNetBackbone(
        stackwise_width_coefficients=[1.0] * 7,
        stackwise_depth_coefficients=[1.0] * 7,
        stackwise_kernel_sizes=[3, 3, 5, 3, 5, 5, 3],
        stackwise_num_repeats=[1, 2, 2, 3, 3, 4, 1],
        stackwise_input_filters=[32, 16, 24, 40, 80, 112, 192],
        stackwise_output_filters=[16, 24, 40, 80, 112, 192, 320],
        stackwise_expansion_ratios=[1, 6, 6, 6, 6, 6, 6],
        stackwise_squeeze_and_excite_ratios=[0 if lite else 0.25] * 7,
        stackwise_strides=[1, 2, 2, 2, 1, 2, 1],
        stackwise_block_types=["v1"] * 7,
        activation="relu6" if lite else "swish",
        input_shape=SIZE,
    )


def efficientnetb0():
    return _efficientnet(False)


def efficientnetlite0():
    return _efficientnet(True)


def efficientnetv2s():
    """Tan et al. 2021, with fused blocks."""
    return models.EfficientNetBackbone(
        stackwise_width_coefficients=[1.0] * 6,
        stackwise_depth_coefficients=[1.0] * 6,
        stackwise_kernel_sizes=[3] * 6,
        stackwise_num_repeats=[2, 4, 4, 6, 9, 15],
        stackwise_input_filters=[24, 24, 48, 64, 128, 160],
        stackwise_output_filters=[24, 48, 64, 128, 160, 256],
        stackwise_expansion_ratios=[1, 4, 4, 4, 6, 6],
        stackwise_squeeze_and_excite_ratios=[0, 0, 0, 0.25, 0.25, 0.25],
        stackwise_strides=[1, 2, 2, 2, 1, 2],
        stackwise_block_types=["fused"] * 3 + ["unfused"] * 3,
        input_shape=SIZE,
    )


def _hgnetv2(shape=SIZE, features=None, affine=False):
    return models.HGNetV2Backbone(
        depths=[1, 1, 2, 1],
        embedding_size=16,
        hidden_sizes=[64, 256, 512, 1024],
        stem_channels=[3, 16, 16],
        hidden_act="relu",
        use_learnable_affine_block=affine,
        stackwise_stage_filters=[
            [16, 16, 64, 1, 3, 3],
            [64, 32, 256, 1, 3, 3],
            [256, 64, 512, 2, 3, 5],
            [512, 128, 1024, 1, 3, 5],
        ],
        apply_downsample=[False, True, True, True],
        use_lightweight_conv_block=[False, False, True, True],
        image_shape=shape,
        out_features=features,
    )


def hgnetv2b0():
    return _hgnetv2()


def mobilenetv3small():
    """Howard et al. 2019, width 1."""
    return models.MobileNetBackbone(
        stackwise_num_blocks=[2, 3, 2, 3],
        stackwise_expansion=[[72, 88], [96, 240, 240], [120, 144], [288, 576, 576]],
        stackwise_num_filters=[[24, 24], [40, 40, 40], [48, 48], [96, 96, 96]],
        stackwise_kernel_size=[[3, 3], [5, 5, 5], [5, 5], [5, 5, 5]],
        stackwise_num_strides=[[2, 1], [2, 1, 1], [1, 1], [2, 1, 1]],
        stackwise_se_ratio=[[None, None], [0.25] * 3, [0.25] * 2, [0.25] * 3],
        stackwise_activation=[["relu"] * 2, *(["hard_swish"] * n for n in (3, 2, 3))],
        stackwise_padding=[[1, 1], [2, 2, 2], [2, 2], [2, 2, 2]],
        output_num_filters=1024,
        input_num_filters=16,
        depthwise_filters=16,
        depthwise_stride=2,
        depthwise_residual=False,
        squeeze_and_excite=0.5,
        last_layer_filter=576,
        image_shape=SIZE,
    )


def mobilenetv5():
    """The tower of Gemma 3n, a quarter as wide and not as deep."""
    from keras_hub.src.models.mobilenetv5 import mobilenetv5_builder

    stages = [
        ["er_r1_k3_s2_e4_c32", "er_r1_k3_s1_e4_c32"],
        ["uir_r1_a3_k5_s2_e6_c64", "uir_r1_a5_k0_s1_e4_c64"],
        ["uir_r1_a5_k5_s2_e6_c160", "uir_r1_a5_k0_s1_e4_c160", "uir_r1_a0_k0_s1_e1_c160"]
        + ["mqa_r1_k3_h4_v2_s1_d64_c160", "uir_r1_a0_k0_s1_e2_c160"] * 2,
        ["uir_r1_a5_k5_s2_e6_c320"] + ["mqa_r1_k3_h4_s1_d96_c320", "uir_r1_a0_k0_s1_e2_c320"] * 2,
    ]
    return models.MobileNetV5Backbone(
        **mobilenetv5_builder.convert_arch_def_to_stackwise(stages),
        stem_size=32,
        num_features=512,
        layer_scale_init_value=0.1,
        image_shape=(256, 256, 3),
    )


def vgg11():
    return models.VGGBackbone([1, 1, 2, 2, 2], [64, 128, 256, 512, 512], image_shape=SIZE)


def xception41():
    """As deep as Keras's own; its last convolutions are of 1024 to 2048 channels."""
    return models.XceptionBackbone(
        [[32, 64], [128, 128], [256, 256], [728, 728], *([[728] * 3] * 4), [728, 1024]],
        [True, True, True, True, *([False] * 4), True],
        image_shape=SIZE,
    )


def deeplabv3plus():
    """Chen et al. 2018, on ResNet-18."""
    return models.DeepLabV3Backbone(
        image_encoder=_resnet([2, 2, 2, 2], "basic_block", shape=(256, 256, 3)),
        spatial_pyramid_pooling_key="P5",
        low_level_feature_key="P2",
        upsampling_size=8,
        dilation_rates=[6, 12, 18],
        image_shape=(256, 256, 3),
    )


def retinanet():
    """Lin et al. 2017: the pyramid of levels 3 to 7 on ResNet-50."""
    return models.RetinaNetBackbone(
        image_encoder=_resnet([3, 4, 6, 3], "bottleneck_block", shape=(256, 256, 3)),
        min_level=3,
        max_level=7,
        use_p5=False,
        image_shape=(256, 256, 3),
    )


def dfine():
    """Peng et al. 2024, nano: a detector whose decoder gathers at learned points."""
    return models.DFineBackbone(
        backbone=_hgnetv2((None, None, 3), ["stage3", "stage4"], affine=True),
        decoder_in_channels=[128, 128],
        encoder_hidden_dim=128,
        num_denoising=0,
        num_labels=80,
        hidden_dim=128,
        learn_initial_query=False,
        num_queries=300,
        anchor_image_size=(256, 256),
        feat_strides=[16, 32],
        num_feature_levels=2,
        encoder_in_channels=[512, 1024],
        encode_proj_layers=[1],
        num_attention_heads=8,
        encoder_ffn_dim=512,
        num_encoder_layers=1,
        hidden_expansion=0.34,
        depth_multiplier=0.5,
        eval_idx=-1,
        num_decoder_layers=3,
        decoder_attention_heads=8,
        decoder_ffn_dim=512,
        decoder_n_points=[6, 6],
        lqe_hidden_dim=64,
        num_lqe_layers=2,
        out_features=["stage3", "stage4"],
        image_shape=(256, 256, 3),
        seed=0,
    )


def vae():
    """Encoder and decoder of Stable Diffusion 3 (Esser et al. 2024), a quarter as wide."""
    from keras_hub.src.models.vae import vae_backbone

    return vae_backbone.VAEBackbone(
        encoder_num_filters=[32, 64, 128, 128],
        encoder_num_blocks=[2, 2, 2, 2],
        decoder_num_filters=[128, 128, 64, 32],
        decoder_num_blocks=[3, 3, 3, 3],
        sampler_method="mode",
    )


# All that is defined here, in its order.
BUILDERS = {
    name: build
    for name, build in vars().copy().items()
    if getattr(build, "__module__", "") == __name__ and not name.startswith("_")
}
SHAPES = {
    **dict.fromkeys(BUILDERS, SIZE),
    **dict.fromkeys(("mobilenetv5", "deeplabv3plus", "retinanet", "dfine"), (256, 256, 3)),
    "vae": (128, 128, 3),
}
