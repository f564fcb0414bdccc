# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The hyper_parallel_kda authors
"""check_cann finds every known-bad line, names file, line and rule, and passes what is good.

A bad source marks the lines it must be refused for: `// bad: rule rule` behind them, or
`// bad-next: rule` above.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.build_tree import ROOT

HERE = Path(__file__).resolve().parent
BAD = sorted((HERE / "bad").rglob("*.cpp"))
GOOD = sorted((HERE / "good").rglob("*.cpp"))
TOOLKIT = os.environ.get("ASCEND_HOME_PATH")


def check(paths, *options, toolkit=None):
    kernels = [str(p) for p in paths if p.parent.name != "host"]
    hosts = [str(p) for p in paths if p.parent.name == "host"]
    environment = {k: v for k, v in os.environ.items() if k != "ASCEND_HOME_PATH"}
    if toolkit:
        environment["ASCEND_HOME_PATH"] = toolkit
    command = [sys.executable, str(ROOT / "tools/check_cann.py"), *options]
    return subprocess.run(
        [*command, "--kernel", *kernels, "--host", *hosts],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip


def findings(output):
    pattern = re.compile(r"^(.+?):(\d+): ([\w-]+): .+$", re.MULTILINE)
    return {(Path(f).name, int(line), rule) for f, line, rule in pattern.findall(output)}


def marks(path):
    found = set()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.search(r"// bad(-next)?: (.*)", line)
        if match:
            at = number + (1 if match.group(1) else 0)
            found |= {(path.name, at, rule) for rule in match.group(2).split()}
    return found


def test_there_are_fifteen_bad_sources_that_need_no_toolkit():
    assert sum(any(r != "type-check" for _, _, r in marks(path)) for path in BAD) >= 15


@pytest.fixture(scope="module")
def text_run():
    return check(BAD)


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_bad_source_is_refused_on_its_line_for_its_rule(text_run, path):
    expected = {mark for mark in marks(path) if mark[2] != "type-check"}
    if path.parent.name == "host" and path.stem == "entry_operands":
        return  # good on its own: the fault is in the kernel of that name
    got = {f for f in findings(text_run.stdout) if f[0] == path.name}
    assert got == expected


def test_bad_sources_fail_the_command_and_the_left_out_check_is_said(text_run):
    assert text_run.returncode == 1
    assert "NOT type-checked: no toolkit (ASCEND_HOME_PATH is not set)" in text_run.stdout


def test_a_clean_source_passes():
    done = check(GOOD)
    assert (done.returncode, findings(done.stdout)) == (0, set()), done.stdout


def test_this_projects_sources_pass():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/check_cann.py"), "--no-type-check"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_a_folder_without_headers_is_no_toolkit(tmp_path):
    done = check(GOOD, toolkit=str(tmp_path))
    assert done.returncode == 0
    assert "NOT type-checked: no x86_64-linux or aarch64-linux folder" in done.stdout


@pytest.mark.skipif(not TOOLKIT, reason="ASCEND_HOME_PATH is not set")
def test_type_check_against_the_toolkit():
    typed = [p for p in BAD if any(rule == "type-check" for _, _, rule in marks(p))]
    done = check(typed + GOOD, toolkit=TOOLKIT)
    assert findings(done.stdout) == set().union(*map(marks, typed)), done.stdout
    assert f"type-checked against {TOOLKIT}" in done.stdout
