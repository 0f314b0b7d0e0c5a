"""An editable view of a GraphDef: producers, consumers, use counts, fetches.

A tensor is named by a `Ref` (node name, output port). Nodes keep their GraphDef
proto until a pass replaces them by a node with a `payload`, a planned primitive
whose attributes are written when the graph is emitted.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tensorflow.core.framework import attr_value_pb2, graph_pb2, node_def_pb2

_NO_VALUE = attr_value_pb2.AttrValue()
_MANY = 256  # nodes, of which no more than a few make a shape


class Ref(NamedTuple):
    """Output `port` of node `node`."""

    node: str
    port: int = 0

    @classmethod
    def parse(cls, text: str) -> "Ref":
        """Reads "name" or "name:port"."""
        node, _, port = text.partition(":")
        return cls(node, int(port) if port else 0)

    def __str__(self) -> str:
        return f"{self.node}:{self.port}" if self.port else self.node


class Attributes:
    """Reads the attributes of a NodeDef, FunctionDef or Node; what is absent is empty and stays so.

    A protobuf's own map makes what it is asked for. TensorFlow hands out the FunctionDefs that it
    goes on using, and refuses one with an attribute of no value: only what is ours is asked
    directly.
    """

    __slots__ = ("_map",)

    def __init__(self, proto):
        self._map = proto.attr if proto is not None else {}

    def __getitem__(self, key: str) -> attr_value_pb2.AttrValue:
        return self._map[key] if key in self._map else _NO_VALUE

    def __contains__(self, key: str) -> bool:
        return key in self._map

    def items(self) -> Iterable[tuple[str, attr_value_pb2.AttrValue]]:
        return self._map.items()


class Node:
    """One node: data inputs as Refs, control inputs as names, attributes as in NodeDef.

    A planned primitive's inputs have roles ("src", "weights", ...); the order of the op's inputs
    is settled when it is written. Other nodes' inputs have places only.
    """

    __slots__ = ("name", "op", "inputs", "controls", "proto", "attr", "payload", "roles", "dtypes")

    def __init__(
        self,
        name: str,
        op: str,
        inputs: Iterable[Ref] | Mapping[str, Ref] = (),
        controls: Iterable[str] = (),
        proto: node_def_pb2.NodeDef | None = None,
        payload: Any = None,
    ):
        self.name = name
        self.op = op
        self.set_inputs(inputs)
        self.controls = list(controls)
        self.proto, self.attr = proto, Attributes(proto)  # none for a planned primitive
        self.payload = payload
        self.dtypes: list[int] | None = None  # of the outputs, once somebody has asked

    @classmethod
    def from_proto(cls, proto: node_def_pb2.NodeDef) -> "Node":
        data = [Ref.parse(text) for text in proto.input if text[0] != "^"]
        controls = [text[1:] for text in proto.input if text[0] == "^"]
        return cls(proto.name, proto.op, data, controls, proto)

    def set_inputs(self, inputs: Iterable[Ref] | Mapping[str, Ref]) -> None:
        """Only for nodes that stand in no view yet; see `GraphView.set_inputs`."""
        named = isinstance(inputs, Mapping)
        self.roles: tuple[str, ...] = tuple(inputs) if named else ()
        self.inputs = list(inputs.values() if named else inputs)

    @property
    def by_role(self) -> dict[str, Ref]:
        """role -> tensor, of a planned primitive."""
        return dict(zip(self.roles, self.inputs, strict=True))

    @property
    def src(self) -> Ref:
        """The tensor that a planned primitive works on."""
        return self.by_role["src"]

    @property
    def ref(self) -> Ref:
        return Ref(self.name, 0)

    def to_proto(self) -> node_def_pb2.NodeDef:
        proto = node_def_pb2.NodeDef()
        if self.proto is not None:
            proto.CopyFrom(self.proto)
        proto.name, proto.op = self.name, self.op
        del proto.input[:]
        proto.input.extend(str(ref) for ref in self.inputs)
        proto.input.extend("^" + name for name in self.controls)
        return proto

    def __repr__(self) -> str:
        return f"Node({self.op} {self.name} <- {', '.join(map(str, self.inputs))})"


def producers_first(names: Iterable[str], sources: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """These names and all that `sources` leads to from them, each once and after the sources.

    Graphs are deeper than Python's stack, so this is a loop. A cycle is cut where it closes.
    """
    entered, done = set(), set()
    for root in names:
        stack = [root]
        while stack:
            name = stack[-1]
            if name not in entered:
                entered.add(name)
                before = [source for source in sources(name) if source not in entered]
                if before:
                    stack += before
                    continue
            stack.pop()
            if name not in done:
                done.add(name)
                yield name


class GraphView:
    """A GraphDef with the fetched tensors and the nodes that must run.

    Args:
      graph_def: the graph; the function library is carried along unchanged.
      fetches: the tensors that the caller reads, in order. Passes may redirect them.
      targets: names of nodes that run for their side effects.
    """

    def __init__(
        self, graph_def: graph_pb2.GraphDef, fetches: Iterable[Ref], targets: Iterable[str] = ()
    ):
        self.library = graph_def.library
        self.versions = graph_def.versions
        self.fetches = fetches
        self.targets = list(targets)
        self._nodes: dict[str, Node] = {}
        # producer -> consumer, ordered -> which of its inputs; none of who waits for it alone
        self._consumers: dict[str, dict[str, list[int]]] = {}
        self._sources: dict[str, list[str]] = {}  # consumer -> producers of inputs, then controls
        self._order: list[Node] | None = None  # until the next edit
        self._used: set[str] = set()  # all names so far: none comes again for another tensor
        for proto in graph_def.node:
            self._insert(Node.from_proto(proto))

    def copy(self) -> "GraphView":
        """The same graph, to be edited apart; protos are shared, since nobody edits them."""
        other = GraphView(graph_pb2.GraphDef(), self.fetches, self.targets)
        other.library, other.versions = self.library, self.versions
        for node in self._nodes.values():
            inputs = node.by_role if node.roles else node.inputs
            node_copy = Node(node.name, node.op, inputs, node.controls, node.proto, node.payload)
            other._insert(node_copy)
        other._used |= self._used
        return other

    # Reading.

    @property
    def fetches(self) -> list[Ref]:
        return list(self._fetches)

    @fetches.setter
    def fetches(self, refs: Iterable[Ref]) -> None:
        self._fetches = list(refs)
        self._fetched: dict[str, list[int]] = {}  # producer -> which of the fetches
        for place, ref in enumerate(self._fetches):
            self._fetched.setdefault(ref.node, []).append(place)

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def __iter__(self) -> Iterator[Node]:
        return iter(list(self._nodes.values()))

    def __len__(self) -> int:
        return len(self._nodes)

    def node(self, name: str) -> Node:
        return self._nodes[name]

    def producer(self, ref: Ref) -> Node:
        return self._nodes[ref.node]

    def origin(self, ref: Ref, ops: Iterable[str]) -> Ref:
        """The tensor from which ops of these kinds alone compute `ref`; else `ref`."""
        while (node := self._nodes[ref.node]).op in ops:
            ref = node.inputs[0]
        return ref

    def consumers(self, ref: Ref) -> list[tuple[Node, int]]:
        """The (node, input index) pairs that read `ref`."""
        nodes, pairs = self._nodes, self._consumers.get(ref.node, {}).items()
        places = ((nodes[name], i) for name, inputs in pairs for i in inputs)
        return [(node, i) for node, i in places if node.inputs[i].port == ref.port]

    def readers(self, name: str) -> list[str]:
        """The nodes that read the node of that name, or wait for it."""
        return list(self._consumers.get(name, ()))

    def use_count(self, ref: Ref) -> int:
        """How often `ref` is read, fetches included."""
        return len(self.consumers(ref)) + len(self._places(ref))

    def is_fetched(self, ref: Ref) -> bool:
        return bool(self._places(ref))

    def control_consumers(self, name: str) -> list[Node]:
        readers = (self._nodes[reader] for reader in self._consumers.get(name, ()))
        return [node for node in readers if name in node.controls]

    def has_control_edges(self, name: str) -> bool:
        """Whether a control edge enters or leaves the node, or it must run by itself."""
        node = self._nodes[name]
        if node.controls or name in self.targets:
            return True
        nodes = self._nodes
        return any(name in nodes[reader].controls for reader in self._consumers.get(name, ()))

    def is_private(self, names: Iterable[str], within: Iterable[str] = ()) -> bool:
        """Whether nothing outside of both lists reads, fetches or orders the nodes `names`."""
        names = set(names)
        inside = names.union(within)
        return all(
            {reader.name for reader, _ in self.consumers(Ref(name))} <= inside
            and not self.is_fetched(Ref(name))
            and not self.has_control_edges(name)
            for name in names
        )

    def is_hidden(self, names: Iterable[str], within: Iterable[str]) -> bool:
        """The same, but that others may ask for shapes of the nodes `names`, for those inside."""
        names, inside = set(names), set(within)
        readers = [reader for name in names for reader, _ in self.consumers(Ref(name))]
        stack = [reader.name for reader in readers if reader.op == "Shape"]
        while stack and len(names) < _MANY:
            name = stack.pop()
            if name not in names and name not in inside:
                names.add(name)
                stack += self.readers(name)
        return self.is_private(names, inside)

    def only_reader(self, ref: Ref) -> tuple[Node | None, int]:
        """The only node that needs `ref`, and the number of that input; (None, 0) if others do.

        Others are a second input, a fetch, and a control edge of what makes `ref`.
        """
        readers = self.consumers(ref)
        if len(readers) != 1 or self.is_fetched(ref) or self.has_control_edges(ref.node):
            return None, 0
        return readers[0]

    def is_only_for(self, ref: Ref, reader: Node) -> bool:
        """Whether nothing reads `ref` but `reader`, a planned primitive, as the source."""
        node, index = self.only_reader(ref)
        return node is not None and node.name == reader.name and node.roles[index] == "src"

    def topological(self) -> list[Node]:
        """All nodes, producers first; loop back edges (NextIteration) are cut."""
        nodes = self._nodes

        def sources(name: str) -> Iterable[str]:
            is_cut = nodes[name].op == "NextIteration"
            return [] if is_cut else filter(nodes.__contains__, self._sources[name])

        if self._order is None:
            self._order = [nodes[name] for name in producers_first(nodes, sources)]
        return list(self._order)

    def ancestors(self, names: Iterable[str]) -> set[str]:
        """The nodes of these names and all that must run before them."""
        ancestors, stack = set(), list(names)
        while stack:
            name = stack.pop()
            if name not in ancestors and name in self._nodes:
                ancestors.add(name)
                stack += self._sources[name]
        return ancestors

    def latest_before(self, numbers: Mapping[str, int]) -> dict[str, int]:
        """Of each node the largest number of those that must run before it, or -1.

        Args:
          numbers: of some nodes.
        """
        before: dict[str, int] = {}
        for node in self.topological():
            latest = -1
            for name in self._sources[node.name]:
                latest = max(latest, numbers.get(name, -1), before.get(name, -1))
            before[node.name] = latest
        return before

    # Editing.

    def unique_name(self, base: str) -> str:
        name, suffix = base, 0
        while name in self._used:
            suffix += 1
            name = f"{base}_{suffix}"
        return name

    def add(self, node: Node) -> Node:
        """Adds a node, renaming it if the name is taken or was once."""
        node.name = self.unique_name(node.name)
        self._insert(node)
        return node

    def replace(self, node: Node) -> Node:
        """Puts `node` in the place of the node of that name: consumers stay as they are."""
        self._disconnect(self._nodes[node.name])
        self._nodes[node.name] = node
        self._connect(node)
        return node

    def remove(self, name: str) -> None:
        """Removes a node that nothing reads."""
        if self._consumers.get(name) or self._fetched.get(name):
            raise ValueError(f"node {name!r} is still in use")
        self._disconnect(self._nodes.pop(name))
        self._consumers.pop(name, None)

    def set_inputs(self, node: Node, inputs: Iterable[Ref] | Mapping[str, Ref]) -> None:
        """Gives a node other inputs; those of a planned primitive by role, or in their order."""
        inputs = inputs if isinstance(inputs, Mapping) else list(inputs)
        if node.roles and not isinstance(inputs, Mapping):
            inputs = dict(zip(node.roles, inputs, strict=True))
        self._disconnect(node)
        node.set_inputs(inputs)
        self._connect(node)

    def set_controls(self, node: Node, controls: Iterable[str]) -> None:
        self._disconnect(node)
        node.controls = list(controls)
        self._connect(node)

    def replace_uses(self, old: Ref, new: Ref) -> None:
        """Redirects every reader and fetch of `old` to `new`."""
        for node in {id(node): node for node, _ in self.consumers(old)}.values():
            self.set_inputs(node, [new if ref == old else ref for ref in node.inputs])
        for place in self._places(old):
            self._fetches[place] = new
            self._fetched[old.node].remove(place)
            self._fetched.setdefault(new.node, []).append(place)

    def bypass(self, node: Node, to: Ref) -> None:
        """Lets all read `to` in the place of the node's first output, and removes the node."""
        self.replace_uses(node.ref, to)
        self.remove_dead([node.name])

    def prune(self, keep_ops: Iterable[str] = ("Placeholder",)) -> int:
        """Removes what no fetch or target needs; returns how many nodes went."""
        keep = set(keep_ops)
        wanted = [ref.node for ref in self.fetches] + self.targets
        alive = self.ancestors(wanted + [n.name for n in self._nodes.values() if n.op in keep])
        dead = [name for name in self._nodes if name not in alive]
        for name in dead:
            self._disconnect(self._nodes[name])
        for name in dead:
            del self._nodes[name]
            self._consumers.pop(name, None)
        return len(dead)

    def remove_dead(self, names: Iterable[str]) -> None:
        """Removes those of `names`, and what feeds only them, that nothing needs any more."""
        stack = list(names)
        while stack:
            name = stack.pop()
            node = self._nodes.get(name)
            if node is None or node.op == "Placeholder":
                continue
            if self._fetched.get(name) or self._consumers.get(name) or name in self.targets:
                continue
            stack.extend(self._sources[name])
            self.remove(name)

    def to_graph_def(self) -> graph_pb2.GraphDef:
        graph_def = graph_pb2.GraphDef(versions=self.versions, library=self.library)
        graph_def.node.extend(node.to_proto() for node in self._nodes.values())
        return graph_def

    # Bookkeeping.

    def _places(self, ref: Ref) -> list[int]:
        """Where a tensor is among the fetches."""
        places = self._fetched.get(ref.node, ())
        return [place for place in places if self._fetches[place] == ref]

    def _insert(self, node: Node) -> None:
        self._used.add(node.name)
        self._nodes[node.name] = node
        self._connect(node)

    def _connect(self, node: Node) -> None:
        self._order = None
        self._sources[node.name] = [name for name, _ in node.inputs] + node.controls
        for i, source in enumerate(self._sources[node.name]):
            inputs = self._consumers.setdefault(source, {}).setdefault(node.name, [])
            if i < len(node.inputs):
                inputs.append(i)

    def _disconnect(self, node: Node) -> None:
        self._order = None
        for source in self._sources.pop(node.name):
            self._consumers.get(source, {}).pop(node.name, None)
