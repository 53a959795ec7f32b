#!/usr/bin/env bash
# grpo_gpu.sh OUT ADAPTER CONFIG SECONDS [OPTION...]: one slice of a GRPO run on a GPU, bounded by SECONDS in all.
# ADAPTER: the warm start, a folder or a .tar of one; `none` begins with a fresh adapter. OPTIONs go to `train grpo`.
# WORK: a folder to work in; the same one again goes on with the run that it holds.
# OUT has, as they come: progress.txt metrics.jsonl rows.jsonl adapter.tar runs.parquet (or its parts .00 .01 …), each
# under 16 MiB. STATE_PARTS=1 leaves state.tar.00 .01 … in place of adapter.tar: the adapter in float32 and the moments,
# 57 MiB at rank 24. STATE=FOLDER goes on from those, and from the metrics.jsonl and rows.jsonl beside them.
# SPARE: seconds for packing at the end.
set -uo pipefail
out=${1:?folder for the results}
adapter=${2:?warm-started adapter}
config=${3:?configuration file}
limit=${4:?seconds}
shift 4
python=${PYTHON:-python3}
spare=${SPARE:-30}
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=${WORK:-$(mktemp -d)}
run=$work/run
mkdir -p "$run" "$work/data"
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
export VLLM_USE_FLASHINFER_SAMPLER=0 VLLM_NO_USAGE_STATS=1 TRL_EXPERIMENTAL_SILENCE=1
export CUDAPERF_DATA_DIR="$work/data" CUDAPERF_CONFIG_DIR="$work/config" CUDAPERF_CACHE_DIR="${CUDAPERF_CACHE_DIR:-$work/cache}"
SECONDS=0
say() { printf '%4d s  %s\n' "$SECONDS" "$*" | tee -a "$out/progress.txt"; }
say "machine: $(nvidia-smi --query-gpu=name,memory.total --format=csv,noheader 2>/dev/null | head -1), $(nproc --all) cores"

case $adapter in
  *.tar) mkdir -p "$work/warm" && tar xf "$adapter" -C "$work/warm"
    adapter=$(dirname "$(find "$work/warm" -name adapter_config.json | head -1)") ;;
esac
if [ -n "${STATE:-}" ]; then
  cat "$STATE"/state.tar.* | tar xf - -C "$run"
  cp "$STATE/metrics.jsonl" "$STATE/rows.jsonl" "$run/" 2>/dev/null
  say "going on from $(cd "$run" && echo checkpoint-*)"
fi

packed=
keep() { # What there is so far; a file is either whole or not there.
  local newest
  for file in metrics.jsonl rows.jsonl; do
    [ ! -f "$run/$file" ] || { cp "$run/$file" "$work/$file" && mv "$work/$file" "$out/$file"; }
  done
  newest=$(ls -d "$run"/checkpoint-* 2>/dev/null | sort -V | tail -1)
  # The adapter is written last of all, so a checkpoint older than it is whole.
  if [ -n "$newest" ] && [ "$newest" != "$packed" ] && [ "$run/adapter/adapter_model.safetensors" -nt "$newest/trainer_state.json" ]; then
    if [ -n "${STATE_PARTS:-}" ]; then
      tar cf "$work/state.tar" --exclude='tokenizer*' --exclude='*.md' -C "$run" "$(basename "$newest")" &&
        split -b 15M -d "$work/state.tar" "$work/state.tar." && rm -f "$out"/state.tar.* && mv "$work"/state.tar.[0-9]* "$out/"
    else
      tar cf "$work/adapter.tar" -C "$run" adapter && mv "$work/adapter.tar" "$out/adapter.tar"
    fi && packed=$newest
  fi
}
keeping() { while true; do sleep 10; keep; done; }
keeping &
keeper=$!
trap 'kill $keeper 2>/dev/null' EXIT

begin=()
[ "$adapter" = none ] || begin=(--adapter "$adapter")
timeout --signal=INT --kill-after=15 "$((limit - SECONDS - spare / 2))" "$python" -m cudaperf_agent.cli.main train grpo \
  --config "$config" --out "$run" --resume --seconds "$((limit - SECONDS - spare))" "${begin[@]}" "$@" \
  >"$work/result.txt" 2> >(tee -a "$work/train.log" | grep --line-buffered -E '^(step|starting|error|[0-9]+ tasks|the engine)' | tee -a "$out/progress.txt" >&2)
status=$?
say "training ended with status $status: $(tail -1 "$work/result.txt")"
[ "$status" = 0 ] || tail -c 6000 "$work/train.log" >>"$out/progress.txt"
kill $keeper 2>/dev/null
wait $keeper 2>/dev/null
keep
if [ "$((limit - SECONDS))" -gt 3 ]; then
  timeout "$((limit - SECONDS))" "$python" -m cudaperf_agent.cli.main dataset export --runs --origin grpo --out "$work/export" >>"$out/progress.txt" 2>&1
  size=$(stat -c %s "$work/export/runs.parquet" 2>/dev/null || echo 0)
  if [ "$size" -ge 15000000 ]; then split -b 15M -d "$work/export/runs.parquet" "$out/runs.parquet."; elif [ "$size" -gt 0 ]; then cp "$work/export/runs.parquet" "$out/"; fi
fi
say "done: $(ls "$out" | tr '\n' ' ')"
exit "$status"
