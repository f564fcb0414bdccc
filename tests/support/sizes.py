# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""What a gradient with few numbers is judged on: the root of the squares of the terms it sums.

da_log is one number a head and dbeta one a token and head. Such a sum may come out near zero by
chance, and then its error relative to itself says nothing about rounding. The root of its terms'
squares is what a sum of terms with random signs comes to: relative to that no head of da_log is
far off (docs/accuracy.md has both).
"""

import numpy as np

from tests.support import reference
from tests.support.metrics import norm


def da_log_terms(x, dg):
    """da_log = sum of dg (g + dt_bias) under the safe gate, and of dg softplus / sigmoid under the
    other one."""
    gate = np.asarray(x.g, np.float64)
    if x.dt_bias is not None:
        gate = gate + np.reshape(x.dt_bias, (1, gate.shape[1], 1, gate.shape[3]))
    if not x.options.get("safe_gate", True):
        gate = reference.softplus(gate) / reference.sigmoid(gate)
    return np.asarray(dg, np.float64) * gate


def da_log(x, dg):
    """0 where the gate comes activated."""
    gated = x.a_log is not None and x.options.get("use_gate_in_kernel", True)
    return norm(da_log_terms(x, dg)) if gated else 0.0


def dbeta_terms(x, dv):
    """v_new = beta r and dv = beta dr, so dbeta = sum over the values of r dr = v_new dv / beta^2,
    times the sigmoid's slope where beta comes raw."""
    _, _, cache = x.forward()
    beta = np.asarray(cache["beta_eff"], np.float64)
    slope = np.ones_like(beta)
    if x.options.get("use_beta_sigmoid_in_kernel"):
        slope = beta * (1 - beta / (2.0 if x.options.get("allow_neg_eigval") else 1.0))
    factor = np.divide(slope, beta**2, out=np.zeros_like(beta), where=beta != 0)
    return cache["v_new"] * dv * factor[..., None]


def of(x, want):
    """The sizes of an inputs.Inputs whose float64 results are `want`, by gradient."""
    return {"da_log": da_log(x, want["dg"]), "dbeta": norm(dbeta_terms(x, want["dv"]))}
