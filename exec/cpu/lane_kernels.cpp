#include "lane_kernels.h"

namespace cpu {

const LaneKernels& laneKernels(Path path) {
  switch (rowPath(path)) {
#if defined(__x86_64__)
    case Path::avx2: return laneKernelsAvx2;
    case Path::avx512: return laneKernelsAvx512;
#endif
    default: return laneKernelsPlain;
  }
}

}  // namespace cpu
