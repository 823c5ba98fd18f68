#include "memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <string>

namespace cpu {

namespace {

// The number behind a name in a file of lines such as "MemTotal: 12 kB" or "inactive_file 12"; -1 without one.
int64_t numberOf(const std::string& path, const char* want) {
  FILE* file = fopen(path.c_str(), "r");
  if (!file) return -1;
  char line[256], name[64];
  int64_t number, found = -1;
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "%63[^: ]%*[: ]%" SCNd64, name, &number) == 2 && strcmp(name, want) == 0) found = number;
  }
  fclose(file);
  return found;
}

// The number that a file begins with; -1 without one, as of a limit "max".
int64_t numberIn(const std::string& path) {
  FILE* file = fopen(path.c_str(), "r");
  if (!file) return -1;
  int64_t number;
  if (fscanf(file, "%" SCNd64, &number) != 1) number = -1;
  fclose(file);
  return number;
}

int64_t kibibytesOf(const char* meminfo, const char* name) {
  const int64_t kib = numberOf(meminfo, name);
  return kib < 0 ? 0 : kib * 1024;
}

// The files of a control group, after the folder.
struct Group {
  const char *limit, *used, *statistics, *cached;
};

constexpr Group versions[] = {
    {"/memory.max", "/memory.current", "/memory.stat", "inactive_file"},
    {"/memory/memory.limit_in_bytes", "/memory/memory.usage_in_bytes", "/memory/memory.stat",
     "total_inactive_file"},
};

}  // namespace

int64_t memoryBytes(const char* meminfo) { return kibibytesOf(meminfo, "MemTotal"); }

int64_t memoryFreeBytes(const char* meminfo, const char* folder) {
  int64_t bytes = kibibytesOf(meminfo, "MemAvailable");
  for (const Group& g : versions) {
    const std::string at = folder;
    const int64_t most = numberIn(at + g.limit), used = numberIn(at + g.used);
    if (most < 0 || used < 0) continue;
    // Files that nobody has looked at lately count as used, and go when memory is wanted: weights that were read.
    const int64_t cached = std::clamp<int64_t>(numberOf(at + g.statistics, g.cached), 0, used);
    bytes = std::clamp<int64_t>(most - (used - cached), 0, bytes);
  }
  return bytes;
}

}  // namespace cpu
