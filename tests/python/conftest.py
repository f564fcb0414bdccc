# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""Fixtures: fake op libraries and small inputs."""

import numpy as np
import pytest

from tests.python import fake_opapi


@pytest.fixture(scope="session")
def build_fake(tmp_path_factory):
    """Builds (once each) and opens a fake library without the given symbols."""
    built = {}

    def build(*missing):
        if missing not in built:
            folder = tmp_path_factory.mktemp("fake")
            built[missing] = fake_opapi.Fake(fake_opapi.build(folder, "fake", missing))
        return built[missing]

    return build


@pytest.fixture
def fake(build_fake, monkeypatch):
    """A complete fake library, chosen for the calls of this test."""
    library = build_fake()
    library.fail("")
    library.workspace(0)
    monkeypatch.setenv("HYPER_PARALLEL_KDA_OPAPI", str(library.path))
    yield library
    assert library.live_objects == 0, "the bridge leaks ACL objects"


class Inputs:
    """Random arguments of npu_chunk_kda; attributes may be replaced before ``call``."""

    def __init__(self, layout="BNSD", batch=2, heads=3, tokens=65, seed=0):
        import mindspore as ms

        rng = np.random.default_rng(seed)

        def tensor(*shape, dtype=ms.bfloat16):
            return ms.Tensor(rng.standard_normal(shape).astype(np.float32)).astype(dtype)

        def in_layout(*tail):
            middle = (heads, tokens) if layout == "BNSD" else (tokens, heads)
            return (batch, *middle, *tail)

        self.tensor = tensor
        self.q, self.k, self.v, self.g = (tensor(*in_layout(128)) for _ in range(4))
        self.beta = tensor(*in_layout())
        self.a_log = tensor(heads, dtype=ms.float32)
        self.dt_bias = tensor(heads, 128, dtype=ms.float32)
        self.initial_state = tensor(batch, heads, 128, 128, dtype=ms.float32)
        self.options = dict(layout=layout, safe_gate=True, use_gate_in_kernel=True)

    def arguments(self, **changes):
        names = ("q", "k", "v", "g", "beta", "a_log", "dt_bias")
        arguments = {name: getattr(self, name) for name in names}
        return {**arguments, "scale": 0.125, **self.options, **changes}


@pytest.fixture
def make_inputs():
    return Inputs
