#include "logits.h"

#include <math.h>

#include <algorithm>

namespace cpu {

namespace {

LogitsStatistics unsound() {
  float nan = NAN;
  return {-1, 0, nan, nan, nan, nan, nan, 0};
}

LogitsStatistics finished(int64_t token, double max, double second, double sum, double weighted,
                          int64_t vocabulary) {
  double logSum = log(sum);
  double entropy = vocabulary > 1 ? (logSum - weighted / sum) / log(double(vocabulary)) : 0;
  double top = 1 / sum, next = second == -INFINITY ? 0 : exp(second - max) / sum;
  entropy = std::min(std::max(entropy, 0.0), 1.0);
  return {int32_t(token),  1,          float(max),        float(max + logSum),
          float(entropy), float(top), float(top - next), 0};
}

bool better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

}  // namespace

void chunkOf(const LogitsKernels& kernels, const float* z, int64_t vocabulary, int64_t chunk,
             ChunkStatistics* out) {
  const int64_t begin = chunk * chunkLogits;
  kernels.statistics(z + begin, std::min(chunkLogits, vocabulary - begin), out + chunk);
}

LogitsStatistics merge(const ChunkStatistics* chunks, int64_t vocabulary) {
  const int64_t count = chunksOf(vocabulary);
  double max = -INFINITY, second = -INFINITY;
  int64_t token = -1;
  for (int64_t i = 0; i < count; i++) {
    const ChunkStatistics& c = chunks[i];
    if (!c.finite) return unsound();
    if (double(c.max) > max) {
      second = std::max(max, double(c.secondMax));
      max = double(c.max);
      token = i * chunkLogits + c.first;
    } else {
      second = std::max(second, double(c.max));
    }
  }
  if (token < 0) return unsound();
  double sum = 0, weighted = 0;
  for (int64_t i = 0; i < count; i++) {
    const ChunkStatistics& c = chunks[i];
    if (c.max == -INFINITY) continue;
    double below = double(c.max) - max, factor = exp(below);
    sum += factor * c.sum;
    weighted += factor * (c.weighted + below * c.sum);
  }
  return finished(token, max, second, sum, weighted, vocabulary);
}

LogitsStatistics statisticsReference(const float* z, int64_t vocabulary) {
  double max = -INFINITY, second = -INFINITY, sum = 0, weighted = 0;
  int64_t token = -1;
  for (int64_t i = 0; i < vocabulary; i++) {
    double v = double(z[i]);
    if (!(v < INFINITY)) return unsound();
    if (v > max) {
      second = max;
      max = v;
      token = i;
    } else if (v > second) {
      second = v;
    }
  }
  if (token < 0) return unsound();
  for (int64_t i = 0; i < vocabulary; i++) {
    if (z[i] == -INFINITY) continue;
    double below = double(z[i]) - max;
    sum += exp(below);
    weighted += exp(below) * below;
  }
  return finished(token, max, second, sum, weighted, vocabulary);
}

int64_t topLogits(const LogitsKernels& kernels, const float* z, int64_t vocabulary, int64_t k,
                  Candidate* out) {
  // A heap whose first is the worst of the best so far. Tokens come in order, so that an equal one never
  // enters.
  int64_t held = 0, i = 0;
  while (k > 0) {
    float threshold = held < k ? -INFINITY : out[0].logit;
    i = kernels.nextAbove(z, i, vocabulary, threshold);
    if (i == vocabulary) break;
    if (held == k) {
      std::pop_heap(out, out + held, better);
    } else {
      held++;
    }
    out[held - 1] = {z[i], int32_t(i)};
    std::push_heap(out, out + held, better);
    i++;
  }
  std::sort_heap(out, out + held, better);
  return held;
}

}  // namespace cpu
