"""Functions of arrays and programs as operations of PyTorch's, which torch.compile, torch.export and torch.func.vmap see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

import hologram as hg
from hologram_torch._function import Arrays, _apply, _pull, _run
from hologram_torch.convert import as_array, buffer_to_tensor, tensor_to_buffer

Tensors = Sequence[torch.Tensor]
FUNCTIONS: dict[Any, Arrays] = {}  # operations that a compiled graph records as arrays
_names: Counter[str] = Counter()


def custom_op(what: Callable[..., Any] | hg.Program, *, name: str | None = None, inputs: Sequence[str] = (),
              outputs: Mapping[str, str] | None = None, scalars: Mapping[str, Any] | None = None, lanes: Callable[..., int] | None = None,
              gradient: Callable[..., Any] | None = None) -> Callable[..., Any]:  # fmt: skip
    """A function of tensors that is an operation of PyTorch's, `hologram::name`: graphs hold it as one node.

    what: a function of arrays that gives an array or a tuple of them. It fuses with what is around it under
    torch.compile(backend="hologram"); its gradients, of every order, and its form for vmap are Hologram's. Its result's shapes and types
    may depend on those of its arguments only.

    Or an hg.Program. `inputs` then names its buffers that are arguments, in order; `outputs` each buffer that it writes, and the argument
    whose shape and type that has: a buffer that is named in both begins as the argument, which stays what it is. scalars: the others;
    lanes(*tensors): how many lanes are launched (as many as the first output has elements). gradient(*tensors, *cotangents): a tensor or
    None for each argument, of operations of torch's; without it there is no gradient.

    Errors: TypeError for something else; ValueError where a program's outputs are not named, or have the form of no argument.

        swish = hologram_torch.custom_op(lambda x, b: x * hg.sigmoid(b * x), name="swish")
        y = torch.compile(swish, backend="hologram")(torch.ones(3), torch.ones(()))"""
    if isinstance(what, hg.Program):
        own = _unused(str(name or what.name or "program"))
        return _public(_of_program(what, own, list(inputs), dict(outputs or {}), dict(scalars or {}), lanes, gradient))
    if not callable(what):
        raise TypeError(f"custom_op takes a function of arrays or an hg.Program, not {type(what).__name__}")
    if inputs or outputs or scalars or lanes or gradient:
        raise TypeError("custom_op: inputs, outputs, scalars, lanes and gradient are a program's; a function of arrays has its own")
    made = _public(_of_function(what, _unused(str(name or getattr(what, "__name__", "function")))), what)
    made.__doc__ = what.__doc__
    return made


def _unused(name: str) -> str:
    name = "".join(letter if letter.isalnum() else "_" for letter in name).strip("_") or "function"
    _names[name] += 1
    return name if _names[name] == 1 else f"{name}_{_names[name]}"


def _public(operation: Any, function: Arrays | None = None) -> Callable[..., Any]:
    def call(*tensors: torch.Tensor) -> Any:
        if function is not None and not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
            return _apply(function, None, tensors)  # torch's own operations have no gradient there
        made = operation(tensors)
        return made[0] if len(made) == 1 else tuple(made)

    return call


def _define(name: str, run: Callable[[Tensors], list[torch.Tensor]], fake: Callable[[Tensors], list[torch.Tensor]]) -> Any:
    schema = "(Tensor[] tensors) -> Tensor[]"
    operation: Any = torch.library.custom_op(f"hologram::{name}", run, mutates_args=(), schema=schema)
    operation.register_fake(fake)
    return operation


def _listed(made: Any) -> list[Any]:
    return list(made) if isinstance(made, (tuple, list)) else [made]


# ---- a function of arrays --------------------------------------------------------------------------------------------


def _of_function(function: Arrays, name: str) -> Any:
    """The operation; those of its gradient and for vmap are made when they are asked for."""
    derived: dict[Any, Any] = {}

    def run(tensors: Tensors) -> list[torch.Tensor]:
        return _listed(_run(function, None, tuple(tensors)))

    def fake(tensors: Tensors) -> list[torch.Tensor]:
        own = [hg.zeros(tuple(map(int, x.shape)), dtype=str(x.dtype)[6:]) for x in tensors]  # recorded, not computed
        return [tensors[0].new_empty(y.shape, dtype=getattr(torch, y.dtype.name)) for y in _listed(function(*own))]

    def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(*inputs[0])

    def back(ctx: Any, cotangents: Tensors) -> list[torch.Tensor | None]:
        tensors = ctx.saved_tensors
        wanted = tuple(x.is_floating_point() for x in tensors)
        if wanted not in derived:
            count = len(tensors)

            def pulled(*arrays: hg.Array) -> Any:
                return _pull(function, arrays[:count], wanted, arrays[count:])

            derived[wanted] = _of_function(pulled, _unused(f"{name}_gradient"))
        made = iter(derived[wanted]([*tensors, *cotangents]))
        return [next(made) if one else None for one in wanted]

    def mapped(info: Any, axes: tuple[Any, ...], tensors: Tensors) -> tuple[list[torch.Tensor], list[int]]:
        own = tuple(axes[0])
        if own not in derived:
            derived[own] = _of_function(hg.vmap(function, own), _unused(f"{name}_vmap"))
        made = derived[own](tensors)
        return made, [0] * len(made)

    operation = _define(name, run, fake)
    operation.register_autograd(back, setup_context=keep)
    operation.register_vmap(mapped)
    FUNCTIONS[operation._opoverload] = function
    return operation


# ---- a program -------------------------------------------------------------------------------------------------------


def _of_program(program: hg.Program, name: str, inputs: list[str], outputs: dict[str, str], scalars: dict[str, Any],
                lanes: Callable[..., int] | None, gradient: Callable[..., Any] | None) -> Any:  # fmt: skip
    wrong = [like for like in outputs.values() if like not in inputs]
    if not outputs or wrong:
        raise ValueError(f"custom_op: outputs={{'y': 'x'}} names the buffers that the program writes, and of each an argument of its form; "
                         f"the arguments are {', '.join(inputs) or 'none'}, not {', '.join(wrong) or 'given'}")  # fmt: skip

    def run(tensors: Tensors) -> list[torch.Tensor]:
        given = dict(zip(inputs, tensors, strict=True))
        arrays = {key: as_array(x.contiguous()) for key, x in given.items()}
        executor = arrays[inputs[0]].device
        made = {key: tensor_to_buffer(given[key], executor) if key in given else executor.allocate(arrays[like].size, arrays[like].dtype)
                for key, like in outputs.items()}  # fmt: skip
        count = len(next(iter(made.values()))) if lanes is None else lanes(*tensors)
        parameters: dict[str, Any] = {**arrays, **made, **scalars}
        program.run(executor, count, **parameters)
        return [buffer_to_tensor(buffer, tuple(given[outputs[key]].shape)) for key, buffer in made.items()]

    def fake(tensors: Tensors) -> list[torch.Tensor]:
        given = dict(zip(inputs, tensors, strict=True))
        return [given[like].new_empty(given[like].shape) for like in outputs.values()]

    def mapped(info: Any, axes: tuple[Any, ...], tensors: Tensors) -> tuple[list[torch.Tensor], list[int]]:
        examples = range(info.batch_size)
        made = [operation([x if axis is None else x.select(axis, i) for x, axis in zip(tensors, axes[0])]) for i in examples]
        return [torch.stack(parts) for parts in zip(*made)], [0] * len(outputs)

    operation = _define(name, run, fake)
    operation.register_vmap(mapped)
    if gradient is not None:
        pull = gradient

        def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.save_for_backward(*inputs[0])

        def back(ctx: Any, cotangents: Tensors) -> list[torch.Tensor | None]:
            return _listed(pull(*ctx.saved_tensors, *cotangents))

        operation.register_autograd(back, setup_context=keep)
    return operation
