# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""docs/stages.md carries the stage table as it is."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_stage_table_in_the_documentation_is_current():
    spec = importlib.util.spec_from_file_location(
        "stage_table_for_docs", ROOT / "hyper_parallel_kda" / "stage_table.py"
    )
    table = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = table  # dataclasses look their module up
    try:
        spec.loader.exec_module(table)
    finally:
        del sys.modules[spec.name]
    text = (ROOT / "docs" / "stages.md").read_text()
    assert table.markdown().strip() in text, (
        "the last section of docs/stages.md is not what hyper_parallel_kda/stage_table.py prints"
    )
