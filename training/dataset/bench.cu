// bench
//
// Times many device-form kernels of one task after another, in one process. For sources of our own generator only: it
// trusts them (trust level "own", see measure.py), unlike cuda/timer.cu. Commands arrive as lines on standard input:
//   flush BYTES                         size of what is written before each timed call, to empty the L2
//   set                                 a new set of contents follows
//   arg KIND BYTES PATH                 scalar | in | inout (content of PATH), out (PATH is -)
//   run LIBRARY SYMBOL PREFIX WARMUPS SAMPLES SECONDS
//                                       calls SYMBOL on every set; the last set is timed; answers one line of JSON
//   end                                 forget all sets
// After a run's last call of each set, the written arguments are compared on the device with those of the first library
// that ran; where they differ (and for the first) they are written to PREFIX.SET.ARG. Scalars and device pointers are
// passed through one array of addresses, as cuda/link.py lays them out.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

namespace {

struct Argument {
  std::string kind;
  size_t size = 0;
  std::vector<char> content;
  char *pristine = nullptr, *room = nullptr, *first = nullptr;
  bool buffer() const { return kind != "scalar"; }
  bool written() const { return kind == "out" || kind == "inout"; }
};
struct Set {
  std::vector<Argument> arguments;
};

std::vector<Set> sets;
size_t flush_bytes = 0;
char *flush_room = nullptr;
unsigned int *differs = nullptr;
bool have_first = false;

// What is the candidate's fault is a launch_error; anything else is ours, and says nothing about it.
[[noreturn]] void die(const char *what, const char *status = "bench_error") {
  printf("{\"status\": \"%s\", \"message\": \"%s\"}\n", status, what);
  fflush(stdout);
  _Exit(70);
}

void check(cudaError_t status, const char *what) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "bench: %s\n", cudaGetErrorString(status));
  die(what);
}

__global__ void compare(const unsigned char *a, const unsigned char *b, long long count, unsigned int *differs_out) {
  long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  for (; at < count; at += (long long)gridDim.x * blockDim.x)
    if (a[at] != b[at]) *differs_out = 1u;
}

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

char *allocate(size_t size) {
  void *at = nullptr;
  check(cudaMalloc(&at, size + 256), "cudaMalloc");
  return static_cast<char *>(at);
}

void forget() {
  for (Set &set : sets)
    for (Argument &a : set.arguments)
      for (char *at : {a.pristine, a.room, a.first})
        if (at) cudaFree(at);
  sets.clear();
  have_first = false;
}

void add_argument(const char *kind, size_t size, const char *path) {
  Argument a;
  a.kind = kind;
  a.size = size;
  if (strcmp(path, "-")) {
    a.content.resize(size);
    FILE *file = fopen(path, "rb");
    if (!file || fread(a.content.data(), 1, size, file) != size) die("a content cannot be read");
    fclose(file);
  }
  if (a.buffer()) {
    a.room = allocate(size);
    if (a.written()) a.first = allocate(size);
    if (!a.content.empty() || a.kind != "out") {
      a.pristine = allocate(size);
      if (size) check(cudaMemcpy(a.pristine, a.content.data(), size, cudaMemcpyHostToDevice), "staging");
    }
  }
  if (a.buffer()) std::vector<char>().swap(a.content); // it is on the device now
  sets.back().arguments.push_back(std::move(a));
}

double call_once(Set &set, int (*call)(void *const *), bool cold, int turn) {
  std::vector<void *> passed;
  for (Argument &a : set.arguments) {
    if (!a.buffer()) {
      passed.push_back(a.content.data());
      continue;
    }
    if (a.size && a.kind == "out")
      check(cudaMemset(a.room, 0x5A, a.size), "poisoning");
    else if (a.size)
      check(cudaMemcpy(a.room, a.pristine, a.size, cudaMemcpyDeviceToDevice), "restoring");
    passed.push_back(a.room);
  }
  if (cold && flush_room) check(cudaMemset(flush_room, turn & 0xFF, flush_bytes), "flushing");
  check(cudaDeviceSynchronize(), "before the call");
  double start = now();
  int status = call(passed.data());
  cudaError_t synchronised = cudaDeviceSynchronize();
  double seconds = now() - start;
  if (status) die(cudaGetErrorString(static_cast<cudaError_t>(status)), "launch_error");
  if (synchronised != cudaSuccess) die(cudaGetErrorString(synchronised), "launch_error");
  return seconds;
}

// Whether every input is as it was and every output as the first library's; outputs that are not are written out.
bool settle(size_t number, const char *prefix, bool &changed) {
  bool same = true;
  std::vector<char> back;
  for (size_t i = 0; i < sets[number].arguments.size(); i++) {
    Argument &a = sets[number].arguments[i];
    if (!a.buffer() || !a.size) continue;
    const char *other = a.written() ? a.first : a.pristine;
    unsigned int found = 0;
    if (!a.written() || have_first) {
      check(cudaMemset(differs, 0, sizeof *differs), "comparing");
      compare<<<1024, 256>>>(reinterpret_cast<const unsigned char *>(a.room),
                             reinterpret_cast<const unsigned char *>(other), static_cast<long long>(a.size), differs);
      check(cudaMemcpy(&found, differs, sizeof found, cudaMemcpyDeviceToHost), "comparing");
    }
    if (!a.written()) {
      changed = changed || found;
      continue;
    }
    if (have_first && !found) continue;
    same = false;
    back.resize(a.size);
    check(cudaMemcpy(back.data(), a.room, a.size, cudaMemcpyDeviceToHost), "reading an output");
    std::string path = std::string(prefix) + "." + std::to_string(number) + "." + std::to_string(i);
    FILE *file = fopen(path.c_str(), "wb");
    if (!file || fwrite(back.data(), 1, a.size, file) != a.size || fclose(file)) die("an output cannot be written");
    if (!have_first) check(cudaMemcpy(a.first, a.room, a.size, cudaMemcpyDeviceToDevice), "keeping the first");
  }
  return same;
}

void run(const char *library, const char *symbol, const char *prefix, int warmups, int samples, double most) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) die("the library does not load");
  int (*call)(void *const *) = reinterpret_cast<int (*)(void *const *)>(dlsym(handle, symbol));
  if (!call) die("the library has no such call");
  bool same = true, changed = false;
  double cold = 0;
  std::vector<double> seconds;
  for (size_t number = 0; number < sets.size(); number++) {
    bool timed = number + 1 == sets.size();
    double began = now();
    for (int turn = 0; turn < (timed ? warmups + samples : 1); turn++) {
      double took = call_once(sets[number], call, timed, turn);
      if (!timed) continue;
      if (!turn) cold = took;
      if (turn >= warmups) seconds.push_back(took);
      if (seconds.size() >= 5 && now() - began > most) break;
    }
    same = settle(number, prefix, changed) && same;
  }
  have_first = true;
  printf("{\"status\": \"ok\", \"same\": %s, \"changed\": %s, \"cold\": %.9g, \"samples\": [", same ? "true" : "false",
         changed ? "true" : "false", cold);
  for (size_t i = 0; i < seconds.size(); i++) printf("%s%.7g", i ? ", " : "", seconds[i]);
  printf("]}\n");
  fflush(stdout);
}

} // namespace

int main() {
  check(cudaFree(nullptr), "starting CUDA");
  void *at = nullptr;
  check(cudaMalloc(&at, 256), "cudaMalloc");
  differs = static_cast<unsigned int *>(at);
  printf("{\"status\": \"ready\"}\n");
  fflush(stdout);
  static char line[8192], first[4096], second[4096], third[4096];
  while (fgets(line, sizeof line, stdin)) {
    size_t size = 0;
    int warmups = 0, samples = 0;
    double most = 0;
    if (sscanf(line, "flush %zu", &size) == 1) {
      flush_bytes = size;
      if (flush_room) cudaFree(flush_room);
      flush_room = size ? allocate(size) : nullptr;
    } else if (!strncmp(line, "set", 3)) {
      sets.emplace_back();
    } else if (sscanf(line, "arg %4000s %zu %4000s", first, &size, second) == 3) {
      if (sets.empty()) die("an argument without a set");
      add_argument(first, size, second);
    } else if (sscanf(line, "run %4000s %4000s %4000s %d %d %lf", first, second, third, &warmups, &samples, &most) == 6) {
      run(first, second, third, warmups, samples, most);
    } else if (!strncmp(line, "end", 3)) {
      forget();
    } else {
      die("an unknown command");
    }
  }
  return 0;
}
