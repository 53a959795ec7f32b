#include "module.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <link.h>
#include <unistd.h>
#include <vector>

#include "../include/emu/abi.h"
#include "config.h"
#include "report.h"
#include "shadow.h"

namespace emu {

namespace {

Module the_module;

struct Search {
  uintptr_t inside;
  Module found;
};

int visit(dl_phdr_info *info, size_t, void *data) {
  Search &search = *static_cast<Search *>(data);
  Module m;
  m.base = info->dlpi_addr;
  m.begin = UINTPTR_MAX;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) &segment = info->dlpi_phdr[i];
    uintptr_t at = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) {
      m.begin = std::min(m.begin, at);
      m.end = std::max(m.end, at + segment.p_memsz);
      if (segment.p_flags & PF_W) {
        m.globals = reinterpret_cast<char *>(at & ~uintptr_t(3));
        m.globals_size = (at + segment.p_memsz + 3 - reinterpret_cast<uintptr_t>(m.globals)) & ~size_t(3);
      }
    }
    if (segment.p_type == PT_TLS) {
      m.static_shared = static_cast<char *>(info->dlpi_tls_data);
      m.static_shared_size = (segment.p_memsz + 3) & ~size_t(3);
    }
  }
  if (search.inside < m.begin || search.inside >= m.end) return 0;
  m.path = info->dlpi_name;
  search.found = m;
  return 1;
}

struct Symbol {
  uintptr_t value;
  size_t size;
  bool thread_local_;
  std::string name;
};

std::vector<Symbol> read_symbols(const std::string &path) {
  std::vector<Symbol> symbols;
  FILE *file = fopen(path.c_str(), "rb");
  if (!file) return symbols;
  fseek(file, 0, SEEK_END);
  std::string text(static_cast<size_t>(ftell(file)), '\0');
  rewind(file);
  bool whole = fread(&text[0], 1, text.size(), file) == text.size();
  fclose(file);
  if (!whole || text.size() < sizeof(ElfW(Ehdr))) return symbols;
  auto *header = reinterpret_cast<const ElfW(Ehdr) *>(&text[0]);
  auto *sections = reinterpret_cast<const ElfW(Shdr) *>(&text[header->e_shoff]);
  for (int i = 0; i < header->e_shnum; i++) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    auto *table = reinterpret_cast<const ElfW(Sym) *>(&text[sections[i].sh_offset]);
    const char *names = &text[sections[sections[i].sh_link].sh_offset];
    for (size_t j = 0; j < sections[i].sh_size / sizeof *table; j++) {
      int type = ELF64_ST_TYPE(table[j].st_info);
      if ((type == STT_TLS || type == STT_OBJECT) && table[j].st_size)
        symbols.push_back({table[j].st_value, table[j].st_size, type == STT_TLS, names + table[j].st_name});
    }
  }
  return symbols;
}

// "tile" of "_ZZ4tilePKfPfiE4tile": the last name of a local entity, or the plain name.
std::string short_name(const std::string &mangled) {
  if (mangled.compare(0, 2, "_Z") != 0) return mangled.substr(0, mangled.find('.'));
  std::string last = mangled;
  for (size_t i = 2; i < mangled.size();) {
    if (mangled[i] < '1' || mangled[i] > '9') {
      i++;
      continue;
    }
    size_t length = 0, at = i;
    while (at < mangled.size() && mangled[at] >= '0' && mangled[at] <= '9')
      length = length * 10 + static_cast<size_t>(mangled[at++] - '0');
    if (length && at + length <= mangled.size()) {
      last = mangled.substr(at, length);
      i = at + length;
    } else {
      i = at;
    }
  }
  return last;
}

} // namespace

const Module &module() { return the_module; }

std::string symbol_at(const void *address) {
  static std::vector<Symbol> symbols = read_symbols(the_module.path);
  auto at = reinterpret_cast<uintptr_t>(address), shared = reinterpret_cast<uintptr_t>(the_module.static_shared);
  bool local = at >= shared && at < shared + the_module.static_shared_size;
  uintptr_t offset = local ? at - shared : at - the_module.base;
  for (const Symbol &s : symbols)
    if (s.thread_local_ == local && offset >= s.value && offset < s.value + s.size)
      return format("%s+%zu", short_name(s.name).c_str(), static_cast<size_t>(offset - s.value));
  return "";
}

} // namespace emu

EMU_API void emu_module(const void *inside, const void *, const char *source_name, int checked) {
  using namespace emu;
  read_environment();
  config.check = checked != 0;
  Search search{reinterpret_cast<uintptr_t>(inside), {}};
  dl_iterate_phdr(visit, &search);
  the_module = search.found;
  the_module.source = source_name;
  if (the_module.path.empty()) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length > 0) the_module.path.assign(path, static_cast<size_t>(length));
  }
  shadow_module(the_module);
  // For exit() and the end of main; the runner leaves by _exit and asks for reports itself. Registered here, after this
  // library's own variables were made, so that it runs before they are destroyed.
  static bool registered = false;
  if (!registered) atexit(write_last_report);
  registered = true;
}
