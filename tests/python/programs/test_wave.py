"""A wave on a string with fixed ends; its energy stays what it was."""

import numpy as np


def vibrate(xp, u):
    before, energies, courant = u, [], 0.9
    for _ in range(200):
        bend = xp.zeros_like(u)
        bend[1:-1] = u[2:] - 2 * u[1:-1] + u[:-2]
        after = 2 * u - before + courant**2 * bend
        kinetic = xp.sum((after - u) ** 2)
        potential = courant**2 * xp.sum((after[1:] - after[:-1]) * (u[1:] - u[:-1]))
        energies.append(kinetic + potential)
        before, u = u, after
    return u, xp.stack(energies)


def test_wave(both):
    x = np.linspace(0, 1, 65)
    _, energies = both(vibrate, np.exp(-200 * (x - 0.3) ** 2) * np.sin(np.pi * x), rtol=1e-9, atol=1e-12)
    energies = np.asarray(energies)
    assert np.ptp(energies) < 1e-9 * energies[0]
