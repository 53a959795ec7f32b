#!/usr/bin/env bash
# policy_gpu.sh OUT [MODEL]: a small model served by vLLM on a GPU, with and without a LoRA adapter ($ADAPTER, or a random one).
# Two translations of five turns through the server (transcripts), then tokens per second in process at 1 and at 128
# concurrent trajectories. Everything lands in OUT as it is found; parts that no longer fit into $LIMIT seconds are left out.
set -uo pipefail
out=${1:?folder for the results}
model=${2:-smollm2}
limit=${LIMIT:-480}
port=${PORT:-8137}
python=${PYTHON:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 VLLM_USE_FLASHINFER_SAMPLER=0 HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1
export CUDAPERF_DATA_DIR="$work/data" CUDAPERF_CONFIG_DIR="$work/config" CUDAPERF_CACHE_DIR="${CUDAPERF_CACHE_DIR:-$work/cache}"
SECONDS=0
say() { printf '%4d s  %s\n' "$SECONDS" "$*" | tee -a "$out/progress.txt"; }
left() { echo $((limit - SECONDS)); }
server=
cleanup() { [ -z "$server" ] || { kill -TERM "$server" 2>/dev/null; wait "$server" 2>/dev/null; }; rm -rf "$work"; }
trap cleanup EXIT

say "machine: $(nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader 2>/dev/null | head -1), $(nproc --all) cores"
"$python" - >"$out/versions.txt" 2>&1 <<'PY'
import importlib.util, importlib.metadata as m
for name in ("vllm", "torch", "transformers", "peft", "openai", "langchain-openai", "langgraph"):
    try: print(name, m.version(name))
    except m.PackageNotFoundError: print(name, "no metadata")
wanted = "vllm torch transformers peft uvloop fastapi uvicorn openai langchain_openai langchain_core langgraph tiktoken aiosqlite sqlalchemy alembic clang islpy typer rich pydantic_settings platformdirs"
print("missing:", *[n for n in wanted.split() if importlib.util.find_spec(n) is None])
PY
missing=$(sed -n 's/^missing: *//p' "$out/versions.txt")
say "missing modules: ${missing:-none}"

[ -n "${ADAPTER:-}" ] || "$python" - "$model" "$work/adapter" >"$out/adapter.txt" 2>&1 <<'PY'
import sys
import torch
from pathlib import Path
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
folder = sys.argv[1]
if folder == "smollm2":
    from cudaperf_agent.policies.smollm2 import smollm2_folder
    folder = str(smollm2_folder())
torch.manual_seed(0)
base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
lora = get_peft_model(base, LoraConfig(r=16, lora_alpha=16, target_modules="all-linear"))
for name, weight in lora.named_parameters():
    if "lora_B" in name:
        torch.nn.init.normal_(weight, std=0.5)
lora.save_pretrained(sys.argv[2])
print("random LoRA r=16 on all linear layers at", sys.argv[2])
PY
adapter=${ADAPTER:-$work/adapter}
[ -f "$adapter/adapter_config.json" ] || adapter=
say "adapter: ${adapter:-none, see adapter.txt}"

# Leave memory to the candidates, which are tested on the same GPU; few CUDA graphs start sooner.
few="--extra=--gpu-memory-utilization=0.5 --extra=--cudagraph-capture-sizes --extra=1 --extra=2 --extra=8"
options=${SERVE_OPTIONS-$(command -v nvidia-smi >/dev/null && echo "$few")}
rm -f "$out/serve.stdout"
say "starting the server"
"$python" -m cudaperf_agent.cli.main serve --model "$model" ${adapter:+--adapter "$adapter"} --port "$port" --start-timeout "$((limit - 60))" $options >"$out/serve.stdout" 2>"$out/serve.stderr" &
server=$!
while [ ! -s "$out/serve.stdout" ] && kill -0 "$server" 2>/dev/null && [ "$(left)" -gt 60 ]; do sleep 1; done
cp "$work/data/serve.log" "$out/serve.log" 2>/dev/null
if [ -s "$out/serve.stdout" ]; then
  say "server up"
  "$python" -c 'import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())' "http://127.0.0.1:$port/v1/models" >"$out/models.json"
  base=$("$python" -c 'import json,sys; print(next(m["id"] for m in json.load(open(sys.argv[1]))["data"] if not m.get("parent")))' "$out/models.json")
  jobs=()
  for served in $([ -n "${ADAPTER_ONLY:-}" ] || echo "$base") ${adapter:+cudaperf}; do
    tag=$([ "$served" = cudaperf ] && echo adapter || echo base)
    (
      export CUDAPERF_DATA_DIR="$work/$tag" CUDAPERF_ENDPOINT__MODEL="$served" CUDAPERF_ENDPOINT__TEMPERATURE=0.8
      export CUDAPERF_ENDPOINT__MAX_TOKENS="${MAX_TOKENS:-700}"
      {
        echo "$ cudaperf translate examples/saxpy.c --policy openai --turns 5"
        timeout "${TRANSLATE_SECONDS:-150}" "$python" -m cudaperf_agent.cli.main translate "$root/examples/saxpy.c" --policy openai --turns 5 \
          --display plain --out "$work/$tag-out" 2>&1
        echo "exit code $?"
        echo "$ cudaperf show latest"
        timeout 60 "$python" -m cudaperf_agent.cli.main show latest 2>&1
      } >"$out/transcript_$tag.txt"
      timeout 60 "$python" -m cudaperf_agent.cli.main show latest --json >"$out/run_$tag.json" 2>/dev/null
    ) &
    jobs+=($!)
  done
  wait "${jobs[@]}"
  say "transcripts written"
else
  say "the server did not start; see serve.stderr and serve.log"
fi
kill -TERM "$server" 2>/dev/null
wait "$server"
say "server ended with status $?"
server=
cp "$work/data/serve.log" "$out/serve.log" 2>/dev/null
pgrep -fa "vllm.entrypoints|VLLM::" >"$out/left_over.txt" && say "processes left over: see left_over.txt" || say "no process left over"

bench() { # NAME SPEC LEVELS
  if [ "$(left)" -lt 60 ]; then say "no time left for $1"; return; fi
  say "in process: $1 at $3"
  timeout "$(left)" "$python" "$root/benchmarks/policy.py" "$2" --at "$3" --label "$1" --temperature 0.8 --max-tokens "${BENCH_TOKENS:-1400}" \
    ${BENCH_OPTIONS:-} --out "$out/tokens.jsonl" >"$out/bench_$1.log" 2>&1
  say "$1 ended with status $?"
}
levels=${LEVELS:-128,1}
spec=$([ "$model" = smollm2 ] && echo smollm2-135m-instruct || echo "$model")
[ -z "$adapter" ] || BENCH_OPTIONS="--unseeded ${BENCH_OPTIONS:-}" bench adapter "vllm:$spec+$adapter" "$levels"
[ -n "${ADAPTER_ONLY:-}" ] || bench base "vllm:$spec" "$levels"
say "done"
cat "$out/tokens.jsonl" 2>/dev/null
