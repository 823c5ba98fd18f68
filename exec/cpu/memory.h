// Memory of this machine.
#pragma once

#include <stdint.h>

namespace cpu {

constexpr const char *meminfoFile = "/proc/meminfo", *groupFolder = "/sys/fs/cgroup";

// All of it, in bytes: MemTotal of meminfo (proc(5)); 0 where that is not there.
int64_t memoryBytes(const char* meminfo);

// What this process can still have of it, in bytes: MemAvailable, or what the control group mounted at folder
// leaves (version 2, or folder memory of version 1), if that is less.
int64_t memoryFreeBytes(const char* meminfo, const char* folder);

}  // namespace cpu
