#include "faults.h"

#include <csignal>
#include <cstring>
#include <ucontext.h>
#include <unistd.h>

#include "block.h"
#include "errors.h"
#include "fiber.h"
#include "memory.h"
#include "report.h"

namespace emu {

namespace {

constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
struct sigaction previous[65];
alignas(16) char landing_stack[1 << 16];

void land() { abandon_launch(cudaErrorIllegalAddress); }

void report_kernel_fault(int number, const void *address, uintptr_t pc) {
  Site site{pc + 1, 0}; // a finding's address is taken for a return address
  if (number == SIGFPE)
    report("division-by-zero", site, where() + ": an integer is divided by zero (or the quotient overflows)");
  else if (number == SIGABRT || number == SIGILL)
    report("trap", site, where() + ": the kernel aborts");
  else if (is_stack_overflow(address))
    report("stack-overflow", site, where() + ": the thread's stack (256 KiB) is used up");
  else if (reinterpret_cast<uintptr_t>(address) < 4096)
    report("null-pointer", site, where() + ": access through a null pointer");
  else
    report("fault", site, where() + ": access to " + describe(address));
}

void on_signal(int number, siginfo_t *info, void *context) {
  auto &registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
  if (run.current) {
    report_kernel_fault(number, number == SIGSEGV || number == SIGBUS ? info->si_addr : nullptr,
                        static_cast<uintptr_t>(registers[REG_RIP]));
    // Return from the signal into `land`, on a stack that is surely there; it never comes back.
    registers[REG_RIP] = reinterpret_cast<greg_t>(&land);
    registers[REG_RSP] = reinterpret_cast<greg_t>(landing_stack + sizeof landing_stack - 8);
    return;
  }
  write_last_report();
  const struct sigaction &before = previous[number];
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  } else {
    signal(number, SIG_DFL);
    raise(number);
  }
}

} // namespace

void watch_faults() {
  static bool done = false;
  if (done) return;
  done = true;
  stack_t now{};
  if (sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE)) {
    static char stack[1 << 16];
    stack_t ours{};
    ours.ss_sp = stack;
    ours.ss_size = sizeof stack;
    sigaltstack(&ours, nullptr);
  }
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int number : SIGNALS) sigaction(number, &action, &previous[number]);
}

} // namespace emu
