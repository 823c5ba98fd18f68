// What a step says about its logits.
#pragma once

#include <stdint.h>

#include "workers.h"

namespace cpu {

// Logits are taken in chunks of fixed size, whose parts are put together in order: the result does not
// depend on the number of threads.
constexpr int64_t chunkLogits = 1024;

struct ChunkStatistics {
  double sum, weighted;    // sums of e^(z - max) and of e^(z - max) * (z - max)
  float max, secondMax;    // the largest logit and the largest of the others; -infinity if there are none
  int32_t first;           // the first place of max
  int32_t finite;          // 0 if a logit is NaN or +infinity
};

struct LogitsKernels {
  // Statistics of z[0] to z[count - 1], count 1 to chunkLogits.
  void (*statistics)(const float* z, int64_t count, ChunkStatistics* out);

  // The first i from begin on with z[i] > threshold, or end.
  int64_t (*nextAbove)(const float* z, int64_t begin, int64_t end, float threshold);

  // out[i] = e^((z[i] - max) * scale) for count logits, at most chunkLogits; returns their sum.
  double (*weights)(const float* z, int64_t count, float max, float scale, float* out);
};

// Statistics of a row of V logits with p their softmax. Logits may be -infinity: such a token has
// probability 0. If a logit is NaN or +infinity, or all are -infinity, finite is 0, token -1 and the rest
// NaN.
struct LogitsStatistics {
  int32_t token;   // the largest logit's, the first of equals
  int32_t finite;  // 1 if the row is sound
  float maxLogit, logSumExp;
  float entropy;         // -sum of p ln p, divided by ln V: 0 to 1 (0 for V = 1)
  float topProbability;  // the largest p
  float margin;          // the largest p less the second largest
  int32_t reserved;
};

// Bound on |logSumExp - exact| over max(1, |exact|), and on the other statistics' absolute errors.
constexpr double statisticsTolerance = 4e-6;

// The chunks that a row has.
inline int64_t chunksOf(int64_t vocabulary) { return (vocabulary + chunkLogits - 1) / chunkLogits; }

// A chunk of a row of logits: out[chunk] of chunksOf(vocabulary). merge may follow once all are done.
void chunkOf(const LogitsKernels& kernels, const float* z, int64_t vocabulary, int64_t chunk,
             ChunkStatistics* out);

// Puts a row's chunks together, in order. vocabulary is the number of logits.
LogitsStatistics merge(const ChunkStatistics* chunks, int64_t vocabulary);

// The same in double from the logits.
LogitsStatistics statisticsReference(const float* z, int64_t vocabulary);

// A token and its logit.
struct Candidate {
  float logit;
  int32_t token;
};

// Writes the k tokens with the largest logits, largest first, equals by token, and returns how many there
// are: tokens of logit -infinity and NaN are left out.
int64_t topLogits(const LogitsKernels& kernels, const float* z, int64_t vocabulary, int64_t k,
                  Candidate* out);

// How to draw a token. The order is: temperature, the topK best, of those the best whose mass is at least
// topP (a token stays while the mass before it is less), of those all with at least minP times the best
// probability. That is the order of Hugging Face transformers.
struct Sampling {
  float temperature;  // 0: the token of the largest logit; else at least native::temperatureMin
  int32_t topK;       // 0: all
  float topP;         // above 0; 1: all
  float minP;         // 0: all
  uint64_t random;    // uniform bits that belong to this draw alone, such as a hash of its name
};

// Draws from a sound row; scratch has room for vocabulary candidates. The draw depends on the logits, on s
// and on nothing else.
int32_t sample(const LogitsKernels& kernels, const float* z, int64_t vocabulary, const Sampling& s,
               float maxLogit, Candidate* scratch);

}  // namespace cpu
