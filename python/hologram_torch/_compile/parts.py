"""Graphs of which some nodes have no row: what has one becomes computations, between which torch computes the rest."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import torch
from torch import fx
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from hologram_torch._compile.call import Compiled, How
from hologram_torch._compile.graph import is_view, why_not


class _HasRow(OperatorSupportBase):
    def __init__(self, views: Container[fx.Node]) -> None:
        self.views = views

    def is_node_supported(self, submodules: Any, node: fx.Node) -> bool:
        is_ours = node.op == "call_function" and not why_not(node, self.views)
        return is_ours and isinstance(node.meta.get("val"), (torch.Tensor, tuple, list))


def divided(module: fx.GraphModule, how: How, views: Container[fx.Node] = ()) -> tuple[Callable[..., Any], int]:
    """The module with its parts as computations, as a function of a list; and how many they are."""
    partitioner = CapabilityBasedPartitioner(module, _HasRow(views), allows_single_node_partition=True)
    own = [part for part in partitioner.propose_partitions() if not all(is_view(node) for node in part.nodes)]
    whole = partitioner.fuse_partitions(own, prefix="computation_")
    for node in list(whole.graph.nodes):
        if node.op == "call_module" and str(node.target).startswith("computation_"):
            node.op, node.target = "call_function", _called(Compiled(getattr(whole, str(node.target)), how))
    whole.recompile()
    made: Callable[..., Any] = make_boxed_func(whole.forward)
    return made, len(own)


def _called(compiled: Compiled) -> Callable[..., Any]:
    def computation(*arguments: Any) -> Any:
        results = compiled(list(arguments))
        return results[0] if compiled.is_single else results

    return computation
