"""Writes the account of what was converted, and of the reorders that are left."""

from ...graph import Body
from ...ops.records import Reorder, UpdateSlice
from ..context import Context
from ..report import Converted


def list_converted(body: Body, context: Context) -> None:
    """Lists the ops of ours and the reorders in the report, in the order they run."""
    report = context.report
    for node in body.view.topological():
        payload = node.payload
        if payload is None and node.op != UpdateSlice.op:
            continue
        if isinstance(payload, Reorder):
            report.reorders.append(
                (str(node.inputs[0]), f"{payload.src_layout}->{payload.dst_layout}")
            )
            continue
        shape = body.shapes.shape(node.ref)
        known = shape and tuple(size if isinstance(size, int) else None for size in shape)
        if payload is None:  # of no plan
            report.converted.append(Converted(node.name, node.op, known, "", "in place"))
            continue
        algorithm = getattr(payload, "algorithm", "")
        report.converted.append(
            Converted(node.name, payload.op, known, algorithm, payload.details())
        )
