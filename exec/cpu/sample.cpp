#include <math.h>

#include <algorithm>

#include "logits.h"

namespace cpu {

namespace {

constexpr int64_t firstGuess = 64;  // candidates to look at first where only a mass is asked for

// Uniform in [0, 1), a multiple of 2^-53.
double uniform(uint64_t random) { return double(random >> 11) * 0x1p-53; }

struct Row {
  const LogitsKernels& kernels;
  const float* z;
  int64_t vocabulary;
  float max, scale;

  double weight(float logit) const { return exp(double(logit - max) * double(scale)); }

  // Calls visit(begin, count, weights, sum) for the chunks in order, until it returns false.
  template <class F>
  void chunks(F visit) const {
    float weights[chunkLogits];
    for (int64_t begin = 0; begin < vocabulary; begin += chunkLogits) {
      int64_t count = std::min(chunkLogits, vocabulary - begin);
      double sum = kernels.weights(z + begin, count, max, scale, weights);
      if (!visit(begin, count, weights, sum)) return;
    }
  }
};

// The weight of all tokens.
double totalMass(const Row& row) {
  double total = 0;
  row.chunks([&](int64_t, int64_t, const float*, double sum) {
    total += sum;
    return true;
  });
  return total;
}

// Draws among all tokens with a weight of at least least, in the order of tokens.
int32_t drawAmongAll(const Row& row, double least, double u) {
  auto kept = [&](float weight) { return weight > 0 && double(weight) >= least ? double(weight) : 0.0; };
  double total = 0;
  row.chunks([&](int64_t, int64_t count, const float* weights, double) {
    for (int64_t i = 0; i < count; i++) total += kept(weights[i]);
    return true;
  });
  double before = 0, target = u * total;
  int64_t token = -1;
  row.chunks([&](int64_t begin, int64_t count, const float* weights, double) {
    for (int64_t i = 0; i < count; i++) {
      double weight = kept(weights[i]);
      if (weight == 0) continue;
      token = begin + i;
      before += weight;
      if (before > target) return false;
    }
    return true;
  });
  return int32_t(token);
}

// How many of count sorted candidates stay, and their mass. total is the mass that topP is a part of.
int64_t keptOf(const Row& row, const Sampling& s, const Candidate* sorted, int64_t count, double total,
               double* mass) {
  int64_t kept = 0;
  *mass = 0;
  while (kept < count && (kept == 0 || s.topP >= 1 || *mass < double(s.topP) * total)) {
    double weight = row.weight(sorted[kept].logit);
    if (kept > 0 && weight < double(s.minP)) break;
    *mass += weight;
    kept++;
  }
  return kept;
}

int32_t drawSorted(const Row& row, const Candidate* sorted, int64_t kept, double mass, double u) {
  double before = 0;
  for (int64_t i = 0; i + 1 < kept; i++) {
    before += row.weight(sorted[i].logit);
    if (before > u * mass) return sorted[i].token;
  }
  return sorted[kept - 1].token;
}

}  // namespace

int32_t sample(const LogitsKernels& kernels, const float* z, int64_t vocabulary, const Sampling& s,
               float maxLogit, Candidate* scratch) {
  if (s.temperature <= 0) return int32_t(std::find(z, z + vocabulary, maxLogit) - z);
  const Row row{kernels, z, vocabulary, maxLogit, 1 / s.temperature};
  const double u = uniform(s.random);
  const bool all = s.topK <= 0 || s.topK >= vocabulary;
  if (all && s.topP >= 1) return drawAmongAll(row, double(s.minP), u);
  double mass;
  if (!all) {
    int64_t count = topLogits(kernels, z, vocabulary, s.topK, scratch);
    double total = 0;
    for (int64_t i = 0; i < count; i++) total += row.weight(scratch[i].logit);
    int64_t kept = keptOf(row, s, scratch, count, total, &mass);
    return drawSorted(row, scratch, kept, mass, u);
  }
  // The best tokens that make up the mass are mostly few: look at some, and at more if they do not suffice.
  const double total = totalMass(row);
  for (int64_t guess = firstGuess;; guess *= 4) {
    int64_t asked = std::min(guess, vocabulary);
    int64_t count = topLogits(kernels, z, vocabulary, asked, scratch);
    int64_t kept = keptOf(row, s, scratch, count, total, &mass);
    if (kept < count || count < asked || asked == vocabulary) return drawSorted(row, scratch, kept, mass, u);
  }
}

}  // namespace cpu
