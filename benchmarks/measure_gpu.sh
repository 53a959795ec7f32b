#!/usr/bin/env bash
# measure_gpu.sh OUT SECONDS [CANDIDATES...]: time what a plan names on a GPU, and a policy's kernels before it.
#   PLAN         file of `cudaperf dataset plan`; by default dataset/plan.jsonl.gz, `none` for the kernels alone
#   CANDIDATES   files of verdicts (candidates.jsonl of training.sft.evaluate, also .gz); one that is not there is told
#   SKIP         folders of earlier slices of the same plan, whose finished tasks are left out
# OUT has measured-N.jsonl, task by task as they are finished (14 MB each at most), and measure.log. Whatever ends this
# leaves what was measured; the same command goes on. REHEARSE=1 takes the emulator, whose times mean nothing.
set -uo pipefail
out=${1:?folder for the results} seconds=${2:?seconds}
shift 2
root=$(cd "$(dirname "$0")/.." && pwd)
plan=${PLAN:-$root/dataset/plan.jsonl.gz}
more=()
[ -z "${REHEARSE:-}" ] || more=(--emulate 4096 --workers 1)
[ -z "${SKIP:-}" ] || more+=(--skip $SKIP)
[ "$plan" = none ] || more+=(--plan "$plan")
mkdir -p "$out"
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
timeout --signal=TERM --kill-after=10 $((seconds + 30)) "${PYTHON:-python3}" -m training.dataset.measure \
  --candidates "$@" --out "$out" --seconds "$seconds" "${more[@]}" 2> >(tee -a "$out/measure.log" >&2)
