#include "forward.h"

#include <math.h>
#include <string.h>

namespace cpu {

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
  barrier();
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
  barrier();
  product(w.qkv, work_.inputs, rowCount_, work_.qkv, work_.qkvStride, worker);
  barrier();
  rotateAndStore(l, worker);
  barrier();
  // After the last layer's keys and values only rows with a head matter.
  const Rows rows = last(l) ? Rows{headCount_, work_.headX} : all;
  if (rows.count == 0) return;
  attend(l, worker);
  barrier();
  gather(w.o, rows, worker);
  barrier();
  product(w.o, work_.inputs, rows.count, work_.delta, work_.xStride, worker);
  barrier();
  norm(rows, work_.delta, w.oBias, w.postNorm, w.gateUp, worker);
  barrier();
  gateAndUp(w, rows.count, worker);
  barrier();
  if (w.down.int8) {
    const Range share = shareOf(rows.count, worker, workers_.count());
    prepare(path_, w.down, work_.gated, share.begin, share.end);
    barrier();
  }
  product(w.down, work_.gated, rows.count, work_.delta, work_.xStride, worker);
  barrier();
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
  const Range share = shareOf(matrix.blocks(), worker, workers_.count());
  multiply(path_, matrix, share.begin, share.end, x, rows, y + share.begin * blockColumns, yStride);
}

KVPages Forward::pages(int64_t l) const {
  uint16_t* keys = work_.cache + 2 * l * work_.layerElements;
  return {keys, keys + work_.layerElements, limits_.pages, shape_.kvHeads(), shape_.headStride(),
          limits_.page_tokens};
}

void Forward::rotateAndStore(int64_t l, int worker) {
  const LayerWeights& w = weights_.layers[size_t(l)];
  const int64_t heads = shape_.heads(), kvHeads = shape_.kvHeads(), stride = shape_.headStride();
  const int64_t pairs = shape_.headDim() / 2, items = heads + kvHeads;
  const KVPages kv = pages(l);
  const float epsilon = shape_.config.norm_epsilon;
  const Range share = shareOf(rowCount_ * items, worker, workers_.count());
  for (int64_t i = share.begin; i < share.end; i++) {
    const int64_t m = i / items, head = i % items;
    float* x = work_.qkv + m * work_.qkvStride + head * stride;
    const bool query = head < heads;
    if (w.qkvBias) kernels_.rows.add(x, w.qkvBias + head * stride, stride);
    kernels_.rows.rotate(x, query ? w.qNorm : w.kNorm, epsilon, work_.cosines + m * pairs,
                         work_.sines + m * pairs, shape_.headDim());
    if (query) continue;
    float* value = x + kvHeads * stride;
    if (w.qkvBias) kernels_.rows.add(value, w.qkvBias + (head + kvHeads) * stride, stride);
    storeKV(kv, work_.tables[m], work_.positions[m], head - heads, x, value);
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
  cpu::attend(kernels_.attention, a, worker, workers_.count());
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
  const Range share = shareOf(w.gateUp.blocks() / 2, worker, workers_.count());
  float* y = work_.gateUp + worker * work_.gateUpElements;
  for (int64_t pair = share.begin; pair < share.end; pair += gatePairs) {
    const int64_t count = share.end - pair < gatePairs ? share.end - pair : gatePairs;
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
