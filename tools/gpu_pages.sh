#!/usr/bin/env bash
# What only a GPU can say about pages: the CUDA tests of the pool, of caches and of experts in pages, then their benchmark.
#
#   tools/gpu_pages.sh [OUT]        leaves in OUT (default: artifacts/pages) tests.log, rows.log, bench.log, report.json,
#                                   report.md, the charts and targets.md: what was to be reached, and what was
#
# PYTHON names the Python to use (default: python3). Made for a card with 80 GB or more and a host with 64 GiB; takes about
# four minutes. Tests and benchmark are ended after TESTS and BENCH seconds (default: 200 and 300); what was measured until
# then is kept.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
OUT=${1:-artifacts/pages}
PYTHON=${PYTHON:-python3}
mkdir -p "$OUT"
status=0

ended() { # what ended, and with which status
  [ "$2" = 0 ] || { echo "!! $1 ended with status $2"; status=1; }
}

echo "== CUDA tests of pages"
timeout --kill-after=10 "${TESTS:-200}" "$PYTHON" -m pytest -q -m cuda -p no:cacheprovider \
  tests/test_paging_cuda.py tests/test_paging_pool.py tests/test_mixture_cuda.py tests/test_bench_pages.py \
  2>&1 | tee "$OUT/tests.log" | tail -n 15 | cut -c1-300
ended "the tests" "${PIPESTATUS[0]}"

echo "== xinfer-lab bench-pages"
PYTHONUNBUFFERED=1 timeout --kill-after=10 "${BENCH:-300}" "$PYTHON" -m xinfer_lab bench-pages --out "$OUT" \
  > "$OUT/bench.log" 2> >(tee "$OUT/rows.log" | cut -c1-200 >&2)
ended "the benchmark" $?
tail -n 40 "$OUT/bench.log" | cut -c1-200

"$PYTHON" -m xinfer_lab.bench.targets "$OUT/report.json" 2>&1 | tee "$OUT/targets.md"
ended "what was to be reached" "${PIPESTATUS[0]}"
exit $status
