#!/usr/bin/env bash
# What only two GPUs can say: the CUDA tests of several cards, then every row over one link and over both.
#
#   tools/gpu_links.sh [OUT] [SHAPE...]        leaves in OUT (default: artifacts/links) tests.log, each shape's report and
#                                              targets.md: what was to be reached, and what was
#
# A shape is a published name, and after a colon how many of its layers (default: 0.5b 1.5b 0.5b:23 32b:15 32b:32 32b:64).
# PYTHON names the Python to use (default: python3), CARDS the cards (default: cuda:0,cuda:1). Made for two cards with 80 GB
# or more and a host with 128 GiB; takes about seven minutes. Tests and shapes are ended after TESTS and LIMIT seconds
# (default: 90 and 140); what was measured until then is kept.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
OUT=${1:-artifacts/links}
shift || true
[ $# = 0 ] && set -- 0.5b 1.5b 0.5b:23 32b:15 32b:32 32b:64
PYTHON=${PYTHON:-python3}
CARDS=${CARDS:-cuda:0,cuda:1}
mkdir -p "$OUT"
status=0

"$PYTHON" -m xinfer_lab doctor 2>&1 | grep -E "GPU|peer|cards|torch"

echo "== CUDA tests of several cards"
timeout --kill-after=10 "${TESTS:-90}" "$PYTHON" -m pytest -q -m cuda -p no:cacheprovider tests/test_cards_cuda.py \
  2>&1 | tee "$OUT/tests.log" | tail -n 15 | cut -c1-300
[ "${PIPESTATUS[0]}" = 0 ] || { echo "!! the tests failed"; status=1; }

# Prefill and codes at the shape of a 32B model; a budget for all of its layers alone.
options() {
  case "$1" in
    32b:32) echo --prefill 16384 --codecs 3bit ;;
    32b:64) echo --prefill= --codecs= --vram 24GiB --decode 4 ;;
    *) echo --prefill= --codecs= ;;
  esac
}

for shape in "$@"; do
  name=${shape/:/-}
  mkdir -p "$OUT/$name"
  read -ra given <<< "$(options "$shape")"
  [[ $shape == *:* ]] && given+=(--layers "${shape#*:}")
  echo "== xinfer-lab bench ${shape%%:*} --device $CARDS ${given[*]}"
  PYTHONUNBUFFERED=1 timeout --kill-after=10 "${LIMIT:-140}" "$PYTHON" -m xinfer_lab bench "${shape%%:*}" --device "$CARDS" \
    --slots 2 "${given[@]}" --out "$OUT/$name" > "$OUT/$name/bench.log" 2> >(tee "$OUT/$name/rows.log" | cut -c1-200 >&2) \
    || { echo "!! $shape ended with status $?: $(tail -n 2 "$OUT/$name/bench.log" | cut -c1-300)"; status=1; }
done
reports=()
for shape in "$@"; do reports+=("$OUT/${shape/:/-}/report.json"); done
"$PYTHON" -m xinfer_lab.bench.targets "${reports[@]}" 2>&1 | tee "$OUT/targets.md"
[ "${PIPESTATUS[0]}" = 0 ] || status=1
exit $status
