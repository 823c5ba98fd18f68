#include <memory>
#include <new>

#include "../native/admit.h"
#include "kernels.h"
#include "kernels_checks.h"
#include "lane_kernels.h"

using namespace cpu;

namespace {

static_assert(sizeof(cpu_statistics) == sizeof(LogitsStatistics), "two names of one struct");

cpu_statistics shown(const LogitsStatistics& s) {
  return {s.token, s.finite, s.maxLogit, s.logSumExp, s.entropy, s.topProbability, s.margin, 0};
}

}  // namespace

int32_t cpu_logits(cpu_workers* workers, int32_t path, int64_t rows, const float* z, int64_t stride,
                   int64_t vocabulary, cpu_statistics* out) {
  int32_t failed = checkPath(path);
  if (failed) return failed;
  if (!within(rows, 1, sizeMax) || !within(vocabulary, 1, sizeMax) ||
      !within(stride, vocabulary, 2 * sizeMax)) {
    return EINVAL;
  }
  const int64_t chunks = chunksOf(vocabulary);
  std::unique_ptr<ChunkStatistics[]> parts(new (std::nothrow) ChunkStatistics[size_t(rows * chunks)]);
  if (!parts) return ENOMEM;
  Workers& all = *of(workers);
  auto body = [&](int worker) {
    const Range share = shareOf(rows * chunks, worker, all.count());
    for (int64_t i = share.begin; i < share.end; i++) {
      const int64_t row = i / chunks;
      chunkOf(laneKernels(Path(path)).logits, z + row * stride, vocabulary, i % chunks,
              parts.get() + row * chunks);
    }
  };
  if (!all.run(body)) return EBUSY;
  for (int64_t i = 0; i < rows; i++) out[i] = shown(merge(parts.get() + i * chunks, vocabulary));
  return 0;
}

int32_t cpu_logits_reference(const float* z, int64_t vocabulary, cpu_statistics* out) {
  if (!within(vocabulary, 1, sizeMax)) return EINVAL;
  *out = shown(statisticsReference(z, vocabulary));
  return 0;
}

double cpu_statistics_tolerance(void) { return statisticsTolerance; }

int32_t cpu_top(int32_t path, const float* z, int64_t vocabulary, int64_t k, int32_t* tokens, float* logits,
                int64_t* count) {
  int32_t failed = checkPath(path);
  if (failed) return failed;
  if (!within(vocabulary, 1, sizeMax) || !within(k, 0, sizeMax)) return EINVAL;
  std::unique_ptr<Candidate[]> best(new (std::nothrow) Candidate[size_t(k)]);
  if (!best) return ENOMEM;
  *count = topLogits(laneKernels(Path(path)).logits, z, vocabulary, k, best.get());
  for (int64_t i = 0; i < *count; i++) {
    tokens[i] = best[size_t(i)].token;
    logits[i] = best[size_t(i)].logit;
  }
  return 0;
}

int32_t cpu_sample(int32_t path, const float* z, int64_t vocabulary, float max_logit, float temperature,
                   int32_t top_k, float top_p, float min_p, uint64_t random, int32_t* token) {
  int32_t failed = checkPath(path);
  if (failed) return failed;
  bool hot = temperature >= native::temperatureMin && temperature <= 1e6f;
  if (!within(vocabulary, 1, sizeMax) || !(temperature == 0 || hot) || top_k < 0 ||
      !(top_p > 0 && top_p <= 1) || !(min_p >= 0 && min_p <= 1)) {
    return EINVAL;
  }
  std::unique_ptr<Candidate[]> scratch(new (std::nothrow) Candidate[size_t(vocabulary)]);
  if (!scratch) return ENOMEM;
  const Sampling s{temperature, top_k, top_p, min_p, random};
  *token = sample(laneKernels(Path(path)).logits, z, vocabulary, s, max_logit, scratch.get());
  return 0;
}
