#include "weights.h"

#include "../../exec/native/tensors.h"

namespace cuda {

using native::Carver;

namespace {

Matrix takeMatrix(Carver& carver, int64_t columns, int64_t depth) {
  Matrix m = {nullptr, columns, depth};
  m.weights = carver.take<uint16_t>(m.elements());
  return m;
}

Linear takeLinear(Carver& carver, int64_t columns, int64_t depth) {
  return {takeMatrix(carver, columns, depth), carver.take<float>(columns)};
}

void takeLayer(Carver& carver, const Shape& s, LayerWeights* l) {
  const tr_model_config& c = s.config;
  auto vector = [&](bool has, int64_t count) { return has ? carver.take<float>(count) : nullptr; };
  const int64_t qkv = s.headsPacked() * s.headStride();
  l->inputNorm = vector(true, s.hidden());
  l->qkv = takeMatrix(carver, qkv, s.hidden());
  l->qkvBias = vector(c.qkv_bias, qkv);
  l->qNorm = vector(c.qk_norm, s.headDim());
  l->kNorm = vector(c.qk_norm, s.headDim());
  l->o = takeMatrix(carver, s.hidden(), s.attended());
  l->oBias = vector(c.output_bias, s.hidden());
  l->postNorm = vector(true, s.hidden());
  l->gateUp = takeMatrix(carver, 2 * s.intermediate(), s.hidden());
  l->gateUpBias = vector(c.mlp_bias, 2 * s.intermediate());
  l->down = takeMatrix(carver, s.hidden(), s.intermediate());
  l->downBias = vector(c.mlp_bias, s.hidden());
}

void takeRouter(Carver& carver, const Shape& s, RouterWeights* r) {
  const tr_model_config& c = s.config;
  const int64_t width = c.router_width, hidden = s.hidden();
  r->out = carver.take<float>(c.router == TR_ROUTER_COLLM ? hidden : width);
  if (c.router == TR_ROUTER_COLLM) return;
  r->outBias = carver.take<float>(1);
  r->blocks.resize(s.r2r() ? size_t(c.router_blocks) : 1);
  if (!s.r2r()) {
    r->blocks[0].first = takeLinear(carver, width, hidden);
    return;
  }
  r->top = takeLinear(carver, hidden, c.router_top);
  r->combined = takeLinear(carver, width, 3 * hidden);
  r->in = takeLinear(carver, width, width);
  for (RouterBlock& b : r->blocks) {
    b.norm = carver.take<float>(width);
    b.normBias = carver.take<float>(width);
    b.first = takeLinear(carver, c.router_expanded, width);
    b.second = takeLinear(carver, width, c.router_expanded);
  }
  r->outNorm = carver.take<float>(width);
  r->outNormBias = carver.take<float>(width);
}

bool ofVector(void* v, int64_t count, Place* p, int64_t first = 0, int64_t run = 1, int64_t by = 1) {
  *p = {1, count, nullptr, v, TR_F32, first, run, by, 1, 1};
  return v != nullptr;
}

bool ofMatrix(const Matrix& m, int64_t rows, Place* p, int64_t first = 0, int64_t run = 1, int64_t by = 1) {
  *p = {rows, m.depth, &m, nullptr, TR_F32, first, run, by, m.depth, m.depth};
  return m.columns > 0;
}

// Where tensors of one layer go.
bool placeInLayer(const Shape& s, const LayerWeights& l, int32_t tensor, Place* p) {
  const int64_t dim = s.headDim(), stride = s.headStride(), heads = s.heads(), kvHeads = s.kvHeads();
  const int64_t hidden = s.hidden(), inner = s.intermediate(), keys = heads * stride;
  const int64_t values = keys + kvHeads * stride;
  switch (tensor) {
    case TR_INPUT_NORM:
      return ofVector(l.inputNorm, hidden, p);
    case TR_Q:
      return ofMatrix(l.qkv, heads * dim, p, 0, dim, stride);
    case TR_K:
      return ofMatrix(l.qkv, kvHeads * dim, p, keys, dim, stride);
    case TR_V:
      return ofMatrix(l.qkv, kvHeads * dim, p, values, dim, stride);
    case TR_Q_BIAS:
      return ofVector(l.qkvBias, heads * dim, p, 0, dim, stride);
    case TR_K_BIAS:
      return ofVector(l.qkvBias, kvHeads * dim, p, keys, dim, stride);
    case TR_V_BIAS:
      return ofVector(l.qkvBias, kvHeads * dim, p, values, dim, stride);
    case TR_Q_NORM:
      return ofVector(l.qNorm, dim, p);
    case TR_K_NORM:
      return ofVector(l.kNorm, dim, p);
    case TR_O:
      *p = {hidden, heads * dim, &l.o, nullptr, TR_F32, 0, 1, 1, dim, stride};
      return true;
    case TR_O_BIAS:
      return ofVector(l.oBias, hidden, p);
    case TR_POST_NORM:
      return ofVector(l.postNorm, hidden, p);
    case TR_GATE:
      return ofMatrix(l.gateUp, inner, p);
    case TR_UP:
      return ofMatrix(l.gateUp, inner, p, inner);
    case TR_GATE_BIAS:
      return ofVector(l.gateUpBias, inner, p);
    case TR_UP_BIAS:
      return ofVector(l.gateUpBias, inner, p, inner);
    case TR_DOWN:
      return ofMatrix(l.down, hidden, p);
    case TR_DOWN_BIAS:
      return ofVector(l.downBias, hidden, p);
    default:
      return false;
  }
}

bool placeInRouter(const Shape& s, RouterWeights& r, int32_t tensor, size_t block, Place* p) {
  const tr_model_config& c = s.config;
  const int64_t width = c.router_width;
  const int64_t out = c.router == TR_ROUTER_COLLM ? s.hidden() : width;
  if (tensor == TR_ROUTER_OUT) return s.router() && ofVector(r.out, out, p);
  if (!s.router() || c.router == TR_ROUTER_COLLM) return false;
  if (tensor == TR_ROUTER_OUT_BIAS) return ofVector(r.outBias, 1, p);
  RouterBlock& b = r.blocks[block];
  if (tensor == TR_ROUTER_FIRST) return ofMatrix(b.first.matrix, b.first.matrix.columns, p);
  if (tensor == TR_ROUTER_FIRST_BIAS) return ofVector(b.first.bias, b.first.matrix.columns, p);
  if (!s.r2r()) return false;
  switch (tensor) {
    case TR_ROUTER_TOP:
      return ofMatrix(r.top.matrix, s.hidden(), p);
    case TR_ROUTER_TOP_BIAS:
      return ofVector(r.top.bias, s.hidden(), p);
    case TR_ROUTER_COMBINED:
      return ofMatrix(r.combined.matrix, width, p);
    case TR_ROUTER_COMBINED_BIAS:
      return ofVector(r.combined.bias, width, p);
    case TR_ROUTER_IN:
      return ofMatrix(r.in.matrix, width, p);
    case TR_ROUTER_IN_BIAS:
      return ofVector(r.in.bias, width, p);
    case TR_ROUTER_NORM:
      return ofVector(b.norm, width, p);
    case TR_ROUTER_NORM_BIAS:
      return ofVector(b.normBias, width, p);
    case TR_ROUTER_SECOND:
      return ofMatrix(b.second.matrix, width, p);
    case TR_ROUTER_SECOND_BIAS:
      return ofVector(b.second.bias, width, p);
    case TR_ROUTER_OUT_NORM:
      return ofVector(r.outNorm, width, p);
    case TR_ROUTER_OUT_NORM_BIAS:
      return ofVector(r.outNormBias, width, p);
    default:
      return false;
  }
}

}  // namespace

void takeWeights(Carver& carver, const Shape& shape, Weights* w) {
  w->frequencies = carver.take<double>(shape.headDim() / 2);
  w->windows.resize(size_t(shape.layers()));
  w->embedding = takeMatrix(carver, shape.vocab(), shape.hidden());
  w->layers.resize(size_t(shape.layers()));
  for (LayerWeights& l : w->layers) takeLayer(carver, shape, &l);
  w->finalNorm = carver.take<float>(shape.hidden());
  w->head = shape.config.tied ? w->embedding : takeMatrix(carver, shape.vocab(), shape.hidden());
  w->router = {};
  if (shape.router()) takeRouter(carver, shape, &w->router);
}

bool placeOf(const Shape& shape, Weights& w, int32_t tensor, int32_t layer, Place* p) {
  if (native::inLayers(tensor)) return placeInLayer(shape, w.layers[size_t(layer)], tensor, p);
  if (tensor >= TR_ROUTER_TOP) return placeInRouter(shape, w.router, tensor, size_t(layer), p);
  switch (tensor) {
    case TR_EMBEDDING:
      return ofMatrix(w.embedding, shape.vocab(), p);
    case TR_HEAD:
      return ofMatrix(w.head, shape.vocab(), p) && !shape.config.tied;
    case TR_FINAL_NORM:
      return ofVector(w.finalNorm, shape.hidden(), p);
    case TR_ROPE_FREQUENCIES:
      *p = {1, shape.headDim() / 2, nullptr, w.frequencies, TR_F64, 0, 1, 1, 1, 1};
      return true;
    case TR_WINDOWS:
      *p = {1, shape.layers(), nullptr, w.windows.data(), TR_I32, 0, 1, 1, 1, 1};
      return true;
    default:
      return false;
  }
}

int32_t tensorLayers(const Shape& shape, int32_t tensor) {
  if (native::inLayers(tensor)) return shape.config.layers;
  const bool ofBlock = tensor >= TR_ROUTER_NORM && tensor <= TR_ROUTER_SECOND_BIAS;
  return ofBlock && shape.r2r() ? shape.config.router_blocks : 1;
}

}  // namespace cuda
