#include "router.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <new>

#include "bf16.h"
#include "router_kernels.h"

namespace cpu {

namespace {

constexpr int64_t widthMax = int64_t(1) << 20, blocksMax = 1024;

struct Size {
  int64_t rows, columns;
  bool exists() const { return rows > 0; }
};

bool isMatrix(RouterTensor t) {
  return t == RouterTensor::top || t == RouterTensor::combined || t == RouterTensor::input ||
         t == RouterTensor::first || t == RouterTensor::second;
}

// No rows for a tensor that the router does not have.
Size sizeOf(const RouterShape& s, RouterTensor t) {
  if (t == RouterTensor::output) return {1, s.kind == RouterKind::collm ? s.hidden : s.width};
  if (s.kind == RouterKind::collm) return {0, 0};
  if (t == RouterTensor::outputBias) return {1, 1};
  if (s.kind == RouterKind::citer) {
    if (t == RouterTensor::first) return {s.width, s.hidden};
    return {t == RouterTensor::firstBias, s.width};
  }
  switch (t) {
    case RouterTensor::top: return {s.hidden, s.top};
    case RouterTensor::topBias: return {1, s.hidden};
    case RouterTensor::combined: return {s.width, 3 * s.hidden};
    case RouterTensor::input: return {s.width, s.width};
    case RouterTensor::first: return {s.expanded, s.width};
    case RouterTensor::firstBias: return {1, s.expanded};
    case RouterTensor::second: return {s.width, s.expanded};
    default: return {1, s.width};
  }
}

// How many of a tensor there are.
int64_t copiesOf(const RouterShape& s, RouterTensor t) {
  if (!sizeOf(s, t).exists()) return 0;
  bool ofBlock = t >= RouterTensor::norm && t <= RouterTensor::secondBias;
  return ofBlock && s.kind == RouterKind::r2r ? s.blocks : 1;
}

// Calls body(tensor, size, copies) for every tensor that the router has.
template <class F>
void everyTensor(const RouterShape& s, F body) {
  for (int32_t i = 1; i <= routerTensorMax; i++) {
    int64_t copies = copiesOf(s, RouterTensor(i));
    if (copies) body(RouterTensor(i), sizeOf(s, RouterTensor(i)), copies);
  }
}

bool sound(const RouterShape& s) {
  auto in = [](int64_t size, int64_t max) { return size >= 1 && size <= max; };
  if (!in(s.hidden, widthMax)) return false;
  switch (s.kind) {
    case RouterKind::r2r:
      return in(s.top, widthMax) && in(s.width, widthMax) && in(s.blocks, blocksMax) &&
             in(s.expanded, widthMax);
    case RouterKind::citer: return in(s.width, widthMax) && !s.top && !s.blocks && !s.expanded;
    case RouterKind::collm: return !s.width && !s.top && !s.blocks && !s.expanded;
  }
  return false;
}

int64_t roundedUp(int64_t count, int64_t multiple) { return (count + multiple - 1) / multiple * multiple; }

int64_t vectorBytes(int64_t length) { return roundedUp(length, blockColumns) * int64_t(sizeof(float)); }

const float* floats(const ZeroedMemory& m) { return static_cast<const float*>(m.data()); }

PackedWeights* packRounded(int64_t columns, int64_t depth, const float* source) {
  std::unique_ptr<uint16_t[]> halves(new (std::nothrow) uint16_t[size_t(columns * depth)]);
  if (!halves) return nullptr;
  for (int64_t i = 0; i < columns * depth; i++) halves[size_t(i)] = narrow(source[i]);
  return PackedWeights::make(columns, depth, halves.get());
}

}  // namespace

struct Router::Place {
  std::unique_ptr<PackedWeights>* matrix;  // or
  ZeroedMemory* vector;
};

Router::Place Router::place(RouterTensor t, int64_t block) {
  switch (t) {
    case RouterTensor::top: return {&top_.weights, nullptr};
    case RouterTensor::topBias: return {nullptr, &top_.bias};
    case RouterTensor::combined: return {&combined_.weights, nullptr};
    case RouterTensor::combinedBias: return {nullptr, &combined_.bias};
    case RouterTensor::input: return {&input_.weights, nullptr};
    case RouterTensor::inputBias: return {nullptr, &input_.bias};
    case RouterTensor::norm: return {nullptr, &blocks_[size_t(block)].norm.weight};
    case RouterTensor::normBias: return {nullptr, &blocks_[size_t(block)].norm.bias};
    case RouterTensor::first: return {&blocks_[size_t(block)].first.weights, nullptr};
    case RouterTensor::firstBias: return {nullptr, &blocks_[size_t(block)].first.bias};
    case RouterTensor::second: return {&blocks_[size_t(block)].second.weights, nullptr};
    case RouterTensor::secondBias: return {nullptr, &blocks_[size_t(block)].second.bias};
    case RouterTensor::outputNorm: return {nullptr, &outputNorm_.weight};
    case RouterTensor::outputNormBias: return {nullptr, &outputNorm_.bias};
    case RouterTensor::output: return {nullptr, &output_};
    case RouterTensor::outputBias: return {nullptr, &outputBias_};
  }
  return {nullptr, nullptr};
}

const RouterKernels& routerKernels(Path path) {
  switch (rowPath(path)) {
#if defined(__x86_64__)
    case Path::avx2: return routerKernelsAvx2;
    case Path::avx512: return routerKernelsAvx512;
#endif
    default: return routerKernelsPlain;
  }
}

int32_t Router::make(const RouterShape& shape, std::unique_ptr<Router>* out) {
  out->reset();
  if (!sound(shape)) return EINVAL;
  std::unique_ptr<Router> made(new (std::nothrow) Router(shape));
  if (!made) return ENOMEM;
  made->blocks_.reset(new (std::nothrow) Block[size_t(std::max<int64_t>(shape.blocks, 1))]);
  if (!made->blocks_) return ENOMEM;
  everyTensor(shape, [&](RouterTensor, Size, int64_t copies) { made->missing_ += copies; });
  *out = std::move(made);
  return 0;
}

int64_t Router::weightBytes(const RouterShape& shape) {
  int64_t bytes = 0;
  everyTensor(shape, [&](RouterTensor t, Size size, int64_t copies) {
    int64_t matrix = packedShape(size.rows, size.columns).bytes();
    bytes += copies * (isMatrix(t) ? matrix : vectorBytes(size.columns));
  });
  return bytes;
}

int32_t Router::put(RouterTensor tensor, int64_t block, int64_t rows, int64_t columns, const float* data) {
  if (tensor < RouterTensor::top || tensor > RouterTensor::outputBias) return EINVAL;
  if (block < 0 || block >= copiesOf(shape_, tensor)) return EINVAL;
  const Size size = sizeOf(shape_, tensor);
  if (rows != size.rows || columns != size.columns) return EINVAL;
  Place at = place(tensor, block);
  bool first;
  if (at.matrix) {
    first = !*at.matrix;
    std::unique_ptr<PackedWeights> packed(packRounded(rows, columns, data));
    if (!packed) return ENOMEM;
    *at.matrix = std::move(packed);
  } else {
    first = !at.vector->data();
    if (first && !at.vector->allocate(size_t(vectorBytes(columns)))) return ENOMEM;
    memcpy(at.vector->data(), data, size_t(columns) * sizeof(float));
  }
  if (first) missing_--;
  return 0;
}

// Strides of what products read are a cache line more than they need: rows then begin at different sets of
// the nearest cache.
struct Router::Buffers {
  uint16_t *logits, *joined, *narrowRow, *inner;  // bf16
  float *sums, *residual;
  int64_t logitsStride, joinedStride, narrowStride, innerStride, sumsStride, residualStride;
  int64_t bytes;
};

Router::Buffers Router::buffers(int64_t rows, void* scratch) const {
  constexpr int64_t apart = 32;
  Buffers b = {};
  char* base = static_cast<char*>(scratch);
  auto halves = [&](int64_t width, uint16_t** at, int64_t* stride) {
    *stride = width ? roundedUp(width, blockColumns) + apart : 0;
    *at = reinterpret_cast<uint16_t*>(base + b.bytes);
    b.bytes += rows * *stride * int64_t(sizeof(uint16_t));
  };
  auto singles = [&](int64_t width, float** at, int64_t* stride) {
    *stride = roundedUp(width, blockColumns);
    *at = reinterpret_cast<float*>(base + b.bytes);
    b.bytes += rows * *stride * int64_t(sizeof(float));
  };
  const bool r2r = shape_.kind == RouterKind::r2r, citer = shape_.kind == RouterKind::citer;
  // The product that makes the last third fills whole blocks of columns.
  const int64_t joined = 2 * shape_.hidden + roundedUp(shape_.hidden, blockColumns);
  halves(shape_.top, &b.logits, &b.logitsStride);
  halves(r2r ? joined : citer ? shape_.hidden : 0, &b.joined, &b.joinedStride);
  halves(r2r ? shape_.width : 0, &b.narrowRow, &b.narrowStride);
  halves(shape_.expanded, &b.inner, &b.innerStride);
  const int64_t widest = r2r ? std::max({shape_.hidden, shape_.width, shape_.expanded}) : shape_.width;
  singles(widest, &b.sums, &b.sumsStride);
  singles(r2r ? shape_.width : 0, &b.residual, &b.residualStride);
  return b;
}

int64_t Router::scratchBytes(int64_t rows) const { return buffers(rows, nullptr).bytes; }

// One worker's part of one evaluation. Workers share out rows for what runs over whole rows, and columns for
// products and for what follows each number of a product.
struct Router::Pass {
  const Router& router;
  const RouterRows& in;
  double* scores;
  Buffers b;
  const RouterKernels& kernels;
  GemmBlocks blocks;
  Workers& workers;
  int worker;

  template <class F>
  void everyRow(F body) const {
    Range share = shareOf(in.rows, worker, workers.count());
    for (int64_t row = share.begin; row < share.end; row++) body(row);
  }

  // sums = x * weights, then finish(row, sums, bias, first column, count) for whole blocks of columns.
  template <class F>
  void product(const Linear& linear, const uint16_t* x, int64_t xStride, F finish) const {
    const Packed& w = linear.weights->view();
    Range share = shareOf(w.blocks, worker, workers.count());
    if (share.begin < share.end) {
      blocks(Gemm{in.rows, x, xStride, w, b.sums, b.sumsStride}, share.begin, share.end);
      const int64_t begin = share.begin * blockColumns, count = (share.end - share.begin) * blockColumns;
      const float* bias = floats(linear.bias) + begin;
      for (int64_t row = 0; row < in.rows; row++) {
        finish(row, b.sums + row * b.sumsStride + begin, bias, begin, count);
      }
    }
    workers.barrier(worker);
  }

  void score(int64_t row, const float* x, int64_t width) const {
    float sum = kernels.dot(x, floats(router.output_), width);
    if (router.outputBias_.data()) sum += floats(router.outputBias_)[0];
    scores[row] = 1 / (1 + exp(-double(sum)));
  }

  void r2r() const;
  void join() const;
  void block(const Block& k) const;
  void citer() const;
  void collm() const;
};

void Router::Pass::collm() const {
  everyRow([&](int64_t row) { score(row, in.hidden + row * in.hiddenStride, router.shape_.hidden); });
}

void Router::Pass::citer() const {
  const RouterShape& s = router.shape_;
  everyRow([&](int64_t row) {
    kernels.round(in.hidden + row * in.hiddenStride, s.hidden, b.joined + row * b.joinedStride,
                  b.joinedStride);
  });
  workers.barrier(worker);
  product(router.blocks_[0].first, b.joined, b.joinedStride,
          [&](int64_t, float* sums, const float* bias, int64_t, int64_t count) {
            kernels.relu(sums, bias, count);
          });
  everyRow([&](int64_t row) { score(row, b.sums + row * b.sumsStride, s.width); });
}

// The row [h, e, top(z)] in bf16.
void Router::Pass::join() const {
  const int64_t hidden = router.shape_.hidden;
  everyRow([&](int64_t row) {
    uint16_t* joined = b.joined + row * b.joinedStride;
    kernels.round(in.logits + row * in.logitStride, router.shape_.top, b.logits + row * b.logitsStride,
             b.logitsStride);
    kernels.round(in.hidden + row * in.hiddenStride, hidden, joined, hidden);
    kernels.round(in.embeddings + row * in.embeddingStride, hidden, joined + hidden, b.joinedStride - hidden);
  });
  workers.barrier(worker);
  product(router.top_, b.logits, b.logitsStride,
          [&](int64_t row, const float* sums, const float* bias, int64_t first, int64_t count) {
            kernels.addRounded(sums, bias, count, b.joined + row * b.joinedStride + 2 * hidden + first);
          });
}

void Router::Pass::block(const Block& k) const {
  const int64_t width = router.shape_.width;
  everyRow([&](int64_t row) {
    float* normed = b.sums + row * b.sumsStride;
    kernels.layerNorm(b.residual + row * b.residualStride, floats(k.norm.weight), floats(k.norm.bias), width,
                      normed);
    kernels.round(normed, width, b.narrowRow + row * b.narrowStride, b.narrowStride);
  });
  workers.barrier(worker);
  product(k.first, b.narrowRow, b.narrowStride,
          [&](int64_t row, const float* sums, const float* bias, int64_t first, int64_t count) {
            kernels.gelu(sums, bias, count, b.inner + row * b.innerStride + first);
          });
  product(k.second, b.inner, b.innerStride,
          [&](int64_t row, const float* sums, const float* bias, int64_t first, int64_t count) {
            kernels.accumulate(sums, bias, count, b.residual + row * b.residualStride + first);
          });
}

void Router::Pass::r2r() const {
  join();
  product(router.combined_, b.joined, b.joinedStride,
          [&](int64_t row, const float* sums, const float* bias, int64_t first, int64_t count) {
            kernels.addRounded(sums, bias, count, b.narrowRow + row * b.narrowStride + first);
          });
  product(router.input_, b.narrowRow, b.narrowStride,
          [&](int64_t row, const float* sums, const float* bias, int64_t first, int64_t count) {
            kernels.add(sums, bias, count, b.residual + row * b.residualStride + first);
          });
  for (int64_t i = 0; i < router.shape_.blocks; i++) block(router.blocks_[size_t(i)]);
  const int64_t width = router.shape_.width;
  everyRow([&](int64_t row) {
    float* normed = b.sums + row * b.sumsStride;
    kernels.layerNorm(b.residual + row * b.residualStride, floats(router.outputNorm_.weight),
              floats(router.outputNorm_.bias), width, normed);
    score(row, normed, width);
  });
}

void Router::evaluate(Path path, Workers& workers, int worker, const RouterRows& in, void* scratch,
                      double* scores) const {
  const Pass pass{*this,   in,      scores, buffers(in.rows, scratch), routerKernels(path), gemmBlocks(path),
                  workers, worker};
  switch (shape_.kind) {
    case RouterKind::r2r: return pass.r2r();
    case RouterKind::citer: return pass.citer();
    case RouterKind::collm: return pass.collm();
  }
}

}  // namespace cpu
