"""A European call by Monte Carlo: price and delta, beside Black and Scholes' closed form; the delta is the gradient of the price."""

import math

import numpy as np

import hologram as hg


def price(spot, strike, rate, volatility, years, normal):
    end = spot * hg.exp((rate - volatility**2 / 2) * years + volatility * math.sqrt(years) * normal)
    return hg.mean(hg.maximum(end - strike, 0)) * math.exp(-rate * years)


def closed_form(spot, strike, rate, volatility, years):
    phi = lambda z: 0.5 * (1 + math.erf(z / math.sqrt(2)))
    d1 = (math.log(spot / strike) + (rate + volatility**2 / 2) * years) / (volatility * math.sqrt(years))
    d2 = d1 - volatility * math.sqrt(years)
    return spot * phi(d1) - strike * math.exp(-rate * years) * phi(d2), phi(d1)


def test_call_option():
    normal = hg.random.normal(hg.random.key(3), (200_000,), dtype="float64")
    normal = hg.concat([normal, -normal])  # antithetic
    spot = hg.asarray(100.0, dtype="float64")
    value, delta = hg.value_and_grad(lambda s: price(s, 105.0, 0.02, 0.25, 1.5, normal))(spot)
    expected, expected_delta = closed_form(100.0, 105.0, 0.02, 0.25, 1.5)
    assert abs(float(value) / expected - 1) < 5e-3 and abs(float(delta) / expected_delta - 1) < 5e-3
    draws = np.asarray(normal)
    end = 100 * np.exp((0.02 - 0.25**2 / 2) * 1.5 + 0.25 * math.sqrt(1.5) * draws)
    np.testing.assert_allclose(float(value), np.maximum(end - 105, 0).mean() * math.exp(-0.03), rtol=1e-11)
    np.testing.assert_allclose(float(delta), ((end > 105) * end / 100).mean() * math.exp(-0.03), rtol=1e-11)
    hg.grad(lambda s: price(s, 105.0, 0.02, 0.25, 1.5, normal[:1000]), check=True)(spot)
