// Checks kernels against their references on random inputs: check WHAT SEED..., or check device, which says
// what card there is. Prints "ok", or what is wrong. WHAT: rows, products, attention, logits, router, all of
// these ("own"), or library, which is cuBLASLt.
#include "../device/lt.h"
#include "rig.h"

namespace {

// The exit code without a card.
constexpr int noDevice = 3;

void describe() {
  cudaDeviceProp card;
  int driver = 0;
  CHECK_CUDA(cudaGetDeviceProperties(&card, 0));
  CHECK_CUDA(cudaDriverGetVersion(&driver));
  printf("%s, compute capability %d.%d, %d multiprocessors, %zu bytes of memory\n", card.name, card.major,
         card.minor, card.multiProcessorCount, card.totalGlobalMem);
  printf("driver for CUDA %d.%d, runtime of CUDA %d.%d, ", driver / 1000, driver % 1000 / 10,
         CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  const int version = int(cuda::ltVersion());
  if (version)
    printf("cuBLASLt %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
  else
    printf("no cuBLASLt\n");
}

bool run(const char* what, uint64_t seed) {
  const struct {
    const char* name;
    void (*check)(uint64_t seed);
    bool own;
  } all[] = {
      {"rows", check::rows, true},           {"products", check::products, true},
      {"attention", check::attention, true}, {"logits", check::logits, true},
      {"router", check::router, true},       {"library", check::library, false},
  };
  bool found = false;
  for (const auto& kernels : all) {
    if (strcmp(what, kernels.name) != 0 && !(kernels.own && strcmp(what, "own") == 0)) continue;
    kernels.check(seed);
    found = true;
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  tr_device_info info = {};
  info.size = int32_t(sizeof info);
  tr_error error;
  const int32_t status = check::backend().device_info(0, &info, &error);
  if (status != TR_OK) {
    fprintf(stderr, "check: %s\n", error.text);
    return status == TR_NO_DEVICE ? noDevice : 1;
  }
  const bool device = argc == 2 && strcmp(argv[1], "device") == 0;
  bool known = device || argc > 2;
  if (device) describe();
  for (int i = 2; i < argc && known; i++) known = run(argv[1], strtoull(argv[i], nullptr, 10));
  if (!known) {
    fprintf(stderr, "check: want device, or rows, products, attention, logits, router, own or library,"
                    " and seeds\n");
    return 2;
  }
  puts("ok");
}
