#include "../kernels/attention.h"

#include <algorithm>

#include "check.h"

namespace check {

namespace {

struct Request {
  int32_t start, rows;
};

// A layer's cache and the requests of a step, on pages in an order without order.
struct Layer {
  int64_t heads, kvHeads, headDim, window, pageTokens;
  std::vector<Request> requests;
};

constexpr int64_t tablePages = 48;

std::vector<int32_t> tables(Numbers& n, const Layer& l) {
  std::vector<int32_t> t(l.requests.size() * tablePages);
  for (size_t i = 0; i < t.size(); i++) t[i] = int32_t(i);
  for (size_t i = t.size(); i > 1; i--) std::swap(t[i - 1], t[size_t(n.below(int64_t(i)))]);
  return t;
}

// Items of a request: unsplit, or a part for each segment that somebody sees.
void addItems(const Layer& l, size_t r, int32_t row, bool split, std::vector<cuda::AttentionItem>* items,
              int32_t* partials, int32_t* counters) {
  const Request& q = l.requests[r];
  const int64_t group = l.heads / l.kvHeads, units = q.rows * group;
  for (int64_t unit = 0; unit < units; unit += cuda::unitsMax) {
    const int64_t firstRow = unit / group, lastRow = (std::min(unit + cuda::unitsMax, units) - 1) / group;
    const int64_t first = l.window ? std::max<int64_t>(q.start + firstRow - l.window + 1, 0) : 0;
    const int32_t begin = split ? int32_t(first / cuda::segmentTokens) : 0;  // else the kernel skips it
    const int32_t end = int32_t((q.start + lastRow) / cuda::segmentTokens + 1);
    const int32_t parts = split ? end - begin : 1;
    for (int32_t part = 0; part < parts; part++) {
      items->push_back({int32_t(r), row, row, q.start, int32_t(unit), int32_t(units),
                        split ? begin + part : begin, split ? begin + part + 1 : end, part, parts, *partials,
                        *counters});
    }
    *partials += parts;
    *counters += 1;
  }
}

// Runs rotate and attend for all tokens of a layer: those before start first. Returns the output of the last.
struct Run {
  const Layer& l;
  Numbers& n;
  int64_t stride;
  std::vector<int32_t> table;
  std::vector<float> bias, qNorm, kNorm;
  Memory<int32_t> deviceTable;
  Memory<uint16_t> keys, values;
  Memory<float> deviceBias, deviceQNorm, deviceKNorm;

  Run(const Layer& layer, Numbers& numbers)
      : l(layer),
        n(numbers),
        stride(cuda::headStrideOf(l.headDim)),
        table(tables(n, l)),
        bias(n.floats((l.heads + 2 * l.kvHeads) * stride, 0.3f)),
        qNorm(n.floats(l.headDim)),
        kNorm(n.floats(l.headDim)),
        deviceTable(table),
        keys(int64_t(table.size()) * l.pageTokens * l.kvHeads * stride),
        values(int64_t(table.size()) * l.pageTokens * l.kvHeads * stride),
        deviceBias(bias),
        deviceQNorm(qNorm),
        deviceKNorm(kNorm) {}

  cuda::KVPages pages() { return {keys.data(), values.data(), l.kvHeads, stride, l.pageTokens}; }

  // Stores rows of all requests; q gets their queries.
  void store(const std::vector<Request>& requests, bool normed, Memory<uint16_t>* q);
  void attend(bool split, int64_t blocks, Memory<uint16_t>& q, std::vector<uint16_t>* out);
};

void checkRotated(Run& run, const std::vector<float>& qkv, const std::vector<float>& cosines,
                  const std::vector<float>& sines, const std::vector<int32_t>& positions,
                  const std::vector<int32_t>& slots, bool normed, const std::vector<uint16_t>& q) {
  const Layer& l = run.l;
  const int64_t stride = run.stride, packed = l.heads + 2 * l.kvHeads, half = l.headDim / 2;
  const std::vector<uint16_t> keys = run.keys.read(), values = run.values.read();
  const cuda::KVPages at = run.pages();
  std::vector<double> want(static_cast<size_t>(l.headDim));
  for (size_t m = 0; m < positions.size(); m++) {
    const int32_t token = int32_t(positions[m] % l.pageTokens);
    const int32_t page = run.table[size_t(slots[m] * tablePages + positions[m] / l.pageTokens)];
    for (int64_t h = 0; h < packed; h++) {
      const float *x = &qkv[(m * size_t(packed) + size_t(h)) * size_t(stride)],
                  *b = &run.bias[size_t(h * stride)];
      const bool query = h < l.heads, value = h >= l.heads + l.kvHeads;
      const float* weight = !normed || value ? nullptr : query ? run.qNorm.data() : run.kNorm.data();
      if (value) {
        for (int64_t d = 0; d < l.headDim; d++) want[size_t(d)] = double(x[d]) + double(b[d]);
      } else {
        cuda::rotateReference(x, b, weight, 1e-6, &cosines[m * size_t(half)], &sines[m * size_t(half)],
                              l.headDim, want.data());
      }
      double largest = 0;
      for (double w : want) largest = fmax(largest, fabs(w));
      for (int64_t d = 0; d < stride; d++) {
        const uint16_t got = query   ? q[(m * size_t(l.heads) + size_t(h)) * size_t(stride) + size_t(d)]
                             : value ? values[size_t(at.valueAt(page, h - l.heads - l.kvHeads, token, d))]
                                     : keys[size_t(at.keyAt(page, h - l.heads, token, d))];
        const double exact = d < l.headDim ? want[size_t(d)] : 0;
        const double value = double(native::widen(got));
        CHECK(fabs(value - exact) <= 0x1p-8 * fabs(exact) + cuda::rotateTolerance * largest,
              "row %d, head %d, dimension %d: %g, want %g", int(m), int(h), int(d), value, exact);
      }
    }
  }
}

void Run::store(const std::vector<Request>& requests, bool normed, Memory<uint16_t>* q) {
  std::vector<int32_t> positions, slots;
  for (size_t r = 0; r < requests.size(); r++) {
    for (int32_t i = 0; i < requests[r].rows; i++) {
      positions.push_back(requests[r].start + i);
      slots.push_back(int32_t(r));
    }
  }
  const int64_t rows = int64_t(positions.size()), packed = (l.heads + 2 * l.kvHeads) * stride,
                half = l.headDim / 2;
  const std::vector<float> qkv = n.floats(rows * packed);
  std::vector<float> cosines(size_t(rows * half)), sines(cosines);
  for (size_t i = 0; i < cosines.size(); i++) {
    cosines[i] = float(cos(double(i)));
    sines[i] = float(sin(double(i)));
  }
  Memory<float> x(qkv), c(cosines), s(sines);
  Memory<int32_t> p(positions), sl(slots);
  const cuda::Rotate rotate = {x.data(),
                               packed,
                               deviceBias.data(),
                               normed ? deviceQNorm.data() : nullptr,
                               normed ? deviceKNorm.data() : nullptr,
                               1e-6f,
                               c.data(),
                               s.data(),
                               l.heads,
                               l.headDim,
                               q->data(),
                               pages(),
                               p.data(),
                               sl.data(),
                               deviceTable.data(),
                               tablePages};
  CHECK_CUDA(cuda::rotate(rotate, rows, stream()));
  checkRotated(*this, qkv, cosines, sines, positions, slots, normed, q->read());
}

void Run::attend(bool split, int64_t blocks, Memory<uint16_t>& q, std::vector<uint16_t>* out) {
  std::vector<cuda::AttentionItem> items;
  int32_t partials = 0, counters = 0, rows = 0;
  for (size_t r = 0; r < l.requests.size(); r++) {
    addItems(l, r, rows, split, &items, &partials, &counters);
    rows += l.requests[r].rows;
  }
  Memory<cuda::AttentionItem> deviceItems(items);
  Memory<int32_t> count(std::vector<int32_t>{int32_t(items.size())});
  Memory<int32_t> counter(std::vector<int32_t>(size_t(l.kvHeads * counters), 0));
  Memory<float> partial(l.kvHeads * partials * cuda::partialFloats(stride));
  Memory<uint16_t> result(rows * l.heads * stride);
  cuda::Attention a = {pages(),       deviceTable.data(), tablePages,   q.data(),
                       result.data(), l.heads * stride,   l.heads,      l.window,
                       0.3f,          deviceItems.data(), count.data(), partial.data(),
                       partials,      counter.data(),     counters};
  CHECK_CUDA(cuda::attend(a, blocks, stream()));
  *out = result.read();
  for (int32_t c : counter.read()) CHECK(c == 0, "a counter is %d in the end", c);
}

void checkLayer(const Layer& l, uint64_t seed) {
  Numbers n(seed);
  Run run(l, n);
  int64_t rows = 0, before = 0;
  std::vector<Request> earlier;
  for (const Request& r : l.requests) {
    rows += r.rows;
    before += r.start;
    earlier.push_back({0, r.start});
  }
  Memory<uint16_t> old(before * l.heads * run.stride), q(rows * l.heads * run.stride);
  if (before) run.store(earlier, false, &old);
  run.store(l.requests, true, &q);
  std::vector<uint16_t> out, parts;
  run.attend(false, 3, q, &out);
  run.attend(true, 5, q, &parts);
  CHECK(out == parts, "an output in parts has other bits");
  const std::vector<uint16_t> keys = run.keys.read(), values = run.values.read(), queries = q.read();
  cuda::Attention host = {{const_cast<uint16_t*>(keys.data()), const_cast<uint16_t*>(values.data()),
                           l.kvHeads, run.stride, l.pageTokens},
                          run.table.data(),
                          tablePages,
                          queries.data(),
                          nullptr,
                          0,
                          l.heads,
                          l.window,
                          0.3f,
                          nullptr,
                          nullptr,
                          nullptr,
                          0,
                          nullptr,
                          0};
  double largest = 0;
  for (uint16_t v : values) largest = fmax(largest, v == 0xffff ? 0 : fabs(double(native::widen(v))));
  std::vector<double> want(static_cast<size_t>(run.stride));
  int64_t row = 0;
  for (size_t r = 0; r < l.requests.size(); r++) {
    for (int32_t i = 0; i < l.requests[r].rows; i++, row++) {
      for (int64_t h = 0; h < l.heads; h++) {
        cuda::attentionReference(host, int32_t(r), row, l.requests[r].start + i, h, want.data());
        for (int64_t d = 0; d < run.stride; d++) {
          const double off =
              double(native::widen(out[size_t((row * l.heads + h) * run.stride + d)])) - want[size_t(d)];
          CHECK(fabs(off) <= cuda::attentionTolerance * largest,
                "request %d, row %d, head %d, dimension %d: off by %g", int(r), int(i), int(h), int(d), off);
        }
      }
    }
  }
}

}  // namespace

void attention(uint64_t seed) {
  const std::vector<Request> ragged = {{0, 1}, {40, 1}, {0, 21}, {15, 2}, {300, 5}, {511, 1}};
  checkLayer({4, 2, 64, 0, 16, ragged}, seed);
  checkLayer({6, 3, 16, 40, 32, ragged}, seed + 1);
  checkLayer({5, 5, 12, 0, 16, {{7, 9}, {256, 1}}}, seed + 2);
  checkLayer({20, 1, 32, 0, 16, {{3, 3}}}, seed + 3);
  checkLayer({2, 2, 80, 5, 16, {{30, 4}}}, seed + 4);
  checkLayer({4, 1, 128, 0, 16, {{270, 2}, {0, 6}}}, seed + 5);
}

}  // namespace check
