#include "report.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>
#include <vector>

#include "config.h"
#include "memory.h"
#include "module.h"

namespace emu {

Statistics statistics;

namespace {

struct Finding {
  const char *kind;
  Severity severity;
  Site site, other;
  std::string message;
  uint64_t count;
};
std::vector<Finding> findings;

using Key = std::tuple<const void *, uintptr_t, int, int>;
std::map<Key, size_t> index_of;

std::string escaped(const std::string &text) {
  std::string out;
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c < 32 || c >= 127)
      out += '?';
    else
      out += static_cast<char>(c);
  }
  return out;
}

std::string site_json(const char *name, Site site) {
  uintptr_t offset = module().contains(site.pc) ? site.pc - module().base : 0;
  return format("\"%spc\":%lu,\"%sline\":%d", name, static_cast<unsigned long>(offset), name, site.line);
}

const char *severity_name(Severity severity) {
  switch (severity) {
  case Severity::error: return "error";
  case Severity::note: return "note";
  case Severity::unsupported: return "unsupported";
  }
  return "error";
}

} // namespace

std::string format(const char *text, ...) {
  char buffer[800];
  va_list arguments;
  va_start(arguments, text);
  vsnprintf(buffer, sizeof buffer, text, arguments);
  va_end(arguments);
  return buffer;
}

bool seen(const char *kind, Site site, int variant) {
  auto it = index_of.find({kind, site.pc, site.line, variant});
  if (it == index_of.end()) return findings.size() >= MAX_FINDINGS;
  findings[it->second].count++;
  return true;
}

void report(const char *kind, Site site, const std::string &message, Severity severity, Site other, int variant,
            uint64_t count) {
  if (seen(kind, site, variant)) return;
  index_of[{kind, site.pc, site.line, variant}] = findings.size();
  findings.push_back({kind, severity, site, other, message, count});
}

bool any_error() {
  for (const Finding &f : findings)
    if (f.severity != Severity::note) return true;
  return false;
}

std::string take_report() {
  report_leaks();
  std::string out = "{\"library\":\"" + escaped(module().path) + "\",\"source\":\"" + escaped(module().source) + "\",";
  out += format("\"stats\":{\"launches\":%lu,\"blocks\":%lu,\"threads\":%lu,\"accesses\":%lu,\"writes\":%lu,\"span\":%lu,"
                "\"widest\":%lu},",
                statistics.launches, statistics.blocks, statistics.threads, statistics.accesses, statistics.writes,
                statistics.span, statistics.widest);
  out += "\"kernels\":{";
  for (const auto &[statement, threads] : statistics.kernels)
    out += (out.back() == '{' ? "\"" : ",\"") + escaped(statement) + format("\":%lu", threads);
  out += "},\"findings\":[";
  bool comma = false;
  for (const Finding &f : findings) {
    out += comma ? ",{" : "{";
    comma = true;
    out += format("\"kind\":\"%s\",\"severity\":\"%s\",\"count\":%lu,", f.kind, severity_name(f.severity), f.count);
    out += site_json("", f.site) + "," + site_json("other_", f.other);
    out += ",\"message\":\"" + escaped(f.message) + "\"}";
  }
  out += "]}";
  findings.clear();
  index_of.clear();
  statistics = {};
  return out;
}

void write_last_report() {
  const char *path = getenv("CUDAPERF_EMULATOR_REPORT");
  if (!path && !any_error()) return;
  if (path && strcmp(path, "-")) {
    static bool written = false;
    if (written) return;
    written = true;
    if (FILE *file = fopen(path, "w")) {
      fputs(take_report().c_str(), file);
      fclose(file);
    }
    return;
  }
  fprintf(stderr, "\ncudaperf-emulator-report: %s\n", take_report().c_str());
  fflush(stderr);
}

} // namespace emu

EMU_API const char *cudaperf_emulator_report() {
  static std::string text;
  text = emu::take_report();
  return text.c_str();
}
