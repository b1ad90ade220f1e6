"""hg.optim beside torch.optim and torch's schedulers: ten steps of each, eager, recorded and compiled; states, clipping, schedules."""

import copy
import io

import numpy as np
import pytest

import hologram as hg

torch = pytest.importorskip("torch")
schedulers = torch.optim.lr_scheduler
o = hg.optim


def data(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def lion(parameters, gradients, rate=1e-4, beta1=0.9, beta2=0.99, decay=0.0, maximize=False):
    """The paper's algorithm 2; PyTorch has no Lion."""
    m = [np.zeros_like(p) for p in parameters]
    for step in gradients:
        for i, g in enumerate(step):
            g = -g if maximize else g
            parameters[i] = parameters[i] - rate * (np.sign(beta1 * m[i] + (1 - beta1) * g) + decay * parameters[i])
            m[i] = beta2 * m[i] + (1 - beta2) * g
    return parameters


CASES = [
    (lambda: o.SGD(0.1), lambda p: torch.optim.SGD(p, 0.1)),
    (lambda: o.SGD(0.1, 0.9, nesterov=True, decay=0.1, maximize=True),
     lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.1, maximize=True)),
    (lambda: o.SGD(0.1, 0.9, dampening=0.5), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, dampening=0.5)),
    (lambda: o.Adam(), lambda p: torch.optim.Adam(p)),
    (lambda: o.Adam(0.1, 0.8, 0.9, 1e-4, decay=0.1, amsgrad=True),
     lambda p: torch.optim.Adam(p, 0.1, (0.8, 0.9), 1e-4, weight_decay=0.1, amsgrad=True)),
    (lambda: o.Adam(0.1, maximize=True), lambda p: torch.optim.Adam(p, 0.1, maximize=True)),
    (lambda: o.AdamW(0.1), lambda p: torch.optim.AdamW(p, 0.1)),
    (lambda: o.AdamW(0.1, decay=0.3, amsgrad=True), lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.3, amsgrad=True)),
    (lambda: o.NAdam(), lambda p: torch.optim.NAdam(p)),
    (lambda: o.NAdam(0.1, 0.8, 0.9, decay=0.1, momentum_decay=0.1),
     lambda p: torch.optim.NAdam(p, 0.1, (0.8, 0.9), weight_decay=0.1, momentum_decay=0.1)),
    (lambda: o.NAdam(0.1, decay=0.1, decoupled=True, maximize=True),
     lambda p: torch.optim.NAdam(p, 0.1, weight_decay=0.1, decoupled_weight_decay=True, maximize=True)),
    (lambda: o.Adamax(), lambda p: torch.optim.Adamax(p)),
    (lambda: o.Adamax(0.1, 0.8, 0.9, 1e-3, 0.1, maximize=True), lambda p: torch.optim.Adamax(p, 0.1, (0.8, 0.9), 1e-3, 0.1, maximize=True)),
    (lambda: o.RMSprop(), lambda p: torch.optim.RMSprop(p)),
    (lambda: o.RMSprop(0.01, 0.9, 1e-3, 0.9, decay=0.1), lambda p: torch.optim.RMSprop(p, 0.01, 0.9, 1e-3, 0.1, 0.9)),
    (lambda: o.RMSprop(0.01, centered=True), lambda p: torch.optim.RMSprop(p, 0.01, centered=True)),
    (lambda: o.RMSprop(0.01, momentum=0.5, centered=True, maximize=True),
     lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.5, centered=True, maximize=True)),
    (lambda: o.Adagrad(), lambda p: torch.optim.Adagrad(p)),
    (lambda: o.Adagrad(0.1, 0.2, 1e-3, 0.1, initial=0.5, maximize=True),
     lambda p: torch.optim.Adagrad(p, 0.1, 0.2, 0.1, 0.5, 1e-3, maximize=True)),
    (lambda: o.Lion(), {}),
    (lambda: o.Lion(0.1, 0.8, 0.9, 0.1, maximize=True), {"rate": 0.1, "beta1": 0.8, "beta2": 0.9, "decay": 0.1, "maximize": True}),
    (lambda: o.Adam(o.cosine(0.1, 8)), lambda p: torch.optim.Adam(p, 0.1)),
    (lambda: o.SGD(o.cosine(0.1, 8)), lambda p: torch.optim.SGD(p, 0.1)),
    (lambda: o.RMSprop(o.cosine(0.1, 8)), lambda p: torch.optim.RMSprop(p, 0.1)),
]
STEPS = [[data(3, 4, seed=10 + i), data(5, seed=20 + i)] for i in range(10)]
START = [data(3, 4, seed=1), data(5, seed=2)]


def by_torch(make, kind, has_schedule):
    parameters = [torch.nn.Parameter(torch.from_numpy(p.astype(kind))) for p in START]
    optimiser = make(parameters)
    rates = schedulers.CosineAnnealingLR(optimiser, 8) if has_schedule else None
    for number, gradients in enumerate(STEPS):
        for p, g in zip(parameters, gradients):
            p.grad = torch.from_numpy(g.astype(kind))
        optimiser.step()
        if rates is not None and number < 8:
            rates.step()
    return [p.detach().numpy() for p in parameters]


def by_us(optimizer, kind, update, first=0, state=None, p=None):
    p = {"w": [hg.asarray(START[0].astype(kind))], "b": hg.asarray(START[1].astype(kind))} if p is None else p
    state = optimizer.init(p) if state is None else state
    for gradients in STEPS[first:]:
        p, state = update(p, {"w": [hg.asarray(gradients[0].astype(kind))], "b": hg.asarray(gradients[1].astype(kind))}, state)
    return p, state


def arrays(tree):
    return [x.numpy() for x in hg.nn.state_dict(tree).values()]


@pytest.mark.parametrize("ours, theirs", CASES)
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_ten_steps(ours, theirs, kind):
    """The results are PyTorch's; the bits are the same eagerly, recorded and compiled."""
    optimizer = ours()
    p, state = by_us(optimizer, kind, optimizer.update)
    expected = lion(list(START), STEPS, **theirs) if isinstance(theirs, dict) else by_torch(theirs, kind, callable(optimizer.rate))
    for own, right in zip(arrays(p), expected):
        np.testing.assert_allclose(own, right, rtol=2e-5 if kind == "f4" else 2e-6, atol=2e-6 if kind == "f4" else 1e-7)
    compiled, with_it = by_us(optimizer, kind, hg.jit(optimizer.update))
    with hg.eager():
        at_once, without = by_us(optimizer, kind, optimizer.update)
    for one, two, three in zip(arrays([p, state]), arrays([compiled, with_it]), arrays([at_once, without])):
        assert one.tobytes() == two.tobytes() == three.tobytes()


@pytest.mark.parametrize("ours, theirs", CASES)
def test_resuming_gives_the_same_bits(ours, theirs, tmp_path):
    """From a state dict, or a file, of parameters and state after five steps, on."""
    optimizer = ours()
    p, state = by_us(optimizer, "f4", optimizer.update)
    half = STEPS[:5]
    q = {"w": [hg.asarray(START[0].astype("f4"))], "b": hg.asarray(START[1].astype("f4"))}
    s = optimizer.init(q)
    for gradients in half:
        q, s = optimizer.update(q, {"w": [hg.asarray(gradients[0].astype("f4"))], "b": hg.asarray(gradients[1].astype("f4"))}, s)
    written = {name: x.numpy().copy() for name, x in hg.nn.state_dict({"parameters": q, "optimizer": s}).items()}
    fresh = {"w": [hg.zeros((3, 4))], "b": hg.zeros(5)}
    read = hg.nn.load_state_dict({"parameters": fresh, "optimizer": ours().init(fresh)}, written)
    hg.save(tmp_path / "all.safetensors", {"parameters": q, "optimizer": s})
    for tree in (read, hg.load(tmp_path / "all.safetensors")):
        q, s = by_us(optimizer, "f4", optimizer.update, 5, tree["optimizer"], tree["parameters"])
        assert_same([p, state], [q, s])


def assert_same(one, other):
    assert [x.tobytes() for x in arrays(one)] == [x.tobytes() for x in arrays(other)]


def test_a_centred_gradient_that_is_constant_makes_no_nan():
    """The variance is 0 then; PyTorch's difference may be below it."""
    optimizer = o.RMSprop(1e-3, alpha=0.5, centered=True, eps=1e-3)
    p = hg.ones(4)
    state = optimizer.init(p)
    for _ in range(60):
        p, state = optimizer.update(p, hg.asarray(np.array([0.1, 0.3, 0.7, 1e-3], "f4")), state)
    assert np.isfinite(p.numpy()).all()


def test_statistics_stay():
    """What a layer keeps is no parameter: decay does not shrink it, and a step number stays whole."""
    p = {"weight": hg.ones(3), "running_mean": hg.ones(3), "running_more": {"a": [hg.ones(2)]}, "count": hg.asarray(np.array(4))}
    for optimizer in (o.AdamW(0.1), o.Lion(0.1, decay=0.5), o.NAdam(0.1, decay=0.5), o.SGD(0.1, 0.9, decay=0.5)):
        q, state = optimizer.update(p, hg.nn.load_state_dict(p, hg.nn.state_dict(p)), optimizer.init(p))
        assert q["weight"].tolist()[0] < 0.99 and q["running_mean"].tolist() == [1, 1, 1] and q["running_more"]["a"][0].tolist() == [1, 1]
        assert q["count"].item() == 4 and q["count"].dtype == "int64"
        q, _ = optimizer.update(q, p, state)
        assert q["running_mean"].tolist() == [1, 1, 1]


def test_a_state_of_another_optimiser():
    p = hg.ones(3)
    for state in ({}, o.SGD(0.1, 0.9).init(p), o.Adam().init(p)):
        with pytest.raises(ValueError, match="Adam: the state has no .*; init"):
            o.Adam(amsgrad=True).update(p, p, state)


def test_clip_value():
    g = {"a": hg.asarray(np.array([3.0, -0.25, np.nan, -np.inf], "f4")), "b": [hg.ones((1, 2), "float64")]}
    clipped = o.clip_value(g, 0.5)
    np.testing.assert_array_equal(clipped["a"].numpy(), np.array([0.5, -0.25, np.nan, -0.5], "f4"))
    assert clipped["b"][0].tolist() == [[0.5, 0.5]] and clipped["b"][0].dtype == "float64"
    t = torch.nn.Parameter(torch.zeros(4))
    t.grad = torch.tensor([3.0, -0.25, np.nan, -np.inf])
    torch.nn.utils.clip_grad_value_([t], 0.5)
    np.testing.assert_array_equal(clipped["a"].numpy(), t.grad.numpy())
    with pytest.raises(ValueError, match="clip_value"):
        o.clip_value(g, -1.0)


def rates(make, count, first):
    """What a scheduler of torch gives one step after another."""
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=first)
    scheduler, found = make(optimiser), []
    for _ in range(count):
        found.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        scheduler.step()
    return np.array(found)


SCHEDULES = [
    (o.constant(0.1), lambda p: schedulers.ConstantLR(p, 1.0)),
    (o.linear(0.1, 0.02, 10), lambda p: schedulers.LinearLR(p, 1.0, 0.2, 10)),
    (o.step_decay(0.1, 3, 0.5), lambda p: schedulers.StepLR(p, 3, 0.5)),
    (o.exponential(0.1, 0.9), lambda p: schedulers.ExponentialLR(p, 0.9)),
    (o.cosine(0.1, 14, 0.01), lambda p: schedulers.CosineAnnealingLR(p, 14, 0.01)),
    (o.one_cycle(0.1, 15), lambda p: schedulers.OneCycleLR(p, 0.1, 15)),
    (o.one_cycle(0.1, 15, 0.6, 10.0, 100.0),
     lambda p: schedulers.OneCycleLR(p, 0.1, 15, pct_start=0.6, div_factor=10.0, final_div_factor=100.0)),
    (o.warmup(o.cosine(0.1, 10), 5, 0.01),
     lambda p: schedulers.SequentialLR(p, [schedulers.LinearLR(p, 0.1, 1.0, 5), schedulers.CosineAnnealingLR(p, 10)], [5])),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ours, theirs", SCHEDULES)
def test_schedules(ours, theirs):
    """Within an ulp of float32 of PyTorch's; the same bits for a number, an array and a traced array."""
    steps, expected = np.arange(15), rates(theirs, 15, 0.1)
    found = ours(steps).numpy()
    np.testing.assert_allclose(found, expected, rtol=1.2e-7, atol=1e-12)
    assert found.dtype == np.float32 and [float(ours(i)) for i in range(15)] == found.tolist()
    assert hg.jit(ours)(hg.asarray(steps)).tolist() == hg.jit(ours)(hg.asarray(steps.astype("f4"))).tolist() == found.tolist()


def test_what_schedules_do_behind_their_end():
    assert float(o.cosine(1.0, 5, 0.25)(100)) == 0.25 and float(o.linear(1.0, 0.5, 5)(7)) == 0.5
    assert float(o.one_cycle(1.0, 5)(50)) == pytest.approx(4e-6) and float(o.warmup(0.5, 4)(9)) == 0.5
    assert float(o.warmup(lambda n: 1.0 / (1 + n), 4)(5)) == 0.5 and float(o.one_cycle(1.0, 10, 0.1)(0)) == 1


def test_mistakes_of_schedules():
    for make in (lambda: o.cosine(0.1, 0), lambda: o.linear(0.1, 0.0, 0), lambda: o.step_decay(0.1, 0), lambda: o.warmup(0.1, 0),
                 lambda: o.one_cycle(0.1, 1), lambda: o.one_cycle(0.1, 10, rise=1.0), lambda: o.Adagrad(initial=-1.0)):
        with pytest.raises(ValueError, match="not|more"):
            make()


def test_representations():
    assert repr(o.SGD(0.1, momentum=0.9)) == "SGD(rate=0.1, momentum=0.9, dampening=0.0, nesterov=False, decay=0.0, maximize=False)"
    text = "Adam(rate=warmup(cosine(0.1, steps=90, last=0.0), steps=10, first=0.0), beta1=0.9"
    assert repr(o.Adam(o.warmup(o.cosine(0.1, 90), 10))).startswith(text)
    for ours, _ in CASES:
        optimizer = ours()
        assert repr(eval(repr(optimizer), vars(o))) == repr(optimizer) == repr(copy.copy(optimizer))


# ---- on PyTorch's tensors --------------------------------------------------------------------------------------------------

def tensors(kind="f4"):
    return [torch.nn.Parameter(torch.from_numpy(p.astype(kind))) for p in START]


def take_steps(optimiser, parameters, steps, kind="f4"):
    for gradients in steps:
        optimiser.zero_grad()
        for p, g in zip(parameters, gradients):
            p.grad = torch.from_numpy(g.astype(kind))
        optimiser.step()


@pytest.mark.parametrize("ours, theirs", CASES)
def test_steps_on_tensors_have_the_same_bits(ours, theirs):
    """Also from a state dict of torch's on, which is written after four steps."""
    hg_torch = pytest.importorskip("hologram_torch")
    expected, state = by_us(ours(), "f4", ours().update)
    parameters = tensors()
    take_steps(hg_torch.optim.Optimizer(parameters, ours()), parameters, STEPS)
    again = tensors()
    first = hg_torch.optim.Optimizer(again, ours())
    take_steps(first, again, STEPS[:4])
    written = io.BytesIO()
    torch.save(first.state_dict(), written)
    second = hg_torch.optim.Optimizer(again, ours())
    second.load_state_dict(torch.load(io.BytesIO(written.getvalue()), weights_only=True))
    take_steps(second, again, STEPS[4:])
    for own, tensor, other in zip(arrays(expected), parameters, again):
        assert own.tobytes() == tensor.detach().numpy().tobytes() == other.detach().numpy().tobytes()


def test_an_optimiser_of_tensors_is_one_of_torchs(tmp_path):
    """Schedulers, closures, groups, parameters without gradients; fit goes on from its checkpoint."""
    hg_torch = pytest.importorskip("hologram_torch")
    p, q = tensors()
    optimiser = hg_torch.optim.Optimizer([{"params": [p]}, {"params": [q], "lr": 0.5}], o.SGD(0.1))
    scheduler = schedulers.StepLR(optimiser, 1, 0.5)
    p.grad = torch.ones_like(p)
    before = [p.detach().clone(), q.detach().clone()]
    assert optimiser.step(lambda: 7) == 7
    scheduler.step()
    q.grad = torch.ones_like(q)
    optimiser.step()
    np.testing.assert_allclose((before[0] - p).detach().numpy(), np.full((3, 4), 0.15), rtol=1e-5)
    np.testing.assert_allclose((before[1] - q).detach().numpy(), np.full(5, 0.25), rtol=1e-5)
    other = hg_torch.optim.Optimizer([p], o.SGD(0.1, 0.9))
    other.load_state_dict(hg_torch.optim.Optimizer([p], o.SGD(0.1)).state_dict())
    scheduled = hg_torch.optim.Optimizer([p], o.Lion(o.linear(0.5, 0.25, 2)))
    for rate in (0.5, 0.375, 0.25):
        scheduled.step()
        assert scheduled.param_groups[0]["lr"] == rate

    def trained(epochs, path):
        torch.manual_seed(0)
        model = hg_torch.nn.Linear(4, 1)
        batches = [(torch.from_numpy(data(6, 4, seed=i).astype("f4")), torch.ones(6, 1)) for i in range(3)]
        hg_torch.training.fit(model, hg_torch.functional.mse_loss, hg_torch.optim.Optimizer(model.parameters(), o.NAdam(0.05)), batches,
                              epochs, checkpoint=path, progress=False)
        return [x.numpy().tobytes() for x in model.state_dict().values()]

    whole = trained(4, tmp_path / "a")
    trained(2, tmp_path / "b")
    assert trained(4, tmp_path / "b") == whole


def test_a_state_of_another_kind_is_refused():
    hg_torch = pytest.importorskip("hologram_torch")
    parameters = tensors()
    lion, adam = hg_torch.optim.Optimizer(parameters, o.Lion()), hg_torch.optim.Optimizer(parameters, o.Adam())
    take_steps(lion, parameters, STEPS[:1])
    adam.load_state_dict(lion.state_dict())
    with pytest.raises(ValueError, match="another kind of optimiser.*'step'|another kind of optimiser.*'square'"):
        take_steps(adam, parameters, STEPS[:1])
