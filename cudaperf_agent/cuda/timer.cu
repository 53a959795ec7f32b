// timer LIBRARY device|end_to_end [TRACER] MEMORY
//
// Times calls of a candidate on buffers that are ours. It talks to the parent over its standard input and output, which
// the candidate never sees under those numbers. MEMORY is the number of an open descriptor: contents and outputs lie
// there, by the rule of shared_area.py; contents only appear after the library is loaded, and which one comes next is
// told call by call. Messages (little endian), see timing_process.py:
//   out "L" f64 seconds of loading
//   in  u32 arguments, u32 sets, u32 poison byte, u64 bytes to flush the L2 with, then per argument u32 kind, u64 bytes
//   out "S" once everything is staged
//   in  u32 LOAD, u32 length, path: another library from now on (for code of our own only); out "L" as above
//   in  u32 set, or END; the call is staged; out "R"; in one byte: go
//   out "D" i32 status of the call, i32 status of the synchronisation, f64 seconds, f64 CPU seconds of other threads,
//       i32 index of a read-only argument that changed (-1: none), once every written argument is in MEMORY; with a
//       tracer (tracer.cpp) also u64 length and text of what it recorded
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <cuda_runtime.h>

namespace {

// What an argument is: bit 0 a buffer, bit 1 sent by the parent, bit 2 returned to it, bit 3 for the setup call only.
enum Kind : uint32_t { BUFFER = 1, SENT = 2, RETURNED = 4, SETUP_ONLY = 8 };
constexpr uint32_t END = 0xFFFFFFFFu, NOTHING = 0xFFFFFFFEu, LOAD = 0xFFFFFFFDu;
constexpr size_t STEP = 256; // what cudaMalloc aligns to
constexpr size_t PAGE = 4096;

int in_fd, out_fd;

[[noreturn]] void die(const char *what) {
  fprintf(stderr, "timer: %s\n", what);
  _exit(70);
}

void check(cudaError_t status, const char *what) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "timer: %s: %s\n", what, cudaGetErrorString(status));
  _exit(72);
}

void get(void *data, size_t size) {
  char *at = static_cast<char *>(data);
  while (size) {
    ssize_t n = read(in_fd, at, size);
    if (n <= 0) die("the parent is gone");
    at += n;
    size -= static_cast<size_t>(n);
  }
}

void put(const void *data, size_t size) {
  const char *at = static_cast<const char *>(data);
  while (size) {
    ssize_t n = write(out_fd, at, size);
    if (n <= 0) die("the parent is gone");
    at += n;
    size -= static_cast<size_t>(n);
  }
}

template <class T> T get_value() {
  T value;
  get(&value, sizeof value);
  return value;
}
template <class T> void put_value(T value) { put(&value, sizeof value); }

double seconds_of(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Argument {
  uint32_t kind;
  uint64_t size;
  std::vector<char *> content;  // by set
  std::vector<char *> pristine; // device copies of it, by set
  char *room[2];                // where calls take turns
  char *output;                 // where the parent reads what was written
};

// Sets `*found` where `size` bytes from `now` on are not those from `before` on; both start where cudaMalloc aligns.
__global__ void differ(const char *now, const char *before, size_t size, int *found) {
  const unsigned long long *a = reinterpret_cast<const unsigned long long *>(now);
  const unsigned long long *b = reinterpret_cast<const unsigned long long *>(before);
  size_t first = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = first; i < size / 8; i += step)
    if (a[i] != b[i]) *found = 1;
  if (!first)
    for (size_t i = size / 8 * 8; i < size; i++)
      if (now[i] != before[i]) *found = 1;
}

// All of MEMORY, from the descriptor; `kept` writes are seen by the parent.
char *mapped(int descriptor, size_t size, bool kept) {
  int way = kept ? MAP_SHARED : MAP_PRIVATE;
  void *at = mmap(nullptr, size, PROT_READ | PROT_WRITE, way, descriptor, 0);
  if (at == MAP_FAILED) die("the shared memory cannot be mapped");
  return static_cast<char *>(at);
}

char *allocate(size_t size, bool on_device) {
  size_t room = size + 4 * STEP;
  if (!on_device) {
    void *at = nullptr;
    if (posix_memalign(&at, 4096, room)) die("out of memory");
    return static_cast<char *>(at);
  }
  void *at = nullptr;
  check(cudaMalloc(&at, room), "cudaMalloc");
  return static_cast<char *>(at);
}

using HostCall = void (*)(void *const *);
using DeviceCall = int (*)(void *const *);
using TableOf = int (*)(int, const void **, size_t *);

struct Library {
  HostCall host_call, setup;
  DeviceCall device_call;
  TableOf table_of;
};

Library load(const char *path, bool on_device) {
  double started = seconds_of(CLOCK_MONOTONIC);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "timer: %s\n", dlerror());
    _exit(71);
  }
  Library found{reinterpret_cast<HostCall>(dlsym(library, "cudaperf_call")),
                reinterpret_cast<HostCall>(dlsym(library, "cudaperf_setup")),
                reinterpret_cast<DeviceCall>(dlsym(library, "cudaperf_device_call")),
                reinterpret_cast<TableOf>(dlsym(library, "cudaperf_table"))};
  if (on_device ? !found.device_call : !found.host_call) die("the library has no such call");
  put("L", 1);
  put_value<double>(seconds_of(CLOCK_MONOTONIC) - started);
  return found;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 4) die("usage: timer LIBRARY device|end_to_end [TRACER] MEMORY");
  int memory = atoi(argv[argc - 1]);
  struct stat info;
  if (fstat(memory, &info)) die("there is no shared memory");
  bool on_device = !strcmp(argv[2], "device");
  in_fd = fcntl(0, F_DUPFD_CLOEXEC, 100);
  out_fd = fcntl(1, F_DUPFD_CLOEXEC, 100);
  int nothing = open("/dev/null", O_RDWR);
  if (in_fd < 0 || out_fd < 0 || nothing < 0) die("no standard input or output");
  dup2(nothing, 0);
  dup2(nothing, 1);

  using TraceStart = int (*)();
  using TraceBefore = void (*)();
  using TraceAfter = const char *(*)();
  TraceBefore trace_before = nullptr;
  TraceAfter trace_after = nullptr;
  if (argc > 4) {
    void *tracer = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);
    if (!tracer) die(dlerror());
    TraceStart start = reinterpret_cast<TraceStart>(dlsym(tracer, "cudaperf_trace_start"));
    trace_before = reinterpret_cast<TraceBefore>(dlsym(tracer, "cudaperf_trace_before"));
    trace_after = reinterpret_cast<TraceAfter>(dlsym(tracer, "cudaperf_trace_after"));
    if (!start || !trace_before || !trace_after || start()) die("the tracer does not start");
  }
  check(cudaFree(nullptr), "starting CUDA");
  Library candidate = load(argv[1], on_device);

  uint32_t count = get_value<uint32_t>(), sets = get_value<uint32_t>();
  int poison = static_cast<int>(get_value<uint32_t>());
  uint64_t flush_bytes = get_value<uint64_t>();
  std::vector<Argument> arguments(count);
  for (Argument &a : arguments) {
    a.kind = get_value<uint32_t>();
    a.size = get_value<uint64_t>();
    bool moved = (a.kind & BUFFER) && on_device && !(a.kind & SETUP_ONLY);
    a.room[0] = allocate(a.size, moved);
    a.room[1] = allocate(a.size, moved);
  }
  // What the candidate does to contents stays in this process.
  size_t whole = static_cast<size_t>(info.st_size), offset = 0;
  char *contents = mapped(memory, whole, false), *outputs = mapped(memory, whole, true);
  auto next = [&](size_t size) {
    size_t at = offset;
    offset += (size + PAGE - 1) / PAGE * PAGE;
    if (offset > whole) die("the shared memory is too small");
    return at;
  };
  for (uint32_t s = 0; s < sets; s++)
    for (Argument &a : arguments) {
      if (!(a.kind & SENT)) continue;
      a.content.push_back(contents + next(a.size));
      if ((a.kind & BUFFER) && on_device && !(a.kind & SETUP_ONLY)) {
        a.pristine.push_back(allocate(a.size, true));
        check(cudaMemcpy(a.pristine.back(), a.content.back(), a.size, cudaMemcpyHostToDevice), "staging");
      }
    }
  for (Argument &a : arguments)
    if (a.kind & RETURNED) a.output = outputs + next(a.size);
  // Where it cannot be pinned, copies are slower, and that is all.
  size_t first = whole;
  for (Argument &a : arguments)
    if ((a.kind & RETURNED) && static_cast<size_t>(a.output - outputs) < first) first = static_cast<size_t>(a.output - outputs);
  if (on_device && first < whole && cudaHostRegister(outputs + first, whole - first, 0) != cudaSuccess) cudaGetLastError();
  int *differs = reinterpret_cast<int *>(allocate(count * sizeof(int), true));
  std::vector<int> differing(count);
  // By the driver, where there is one: the emulator has no L2.
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  using Reset = int (*)();
  Reset reset_persisting = driver ? reinterpret_cast<Reset>(dlsym(driver, "cuCtxResetPersistingL2Cache")) : nullptr;
  char *flush = flush_bytes ? allocate(flush_bytes, true) : nullptr;
  std::vector<char *> tables;
  check(cudaDeviceSynchronize(), "staging");
  put("S", 1);

  for (uint32_t turn = 0;; turn++) {
    uint32_t set = get_value<uint32_t>();
    if (set == END) break;
    if (set == NOTHING) { // what the exchange itself costs
      put("R", 1);
      get_value<char>();
      put("D", 1);
      continue;
    }
    if (set == LOAD) {
      std::vector<char> path(get_value<uint32_t>() + 1);
      get(path.data(), path.size() - 1);
      candidate = load(path.data(), on_device);
      continue;
    }
    if (set >= sets) die("no such set");
    std::vector<void *> host(count), passed(count);
    for (uint32_t i = 0; i < count; i++) {
      Argument &a = arguments[i];
      bool moved = (a.kind & BUFFER) && on_device && !(a.kind & SETUP_ONLY);
      char *at = a.room[turn % 2] + STEP * (turn / 2 % 4); // never where the last call had it
      if (moved && (a.kind & SENT))
        check(cudaMemcpy(at, a.pristine[set], a.size, cudaMemcpyDeviceToDevice), "staging");
      else if (moved)
        check(cudaMemset(at, poison, a.size), "poisoning");
      else if (a.kind & SENT)
        memcpy(at, a.content[set], a.size);
      else
        memset(at, poison, a.size);
      host[i] = (a.kind & SENT) ? static_cast<void *>(a.content[set]) : static_cast<void *>(at);
      passed[i] = at;
    }
    if (candidate.setup) candidate.setup(on_device ? host.data() : passed.data());
    if (on_device && candidate.table_of) {
      const void *data;
      size_t bytes;
      for (int t = 0; candidate.table_of(t, &data, &bytes); t++) {
        if (static_cast<size_t>(t) == tables.size()) tables.push_back(allocate(bytes, true));
        check(cudaMemcpy(tables[static_cast<size_t>(t)], data, bytes, cudaMemcpyHostToDevice), "tables");
        passed.push_back(tables[static_cast<size_t>(t)]);
      }
    }
    // What an earlier call pinned in the L2 becomes ordinary again, and is then flushed like the rest.
    if (flush && reset_persisting) reset_persisting();
    if (flush) check(cudaMemset(flush, static_cast<int>(turn & 0xFF), flush_bytes), "flushing");
    check(cudaDeviceSynchronize(), "staging");
    put("R", 1);
    get_value<char>();

    if (trace_before) trace_before();
    double process = seconds_of(CLOCK_PROCESS_CPUTIME_ID), thread = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    double start = seconds_of(CLOCK_MONOTONIC);
    int32_t status = 0;
    if (on_device)
      status = candidate.device_call(passed.data());
    else
      candidate.host_call(passed.data());
    int32_t synchronised = static_cast<int32_t>(cudaDeviceSynchronize());
    double seconds = seconds_of(CLOCK_MONOTONIC) - start;
    thread = seconds_of(CLOCK_THREAD_CPUTIME_ID) - thread;
    process = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - process;
    const char *traced = trace_after ? trace_after() : "";
    put("D", 1);
    put_value<int32_t>(status);
    put_value<int32_t>(synchronised);
    put_value<double>(seconds);
    put_value<double>(process - thread);
    if (status || synchronised) _exit(73); // the context may be gone: the parent starts another process

    int32_t changed = -1;
    if (on_device) check(cudaMemset(differs, 0, count * sizeof(int)), "comparing an input");
    for (uint32_t i = 0; i < count; i++) {
      Argument &a = arguments[i];
      if (!(a.kind & BUFFER) || (a.kind & (RETURNED | SETUP_ONLY))) continue;
      const char *now = static_cast<const char *>(passed[i]);
      if (on_device)
        differ<<<512, 256>>>(now, a.pristine[set], a.size, differs + i);
      else if (memcmp(now, a.content[set], a.size))
        changed = static_cast<int32_t>(i);
    }
    if (on_device) {
      check(cudaMemcpy(differing.data(), differs, count * sizeof(int), cudaMemcpyDeviceToHost), "comparing an input");
      for (uint32_t i = 0; i < count; i++)
        if (differing[i]) changed = static_cast<int32_t>(i);
    }
    for (uint32_t i = 0; i < count; i++) {
      Argument &a = arguments[i];
      if (!(a.kind & RETURNED)) continue;
      const char *now = static_cast<const char *>(passed[i]);
      if (on_device)
        check(cudaMemcpy(a.output, now, a.size, cudaMemcpyDeviceToHost), "reading an output");
      else
        memcpy(a.output, now, a.size);
    }
    put_value<int32_t>(changed);
    if (trace_after) {
      put_value<uint64_t>(strlen(traced));
      put(traced, strlen(traced));
    }
  }
  _exit(0);
}
