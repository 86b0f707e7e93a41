#!/usr/bin/env bash
# What only a GPU can say, in one go: the CUDA tests, parity at the shape of a 7B model, a measured trace.
#
#   tools/gpu_check.sh [OUT]        writes its log and the trace to OUT (default: artifacts/gpu)
#
# PYTHON names the Python to use (default: python3). Needs about 12 GiB of device memory, 8 GiB of host memory and of disk.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
OUT=${1:-artifacts/gpu}
PYTHON=${PYTHON:-python3}
SCRATCH=$(mktemp -d)
trap 'rm -rf "$SCRATCH"' EXIT
mkdir -p "$OUT"
status=0

step() {
  echo "== $*"
  "$@" || { echo "!! failed with status $?: $*"; status=1; }
}

xinfer() { "$PYTHON" -m xinfer_lab "$@"; }

{
  step "$PYTHON" -c 'import torch; print(torch.__version__, torch.cuda.get_device_name(), torch.version.cuda)'
  step "$PYTHON" -m pytest -q -m cuda -p no:cacheprovider tests
  step xinfer make-checkpoint "$SCRATCH/small" --layers 7
  step xinfer parity "$SCRATCH/small" --stream-layers 3 --steps 4 --device cuda
  step xinfer make-checkpoint "$SCRATCH/7b" --layers 4 --hidden 3584 --heads 28 --kv-heads 4 --intermediate 18944 \
    --vocab 152064 --dtype bfloat16 --shards 2
  step xinfer parity "$SCRATCH/7b" --stream-layers 2 --steps 4 --device cuda
  step xinfer parity "$SCRATCH/7b" --stream-layers 3 --steps 4 --device cuda --host-memory staged
  step xinfer trace "$SCRATCH/7b" --stream-layers 2 --steps 3 --device cuda --tokens "$(seq -s, 1 4096)" \
    --out "$OUT/trace-7b.json"
} 2>&1 | tee "$OUT/gpu_check.log" | cut -c1-300
grep -q '^!! failed' "$OUT/gpu_check.log" && status=1
echo "gpu_check: $([ $status = 0 ] && echo 'all well' || echo 'something failed')"
exit $status
