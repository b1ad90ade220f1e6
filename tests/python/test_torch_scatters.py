"""Scatters by torch's names and arguments beside PyTorch: values and gradients, indices of any size, repeated ones, bags."""

import itertools

import pytest

torch = pytest.importorskip("torch")
import hologram_torch.functional as F  # noqa: E402


def drawn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def indices(seed, below, *shape):
    return torch.randint(0, below, shape, generator=torch.Generator().manual_seed(seed))


def check(own, right, *tensors):
    """Values, first derivatives and derivatives of those."""
    made = []
    for function in (own, right):
        leaves = [t.clone().requires_grad_() for t in tensors]
        y = function(*leaves)
        first = torch.autograd.grad((y**2 * (1 + torch.arange(y.numel()).reshape(y.shape) % 3)).sum(), leaves, create_graph=True)
        second = torch.autograd.grad(sum((g**2).sum() for g in first), leaves)
        made.append([y, *first, *second])
    for a, b in zip(*made):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


SIZES = [((6, 5), (4, 5), 0), ((6, 5), (9, 3), 0), ((6, 5), (3, 11), 1), ((3, 4, 5), (3, 2, 4), -1), ((3, 4, 5), (1, 7, 2), 1),
         ((5,), (12,), 0)]


@pytest.mark.parametrize("shape, size, dim", SIZES)
def test_indices_of_any_size(shape, size, dim):
    index = indices(1, shape[dim], *size)
    x, source, part = drawn(2, *shape), drawn(3, *(n + 1 for n in size)), tuple(map(slice, size))
    check(lambda x: F.gather(x, dim, index), lambda x: x.gather(dim, index), x)
    check(lambda x, s: F.scatter_add(x, dim, index, s), lambda x, s: x.scatter_add(dim, index, s[part]), x, source)
    for reduce, alone in itertools.product(("sum", "prod", "mean", "amax", "amin"), (True, False)):
        own = lambda x, s: F.scatter_reduce(x, dim, index, s, reduce, include_self=alone)  # noqa: B023, E731
        right = lambda x, s: x.scatter_reduce(dim, index, s[part], reduce, include_self=alone)  # noqa: B023, E731
        if reduce == "prod" and not alone:  # PyTorch's second derivative is another
            torch.testing.assert_close(own(x, source), right(x, source))
        else:
            check(own, right, x, source)


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_slices(dim):
    x = drawn(4, 5, 4, 3)
    index = indices(5, x.shape[dim], 7)
    source = drawn(6, *(7 if d == dim % 3 else n for d, n in enumerate(x.shape)))
    check(lambda x, s: F.index_add(x, dim, index, s, alpha=-1.5), lambda x, s: x.index_add(dim, index, s, alpha=-1.5), x, source)
    few = index[:1]
    check(lambda x, s: F.index_copy(x, dim, few, s), lambda x, s: x.index_copy(dim, few, s), x, source.narrow(dim, 0, 1))
    for reduce, alone in itertools.product(("prod", "mean", "amax", "amin"), (True, False)):
        right = x.index_reduce(dim, index, source, reduce, include_self=alone)
        torch.testing.assert_close(F.index_reduce(x, dim, index, source, reduce, include_self=alone), right)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode):
    table, weights = drawn(7, 9, 4), drawn(8, 12)
    index, offsets = indices(9, 9, 12), torch.tensor([0, 3, 3, 7, 12])
    bag = torch.nn.functional.embedding_bag
    torch.testing.assert_close(F.embedding_bag(index, table, offsets, mode=mode), bag(index, table, offsets, mode=mode))
    torch.testing.assert_close(F.embedding_bag(index.reshape(3, 4), table, mode=mode), bag(index.reshape(3, 4), table, mode=mode))
    if mode == "sum":  # PyTorch has no second derivative of a bag
        check(lambda t, w: F.embedding_bag(index, t, offsets, mode=mode, per_sample_weights=w),
              lambda t, w: torch.stack([(t[index[a:b]] * w[a:b, None]).sum(0) for a, b in zip(offsets, [*offsets[1:], 12])]),
              table, weights)


def test_vmap():
    x, source, index = drawn(1, 3, 6), drawn(2, 3, 8), indices(3, 6, 3, 8)
    for name in ("scatter_add", "scatter_reduce"):
        more = () if name == "scatter_add" else ("amax",)
        own = torch.vmap(lambda x, i, s: getattr(F, name)(x, 0, i, s, *more))(x, index, source)  # noqa: B023
        right = torch.stack([getattr(x[k], name)(0, index[k], source[k], *more) for k in range(3)])
        torch.testing.assert_close(own, right)
