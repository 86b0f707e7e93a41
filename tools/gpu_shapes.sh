#!/usr/bin/env bash
# A decode step of every size on this machine's GPU: resident, streamed, coded and within a budget, beside transformers.
#
#   tools/gpu_shapes.sh [OUT] [SHAPE...]       leaves each shape's report in OUT/SHAPE and the table in OUT/shapes.md
#
# A shape is a published name, and after a colon how many of its layers: 0.5b 1.5b 7b 32b:32 (the default) or 14b:20, 72b:8.
# PYTHON names the Python to use (default: python3), LIMIT the most seconds for a shape (default: 240).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
OUT=${1:-artifacts/shapes}
shift || true
[ $# = 0 ] && set -- 0.5b 1.5b 7b 32b:32
PYTHON=${PYTHON:-python3}

budget() { case "$1" in 7b) echo 6GB ;; 14b*) echo 9GB ;; 32b*) echo 12GB ;; 72b*) echo 12GB ;; esac; }
prefill() { case "$1" in 7b) echo 4096 ;; 32b*) echo 8192 ;; esac; }

for shape in "$@"; do
  name=${shape/:/-}
  mkdir -p "$OUT/$name"
  options=(--slots 2 --prefill "$(prefill "$shape")" --out "$OUT/$name")
  [[ $shape == *:* ]] && options+=(--layers "${shape#*:}")
  [ -n "$(budget "$shape")" ] && options+=(--vram "$(budget "$shape")")
  echo "== xinfer-lab bench ${shape%%:*} ${options[*]}" >&2
  PYTHONUNBUFFERED=1 timeout --kill-after=10 "${LIMIT:-240}" "$PYTHON" -m xinfer_lab bench "${shape%%:*}" "${options[@]}" \
    --decode 7 --no-pageable > "$OUT/$name/bench.log" 2> "$OUT/$name/rows.log" \
    || echo "!! $shape ended with status $?: $(tail -n 2 "$OUT/$name/bench.log" | cut -c1-300)" >&2
done
reports=()
for shape in "$@"; do reports+=("$OUT/${shape/:/-}/report.json"); done
"$PYTHON" -m xinfer_lab.bench.shapes "${reports[@]}" | tee "$OUT/shapes.md"
exit "${PIPESTATUS[0]}"
