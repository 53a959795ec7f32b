#!/usr/bin/env bash
# sft_gpu.sh OUT: the warm start on a GPU in one go: rows -> train -> evaluate; everything lands in OUT as it is found.
# ROWS: rows to use, by default build/sft/rows.jsonl.gz of the checkout (made here where there are none, on all cores).
# MODEL: smollm2 or a folder. SECONDS_TRAIN, LIMIT: seconds of training, and of the whole.
# MODEL=tiny ENGINE=local MOST=2 tries the script out on a CPU.
set -uo pipefail
out=${1:?folder for the results}
model=${MODEL:-smollm2}
limit=${LIMIT:-330}
train_seconds=${SECONDS_TRAIN:-165}
python=${PYTHON:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=${WORK:-$(mktemp -d)}
mkdir -p "$work"
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=true
export VLLM_USE_FLASHINFER_SAMPLER=0 VLLM_NO_USAGE_STATS=1
export CUDAPERF_DATA_DIR="$work/data" CUDAPERF_CONFIG_DIR="$work/config" CUDAPERF_CACHE_DIR="${CUDAPERF_CACHE_DIR:-$work/cache}"
SECONDS=0
say() { printf '%4d s  %s\n' "$SECONDS" "$*" | tee -a "$out/progress.txt"; }
say "machine: $(nvidia-smi --query-gpu=name,memory.total --format=csv,noheader 2>/dev/null | head -1), $(nproc) cores"

run=$work/run
mkdir -p "$run"
config=$work/sft.toml
sed -e "s/^seconds = .*/seconds = $train_seconds/" -e "s/^workers = .*/workers = $(nproc)/" "${CONFIG:-$root/training/configs/sft.toml}" >"$config"
rows=${ROWS:-$root/build/sft/rows.jsonl.gz}
if [ -f "$rows" ]; then cp "$rows" "$run/rows.jsonl.gz"; say "rows: $(stat -c %s "$rows") bytes of $rows"; else say "rows are made here"; fi

# The evaluation prepares its tasks and starts its engine while training runs, then waits for the adapter.
adapter=$run/adapter
"$python" -m training.sft.evaluate --out "$out" --adapter "$adapter" --model "$model" --engine "${ENGINE:-vllm}" \
  --seconds "$((limit - 25))" ${MOST:+--most "$MOST"} ${EVALUATE_OPTIONS:-} >"$work/evaluate.log" 2>&1 &
evaluation=$!
trap 'kill -TERM $evaluation 2>/dev/null' EXIT

PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True timeout --signal=TERM --kill-after=40 "$((limit - 60))" "$python" -m cudaperf_agent.cli.main train sft --config "$config" \
  --model "$model" --out "$run" --json >"$out/trained.json" 2> >(tee "$work/train.log" >&2)
say "training ended with status $?: $(tr -d '\n ' <"$out/trained.json" | head -c 300)"
keep() { # What there is so far: at most 8 files.
  cp "$run/metrics.jsonl" "$out/metrics.jsonl" 2>/dev/null
  tail -c 400000 "$work/train.log" "$work/evaluate.log" >"$out/logs.txt" 2>/dev/null
  tar cf "$out/adapter.tar" -C "$run" adapter 2>/dev/null
  gzip -kf "$out/candidates.jsonl" 2>/dev/null
}
keep
say "adapter: $(stat -c %s "$adapter/adapter_model.safetensors" 2>/dev/null || echo none) bytes"
if [ -f "$adapter/adapter_model.safetensors" ]; then
  while kill -0 "$evaluation" 2>/dev/null && [ "$SECONDS" -lt "$limit" ]; do sleep 1; done
  if kill -0 "$evaluation" 2>/dev/null; then say "the time is over; the evaluation is ended"; kill -TERM "$evaluation"; sleep 3; kill -KILL "$evaluation" 2>/dev/null; fi
fi
keep
rm -f "$out/candidates.jsonl"
say "done"
cat "$out/evaluation.json" 2>/dev/null
