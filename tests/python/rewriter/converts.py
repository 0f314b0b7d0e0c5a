"""Tests that are written as the function which is rewritten."""

import inspect


def converts(*specs, some=(), ops=(), report=(), post_ops=None, reason=None, **options):
    """Makes a test of a function of tensors and of fixtures; its numbers are compared, too.

    Args:
        specs: of its first arguments, as `rewrite` takes them; then, perhaps, the counts of all of
            our ops: {"Conv": 1}.
        some: the counts of some of our ops.
        ops: the counts of some ops of TensorFlow.
        report: what is in the report, by the names of its attributes.
        post_ops: those of all convolutions, in order.
        reason: (part of the name of the one node that is declined, part of its reason).
        options: of `rewrite`.
    """
    counts = specs[-1] if isinstance(specs[-1], dict) else None
    specs = specs if counts is None else specs[:-1]

    def decorate(function):
        fixtures = list(inspect.signature(function).parameters.values())[len(specs) :]

        def test(rewrite, **fixture_values):
            result = rewrite(
                lambda *tensors: function(*tensors, **fixture_values), *specs, **options
            )
            summary = result.report.summary()
            if counts is not None:
                assert result.blockdnn == counts, summary
            assert {op: result.blockdnn.get(op, 0) for op in some} == dict(some), summary
            assert {op: result.ops[op] for op in ops} == dict(ops), summary
            assert {name: getattr(result.report, name) for name in report} == dict(report), summary
            if post_ops is not None:
                assert result.post_ops() == post_ops, summary
            if reason is not None:
                assert reason[1] in result.reason(reason[0]), summary

        test.__name__, test.__doc__ = function.__name__, function.__doc__
        first = inspect.Parameter("rewrite", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        test.__signature__ = inspect.Signature([first, *fixtures])
        return test

    return decorate
