"""Schedules of a rate: functions of how many steps were made before. They are computed in float64 and rounded to float32, with the same
bits for a number and for an array, under jit too."""

from __future__ import annotations

from hologram import _core
from hologram._core import Array

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Callable
    from typing import Any

_PI = 3.141592653589793


class Schedule:
    """What the functions here make: schedule(steps) is the rate after so many steps, a number or an array of any shape: float32.

        rate = hg.optim.Schedule(lambda n: 0.1 / (1 + n), "falling")    # your own; n is a float64 array
        assert float(rate(1)) == float(hg.asarray(0.05))"""

    def __init__(self, rate_at: Callable[[Array], Array], text: str = "Schedule(...)") -> None:
        self._rate_at, self._text = rate_at, text

    def __call__(self, steps: Any) -> Array:
        return self._rate_at(_core.asarray(steps).astype("float64")).astype("float32")

    def __repr__(self) -> str:
        return self._text


def _need_steps(who: str, steps: float) -> None:
    if not steps >= 1:
        raise ValueError(f"{who}: the number of steps is 1 or more, not {steps}")


def _wave(begin: float, end: float, t: Array) -> Array:
    """From begin (t = 0) to end (t = 1) along half a cosine."""
    return end + (begin - end) * 0.5 * (1 + _core.cos(_PI * t))


def constant(rate: float) -> Schedule:
    """Always the same rate.

        schedule = hg.optim.constant(0.1)"""
    return Schedule(lambda n: n * 0 + rate, f"constant({rate})")


def linear(first: float, last: float, steps: int) -> Schedule:
    """From first to last in equal parts over so many steps, then last (torch's LinearLR). ValueError: steps is below 1.

        schedule = hg.optim.linear(0.1, 0.0, 100)    # schedule(50) is 0.05"""
    _need_steps("linear", steps)
    return Schedule(lambda n: first + (last - first) * _core.minimum(n / steps, 1.0), f"linear({first}, {last}, steps={steps})")


def step_decay(rate: float, every: int, factor: float = 0.1) -> Schedule:
    """The rate, times factor after every so many steps (torch's StepLR). ValueError: every is below 1.

        schedule = hg.optim.step_decay(0.1, every=30)    # schedule(30) is 0.01"""
    _need_steps("step_decay", every)
    return Schedule(lambda n: rate * _core.pow(factor, _core.floor(n / every)), f"step_decay({rate}, every={every}, factor={factor})")


def exponential(rate: float, factor: float) -> Schedule:
    """rate * factor^n (torch's ExponentialLR).

        schedule = hg.optim.exponential(0.1, 0.99)    # schedule(1) is 0.099"""
    return Schedule(lambda n: rate * _core.pow(factor, n), f"exponential({rate}, {factor})")


def cosine(rate: float, steps: int, last: float = 0.0) -> Schedule:
    """From rate to last along half a cosine over so many steps, then last (Loshchilov and Hutter 2017; torch's CosineAnnealingLR).
    ValueError: steps is below 1.

        schedule = hg.optim.cosine(0.1, 100)    # schedule(50) is 0.05"""
    _need_steps("cosine", steps)
    return Schedule(lambda n: _wave(rate, last, _core.minimum(n / steps, 1.0)), f"cosine({rate}, steps={steps}, last={last})")


def warmup(after: float | Callable[[Array], Array], steps: int, first: float = 0.0) -> Schedule:
    """From first to the rate that `after` begins with, in equal parts over so many steps; then `after`, a number or a schedule that counts
    from there (Goyal and others 2017). ValueError: steps is below 1.

        schedule = hg.optim.warmup(hg.optim.cosine(0.1, 90), 10)    # schedule(5) is 0.05, schedule(10) is 0.1"""
    _need_steps("warmup", steps)
    then = after if isinstance(after, Schedule) else Schedule(after) if callable(after) else constant(after)

    def rate_at(n: Array) -> Array:
        begin = then._rate_at(n * 0)
        return _core.where(n < steps, first + (begin - first) * (n / steps), then._rate_at(_core.maximum(n - steps, 0.0)))

    return Schedule(rate_at, f"warmup({after!r}, steps={steps}, first={first})")


def one_cycle(peak: float, steps: int, rise: float = 0.3, start: float = 25.0, end: float = 1e4) -> Schedule:
    """From peak / start up to peak, then down to peak / start / end, along half cosines; the rise takes that share of the steps (Smith and
    Topin 2019; torch's OneCycleLR). ValueError: steps is below 2, or rise not between 0 and 1.

        schedule = hg.optim.one_cycle(0.1, 100)    # schedule(0) is 0.004, schedule(29) is 0.1"""
    _need_steps("one_cycle", steps - 1)
    if not 0 < rise < 1:
        raise ValueError(f"one_cycle: the rise is a share of the steps, between 0 and 1, not {rise}")
    top, last = rise * steps - 1, steps - 1

    def rate_at(n: Array) -> Array:
        up, down = _wave(peak / start, peak, n / top), _wave(peak, peak / start / end, _core.minimum((n - top) / (last - top), 1.0))
        return _core.where(n < top, up, down)

    return Schedule(rate_at, f"one_cycle({peak}, steps={steps}, rise={rise}, start={start}, end={end})")
