#!/usr/bin/env bash
# two_gpus.sh OUT SECONDS: the GRPO conditions `both` and `verifiable` on a machine with two GPUs, and what they are worth.
#   GPU 0, half of the processors: two slices of `both`; then, with all processors, warm start and both conditions on held-out
#     tasks and the validation; then the times of half of their kernels
#   GPU 1, the other half: two slices of `verifiable`; the bare model beside that evaluation; the other half's times
# OUT/a and OUT/b are as `visit_gpu.sh` leaves them, for `visit_gpu.sh --unpack`. The parts take fixed shares of SECONDS,
# which are counted from SINCE (seconds of the epoch; now) on. STEPS: most steps of a condition. LIMIT, N, WORK, MODEL,
# HALVES: as in visit_gpu.sh.
set -uo pipefail
out=${1:?folder for the results} seconds=${2:?seconds}
since=${SINCE:-$(date +%s)}
here=$(cd "$(dirname "$0")" && pwd)
work=${WORK:-/tmp/visit}
mkdir -p "$out/a" "$out/b"
half=$(($(nproc) / 2))
first=0-$((half - 1)) second=$half-$((2 * half - 1))
# Every step has a checkpoint, since conditions are compared after as many steps as both have.
export GRPO_OPTIONS="--set run.keep=100 --set run.save_every=1 --steps ${STEPS:-60} ${GRPO_OPTIONS:-}"
export LIMIT=${LIMIT:-150} N=${N:-5}

left() { # SHARE OF THE TIME, IN PERCENT: seconds until then
  local until=$((since + seconds * $1 / 100 - $(date +%s)))
  echo $((until > 1 ? until : 1))
}
wait_for() { # FILE PERCENT
  while [ ! -f "$1" ] && [ "$(left "$2")" -gt 1 ]; do sleep 1; done
}
rm -f "$out"/.trained "$out"/.evaluated

lane_a() {
  export CUDA_VISIBLE_DEVICES=0 WORK=$work
  taskset -c "$first" bash "$here/visit_gpu.sh" "$out/a" "both:$(left 24)"
  taskset -c "$first" bash "$here/visit_gpu.sh" "$out/a" "both:$(left 45)"
  wait_for "$out/.trained" 46
  bash "$here/visit_gpu.sh" "$out/a" "evaluate:$(left 78)"
  touch "$out/.evaluated"
  TIME_PART=1/2 taskset -c "$first" bash "$here/visit_gpu.sh" "$out/a" "time:$(left 99)"
}

lane_b() {
  export CUDA_VISIBLE_DEVICES=1 WORK=$work
  taskset -c "$second" bash "$here/visit_gpu.sh" "$out/b" "verifiable:$(left 24)"
  taskset -c "$second" bash "$here/visit_gpu.sh" "$out/b" "verifiable:$(left 45)"
  touch "$out/.trained"
  export WORK=$work-b # a data folder of its own, beside the other lane's
  taskset -c "$second" bash "$here/visit_gpu.sh" "$out/b" "base:$(left 70)"
  wait_for "$out/.evaluated" 79
  export WORK=$work # the same file of times as the other half's
  RESULTS=$work-b/out TIME_PART=2/2 taskset -c "$second" bash "$here/visit_gpu.sh" "$out/b" "time:$(left 99)"
}

lane_a >"$out/a.log" 2>&1 &
lane_b >"$out/b.log" 2>&1 &
wait
rm -f "$out"/.trained "$out"/.evaluated
tail -n 2 "$out/a.log" "$out/b.log"
