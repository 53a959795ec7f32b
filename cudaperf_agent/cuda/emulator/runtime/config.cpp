#include "config.h"

#include <cstdlib>
#include <cstring>

namespace emu {

Config config;

void read_environment() {
  static bool done = false;
  if (done) return;
  done = true;
  if (const char *order = getenv("CUDAPERF_EMULATOR_ORDER")) {
    if (!strcmp(order, "reverse")) config.order = Order::reverse;
    if (!strcmp(order, "random")) config.order = Order::random;
  }
  if (const char *seed = getenv("CUDAPERF_EMULATOR_SEED")) config.seed = strtoull(seed, nullptr, 10);
  config.suppress = getenv("CUDAPERF_EMULATOR_SUPPRESS");
}

} // namespace emu
