#!/usr/bin/env bash
# results_gpu.sh OUT [MODEL_POLICY]: evaluations on a GPU: `variants` (deterministic: one trajectory, one seed) and a
# model, on the handed files and the held-out programs. Facts land in OUT as JSON; the store too, so that another call
# with PREVIOUS=FOLDER (an earlier OUT) goes on where that one was stopped. Then:
#   cudaperf eval report benchmarks/results/*.json --markdown docs/results.md
set -uo pipefail
out=${1:?folder for the results}
model=${2:-local}
# Seconds for each; what is at work then ends its step, and the report is of the tasks that are whole.
variants_seconds=${VARIANTS_SECONDS:-85}
model_seconds=${MODEL_SECONDS:-50}
suite=${SUITE:-own-c}
python=${PYTHON:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1
export CUDAPERF_DATA_DIR="$work/data" CUDAPERF_CONFIG_DIR="$work/config"
export CUDAPERF_CACHE_DIR="${CUDAPERF_CACHE_DIR:-$work/cache}"
# The local model draws all answers of a turn together.
export CUDAPERF_LOCAL__BATCH="${CUDAPERF_LOCAL__BATCH:-256}" CUDAPERF_LOCAL__MAX_TOKENS="${CUDAPERF_LOCAL__MAX_TOKENS:-700}"
mkdir -p "$work/data"
SECONDS=0
say() { printf '%4d s  %s\n' "$SECONDS" "$*" | tee -a "$out/progress.txt"; }
keep() { # the store, whole: the log is written back into it
  "$python" - "$work/data/runs.sqlite" <<'PY'
import sqlite3, sys
sqlite3.connect(sys.argv[1]).execute("PRAGMA wal_checkpoint(TRUNCATE)")
PY
  tar -C "$work/data" -czf "$out/store.tar.gz.new" runs.sqlite evaluations && mv "$out/store.tar.gz.new" "$out/store.tar.gz"
}
trap 'rm -rf "$work"' EXIT
if [ -n "${PREVIOUS:-}" ] && [ -f "$PREVIOUS/store.tar.gz" ]; then
  tar -C "$work/data" -xzf "$PREVIOUS/store.tar.gz" && say "going on with $PREVIOUS"
fi
say "machine: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1 || true), $(nproc) cores"

evaluate() { # NAME SECONDS OPTIONS…
  local name=$1 seconds=$2
  shift 2
  say "$name: $*"
  timeout --foreground --signal=INT --kill-after=25 "$seconds" "$python" -m cudaperf_agent.cli.main eval run --suite "$suite" \
    --out "$name" "$@" >"$work/$name.txt" 2> >(tee -a "$out/$name.log" >&2)
  say "$name ended with status $? (124: its time was up)"
  "$python" -m cudaperf_agent.cli.main eval report "$name" --json >"$out/$name.json.new" &&
    mv "$out/$name.json.new" "$out/$name.json"
  keep
}
evaluate variants "$variants_seconds" --policy variants --turns "${VARIANTS_TURNS:-5}" ${VARIANTS_OPTIONS:-}
[ "$model_seconds" = 0 ] || evaluate "${MODEL_NAME:-base}" "$model_seconds" --policy "$model" \
  --n "${MODEL_N:-10}" --seeds "${MODEL_SEEDS:-1}" --turns "${MODEL_TURNS:-5}" ${MODEL_OPTIONS:-}
say "done"
