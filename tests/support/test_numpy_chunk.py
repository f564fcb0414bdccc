# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""The benchmark's NumPy yardstick computes KDA too."""

import pytest

from benchmarks import numpy_chunk
from tests.support import inputs, metrics


@pytest.mark.parametrize("decay", ["lasting", "mixed", "bound"])
def test_numpy_chunk_against_float64(decay):
    x = inputs.make_inputs(1, batch=2, tokens=192, heads=2, decay=decay, initial_state=True)
    output, state, cache = numpy_chunk.forward(
        x.q, x.k, x.v, x.g, x.beta, x.scale, x.a_log, x.dt_bias, x.initial_state
    )
    got = dict(output=output, final_state=state, **numpy_chunk.backward(cache, x.d_o, x.dht))
    allowed = dict.fromkeys(got, 1e-3)
    metrics.check_all(got, x.results(), allowed, x.upstream_norm(), x.case)
