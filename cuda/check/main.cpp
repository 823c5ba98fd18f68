// Checks every kernel against its reference on random inputs: check [SEED]. Prints "ok", or what is wrong.
#include "check.h"

int main(int argc, char** argv) {
  const uint64_t seed = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
  int count = 0;
  const cudaError_t failed = cudaGetDeviceCount(&count);
  if (failed != cudaSuccess || count == 0) {
    fprintf(stderr, "check: no CUDA device: %s\n", cudaGetErrorString(failed));
    return 3;
  }
  check::rows(seed);
  check::products(seed);
  check::attention(seed);
  check::logits(seed);
  check::router(seed);
  puts("ok");
}
