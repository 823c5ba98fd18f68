#include "paths.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace cpu {

namespace {

#if defined(__x86_64__)

// Bits of CPUID and XCR0: Intel SDM, volume 2A, CPUID; volume 1, section 13.3.
constexpr uint32_t leaf1EcxFma = 1u << 12, leaf1EcxOsxsave = 1u << 27, leaf1EcxAvx = 1u << 28;
constexpr uint32_t leaf7EbxAvx2 = 1u << 5, leaf7EbxAvx512F = 1u << 16, leaf7EbxAvx512Dq = 1u << 17;
constexpr uint32_t leaf7EbxAvx512Bw = 1u << 30, leaf7EbxAvx512Vl = 1u << 31;
constexpr uint32_t leaf7EcxAvx512Vnni = 1u << 11;
constexpr uint32_t leaf7EdxAmxBf16 = 1u << 22, leaf7EdxAmxTile = 1u << 24, leaf7EdxAmxInt8 = 1u << 25;
constexpr uint32_t leaf7Sub1EaxAvx512Bf16 = 1u << 5;
constexpr uint64_t stateAvx = 0x6, stateAvx512 = 0xe6, stateTiles = 0x60000;

// Linux, Documentation/arch/x86/xstate.rst.
constexpr long archRequestPermission = 0x1023, tileData = 18;

bool has(uint64_t word, uint64_t bits) { return (word & bits) == bits; }

uint64_t enabledStates() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

Path detect() {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return Path::plain;
  if (!has(c, leaf1EcxFma | leaf1EcxOsxsave | leaf1EcxAvx)) return Path::plain;
  uint64_t states = enabledStates();
  if (!has(states, stateAvx)) return Path::plain;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has(b, leaf7EbxAvx2)) return Path::plain;
  uint32_t subleaves = a, vnni = c, amx = d;
  if (!has(states, stateAvx512) ||
      !has(b, leaf7EbxAvx512F | leaf7EbxAvx512Dq | leaf7EbxAvx512Bw | leaf7EbxAvx512Vl)) {
    return Path::avx2;
  }
  if (!has(vnni, leaf7EcxAvx512Vnni) || subleaves < 1 || !__get_cpuid_count(7, 1, &a, &b, &c, &d) ||
      !has(a, leaf7Sub1EaxAvx512Bf16)) {
    return Path::avx512;
  }
  if (!has(states, stateTiles) || !has(amx, leaf7EdxAmxBf16 | leaf7EdxAmxTile | leaf7EdxAmxInt8) ||
      syscall(SYS_arch_prctl, archRequestPermission, tileData) != 0) {
    return Path::avx512bf16;
  }
  return Path::amx;
}

#else

Path detect() { return Path::plain; }

#endif

}  // namespace

Path bestPath() {
  static const Path best = detect();
  return best;
}

bool available(Path path) { return path >= Path::plain && path <= bestPath(); }

Path rowPath(Path path) { return path > Path::avx512 ? Path::avx512 : path; }

}  // namespace cpu
