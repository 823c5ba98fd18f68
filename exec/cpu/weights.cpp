#include "weights.h"

namespace cpu {

namespace {

int64_t roundedUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Columns of gate and up together, each filled up to whole blocks.
int64_t gateUpColumns(const Shape& s) { return 2 * roundedUp(s.intermediate(), blockColumns); }

void takeLayer(Carver& carver, const Shape& s, LayerWeights* l) {
  const tr_model_config& c = s.config;
  auto vector = [&](bool has, int64_t count) { return has ? carver.take<float>(count) : nullptr; };
  const Format f = s.format();
  const int64_t qkv = s.headsPacked() * s.headStride();
  l->inputNorm = vector(true, s.hidden());
  l->qkv = takeMatrix(carver, f, qkv, s.hidden());
  l->qkvBias = vector(c.qkv_bias, qkv);
  l->qNorm = vector(c.qk_norm, s.headDim());
  l->kNorm = vector(c.qk_norm, s.headDim());
  l->o = takeMatrix(carver, f, s.hidden(), s.attended());
  l->oBias = vector(c.output_bias, s.hidden());
  l->postNorm = vector(true, s.hidden());
  l->gateUp = takeMatrix(carver, f, gateUpColumns(s), s.hidden());
  l->gateUpBias = vector(c.mlp_bias, gateUpColumns(s));
  l->down = takeMatrix(carver, f, s.hidden(), s.intermediate());
  l->downBias = vector(c.mlp_bias, s.hidden());
}

// Where tensors of one layer go.
bool placeInLayer(const Shape& s, const LayerWeights& l, int32_t tensor, Place* p) {
  const int64_t dim = s.headDim(), stride = s.headStride(), heads = s.heads(), kvHeads = s.kvHeads();
  const int64_t hidden = s.hidden(), inner = s.intermediate(), block = blockColumns;
  auto vector = [&](float* v, int64_t count, int64_t first = 0, int64_t run = 1, int64_t by = 1) {
    *p = {1, count, nullptr, v, TR_F32, first, run, by};
    return v != nullptr;
  };
  auto matrix = [&](const Matrix& m, int64_t rows, int64_t first = 0, int64_t run = 1, int64_t by = 1) {
    *p = {rows, m.depth(), &m, nullptr, TR_F32, first, run, by};
    return true;
  };
  switch (tensor) {
    case TR_INPUT_NORM: return vector(l.inputNorm, hidden);
    case TR_Q: return matrix(l.qkv, heads * dim, 0, dim, stride);
    case TR_K: return matrix(l.qkv, kvHeads * dim, heads * stride, dim, stride);
    case TR_V: return matrix(l.qkv, kvHeads * dim, (heads + kvHeads) * stride, dim, stride);
    case TR_Q_BIAS: return vector(l.qkvBias, heads * dim, 0, dim, stride);
    case TR_K_BIAS: return vector(l.qkvBias, kvHeads * dim, heads * stride, dim, stride);
    case TR_V_BIAS: return vector(l.qkvBias, kvHeads * dim, (heads + kvHeads) * stride, dim, stride);
    case TR_Q_NORM: return vector(l.qNorm, dim);
    case TR_K_NORM: return vector(l.kNorm, dim);
    case TR_O: return matrix(l.o, hidden);
    case TR_O_BIAS: return vector(l.oBias, hidden);
    case TR_POST_NORM: return vector(l.postNorm, hidden);
    case TR_GATE: return matrix(l.gateUp, inner, 0, block, 2 * block);
    case TR_UP: return matrix(l.gateUp, inner, block, block, 2 * block);
    case TR_GATE_BIAS: return vector(l.gateUpBias, inner, 0, block, 2 * block);
    case TR_UP_BIAS: return vector(l.gateUpBias, inner, block, block, 2 * block);
    case TR_DOWN: return matrix(l.down, hidden);
    case TR_DOWN_BIAS: return vector(l.downBias, hidden);
    default: return false;
  }
}

}  // namespace

void takeWeights(Carver& carver, const Shape& shape, Weights* weights) {
  const Format f = shape.format();
  weights->frequencies = carver.take<double>(shape.headDim() / 2);
  weights->windows = carver.take<int32_t>(shape.layers());
  weights->embedding = takeMatrix(carver, f, shape.vocab(), shape.hidden());
  weights->layers.resize(size_t(shape.layers()));
  for (LayerWeights& l : weights->layers) takeLayer(carver, shape, &l);
  weights->finalNorm = carver.take<float>(shape.hidden());
  weights->head = weights->embedding;
  if (!shape.config.tied) weights->head = takeMatrix(carver, f, shape.vocab(), shape.hidden());
}

bool placeOf(const Shape& shape, const Weights& weights, int32_t tensor, int32_t layer, Place* place) {
  if (native::inLayers(tensor)) return placeInLayer(shape, weights.layers[size_t(layer)], tensor, place);
  switch (tensor) {
    case TR_EMBEDDING:
      *place = {shape.vocab(), shape.hidden(), &weights.embedding, nullptr, TR_F32, 0, 1, 1};
      return true;
    case TR_HEAD:
      *place = {shape.vocab(), shape.hidden(), &weights.head, nullptr, TR_F32, 0, 1, 1};
      return !shape.config.tied;
    case TR_FINAL_NORM:
      *place = {1, shape.hidden(), nullptr, weights.finalNorm, TR_F32, 0, 1, 1};
      return true;
    case TR_ROPE_FREQUENCIES:
      *place = {1, shape.headDim() / 2, nullptr, weights.frequencies, TR_F64, 0, 1, 1};
      return true;
    case TR_WINDOWS:
      *place = {1, shape.layers(), nullptr, weights.windows, TR_I32, 0, 1, 1};
      return true;
    default:
      return false;
  }
}

int32_t tensorLayers(const Shape& shape, int32_t tensor) {
  return native::inLayers(tensor) ? shape.config.layers : 1;
}

}  // namespace cpu
