"""The native protobuf rules under the names of rules_proto."""

# buildifier: disable=native-proto
proto_lang_toolchain = native.proto_lang_toolchain

# buildifier: disable=native-proto
proto_library = native.proto_library

# @unused
ProtoInfo = ProtoInfo
