"""Which element-wise idiom follows a tensor, and how a primitive absorbs it.

Idioms are recognised once, the largest first from the outputs backwards, so that the
Sigmoid inside a swish is never taken for an activation by itself. An absorbing
primitive takes the name of the idiom's root, hence readers need no change.
"""

from ..graph import Body, Node, Ref, is_float32, unusual
from .patterns.pixels.elementwise import ELEMENTWISE, NAMED
from .rules import Idiom


class Followers:
    """The element-wise idioms of float32 tensors of a body, by source and by root.

    Args:
        looks: whether to look for them; there are none otherwise.
    """

    def __init__(self, body: Body, looks: bool = True):
        self._body = body
        self._by_src: dict[Ref, list[Idiom]] = {}
        self._by_root: dict[str, list[Idiom]] = {}
        self._interior: dict[str, str] = {}
        for node in reversed(body.view.topological() if looks else []):
            if node.name not in self._interior and node.op in ELEMENTWISE and not node.payload:
                if is_float32(body.view, node.ref):
                    self._index(node)

    def at_root(self, name: str) -> list[Idiom]:
        """All readings of the idiom that ends at the node: one for each possible source."""
        return self._by_root.get(name, [])

    def root_of(self, name: str) -> str | None:
        """The root of the idiom that node `name` belongs to, if any."""
        return name if name in self._by_root else self._interior.get(name)

    def sole(self, ref: Ref) -> Idiom | None:
        """The idiom that is the only user of `ref`, with nothing to hold a fusion up."""
        view = self._body.view
        if ref.node not in view:  # Nobody read it.
            return None
        if view.is_fetched(ref) or view.has_control_edges(ref.node):
            return None
        readers = {node.name for node, _ in view.consumers(ref)}
        for idiom in self._by_src.get(ref, ()):
            root = view.node(idiom.root) if idiom.root in view else None
            if root is None or root.payload is not None or root.controls:
                continue
            if readers and readers <= idiom.nodes and ref not in idiom.operands.values():
                return idiom
        return None

    def absorb(self, node: Node, idiom: Idiom, payload) -> Node:
        """Replaces `node` and the idiom after it by one node named as the idiom's root."""
        inputs = node.by_role | idiom.operands
        return self.consume(idiom, Node(idiom.root, node.op, inputs, payload=payload))

    def consume(self, idiom: Idiom, node: Node) -> Node:
        """Puts `node`, named as the idiom's root, in the place of the whole idiom."""
        view = self._body.view
        sources = [ref.node for name in idiom.nodes for ref in view.node(name).inputs]
        view.replace(node)
        self._by_root.pop(idiom.root, None)
        view.remove_dead([*idiom.nodes, *sources])
        return node

    def _index(self, node: Node) -> None:
        idioms = [i for make in ELEMENTWISE[node.op] for i in make(node, self._body)]
        idioms = [idiom for idiom in idioms if self._may_be_chain(idiom)]
        if not idioms:
            return
        largest = max(idioms, key=lambda idiom: len(idiom.nodes)).nodes
        chosen = [idiom for idiom in idioms if idiom.nodes == largest]
        self._by_root[node.name] = chosen
        for idiom in chosen:
            self._by_src.setdefault(idiom.src, []).append(idiom)
        for name in largest - {node.name}:
            self._interior[name] = node.name

    def _may_be_chain(self, idiom: Idiom) -> bool:
        """Whether nothing outside reads, fetches or orders the nodes between src and root.

        And whether they do what their ops say, to a result of the source's shape: a constant of
        more axes gives them to the result.
        """
        body, inner = self._body, idiom.nodes - {idiom.root}
        if any(unusual(body.view.node(name), NAMED) for name in idiom.nodes):
            return False
        private = body.view.is_private(inner, within=idiom.nodes)
        private = private and not any(name in self._interior for name in inner)
        return private and body.shapes.equal(idiom.src, Ref(idiom.root))
