"""hg.nn beside torch.nn with the same weights: values, gradients, what layers keep; and apply of every layer."""

import collections

import numpy as np
import pytest

import hologram as hg

torch = pytest.importorskip("torch")
nn, key = hg.nn, hg.random.key(7)
CLOSE = {"rtol": 1e-9, "atol": 1e-10}


def data(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def pair(layer, module):
    """Our parameters with the weights of a module of torch in f64, all of them random numbers."""
    module = module.double()
    with torch.no_grad():
        for i, p in enumerate(module.parameters()):
            p.copy_(torch.from_numpy(data(*p.shape, seed=50 + i)) * 0.5)
    return nn.load_state_dict(layer.init(key), {name: x.clone() for name, x in module.state_dict().items()}), module


def compare(layer, module, x, ours=None, theirs=None):
    """Values and the gradients of a weighted sum, by the input and by every parameter."""
    p, module = pair(layer, module)
    ours, theirs = ours or (lambda p, x: layer(p, x)), theirs or (lambda module, x: module(x))
    t = torch.from_numpy(x).requires_grad_()
    right = theirs(module, t)
    weights = data(*right.shape, seed=99)
    slopes = torch.autograd.grad((right * torch.from_numpy(weights)).sum(), [t, *module.parameters()])
    np.testing.assert_allclose(ours(p, hg.asarray(x)).numpy(), right.detach().numpy(), **CLOSE)
    by_p, by_x = hg.grad(lambda p, x: (ours(p, x) * hg.asarray(weights)).sum(), argnums=(0, 1))(p, hg.asarray(x))
    np.testing.assert_allclose(by_x.numpy(), slopes[0].numpy(), **CLOSE)
    own = nn.state_dict(by_p)
    for (name, _), slope in zip(module.named_parameters(), slopes[1:]):
        np.testing.assert_allclose(own[name].numpy(), slope.numpy(), err_msg=name, **CLOSE)


# ---- apply -------------------------------------------------------------------------------------------------------------

f8 = "float64"
LAYERS = [
    (nn.Linear(4, 3), (2, 4)), (nn.LayerNorm(4), (2, 4)), (nn.LayerNorm((3, 4)), (2, 3, 4)), (nn.RMSNorm(4), (2, 4)),
    (nn.GroupNorm(2, 4), (3, 4, 5)), (nn.InstanceNorm(4), (3, 4, 5)),
    (nn.BatchNorm(4), (5, 4)), (nn.BatchNorm(4, tracked=False), (5, 4)), (nn.Dropout(0.3), (2, 4)),
    (nn.ChannelDropout(0.3), (2, 4, 3)), (nn.AlphaDropout(0.3), (2, 4)),
    (nn.MultiHeadAttention(4, 2, dropout=0.2), (2, 3, 4)), (nn.TransformerBlock(4, 2, dropout=0.2), (2, 3, 4)), (nn.LSTM(4, 3), (2, 3, 4)),
    (nn.GRU(4, 3), (2, 3, 4)), (nn.Sequential(nn.Linear(4, 6), hg.relu, nn.BatchNorm(6), nn.Dropout(0.1)), (5, 4)),
]


@pytest.mark.parametrize("layer, shape", LAYERS, ids=lambda v: type(v).__name__)
def test_every_layer_applies(layer, shape):
    """Inference is the call; only a layer that keeps something gives other parameters; bits are those of eager and jit."""
    p, x = layer.init(key), hg.asarray(data(*shape).astype("f4"))
    y, same = layer.apply(p, x)
    assert same is p and y.numpy().tobytes() == layer(p, x).numpy().tobytes()
    keeps = "num_batches_tracked" in str(nn.state_dict(p))
    y, new = layer.apply(p, x, key, training=True)
    assert (new is not p) == keeps and nn.state_dict(new).keys() == nn.state_dict(p).keys()
    training = lambda p, x, key: layer.apply(p, x, key, training=True)
    compiled, after = hg.jit(training)(p, x, key)
    with hg.eager():
        at_once, then = training(p, x, key)
    assert y.numpy().tobytes() == compiled.numpy().tobytes() == at_once.numpy().tobytes()
    for one, two, three in zip(*[nn.state_dict(tree).values() for tree in (new, after, then)]):
        assert one.numpy().tobytes() == two.numpy().tobytes() == three.numpy().tobytes()
    if keeps:
        with pytest.raises(ValueError, match="apply"):
            layer(p, x, key)
    else:
        assert layer(p, x, key).numpy().tobytes() == y.numpy().tobytes()


def test_training_needs_a_key_where_something_is_random():
    for layer, x in ((nn.Dropout(0.1), hg.ones(3)), (nn.Sequential(hg.relu, nn.AlphaDropout()), hg.ones(3)),
                     (nn.TransformerBlock(4, 2, dropout=0.1), hg.ones((3, 4)))):
        with pytest.raises(ValueError, match="training needs a key"):
            layer.apply(layer.init(key), x, training=True)
    assert nn.Dropout(0.0).apply({}, hg.ones(3), training=True)[0].tolist() == [1, 1, 1]


def test_layers_of_your_own():
    class Scale(nn.Layer):
        def init(self, key):
            return {"scale": hg.full((), 3.0)}

        def __call__(self, parameters, x, key=None):
            return x * parameters["scale"]

    model = nn.Sequential(Scale(), nn.BatchNorm(2))
    p = model.init(key)
    y, new = model.apply(p, hg.asarray([[1.0, 2.0], [3.0, 4.0]]), training=True)
    np.testing.assert_allclose(y.numpy(), [[-1, -1], [1, 1]], atol=1e-5)
    assert new[0] is p[0] and new[1]["running_mean"].tolist() == pytest.approx([0.6, 0.9])
    with pytest.raises(NotImplementedError, match="neither"):
        nn.Layer()({}, hg.ones(3))


# ---- beside PyTorch ------------------------------------------------------------------------------------------------------

def test_embedding_with_padding():
    index = np.array([[0, 6, 2], [2, 2, 1]])
    for padding in (None, 2, -1):
        layer, module = nn.Embedding(7, 3, f8, padding), torch.nn.Embedding(7, 3, padding_idx=padding)
        p, module = pair(layer, module)
        module(torch.from_numpy(index)).square().sum().backward()
        found = layer(p, hg.asarray(index)).numpy()
        assert np.array_equal(found, module(torch.from_numpy(index)).detach().numpy())
        slope = hg.grad(lambda p: hg.square(layer(p, hg.asarray(index))).sum())(p)["weight"].numpy()
        np.testing.assert_allclose(slope, module.weight.grad.numpy(), **CLOSE)
    assert nn.Embedding(7, 3, padding=-1).init(key)["weight"].numpy()[6].tolist() == [0, 0, 0]


@pytest.mark.parametrize("shape, width", [((5, 4), 4), ((2, 3, 4), (3, 4))])
def test_norms_of_rows(shape, width):
    compare(nn.LayerNorm(width, 1e-3, f8), torch.nn.LayerNorm(width, 1e-3), data(*shape))
    compare(nn.LayerNorm(width, 1e-3, f8, bias=False), torch.nn.LayerNorm(width, 1e-3, bias=False), data(*shape))
    compare(nn.LayerNorm(width, 1e-3, f8, affine=False), torch.nn.LayerNorm(width, 1e-3, elementwise_affine=False), data(*shape))
    compare(nn.RMSNorm(width, None, f8), torch.nn.RMSNorm(width), data(*shape))
    compare(nn.RMSNorm(width, 1e-2, f8, affine=False), torch.nn.RMSNorm(width, 1e-2, elementwise_affine=False), data(*shape))


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 4, 3, 2), (3, 4)])
def test_norms_of_groups(shape):
    for groups in (1, 2, 4) if len(shape) > 2 else (1, 2):
        compare(nn.GroupNorm(groups, 4, 1e-3, f8), torch.nn.GroupNorm(groups, 4, 1e-3), data(*shape))
    compare(nn.GroupNorm(2, 4, 1e-3, f8, affine=False), torch.nn.GroupNorm(2, 4, 1e-3, affine=False), data(*shape))
    if len(shape) > 2:
        kind = getattr(torch.nn, f"InstanceNorm{len(shape) - 2}d")
        compare(nn.InstanceNorm(4, 1e-3, f8), kind(4, 1e-3), data(*shape))
        compare(nn.InstanceNorm(4, 1e-3, f8, affine=True), kind(4, 1e-3, affine=True), data(*shape))
    for layer, wrong in ((nn.GroupNorm(2, 4), (3, 6, 2)), (nn.InstanceNorm(4), (3, 4)), (nn.InstanceNorm(4), (4,))):
        with pytest.raises(ValueError, match=type(layer).__name__):
            layer(layer.init(key), hg.ones(wrong))
    with pytest.raises(ValueError, match="multiple"):
        nn.GroupNorm(3, 4)


@pytest.mark.parametrize("momentum, affine, tracked", [(0.1, True, True), (0.3, False, True), (None, True, True), (0.1, True, False),
                                                       (1.0, True, True)])
@pytest.mark.parametrize("kind, shape", [("BatchNorm1d", (5, 3)), ("BatchNorm1d", (4, 3, 5)), ("BatchNorm2d", (2, 3, 4, 5)),
                                         ("BatchNorm3d", (2, 3, 1, 2, 3))])
def test_batch_norm(kind, shape, momentum, affine, tracked):
    """Three batches of training with gradients through the batch's statistics, then inference."""
    layer = nn.BatchNorm(3, 1e-3, momentum, affine, tracked, dtype=f8)
    p, module = pair(layer, getattr(torch.nn, kind)(3, 1e-3, momentum, affine, tracked))
    for seed in range(3):
        x = data(*shape, seed=seed) * 3 + 1
        t = torch.from_numpy(x).requires_grad_()
        right = module(t)
        slopes = torch.autograd.grad(right.pow(3).sum(), [t, *module.parameters()])

        def loss(p, x):
            y, kept = layer.apply(p, x, training=True)
            return (y * y * y).sum(), (y, kept)

        (_, (y, p)), (by_p, by_x) = hg.value_and_grad(loss, argnums=(0, 1), has_aux=True)(p, hg.asarray(x))
        np.testing.assert_allclose(y.numpy(), right.detach().numpy(), **CLOSE)
        np.testing.assert_allclose(by_x.numpy(), slopes[0].numpy(), rtol=1e-8, atol=1e-9)
        for name, slope in zip(["weight", "bias"], slopes[1:]):
            np.testing.assert_allclose(by_p[name].numpy(), slope.numpy(), **CLOSE)
        if tracked:
            assert by_p["running_mean"].tolist() == by_p["running_var"].tolist() == [0, 0, 0]
        for name, kept in module.state_dict().items():
            np.testing.assert_allclose(p[name].numpy(), kept.numpy(), err_msg=name, **CLOSE)
    module.eval()
    np.testing.assert_allclose(layer(p, hg.asarray(x)).numpy(), module(torch.from_numpy(x)).detach().numpy(), **CLOSE)
    assert p.keys() == module.state_dict().keys()


def test_batch_norm_of_other_axes_and_mistakes():
    x, first = data(4, 5, 3), nn.BatchNorm(3, dtype=f8)
    last = nn.BatchNorm(3, axis=-1, dtype=f8)
    y, kept = last.apply(last.init(key), hg.asarray(x), training=True)
    z, other = first.apply(first.init(key), hg.asarray(x.transpose(0, 2, 1).copy()), training=True)
    np.testing.assert_allclose(y.numpy(), z.numpy().transpose(0, 2, 1), **CLOSE)
    np.testing.assert_allclose(kept["running_var"].numpy(), other["running_var"].numpy(), **CLOSE)
    for shape in ((4, 5), (4,), (1, 3)):
        with pytest.raises(ValueError, match=r"BatchNorm: .*\(%d" % shape[0]):
            nn.BatchNorm(3).apply(nn.BatchNorm(3).init(key), hg.ones(shape), training=True)
    assert nn.BatchNorm(3)(nn.BatchNorm(3).init(key), hg.ones((1, 3))).shape == (1, 3)  # inference may have one


def test_optimisers_leave_running_statistics():
    """Ten steps with decay beside PyTorch: weights and statistics."""
    layer = nn.Sequential(nn.Linear(4, 3, dtype=f8), nn.BatchNorm(3, dtype=f8))
    p, module = pair(layer, torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)))
    theirs, ours = torch.optim.AdamW(module.parameters(), 0.1, weight_decay=0.5), hg.optim.AdamW(0.1, decay=0.5)
    state = ours.init(p)

    def loss(p, x):
        y, kept = layer.apply(p, x, training=True)
        return (y * y * y).sum(), kept

    def step(p, state, x):
        (_, p), gradients = hg.value_and_grad(loss, has_aux=True)(p, x)
        return ours.update(p, gradients, state)

    step = hg.jit(step)
    for seed in range(10):
        x = data(6, 4, seed=seed)
        theirs.zero_grad()
        module(torch.from_numpy(x)).pow(3).sum().backward()
        theirs.step()
        p, state = step(p, state, hg.asarray(x))
    own = nn.state_dict(p)
    for name, right in module.state_dict().items():
        np.testing.assert_allclose(own[name].numpy(), right.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)


LENGTHS = np.array([2, 5])
PADDING = torch.from_numpy(np.arange(5) >= LENGTHS[:, None])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_attention(causal, bias):
    layer = nn.MultiHeadAttention(6, 3, bias, causal=causal, dtype=f8)
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1) if causal else None
    make = lambda: torch.nn.MultiheadAttention(6, 3, bias=bias, batch_first=True)
    attend = lambda module, x, **more: module(x, x, x, attn_mask=hidden, need_weights=False, **more)[0]
    compare(layer, make(), data(2, 5, 6), None, attend)
    compare(layer, make(), data(2, 5, 6), lambda p, x: layer.apply(p, x, lengths=hg.asarray(LENGTHS))[0],
            lambda module, x: attend(module, x, key_padding_mask=PADDING))


def test_attention_to_a_context_and_masks():
    layer, make = nn.MultiHeadAttention(6, 2, dtype=f8), lambda: torch.nn.MultiheadAttention(6, 2, batch_first=True)
    context, seen = data(2, 7, 6, seed=1), data(4, 7, seed=2) > -0.5
    c, unseen = torch.from_numpy(context), torch.from_numpy(~seen)
    compare(layer, make(), data(2, 4, 6), lambda p, x: layer.apply(p, x, context=hg.asarray(context))[0],
            lambda module, x: module(x, c, c)[0])
    compare(layer, make(), data(2, 4, 6), lambda p, x: layer.apply(p, x, context=hg.asarray(context), mask=hg.asarray(seen))[0],
            lambda module, x: module(x, c, c, attn_mask=unseen)[0])


def test_who_may_see_nothing_attends_to_zeros():
    layer = nn.MultiHeadAttention(4, 2)
    p, x = layer.init(key), hg.asarray(data(2, 3, 4).astype("f4"))
    p["out_proj"]["bias"] = hg.full(4, 0.25)
    value, slope = hg.value_and_grad(lambda x: layer.apply(p, x, lengths=hg.asarray([0, 3]))[0][0].sum())(x)
    assert float(value) == 3 and slope.tolist() == np.zeros((2, 3, 4)).tolist()


@pytest.mark.parametrize("kind", [nn.MultiHeadAttention, nn.TransformerBlock])
@pytest.mark.parametrize("is_jit", [False, True])
def test_a_cache_gives_what_the_whole_sequence_gives(kind, is_jit):
    layer = kind(6, 2, causal=True, dtype=f8)
    p, x = layer.init(key), hg.asarray(data(3, 7, 6))
    whole, cache, made = layer(p, x).numpy(), layer.cache(3, 8), []
    extend = hg.jit(layer.extend) if is_jit else layer.extend
    for first, last in ((0, 3), (3, 4), (4, 5), (5, 7)):
        y, cache = extend(p, x[:, first:last], cache)
        made.append(y.numpy())
    np.testing.assert_allclose(np.concatenate(made, 1), whole, **CLOSE)
    assert cache["used"].item() == 7 and cache["key"].shape == (3, 2, 8, 3)
    with pytest.raises(hg.IndexFault):
        layer.extend(p, x[:, :2], cache)[0].numpy()


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("bias", [False, True])
def test_transformer_block(first, activation, bias):
    make = lambda: torch.nn.TransformerEncoderLayer(6, 2, 10, 0.0, activation, batch_first=True, norm_first=first, bias=bias)
    layer = nn.TransformerBlock(6, 2, 10, getattr(hg, activation), norm_first=first, bias=bias, dtype=f8)
    compare(layer, make(), data(2, 5, 6))
    compare(layer, make(), data(2, 5, 6), lambda p, x: layer.apply(p, x, lengths=hg.asarray(LENGTHS))[0],
            lambda module, x: module(x, src_key_padding_mask=PADDING))
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
    causal = nn.TransformerBlock(6, 2, 10, getattr(hg, activation), norm_first=first, causal=True, bias=bias, dtype=f8)
    compare(causal, make(), data(2, 5, 6), None, lambda module, x: module(x, src_mask=hidden))


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
@pytest.mark.parametrize("bias", [False, True])
def test_recurrent_layers(name, bias):
    layer, make = getattr(nn, name)(4, 3, bias, f8), lambda: getattr(torch.nn, name)(4, 3, bias=bias, batch_first=True)
    compare(layer, make(), data(2, 5, 4), None, lambda module, x: module(x)[0])
    p, module = pair(layer, make())
    x, h, c = data(2, 5, 4), data(2, 3, seed=1), data(2, 3, seed=2)
    own, beside = ((h, c), tuple(torch.from_numpy(s[None]) for s in (h, c))) if name == "LSTM" else (h, torch.from_numpy(h[None]))
    own = tuple(map(hg.asarray, own)) if name == "LSTM" else hg.asarray(own)
    (y, last), (right, end) = layer.run(p, hg.asarray(x), own), module(torch.from_numpy(x), beside)
    np.testing.assert_allclose(y.numpy(), right.detach().numpy(), **CLOSE)
    for one, other in zip(last, end) if name == "LSTM" else [(last, end)]:
        np.testing.assert_allclose(one.numpy(), other.detach().numpy()[0], **CLOSE)
    for i in range(5):
        z, own = layer.step(p, hg.asarray(x[:, i]), own)
        np.testing.assert_allclose(z.numpy(), y[:, i].numpy(), **CLOSE)


# ---- dropout -------------------------------------------------------------------------------------------------------------

def test_channel_dropout():
    y = nn.ChannelDropout(0.25).apply({}, hg.ones((40, 50, 3, 2)), key, training=True)[0].numpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)} and (y == y[:, :, :1, :1]).all()
    assert abs((y == 0).mean() - 0.25) < 0.04
    y = nn.ChannelDropout(0.25, -1).apply({}, hg.ones((40, 3, 50)), key, training=True)[0].numpy()
    assert (y == y[:, :1]).all() and not (y == y[:, :, :1]).all()
    for axis in (0, 3, -3):
        with pytest.raises(ValueError, match="ChannelDropout"):
            nn.ChannelDropout(0.5, axis).apply({}, hg.ones((2, 3, 4)), key, training=True)


@pytest.mark.parametrize("p", [0.0, 0.25, 0.8, 1.0])
def test_alpha_dropout(p):
    """The two values that elements get are PyTorch's; mean and variance stay."""
    y = nn.AlphaDropout(p).apply({}, hg.ones(400, f8), key, training=True)[0].numpy()
    right = torch.nn.functional.alpha_dropout(torch.ones(400, dtype=torch.float64), p, True).unique().numpy()
    np.testing.assert_allclose(np.unique(y), right, rtol=1e-12)
    if 0 < p < 1:
        y = nn.AlphaDropout(p).apply({}, hg.random.normal(key, 40000), hg.random.key(1), training=True)[0].numpy()
        assert abs(y.mean()) < 0.03 and abs(y.var() - 1) < 0.05


# ---- text, states and mistakes ---------------------------------------------------------------------------------------------

def test_representations():
    model = nn.Sequential(nn.Embedding(9, 4, padding=0), nn.Sequential(nn.LayerNorm(4), hg.relu), nn.TransformerBlock(4, 2, 8, dropout=0.1))
    assert repr(model) == """Sequential(
  (0): Embedding(count=9, width=4, dtype='float32', padding=0)
  (1): Sequential(
    (0): LayerNorm(width=4, eps=1e-05, dtype='float32', affine=True, bias=True)
    (1): relu
  )
  (2): TransformerBlock(
    activation=gelu, dropout=0.1, norm_first=True
    (self_attn): MultiHeadAttention(width=4, heads=2, bias=True, dropout=0.1, causal=False, dtype='float32')
    (linear1): Linear(inputs=4, outputs=8, bias=True, dtype='float32')
    (linear2): Linear(inputs=8, outputs=4, bias=True, dtype='float32')
    (norm1): LayerNorm(width=4, eps=1e-05, dtype='float32', affine=True, bias=True)
    (norm2): LayerNorm(width=4, eps=1e-05, dtype='float32', affine=True, bias=True)
  )
)"""
    assert repr(nn.Sequential()) == "Sequential()"
    assert repr(nn.BatchNorm(3, momentum=None)).startswith("BatchNorm(width=3, eps=1e-05, affine=True")


def test_state_dicts_of_any_tree():
    Pair = collections.namedtuple("Pair", "a b")
    tree = {"p": [Pair(hg.ones(2), 3), None, ()], "step": hg.ones(()), 7: {"rate": 0.5, "on": True}}
    state = nn.state_dict(tree)
    assert list(state) == ["p.0.0", "p.0.1", "step", "7.rate", "7.on"] and state["p.0.1"] == 3 and state["7.on"] is True
    new = nn.load_state_dict(tree, {**state, "p.0.1": np.int64(5), "7.rate": hg.full((), 0.25), "step": np.float32(4), "7.on": np.False_})
    assert type(new["p"][0]) is Pair and new["p"][0].b == 5 and type(new["p"][0].b) is int and new["p"][1:] == [None, ()]
    assert new["step"].item() == 4 and new[7] == {"rate": 0.25, "on": False} and type(new[7]["on"]) is bool
    with pytest.raises(ValueError, match="it lacks step; it has besides stop"):
        nn.load_state_dict(tree, {"stop" if name == "step" else name: x for name, x in state.items()})
    for wrong, error, words in (({"a.b": hg.ones(1), "a": {"b": 2}}, ValueError, "two parts .*'a.b'"),
                                ({"a": ["text"]}, TypeError, "a.0 is str"),
                                ({"a": {2.5: hg.ones(1)}}, TypeError, "a has the key 2.5"), ({"a": object()}, TypeError, "a is object")):
        with pytest.raises(error, match=words):
            nn.state_dict(wrong)


def test_mistakes():
    attention, block = nn.MultiHeadAttention(4, 2, causal=True), nn.MultiHeadAttention(4, 2)
    p = block.init(key)
    for make, words in ((lambda: nn.MultiHeadAttention(5, 2), "5 of 2"), (lambda: nn.Embedding(3, 2, padding=3), "from -3 to 2, not 3"),
                        (lambda: nn.LSTM(0, 3), "LSTM: from 0"),
                        (lambda: nn.GRU(2, 3).run(nn.GRU(2, 3).init(key), hg.ones((0, 2))), "at least one"),
                        (lambda: attention.apply(p, hg.ones((3, 4)), context=hg.ones((2, 4))), "no context"),
                        (lambda: block(p, hg.ones((3, 5))), r"time, 4\], not \(3, 5\)"),
                        (lambda: nn.LayerNorm(1)(nn.LayerNorm(1).init(key), hg.ones((3, 4))), "does not end with"),
                        (lambda: nn.RMSNorm((4,))({}, hg.ones(())), "does not end with")):
        with pytest.raises(ValueError, match=words):
            make()
    with pytest.raises(TypeError, match="a mask is bool"):
        block.apply(p, hg.ones((3, 4)), mask=hg.ones((3, 3)))
