#include "logits.h"

#include <algorithm>
#include <vector>

#include "select.cuh"
#include "statistics.cuh"

namespace cuda {

namespace {

struct DescribeShared {
  SelectShared select;
  Best best[warpsMax];
  RowStatistics row;
};

// Adds a row's biases, and keeps what was there; called by one thread. Two finite numbers: a sum that is too
// large stays a logit, and the largest.
__device__ void addBiases(const Heads& h, const Draw& d, float* z) {
  for (int32_t i = d.firstBias; i < d.firstBias + d.biases; i++) {
    float& logit = z[h.biases[i].token];
    h.saved[i] = logit;
    logit = fminf(logit + h.biases[i].bias, FLT_MAX);
  }
}

// In reverse: a token may have several biases.
__device__ void removeBiases(const Heads& h, const Draw& d, float* z) {
  for (int32_t i = d.firstBias + d.biases - 1; i >= d.firstBias; i--) z[h.biases[i].token] = h.saved[i];
}

// The sampled token, -1 if there is nothing that may be sampled. The logits are as before in the end.
__device__ int32_t pick(const Heads& h, const Draw& d, float* z, Best best, DescribeShared& s) {
  const bool biased = d.biases > 0;
  __syncthreads();
  if (biased && threadIdx.x == 0) addBiases(h, d, z);
  __syncthreads();
  if (biased || best.first >= h.samplable) {
    Best mine = {-INFINITY, -INFINITY, INT32_MAX};
    for (int64_t i = threadIdx.x; i < h.samplable; i += blockDim.x) {
      mine = Better()(mine, {z[i], -INFINITY, int32_t(i)});
    }
    best = bestOfBlock(mine, s.best);
  }
  int32_t token = best.max > -INFINITY ? best.first : -1;
  if (token >= 0 && d.temperature > 0) {
    token = drawToken({z, h.samplable, best.max, 1 / d.temperature}, d, s.select);
  }
  __syncthreads();
  if (biased && threadIdx.x == 0) removeBiases(h, d, z);
  __syncthreads();
  return token;
}

// The best logits as they are, for the list that was asked for and for the router.
__device__ int32_t listTop(const Heads& h, int64_t row, const Draw& d, const float* z, double logSumExp,
                           SelectShared& s) {
  const int64_t wanted = d.top > h.routerTopCount ? int64_t(d.top) : h.routerTopCount;
  if (wanted <= 0) return 0;
  const int64_t count = selectTop(z, h.vocab, wanted, s);
  const int64_t listed = d.top < count ? int64_t(d.top) : count;
  for (int64_t i = threadIdx.x; i < listed; i += blockDim.x) {
    const int32_t token = tokenOf(s.ranks[i]);
    h.top[row * h.topStride + i] = {z[token] - float(logSumExp), token};
  }
  for (int64_t i = threadIdx.x; i < h.routerTopCount; i += blockDim.x) {
    h.routerTop[row * h.routerTopCount + i] = i < count ? z[tokenOf(s.ranks[i])] : -INFINITY;
  }
  return int32_t(listed);
}

__global__ void __launch_bounds__(1024, 1) describeKernel(Heads h) {
  DescribeShared& s = sharedMemory<DescribeShared>();
  const int64_t row = blockIdx.x, chunks = (h.vocab + chunkLogits - 1) / chunkLogits;
  float* z = h.logits + row * h.stride;
  if (threadIdx.x == 0) s.row = joinChunks(h.chunks + row * chunks, chunks);
  __syncthreads();
  const RowStatistics statistics = s.row;
  const Draw d = h.draws[row];
  const int32_t token = statistics.finite ? pick(h, d, z, statistics.best, s) : -1;
  if (token < 0) {
    for (int64_t i = threadIdx.x; i < h.routerTopCount; i += blockDim.x) {
      h.routerTop[row * h.routerTopCount + i] = 0;
    }
    if (threadIdx.x == 0) h.results[row] = unsoundResult();
    return;
  }
  tr_result r = resultOf(double(statistics.best.max), double(statistics.best.second), statistics.sum,
                         statistics.weighted, h.vocab);
  r.token = token;
  r.log_probability = z[token] - r.log_sum_exp;
  r.top = listTop(h, row, d, z, double(r.log_sum_exp), s.select);
  if (threadIdx.x == 0) h.results[row] = r;
}

}  // namespace

cudaError_t describe(const Heads& h, int64_t rows, int threads, cudaStream_t stream) {
  const dim3 chunks(unsigned(chunksOf(h.vocab)), unsigned(rows));
  const cudaError_t failed = launch(statisticsKernel, chunks, statisticsThreads, stream, h);
  if (failed != cudaSuccess) return failed;
  return launch(describeKernel, dim3(unsigned(rows)), threads, stream, h);
}

namespace {

// Tokens of a row that may be drawn, best first, with their weights.
struct Ordered {
  std::vector<int32_t> tokens;
  std::vector<double> weights;
};

Ordered ordered(const std::vector<float>& z, double temperature) {
  Ordered o;
  for (size_t i = 0; i < z.size(); i++) {
    if (z[i] > -INFINITY) o.tokens.push_back(int32_t(i));
  }
  std::stable_sort(o.tokens.begin(), o.tokens.end(),
                   [&](int32_t a, int32_t b) { return z[size_t(a)] > z[size_t(b)]; });
  for (int32_t token : o.tokens) {
    const double below = double(z[size_t(token)]) - double(z[size_t(o.tokens[0])]);
    o.weights.push_back(exp(below / temperature));
  }
  return o;
}

int32_t drawReference(const std::vector<float>& z, const Draw& d) {
  Ordered o = ordered(z, double(d.temperature));
  if (o.tokens.empty()) return -1;
  if (d.temperature <= 0) return o.tokens[0];
  const bool all = d.topK <= 0 || d.topK >= int64_t(z.size());
  const size_t most = all ? o.tokens.size() : std::min(o.tokens.size(), size_t(d.topK));
  double total = 0, mass = 0;
  for (size_t i = 0; i < most; i++) total += o.weights[i];
  size_t kept = 0;
  while (kept < most && (kept == 0 || d.topP >= 1 || mass < double(d.topP) * total) &&
         (kept == 0 || o.weights[kept] >= double(d.minP))) {
    mass += o.weights[kept++];
  }
  std::vector<size_t> order(kept);
  for (size_t i = 0; i < kept; i++) order[i] = i;
  if (all && d.topP >= 1) {
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return o.tokens[a] < o.tokens[b]; });
  }
  const double target = double(d.random >> 11) * 0x1p-53 * mass;
  double before = 0;
  for (size_t i : order) {
    before += o.weights[i];
    if (before > target) return o.tokens[i];
  }
  return o.tokens[order.back()];
}

}  // namespace

tr_result resultReference(const float* z, int64_t vocab, int64_t samplable, const Draw& d,
                          const tr_bias* biases) {
  double max = -INFINITY, second = -INFINITY, sum = 0, weighted = 0;
  for (int64_t i = 0; i < vocab; i++) {
    const double v = double(z[i]);
    if (!(v < INFINITY)) return unsoundResult();
    second = std::max(second, std::min(v, max));
    max = std::max(max, v);
  }
  if (max == -INFINITY) return unsoundResult();
  for (int64_t i = 0; i < vocab; i++) {
    if (z[i] == -INFINITY) continue;
    const double below = double(z[i]) - max;
    sum += exp(below);
    weighted += exp(below) * below;
  }
  std::vector<float> biased(z, z + vocab);
  for (int32_t i = d.firstBias; i < d.firstBias + d.biases; i++) {
    float& logit = biased[size_t(biases[i].token)];
    logit = std::min(logit + biases[i].bias, FLT_MAX);
  }
  biased.resize(size_t(samplable));
  tr_result r = resultOf(max, second, sum, weighted, vocab);
  r.token = drawReference(biased, d);
  if (r.token < 0) return unsoundResult();
  r.log_probability = z[r.token] - r.log_sum_exp;
  return r;
}

}  // namespace cuda
