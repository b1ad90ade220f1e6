"""Sums and products of long lists on a GPU, whose chunks are folded side by side: the bits of the processor."""

import hashlib

import numpy as np

import double_of_cuda
import hologram as hg


def digest():
    rng, made = np.random.default_rng(3), hashlib.md5()
    for name, sources, places, width in (("scatter_add", 4200, 2, 1), ("scatter_multiply", 4097, 1, 1)):
        source, x = (rng.random((n, width)) * 0.2 + 0.9 for n in (sources, places))
        index = hg.zeros((sources, 1), "int64")
        made.update(np.asarray(getattr(hg, name)(hg.asarray(x.astype("f4")), index, hg.asarray(source.astype("f4")), axis=0)).tobytes())
    return made.hexdigest()


@double_of_cuda.needed
def test_chunks_beside_each_other():
    assert double_of_cuda.digest_of("test_hot_rows") == digest()
