// Which instructions this machine has, found at run time.
#pragma once

#include <stdint.h>

namespace cpu {

// Path names one family of kernels. A later path needs everything that an earlier one needs.
enum class Path : int32_t {
  plain = 1,       // C++17 and nothing else
  avx2 = 2,        // AVX2, FMA
  avx512 = 3,      // AVX-512 F, BW, DQ, VL
  avx512bf16 = 4,  // and VDPBF16PS, VPDPBUSD (VNNI)
  amx = 5,         // and AMX tiles for bf16 and int8, with the kernel's leave to use them
};

constexpr int32_t pathMax = 5;

// Reports whether this machine, its operating system and the build have the path. The first call asks Linux
// for leave to use AMX tile data for the whole process, which costs a system call; later calls are a load.
bool available(Path path);

// The last path that is available.
Path bestPath();

// The path whose kernels a request for path runs where a kernel has none of its own: bf16 kernels exist for
// matrix products only and AMX kernels for them and attention, so that all else runs its AVX-512 form.
Path rowPath(Path path);

}  // namespace cpu
