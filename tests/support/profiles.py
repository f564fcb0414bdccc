# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""How many examples property tests run: few in the test command, many on demand.

    KDA_PROPERTY_EXAMPLES=20 python -m pytest tests/system/test_options.py --hypothesis-seed=1

runs twenty times as many. Every run draws a new seed (tests/conftest.py) and names it at its end.
"""

import os

from hypothesis import HealthCheck, settings

FACTOR = float(os.environ.get("KDA_PROPERTY_EXAMPLES", "1"))


def bounded(quick):
    """Settings with `quick` examples, times the factor. Nothing is kept between runs: a seed says
    all."""
    return settings(
        max_examples=max(1, round(quick * FACTOR)),
        deadline=None,
        database=None,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
