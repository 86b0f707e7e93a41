#!/usr/bin/env bash
# The whole benchmark on this machine's GPU: 32 layers of the 32B shape under 12 GB, all 64 of them under 24 GiB.
#
#   tools/gpu_bench.sh [OUT]        leaves in OUT (default: artifacts/bench) each run's report as JSON, an archive of
#                                   its logs, tables and charts, and targets.md: what was to be reached, and what was
#
# PYTHON names the Python to use (default: python3). Made for a card with 80 GB or more, a host with 128 GiB and 20 GB of
# disk; takes about 7 minutes. The runs are ended after FIRST and SECOND seconds (default: 420 and 200), and what fails is
# passed over: what was measured until then is kept.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
OUT=${1:-artifacts/bench}
PYTHON=${PYTHON:-python3}
trap 'rm -rf "$OUT"/*/checkpoint-*' EXIT

bench() { # a name, the most seconds, then the options of `xinfer-lab bench`
  local name=$1 limit=$2 status
  shift 2
  mkdir -p "$OUT/$name"
  echo "== xinfer-lab bench $*"
  PYTHONUNBUFFERED=1 timeout --kill-after=10 "$limit" "$PYTHON" -m xinfer_lab bench "$@" --out "$OUT/$name" \
    > "$OUT/$name/bench.log" 2> >(tee "$OUT/$name/rows.log" | cut -c1-200 >&2)
  status=$?
  [ $status = 0 ] || echo "!! ended with status $status: $(tail -n 3 "$OUT/$name/bench.log" | cut -c1-300)"
  rm -rf "$OUT/$name"/checkpoint-*
  (cd "$OUT/$name" && tar -czf "../$name.tar.gz" --exclude=report.json . && find . -type f ! -name report.json -delete)
}

bench 32-layers "${FIRST:-420}" 32b --layers 32 --vram 12GB --prefill 8192,16384 --file-layers 16
bench 64-layers "${SECOND:-200}" 32b --vram 24GiB --prefill '' --slots 2 --codecs 3bit --no-peers
"$PYTHON" -m xinfer_lab.bench.targets "$OUT"/{32,64}-layers/report.json 2>&1 | tee "$OUT/targets.md"
exit "${PIPESTATUS[0]}"
