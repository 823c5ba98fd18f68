#include "lane_kernels.h"

namespace cpu {

namespace {

#if defined(__x86_64__)
// Attention has a form of its own for AMX; all else is that of AVX-512.
LaneKernels amxKernels() {
  LaneKernels kernels = laneKernelsAvx512;
  kernels.attention = attentionKernelsAmx;
  return kernels;
}
#endif

}  // namespace

const LaneKernels& laneKernels(Path path) {
#if defined(__x86_64__)
  static const LaneKernels amx = amxKernels();
  if (path == Path::amx) return amx;
#endif
  switch (rowPath(path)) {
#if defined(__x86_64__)
    case Path::avx2: return laneKernelsAvx2;
    case Path::avx512: return laneKernelsAvx512;
#endif
    default: return laneKernelsPlain;
  }
}

}  // namespace cpu
