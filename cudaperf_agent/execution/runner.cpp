// runner REQUEST RESPONSE LIBRARY [PRELOADED_LIBRARY...]
// runner --standby
// runner --clock
//
// With --clock it is the other side of an empty call, for who wants to know what a clock on this side adds to one: it
// reads seconds (f64) to be busy for, says "R", waits for one byte, is busy, and says "D" and the seconds (f64) that it
// took. It ends when standard input is closed.
//
// With --standby it first makes a CUDA context (0.2 to 1 s), says "ready" on standard output, and takes the other
// arguments, separated by spaces, from one line of standard input; it ends when that is closed.
// Loads a shared library and calls its `cudaperf_call(void *const *args)` once per case of the request, each buffer
// between guard pages and ending at the second one. Results go to the response file case by case, so that a crash
// loses only the case that crashed. Formats: see native.py, which writes the request and reads the response.
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

namespace {

enum Flag : uint32_t { WRITABLE = 1, FILLED = 2 };
enum Record : uint32_t { CASE_DONE = 0x454e4f44, FAULT = 0x544c5546 };
enum Status : int32_t { OK = 0, UNDERRUN = 2 };
constexpr size_t PAGE = 4096;
constexpr unsigned char CANARY = 0xA5;

struct Buffer {
  char *mapping = nullptr;
  size_t mapped = 0;
  char *data = nullptr;
  uint64_t size = 0;
  uint32_t flags = 0;
};

std::vector<Buffer> buffers;
int response_fd = -1;
const bool place_left = getenv("CUDAPERF_PLACE_LEFT") != nullptr;

void die(const char *what) {
  fprintf(stderr, "runner: %s: %s\n", what, errno ? strerror(errno) : "failed");
  _exit(70);
}

void put(const void *data, size_t size) {
  const char *at = static_cast<const char *>(data);
  while (size) {
    ssize_t written = write(response_fd, at, size);
    if (written < 0) {
      if (errno == EINTR) continue;
      die("write");
    }
    at += written;
    size -= static_cast<size_t>(written);
  }
}

template <class T> void put_value(T value) { put(&value, sizeof value); }

// Which buffer's guard page was hit, and how far from the buffer's start: the parent turns it into a sentence.
void on_fault(int number, siginfo_t *info, void *context) {
  const char *address = static_cast<const char *>(info->si_addr);
  int32_t which = -1;
  int64_t offset = 0;
  for (size_t i = 0; i < buffers.size(); i++) {
    const Buffer &b = buffers[i];
    if (address >= b.mapping && address < b.mapping + b.mapped) {
      which = static_cast<int32_t>(i);
      offset = address - b.data;
    }
  }
  int32_t writing = 0;
#ifdef __x86_64__
  writing = (static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_ERR] & 2) ? 1 : 0;
#endif
  put_value<uint32_t>(FAULT);
  put_value<int32_t>(number);
  put_value<int32_t>(which);
  put_value<int32_t>(writing);
  put_value<int64_t>(offset);
  put_value<uint64_t>(reinterpret_cast<uint64_t>(address));
  _exit(128 + number);
}

void watch_faults() {
  static char stack[1 << 16];
  stack_t alternative{};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof stack;
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

void place(Buffer &b) {
  size_t body = (b.size + PAGE - 1) / PAGE * PAGE;
  if (!body) body = PAGE;
  b.mapped = body + 2 * PAGE;
  void *at = mmap(nullptr, b.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) die("mmap");
  b.mapping = static_cast<char *>(at);
  if (mprotect(b.mapping + PAGE, body, PROT_READ | PROT_WRITE)) die("mprotect");
  // At the end of its pages, where an overrun hits the guard page; or at their start, where an underrun does.
  b.data = b.mapping + PAGE + (place_left ? 0 : body - b.size);
  memset(b.mapping + PAGE, CANARY, static_cast<size_t>(b.data - (b.mapping + PAGE)));
}

bool underrun(const Buffer &b) {
  for (const char *at = b.mapping + PAGE; at < b.data; at++)
    if (static_cast<unsigned char>(*at) != CANARY) return true;
  return false;
}

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Reader {
  const char *at, *end;
  template <class T> T value() {
    T v;
    memcpy(&v, bytes(sizeof v), sizeof v);
    return v;
  }
  const char *bytes(size_t n) {
    if (static_cast<size_t>(end - at) < n) die("request is cut short");
    const char *here = at;
    at += n;
    return here;
  }
};

// Empty calls, for `witness.py`; the same system calls around each as timer.cu makes around a call.
[[noreturn]] void answer_clock() {
  double wanted;
  while (read(0, &wanted, sizeof wanted) == sizeof wanted) {
    char go;
    timespec cpu;
    if (write(1, "R", 1) != 1 || read(0, &go, 1) != 1) break;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    double start = now();
    while (now() - start < wanted) {
    }
    double taken = now() - start;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    if (write(1, "D", 1) != 1 || write(1, &taken, sizeof taken) != sizeof taken) break;
  }
  _exit(0);
}

// The context that the library's own CUDA runtime will find. By the driver alone, so that no GPU is needed to build this.
const char *start_cuda() {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) return "there is no driver";
  using Init = int (*)(unsigned);
  using GetDevice = int (*)(int *, int);
  using Retain = int (*)(void **, int);
  using Use = int (*)(void *);
  Init init = reinterpret_cast<Init>(dlsym(driver, "cuInit"));
  GetDevice get_device = reinterpret_cast<GetDevice>(dlsym(driver, "cuDeviceGet"));
  Retain retain = reinterpret_cast<Retain>(dlsym(driver, "cuDevicePrimaryCtxRetain"));
  Use use = reinterpret_cast<Use>(dlsym(driver, "cuCtxSetCurrent"));
  int device = 0;
  void *context = nullptr;
  if (!init || !get_device || !retain || !use) return "the driver is not one";
  if (init(0) || get_device(&device, 0) || retain(&context, device) || use(context)) return "no context can be made";
  return nullptr;
}

// The arguments of a job, once there is one.
std::vector<char *> wait_for_job(char *program) {
  static char line[8192];
  const char *trouble = start_cuda();
  if (trouble) {
    fprintf(stderr, "runner: %s\n", trouble);
    _exit(70);
  }
  const char *said = "ready\n";
  if (write(1, said, strlen(said)) < 0) _exit(70);
  size_t length = 0;
  while (length + 1 < sizeof line && (!length || line[length - 1] != '\n')) {
    ssize_t n = read(0, line + length, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(0); // not needed
    length += static_cast<size_t>(n);
  }
  int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, 0);
  std::vector<char *> found{program};
  for (char *word = strtok(line, " \n"); word; word = strtok(nullptr, " \n")) found.push_back(word);
  return found;
}

} // namespace

int main(int argc, char **argv) {
  std::vector<char *> job;
  if (argc == 2 && !strcmp(argv[1], "--clock")) answer_clock();
  if (argc == 2 && !strcmp(argv[1], "--standby")) {
    job = wait_for_job(argv[0]);
    argc = static_cast<int>(job.size());
    argv = job.data();
  }
  if (argc < 4) die("usage: runner REQUEST RESPONSE LIBRARY [PRELOADED...]");
  int request_fd = open(argv[1], O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (request_fd < 0 || fstat(request_fd, &info)) die(argv[1]);
  const char *request = static_cast<const char *>(
      mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, request_fd, 0));
  if (request == MAP_FAILED) die("mmap of the request");
  response_fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (response_fd < 0) die(argv[2]);
  for (int i = 4; i < argc; i++)
    if (!dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL)) {
      fprintf(stderr, "runner: %s\n", dlerror());
      return 71;
    }
  watch_faults();
  void *library = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "runner: %s\n", dlerror());
    return 71;
  }
  watch_faults(); // a library's initialiser may have changed the handlers
  using Call = void (*)(void *const *);
  Call call = reinterpret_cast<Call>(dlsym(library, "cudaperf_call"));
  Call setup = reinterpret_cast<Call>(dlsym(library, "cudaperf_setup"));
  if (!call) {
    fprintf(stderr, "runner: %s\n", dlerror());
    return 71;
  }
  using Report = const char *(*)();
  Report report = reinterpret_cast<Report>(dlsym(RTLD_DEFAULT, "cudaperf_emulator_report"));

  Reader reader{request, request + info.st_size};
  uint32_t cases = reader.value<uint32_t>(), count = reader.value<uint32_t>();
  for (uint32_t c = 0; c < cases; c++) {
    std::vector<Buffer> fresh(count);
    std::vector<void *> args(count);
    for (uint32_t i = 0; i < count; i++) {
      Buffer &b = fresh[i];
      b.size = reader.value<uint64_t>();
      b.flags = reader.value<uint32_t>();
      uint32_t fill = reader.value<uint32_t>();
      place(b);
      if (b.flags & FILLED)
        memset(b.data, static_cast<int>(fill), b.size);
      else
        memcpy(b.data, reader.bytes(b.size), b.size);
      args[i] = b.data;
    }
    buffers.swap(fresh); // the last case's buffers go only now, so that no address is handed out twice in a row
    for (Buffer &b : fresh)
      if (b.mapping) munmap(b.mapping, b.mapped);
    if (setup) setup(args.data());
    double start = now();
    call(args.data());
    double seconds = now() - start;
    int32_t status = OK;
    for (const Buffer &b : buffers)
      if (underrun(b)) status = UNDERRUN;
    put_value<uint32_t>(CASE_DONE);
    put_value<int32_t>(status);
    put_value<double>(seconds);
    for (const Buffer &b : buffers)
      if (b.flags & WRITABLE) put(b.data, b.size);
    const char *text = report ? report() : "";
    put_value<uint64_t>(strlen(text));
    put(text, strlen(text));
  }
  _exit(0); // no destructors of the library: nothing it does at exit is part of the result
}
