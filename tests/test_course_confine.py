"""A process that marks ends with the one that started it, however that ends."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone can tell a process to end with its parent")

PARENT = """
import sys, time
from pathlib import Path
from xinfer_lab.course.supervised import Supervised
child = Supervised([sys.executable, "-c", sys.argv[1]], env=dict(__import__("os").environ))
print(child.receive(60.0)["pid"], flush=True)
sys.stdin.readline()
"""

VERIFIER = """
import os, json
from xinfer_lab.course import verifier_process
out = os.dup(1)
def endless(request):
    os.write(out, json.dumps({"pid": os.getpid()}).encode() + b"\\n")
    while True: pass
verifier_process._draw = endless
import io, sys
sys.stdin = io.StringIO('{"draw": "lab1.layer_bytes"}\\n')
verifier_process.main()
"""

FORK = """
import json, os
from xinfer_lab.course import recorder_process
def endless():
    print(json.dumps({"pid": os.getpid()}), flush=True)
    while True: pass
recorder_process.end_with_parent()
recorder_process._in_a_fork(endless)
"""


def test_a_fork_whose_parent_is_gone_already_ends() -> None:
    there = f"from xinfer_lab.course.confine import end_with_parent as end; end({os.getpid()}); print('on')"
    gone = "from xinfer_lab.course.confine import end_with_parent as end; end(2**30); print('on')"
    said = [subprocess.run([sys.executable, "-c", text], capture_output=True, text=True) for text in (there, gone)]
    assert [(one.returncode, one.stdout.strip()) for one in said] == [(0, "on"), (1, "")]


@pytest.mark.parametrize("source", [VERIFIER, FORK], ids=["verifier", "recorder"])
def test_what_computes_ends_with_a_parent_that_is_killed(source: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdin and parent.stdout
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    gone, _ = psutil.wait_procs([child], timeout=60)
    over = bool(gone) or child.status() == psutil.STATUS_ZOMBIE
    if not over:
        child.kill()
    parent.stdin.close()
    parent.stdout.close()
    assert over
