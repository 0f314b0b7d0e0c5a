"""The nodes of a function's graph, wherever they stand."""


def all_nodes(concrete) -> list:
    """Those of the graph and of the functions in its library, the bodies of regions among them."""
    graph_def = concrete.graph.as_graph_def()
    return [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]
