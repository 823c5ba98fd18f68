#if defined(__x86_64__)

#include <float.h>
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "attention.h"
#include "tiles.h"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma,amx-tile,amx-bf16")
// As in lanes_avx512.cpp.
#pragma GCC optimize("fp-contract=off")

#define LANES_AVX512
#include "lanes.h"

namespace cpu {

namespace {

// A query head of a row is a unit; sixteen are the rows of a tile. Softmax goes over chunks of 64 positions
// counted from position 0: four tiles of scores, and two operands of p * v, whose tiles take 32 positions.
constexpr int64_t tileUnits = 16, chunkTokens = 64, stepTokens = 32, tileDims = 16;
constexpr int chunkBlocks = chunkTokens / blockTokens, chunkSteps = chunkTokens / stepTokens;
constexpr int64_t lineBytes = 64, lineElements = 32, tileLines = 16;

struct Unit {
  Lanes weights;            // sums of weights, by position modulo 16
  int64_t first, position;  // positions that it sees
};

// What one call works on: some rows of a request at the query heads of one KV head.
struct Piece {
  Piece(const Attention& attention, const AttentionRequest& request, int64_t head, int64_t unitCount)
      : a(attention), r(request), kvHead(head), count(unitCount) {}

  const Attention& a;
  const AttentionRequest& r;
  int64_t kvHead, count;  // units
  int64_t first, last;    // positions that any unit sees
  Unit units[groupMax];
  alignas(64) float max[groupMax];     // largest scores so far
  alignas(64) float shrink[groupMax];  // by what sums shrink in this chunk
  alignas(64) uint16_t queries[groupMax * headDimMax];
  alignas(64) float sums[groupMax * headDimMax];                     // of weight * value
  alignas(64) float scores[groupMax * chunkTokens];
  alignas(64) uint16_t weights[groupMax * chunkTokens];              // [tile of units][step][unit][32]
  alignas(64) uint16_t values[chunkSteps][stepTokens * headDimMax];  // what can not be read in place

  int64_t dim() const { return a.kv.headDim; }
};

// Where the keys and values of 64 positions lie. Blocks of keys that nobody sees are others instead, whose
// scores are then not used; steps of values that nobody sees are null.
struct Chunk {
  int64_t start;
  const uint16_t* keys[chunkBlocks];
  const uint16_t* values[chunkSteps];
};

// Fetches the chunk after the one in use into the second-level cache, a tile's worth at a time: a burst of
// fetches would hold up the arithmetic.
struct FetchNext {
  const uint16_t* blocks[2 * chunkBlocks];  // of keys and values
  int count, at;
  int64_t elements, offset;  // of a block

  void tile() {
    for (int64_t line = 0; line < tileLines && at < count; line++) {
      _mm_prefetch(reinterpret_cast<const char*>(blocks[at] + offset), _MM_HINT_T1);
      offset += lineElements;
      if (offset < elements) continue;
      offset = 0;
      at++;
    }
  }
};

// Tile registers. 0 to 3 are scores of four blocks or sums of four times 16 dimensions, 4 queries or weights,
// 5 keys or values. 6 and 7 are queries and keys of 16 dimensions, the rest of a head.
TileConfiguration configurationFor(int64_t units) {
  TileConfiguration c;
  memset(&c, 0, sizeof c);
  c.palette = 1;
  for (int t = 0; t < 8; t++) {
    c.rowBytes[t] = lineBytes;
    c.rows[t] = uint8_t(units < tileUnits ? units : tileUnits);
  }
  c.rows[5] = 16;
  c.rowBytes[6] = lineBytes / 2;
  c.rows[7] = 8;
  return c;
}

const uint16_t* placeOf(const Attention& a, const AttentionRequest& r, int64_t kvHead, const uint16_t* pages,
                        int64_t position) {
  const KVPages& kv = a.kv;
  const int64_t page = r.pageTable[position / kv.pageTokens];
  return pages + kv.headOffset(page, kvHead) + position % kv.pageTokens * kv.headDim;
}

const uint16_t* placeOf(const Piece& p, const uint16_t* pages, int64_t position) {
  return placeOf(p.a, p.r, p.kvHead, pages, position);
}

// The first position that a row at position sees.
int64_t firstSeen(int64_t position, int64_t window) {
  return window > 0 && position >= window ? position - window + 1 : 0;
}

// Copies 32 positions of values from start on, with zeros for those that the piece does not see: a page may
// hold anything there, and nothing times not a number is not a number.
void copyValues(const Piece& p, int64_t start, uint16_t* out) {
  const int64_t pair = 2 * p.dim();
  for (int64_t t = start; t < start + stepTokens; t += 2, out += pair) {
    const bool even = t >= p.first && t <= p.last, odd = t + 1 >= p.first && t + 1 <= p.last;
    if (!even && !odd) {
      memset(out, 0, size_t(pair) * sizeof *out);
      continue;
    }
    memcpy(out, placeOf(p, p.a.kv.values, t), size_t(pair) * sizeof *out);
    if (even && odd) continue;
    for (int64_t i = even; i < pair; i += 2) out[i] = 0;
  }
}

// The chunk that begins at start, of which some unit sees something.
Chunk chunkAt(Piece& p, int64_t start) {
  const KVPages& kv = p.a.kv;
  Chunk c;
  c.start = start;
  for (int b = 0; b < chunkBlocks; b++) {
    int64_t t = start + b * blockTokens;
    if (t > p.last) t = p.last / blockTokens * blockTokens;
    if (t + blockTokens <= p.first) t = p.first / blockTokens * blockTokens;
    c.keys[b] = placeOf(p, kv.keys, t);
  }
  for (int s = 0; s < chunkSteps; s++) {
    const int64_t t = start + s * stepTokens, end = t + stepTokens;
    if (t > p.last || end <= p.first) {
      c.values[s] = nullptr;
    } else if (t >= p.first && end - 1 <= p.last && t % kv.pageTokens + stepTokens <= kv.pageTokens) {
      c.values[s] = placeOf(p, kv.values, t);
    } else {
      copyValues(p, t, p.values[s]);
      c.values[s] = p.values[s];
    }
  }
  return c;
}

// What is to be fetched of the positions from start to the end of its chunk, or to last.
FetchNext fetchAt(const Attention& a, const AttentionRequest& r, int64_t kvHead, int64_t start,
                  int64_t last) {
  FetchNext f;
  f.count = f.at = 0;
  f.elements = blockTokens * a.kv.headDim;
  f.offset = 0;
  const int64_t end = start / chunkTokens * chunkTokens + chunkTokens;
  for (int64_t t = start; t < end && t <= last; t += blockTokens) {
    f.blocks[f.count++] = placeOf(a, r, kvHead, a.kv.keys, t);
    f.blocks[f.count++] = placeOf(a, r, kvHead, a.kv.values, t);
  }
  return f;
}

// What is to be fetched while the piece takes the chunk that begins at start: its next chunk, or after the
// last the first one of the piece that follows.
FetchNext fetchAfter(const Piece& p, int64_t start, const AttentionPiece* next) {
  if (start + chunkTokens <= p.last) return fetchAt(p.a, p.r, p.kvHead, start + chunkTokens, p.last);
  if (!next) return FetchNext{{}, 0, 0, 0, 0};
  const AttentionRequest& r = *next->request;
  const int64_t before = r.kvLength - r.rows, window = p.a.window;
  const int64_t first = firstSeen(before + next->begin, window);
  return fetchAt(p.a, r, next->kvHead, first / blockTokens * blockTokens, before + next->end - 1);
}

// Scores of a tile of units against the chunk.
void multiplyKeys(Piece& p, const Chunk& c, int64_t firstUnit, FetchNext& fetch) {
  const uint16_t* queries = p.queries + firstUnit * p.dim();
  float* scores = p.scores + firstUnit * chunkTokens;
  const int64_t stride = 2 * p.dim(), whole = p.dim() / 32;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t d = 0; d < whole; d++) {
    _tile_loadd(4, queries + d * 32, stride);
    _tile_loadd(5, c.keys[0] + d * 16 * lineElements, lineBytes);
    fetch.tile();
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(5, c.keys[1] + d * 16 * lineElements, lineBytes);
    fetch.tile();
    _tile_dpbf16ps(1, 4, 5);
    _tile_loadd(5, c.keys[2] + d * 16 * lineElements, lineBytes);
    fetch.tile();
    _tile_dpbf16ps(2, 4, 5);
    _tile_loadd(5, c.keys[3] + d * 16 * lineElements, lineBytes);
    fetch.tile();
    _tile_dpbf16ps(3, 4, 5);
  }
  if (p.dim() % 32) {
    _tile_loadd(6, queries + whole * 32, stride);
    _tile_loadd(7, c.keys[0] + whole * 16 * lineElements, lineBytes);
    _tile_dpbf16ps(0, 6, 7);
    _tile_loadd(7, c.keys[1] + whole * 16 * lineElements, lineBytes);
    _tile_dpbf16ps(1, 6, 7);
    _tile_loadd(7, c.keys[2] + whole * 16 * lineElements, lineBytes);
    _tile_dpbf16ps(2, 6, 7);
    _tile_loadd(7, c.keys[3] + whole * 16 * lineElements, lineBytes);
    _tile_dpbf16ps(3, 6, 7);
  }
  _tile_stored(0, scores, chunkTokens * 4);
  _tile_stored(1, scores + blockTokens, chunkTokens * 4);
  _tile_stored(2, scores + 2 * blockTokens, chunkTokens * 4);
  _tile_stored(3, scores + 3 * blockTokens, chunkTokens * 4);
}

// Scales the scores of a unit, hides what it does not see, whatever its score, and returns the largest.
float scaleScores(const Unit& u, int64_t start, float scale, float* scores) {
  const bool all = u.first <= start && u.position >= start + chunkTokens - 1;
  const Lanes first = spread(float(u.first - start)), last = spread(float(u.position - start));
  Lanes token = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, most = spread(-INFINITY);
  for (int b = 0; b < chunkBlocks; b++, token = token + float(blockTokens)) {
    Lanes score = load(scores + b * blockTokens) * scale;
    if (!all) {
      score = token > last ? spread(-INFINITY) : score;
      score = token < first ? spread(-INFINITY) : score;
    }
    most = score > most ? score : most;
    store(scores + b * blockTokens, score);
  }
  return _mm512_reduce_max_ps(reinterpret_cast<__m512>(most));
}

// Turns the scores of a unit into weights against the largest score so far.
void weigh(Unit& u, const float* scores, float max, float shrink, uint16_t* weights) {
  Lanes weight[chunkBlocks];
  for (int b = 0; b < chunkBlocks; b++) weight[b] = exponential(load(scores + b * blockTokens) - max);
  for (int s = 0; s < chunkSteps; s++) {
    __m512bh rounded = _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(weight[2 * s + 1]),
                                           reinterpret_cast<__m512>(weight[2 * s]));
    memcpy(weights + s * tileUnits * stepTokens, &rounded, sizeof rounded);
  }
  u.weights = multiplyAdd(u.weights, spread(shrink), (weight[0] + weight[1]) + (weight[2] + weight[3]));
}

// Softmax of a tile of units over a chunk, and their sums so far made to fit the largest scores.
void weighTile(Piece& p, int64_t start, int64_t firstUnit) {
  const int64_t end = firstUnit + tileUnits < p.count ? firstUnit + tileUnits : p.count;
  const Lanes before = load(p.max + firstUnit);
  float* scores = p.scores + firstUnit * chunkTokens;
  for (int64_t i = firstUnit; i < end; i++, scores += chunkTokens) {
    const float largest = scaleScores(p.units[i], start, p.a.scale, scores);
    p.max[i] = largest > p.max[i] ? largest : p.max[i];
  }
  store(p.shrink + firstUnit, exponential(before - load(p.max + firstUnit)));
  scores = p.scores + firstUnit * chunkTokens;
  uint16_t* weights = p.weights + firstUnit * chunkTokens;
  for (int64_t i = firstUnit; i < end; i++, scores += chunkTokens, weights += stepTokens) {
    weigh(p.units[i], scores, p.max[i], p.shrink[i], weights);
    if (p.shrink[i] == 1) continue;
    float* row = p.sums + i * p.dim();
    for (int64_t d = 0; d < p.dim(); d += laneCount) store(row + d, load(row + d) * p.shrink[i]);
  }
}

// Adds weight * value of the chunk for a tile of units and count times 16 dimensions from sums and values on.
template <int count>
void addValues(const Piece& p, const Chunk& c, const uint16_t* weights, int64_t d, float* sums,
               FetchNext& fetch) {
  const int64_t stride = 4 * p.dim();
  _tile_loadd(0, sums, stride);
  if constexpr (count > 1) _tile_loadd(1, sums + tileDims, stride);
  if constexpr (count > 2) _tile_loadd(2, sums + 2 * tileDims, stride);
  if constexpr (count > 3) _tile_loadd(3, sums + 3 * tileDims, stride);
  for (int s = 0; s < chunkSteps; s++) {
    if (!c.values[s]) continue;
    const uint16_t* values = c.values[s] + 2 * d;
    _tile_loadd(4, weights + s * tileUnits * stepTokens, lineBytes);
    _tile_loadd(5, values, stride);
    fetch.tile();
    _tile_dpbf16ps(0, 4, 5);
    if constexpr (count > 1) {
      _tile_loadd(5, values + lineElements, stride);
      fetch.tile();
      _tile_dpbf16ps(1, 4, 5);
    }
    if constexpr (count > 2) {
      _tile_loadd(5, values + 2 * lineElements, stride);
      fetch.tile();
      _tile_dpbf16ps(2, 4, 5);
    }
    if constexpr (count > 3) {
      _tile_loadd(5, values + 3 * lineElements, stride);
      fetch.tile();
      _tile_dpbf16ps(3, 4, 5);
    }
  }
  _tile_stored(0, sums, stride);
  if constexpr (count > 1) _tile_stored(1, sums + tileDims, stride);
  if constexpr (count > 2) _tile_stored(2, sums + 2 * tileDims, stride);
  if constexpr (count > 3) _tile_stored(3, sums + 3 * tileDims, stride);
}

void multiplyValues(Piece& p, const Chunk& c, int64_t firstUnit, FetchNext& fetch) {
  const uint16_t* weights = p.weights + firstUnit * chunkTokens;
  float* sums = p.sums + firstUnit * p.dim();
  int64_t d = 0;
  for (; d + 4 * tileDims <= p.dim(); d += 4 * tileDims) addValues<4>(p, c, weights, d, sums + d, fetch);
  for (; d < p.dim(); d += tileDims) addValues<1>(p, c, weights, d, sums + d, fetch);
}

// All units take a chunk, step by step and not tile by tile, so that none waits for its own last step.
void takeChunk(Piece& p, const Chunk& c, FetchNext& fetch) {
  for (int64_t unit = 0; unit < p.count; unit += tileUnits) multiplyKeys(p, c, unit, fetch);
  for (int64_t unit = 0; unit < p.count; unit += tileUnits) weighTile(p, c.start, unit);
  for (int64_t unit = 0; unit < p.count; unit += tileUnits) multiplyValues(p, c, unit, fetch);
}

void begin(Piece& p, int64_t firstRow) {
  const Attention& a = p.a;
  const int64_t group = a.heads / a.kv.kvHeads;
  for (int64_t i = 0; i < p.count; i++) {
    const int64_t row = firstRow + i / group, head = p.kvHead * group + i % group;
    const int64_t position = p.r.kvLength - p.r.rows + row;
    const float* q = a.q + (p.r.firstRow + row) * a.qStride + head * p.dim();
    for (int64_t d = 0; d < p.dim(); d += laneCount) {
      storeHalves(p.queries + i * p.dim() + d, load(q + d), laneCount);
    }
    p.units[i] = {Lanes{}, firstSeen(position, a.window), position};
  }
  // Rows of a tile beyond the last unit hold anything: nobody reads their results.
  memset(p.sums, 0, size_t(p.count * p.dim()) * sizeof *p.sums);
  for (float& max : p.max) max = -FLT_MAX;
  p.first = p.units[0].first;
  p.last = p.units[p.count - 1].position;
}

// Writes the result of a unit and reports whether all of it is finite.
bool finish(const Piece& p, int64_t unit, float* out) {
  const float total = sumOf(p.units[unit].weights);
  const float* sums = p.sums + unit * p.dim();
  Lanes zero = {};
  for (int64_t d = 0; d < p.dim(); d += laneCount) {
    // Adding 0 makes 0 of -0, of which a chunk that a unit does not see would make it too.
    Lanes result = (load(sums + d) + 0.0f) / total;
    zero = zero + result * 0.0f;
    store(out + d, result);
  }
  return sumOf(zero) == 0;
}

void attentionRowsAmx(const Attention& a, const AttentionPiece& piece, const AttentionPiece* next) {
  const AttentionRequest& r = *piece.request;
  const int64_t kvHead = piece.kvHead, firstRow = piece.begin, endRow = piece.end;
  const int64_t group = a.heads / a.kv.kvHeads;
  Piece p(a, r, kvHead, (endRow - firstRow) * group);
  begin(p, firstRow);
  loadTileConfiguration(configurationFor(p.count));
  for (int64_t start = p.first / chunkTokens * chunkTokens; start <= p.last; start += chunkTokens) {
    const Chunk c = chunkAt(p, start);
    FetchNext fetch = fetchAfter(p, start, next);
    takeChunk(p, c, fetch);
  }
  releaseTiles();
  for (int64_t i = 0; i < p.count; i++) {
    const int64_t row = firstRow + i / group;
    float* out = a.out + (r.firstRow + row) * a.outStride + (kvHead * group + i % group) * p.dim();
    // A later row's value may have spoilt this one, 0 times not a number: alone it meets what it sees only.
    if (!finish(p, i, out) && endRow - firstRow > 1) {
      attentionRowsAmx(a, {&r, kvHead, row, row + 1}, nullptr);
      i = (row + 1 - firstRow) * group - 1;
    }
  }
}

}  // namespace

const AttentionKernels attentionKernelsAmx = {attentionRowsAmx, attentionTileTolerance};

}  // namespace cpu

#pragma GCC pop_options

#endif
