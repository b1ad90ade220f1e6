"""A hidden Markov model: the likelihood by the forward recursion, the best path by Viterbi's, and posteriors as a gradient."""

import numpy as np

import hologram as hg


def forward(xp, start, moves, emitted):
    alpha = start + emitted[0]
    for t in range(1, emitted.shape[0]):
        terms = alpha[:, None] + moves
        top = xp.max(terms, axis=0)
        alpha = top + xp.log(xp.sum(xp.exp(terms - top), axis=0)) + emitted[t]
    top = xp.max(alpha)
    return top + xp.log(xp.sum(xp.exp(alpha - top)))


def viterbi(xp, start, moves, emitted):
    best, back = start + emitted[0], []
    for t in range(1, emitted.shape[0]):
        terms = best[:, None] + moves
        back.append(xp.argmax(terms, axis=0))
        best = xp.max(terms, axis=0) + emitted[t]
    path = [xp.argmax(best)]
    for choices in reversed(back):
        path.append(choices[path[-1]])
    return xp.stack(path[::-1])


def test_hidden_markov(both):
    rng = np.random.default_rng(12)
    start = np.log(rng.dirichlet(np.ones(3)))
    moves = np.log(rng.dirichlet(np.ones(3) * 0.5, 3))
    emitted = np.log(rng.dirichlet(np.ones(3), 40))
    both(forward, start, moves, emitted, rtol=1e-11)
    path = both(viterbi, start, moves, emitted)
    assert path.shape == (40,)
    posterior = hg.grad(lambda e: forward(hg, hg.asarray(start), hg.asarray(moves), e), check=True)(hg.asarray(emitted))
    np.testing.assert_allclose(np.asarray(posterior).sum(axis=1), np.ones(40), rtol=1e-10)
