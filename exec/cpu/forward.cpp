#include "forward.h"

#include <math.h>
#include <string.h>

namespace cpu {

namespace {

// Bytes of weights that a worker takes at a time, about, in products of few rows, which wait for memory.
constexpr int64_t bytesAtOnce = 128 << 10;
constexpr int64_t fewRows = 16;

// Blocks that a worker takes at a time. Products of many rows bring their activations near once for all
// blocks of a call.
int64_t grainOf(const Matrix& matrix, int64_t rows) {
  if (rows > fewRows) return matrix.blocks();
  return (bytesAtOnce + matrix.blockBytes() - 1) / matrix.blockBytes();
}

}  // namespace

Forward::Forward(Model& model, const StepArguments& arguments)
    : shape_(model.shape()),
      weights_(model.weights()),
      limits_(model.limits()),
      router_(model.router()),
      work_(model.work()),
      workers_(model.device().threads()),
      path_(model.device().path()),
      kernels_(laneKernels(path_)),
      arguments_(arguments) {
  layOut();
}

void Forward::layOut() {
  int64_t biases = 0;
  for (int32_t i = 0; i < arguments_.counts->requests; i++) {
    const tr_request& r = arguments_.requests[i];
    const int32_t* table = work_.pageTables + r.slot * work_.tablePages;
    for (int32_t t = 0; t < r.rows; t++) {
      work_.positions[rowCount_ + t] = r.start + t;
      work_.tables[rowCount_ + t] = table;
    }
    const int64_t length = int64_t(r.start) + r.rows;
    work_.requests[i] = {rowCount_, r.rows, length, table};
    work_.firstBias[i] = biases;
    rowCount_ += r.rows;
    biases += r.biases;
    if (!r.head) continue;
    work_.headOf[headCount_] = i;
    work_.headRequests[headCount_] = {rowCount_ - 1, 1, length, table};
    headCount_++;
  }
}

void Forward::operator()(int worker) {
  embed(worker);
  barrier(worker);
  for (int64_t l = 0; l < shape_.layers(); l++) layer(l, worker);
  if (headCount_ > 0) head(worker);
}

void Forward::embed(int worker) {
  const int64_t pairs = shape_.headDim() / 2;
  const double factor = double(shape_.config.rope_factor);
  const Range share = shareOf(rowCount_, worker, workers_.count());
  for (int64_t m = share.begin; m < share.end; m++) {
    columnOf(weights_.embedding, arguments_.tokens[m], work_.x + m * work_.xStride);
    const double position = double(work_.positions[m]);
    for (int64_t i = 0; i < pairs; i++) {
      const double angle = position * weights_.frequencies[i];
      work_.cosines[m * pairs + i] = float(cos(angle) * factor);
      work_.sines[m * pairs + i] = float(sin(angle) * factor);
    }
  }
}

void Forward::layer(int64_t l, int worker) {
  const LayerWeights& w = weights_.layers[size_t(l)];
  const Rows all = {rowCount_, work_.x};
  const float* before = l > 0 ? work_.delta : nullptr;
  norm(all, before, l > 0 ? weights_.layers[size_t(l) - 1].downBias : nullptr, w.inputNorm, w.qkv, worker);
  barrier(worker);
  product(w.qkv, work_.inputs, rowCount_, work_.qkv, work_.qkvStride, worker);
  barrier(worker);
  rotateAndStore(l, worker);
  barrier(worker);
  // After the last layer's keys and values only rows with a head matter.
  const Rows rows = last(l) ? Rows{headCount_, work_.headX} : all;
  if (rows.count == 0) return;
  attend(l, worker);
  barrier(worker);
  gather(w.o, rows, worker);
  barrier(worker);
  product(w.o, work_.inputs, rows.count, work_.delta, work_.xStride, worker);
  barrier(worker);
  norm(rows, work_.delta, w.oBias, w.postNorm, w.gateUp, worker);
  barrier(worker);
  gateAndUp(w, rows.count, worker);
  barrier(worker);
  if (w.down.int8) {
    const Range share = shareOf(rows.count, worker, workers_.count());
    prepare(path_, w.down, work_.gated, share.begin, share.end);
    barrier(worker);
  }
  product(w.down, work_.gated, rows.count, work_.delta, work_.xStride, worker);
  barrier(worker);
}

// x += delta + deltaBias, and the norm of x as the input of the next matrix.
void Forward::norm(const Rows& rows, const float* delta, const float* deltaBias, const float* weight,
                   const Matrix& next, int worker) {
  const Range share = shareOf(rows.count, worker, workers_.count());
  for (int64_t m = share.begin; m < share.end; m++) {
    float* x = rows.x + m * work_.xStride;
    if (delta && deltaBias) kernels_.rows.add(x, deltaBias, shape_.hidden());
    kernels_.rows.norm(x, delta ? delta + m * work_.xStride : nullptr, weight, shape_.config.norm_epsilon,
                       shape_.hidden(), work_.inputs.row(m), packedShape(1, shape_.hidden()).paddedDepth());
  }
  prepare(path_, next, work_.inputs, share.begin, share.end);
}

void Forward::product(const Matrix& matrix, const Activations& x, int64_t rows, float* y, int64_t yStride,
                      int worker) {
  const int64_t blocks = matrix.blocks(), grain = grainOf(matrix, rows);
  for (Range r = workers_.take(blocks, grain, worker); r.begin < r.end;
       r = workers_.take(blocks, grain, worker)) {
    multiply(path_, matrix, r.begin, r.end, x, rows, y + r.begin * blockColumns, yStride);
  }
}

KVPages Forward::pages(int64_t l) const {
  uint16_t* keys = work_.cache + 2 * l * work_.layerElements;
  return {keys, keys + work_.layerElements, limits_.pages, shape_.kvHeads(), shape_.headStride(),
          limits_.page_tokens};
}

void Forward::rotateAndStore(int64_t l, int worker) {
  const LayerWeights& w = weights_.layers[size_t(l)];
  const int64_t heads = shape_.heads(), kvHeads = shape_.kvHeads(), stride = shape_.headStride();
  const int64_t pairs = shape_.headDim() / 2, items = heads + kvHeads, group = heads / kvHeads;
  const KVPages kv = pages(l);
  const float epsilon = shape_.config.norm_epsilon;
  const Range share = shareOf(rowCount_ * items, worker, workers_.count());
  for (int64_t i = share.begin; i < share.end; i++) {
    const int64_t m = i / items, head = i % items;
    float* x = work_.qkv + m * work_.qkvStride + head * stride;
    const bool query = head < heads;
    // Where keys and values go has not been near since the last step.
    if (query && head % group == 0) fetchKV(kv, work_.tables[m], work_.positions[m], head / group);
    if (w.qkvBias) kernels_.rows.add(x, w.qkvBias + head * stride, stride);
    kernels_.rows.rotate(x, query ? w.qNorm : w.kNorm, epsilon, work_.cosines + m * pairs,
                         work_.sines + m * pairs, shape_.headDim());
    if (query) continue;
    float* value = x + kvHeads * stride;
    if (w.qkvBias) kernels_.rows.add(value, w.qkvBias + (head + kvHeads) * stride, stride);
    uint16_t rounded[2][headDimMax];
    kernels_.rows.round(x, stride, rounded[0], stride);
    kernels_.rows.round(value, stride, rounded[1], stride);
    storeKV(kv, work_.tables[m], work_.positions[m], head - heads, rounded[0], rounded[1]);
  }
}

void Forward::attend(int64_t l, int worker) {
  Attention a;
  a.kv = pages(l);
  a.heads = shape_.heads();
  a.window = weights_.windows[l];
  a.scale = float(1 / sqrt(double(shape_.headDim())));
  a.q = work_.qkv;
  a.qStride = work_.qkvStride;
  a.out = work_.attended;
  a.outStride = shape_.heads() * shape_.headStride();
  a.requests = last(l) ? work_.headRequests : work_.requests;
  a.requestCount = last(l) ? headCount_ : arguments_.counts->requests;
  cpu::attend(kernels_.attention, a, workers_, worker);
}

// Rounds what attention gave to the inputs of matrix o. In the last layer rows with a head move together.
void Forward::gather(const Matrix& o, const Rows& rows, int worker) {
  const int64_t dim = shape_.headDim(), stride = shape_.headStride(), heads = shape_.heads();
  const int64_t padded = packedShape(1, shape_.attended()).paddedDepth();
  const Range share = shareOf(rows.count, worker, workers_.count());
  for (int64_t m = share.begin; m < share.end; m++) {
    const int64_t from = rows.x == work_.x ? m : work_.headRequests[m].firstRow;
    if (rows.x != work_.x) {
      memcpy(rows.x + m * work_.xStride, work_.x + from * work_.xStride,
             size_t(shape_.hidden()) * sizeof(float));
    }
    const float* attended = work_.attended + from * heads * stride;
    uint16_t* out = work_.inputs.row(m);
    if (dim == stride) {
      kernels_.rows.round(attended, heads * dim, out, padded);
      continue;
    }
    for (int64_t h = 0; h < heads; h++) {
      kernels_.rows.round(attended + h * stride, dim, out + h * dim, h + 1 < heads ? dim : padded - h * dim);
    }
  }
  prepare(path_, o, work_.inputs, share.begin, share.end);
}

// A worker multiplies blocks of gate and up in turn and joins them, while they are near.
void Forward::gateAndUp(const LayerWeights& w, int64_t rows, int worker) {
  constexpr int64_t stride = Work::gateUpStride;
  const int64_t pairs = w.gateUp.blocks() / 2;
  float* y = work_.gateUp + worker * work_.gateUpElements;
  for (Range r = workers_.take(pairs, gatePairs, worker); r.begin < r.end;
       r = workers_.take(pairs, gatePairs, worker)) {
    const int64_t pair = r.begin, count = r.end - r.begin;
    const int64_t columns = 2 * count * blockColumns;
    multiply(path_, w.gateUp, 2 * pair, 2 * (pair + count), work_.inputs, rows, y, stride);
    for (int64_t m = 0; m < rows; m++) {
      float* gate = y + m * stride;
      if (w.gateUpBias) kernels_.rows.add(gate, w.gateUpBias + 2 * pair * blockColumns, columns);
      for (int64_t i = 0; i < count; i++, gate += 2 * blockColumns) {
        const int64_t first = (pair + i) * blockColumns;
        const int64_t room = packedShape(1, w.down.depth()).paddedDepth() - first;
        const int64_t width = room < blockColumns ? room : blockColumns;
        kernels_.rows.swiglu(gate, gate + blockColumns, width, work_.gated.row(m) + first, width);
      }
    }
  }
}

}  // namespace cpu
