// What every device checks before a step: nothing of it is computed unless all of it is right.
#pragma once

#include <math.h>
#include <string.h>

#include "failure.h"
#include "native.h"

namespace native {

// Less than this would overflow.
constexpr float temperatureMin = 1e-6f;

// What a step was given; the arrays are the caller's.
struct StepArguments {
  const tr_step_counts* counts;
  const int32_t* tokens;
  const tr_request* requests;
  const tr_bias* biases;
  const tr_grant* grants;
  const int32_t* freed;
  tr_result* results;
  tr_candidate* top;
  float* hidden;
  float* logits;
};

// What a model has that a step must fit.
struct Admission {
  const tr_limits& limits;
  int32_t vocab;
  int64_t tablePages;   // pages that a request can have
  int32_t* pageTables;  // [slot][tablePages], -1: not granted
  uint64_t* lastStep;   // [slot]: the number of the last step that named it
  uint64_t* steps;      // that there were
};

inline int32_t checkCounts(const Admission& m, const StepArguments& a, tr_error* error) {
  const tr_limits& limits = m.limits;
  const tr_step_counts& c = *a.counts;
  if (c.size != int32_t(sizeof c)) {
    return fail(error, TR_INVALID, "step_counts has %d bytes, want %zu", c.size, sizeof c);
  }
  if (!inRange(error, "requests", c.requests, 0, limits.requests_max) ||
      !inRange(error, "grants", c.grants, 0, INT32_MAX) || !inRange(error, "freed", c.freed, 0, INT32_MAX)) {
    return TR_INVALID;
  }
  if ((c.requests && (!a.tokens || !a.requests || !a.results)) || (c.grants && !a.grants) ||
      (c.freed && !a.freed) || (c.requests && limits.top_max && !a.top)) {
    return fail(error, TR_INVALID, "an array of the step is null");
  }
  return TR_OK;
}

inline int32_t checkPages(const Admission& m, const StepArguments& a, tr_error* error) {
  const tr_limits& limits = m.limits;
  for (int32_t i = 0; i < a.counts->freed; i++) {
    if (a.freed[i] >= 0 && a.freed[i] < limits.slots) continue;
    return fail(error, TR_INVALID, "freed[%d] = slot %d, want 0 to %d", i, a.freed[i], limits.slots - 1);
  }
  for (int32_t i = 0; i < a.counts->grants; i++) {
    const tr_grant& g = a.grants[i];
    if (g.slot >= 0 && g.slot < limits.slots && g.index >= 0 && g.index < m.tablePages && g.page >= 0 &&
        g.page < limits.pages) {
      continue;
    }
    return fail(error, TR_INVALID,
                "grants[%d] = slot %d, index %d, page %d, want slots 0 to %d, indices to %" PRId64
                ", pages to %d",
                i, g.slot, g.index, g.page, limits.slots - 1, m.tablePages - 1, limits.pages - 1);
  }
  return TR_OK;
}

inline void applyPages(const Admission& m, const StepArguments& a) {
  for (int32_t i = 0; i < a.counts->freed; i++) {
    int32_t* table = m.pageTables + a.freed[i] * m.tablePages;
    memset(table, 0xff, size_t(m.tablePages) * sizeof *table);
  }
  for (int32_t i = 0; i < a.counts->grants; i++) {
    const tr_grant& g = a.grants[i];
    m.pageTables[g.slot * m.tablePages + g.index] = g.page;
  }
}

inline int32_t checkSampling(int32_t i, const tr_request& r, tr_error* error) {
  if (!(r.temperature == 0 || (r.temperature >= temperatureMin && r.temperature < INFINITY))) {
    return fail(error, TR_INVALID, "requests[%d]: temperature = %g, want 0, or 1e-6 and more", i,
                double(r.temperature));
  }
  if (r.top_k < 0) return fail(error, TR_INVALID, "requests[%d]: top_k = %d, want 0 or more", i, r.top_k);
  if (!(r.top_p > 0 && r.top_p <= 1)) {
    return fail(error, TR_INVALID, "requests[%d]: top_p = %g, want above 0, up to 1", i, double(r.top_p));
  }
  if (!(r.min_p >= 0 && r.min_p <= 1)) {
    return fail(error, TR_INVALID, "requests[%d]: min_p = %g, want 0 to 1", i, double(r.min_p));
  }
  return TR_OK;
}

// Slot, positions and pages of a request.
inline int32_t checkPlace(const Admission& m, int32_t i, const tr_request& r, tr_error* error) {
  const tr_limits& limits = m.limits;
  if (r.slot < 0 || r.slot >= limits.slots) {
    return fail(error, TR_INVALID, "requests[%d]: slot = %d, want 0 to %d", i, r.slot, limits.slots - 1);
  }
  if (m.lastStep[r.slot] == *m.steps) {
    return fail(error, TR_INVALID, "requests[%d]: slot %d is in the step already", i, r.slot);
  }
  m.lastStep[r.slot] = *m.steps;
  const int64_t end = int64_t(r.start) + r.rows;
  if (r.start < 0 || r.rows < 1 || end > limits.context_max) {
    return fail(error, TR_INVALID,
                "requests[%d]: start = %d, rows = %d, want 0 and 1 at least, together up to %d", i, r.start,
                r.rows, limits.context_max);
  }
  const int32_t* table = m.pageTables + r.slot * m.tablePages;
  for (int64_t page = 0; page * limits.page_tokens < end; page++) {
    if (table[page] >= 0) continue;
    return fail(error, TR_INVALID, "requests[%d]: slot %d has no page %" PRId64 ", want pages for %" PRId64
                " tokens", i, r.slot, page, end);
  }
  return TR_OK;
}

inline int32_t checkTokens(const Admission& m, int32_t i, const tr_request& r, const int32_t* tokens,
                    tr_error* error) {
  const int32_t vocab = m.vocab;
  for (int32_t t = 0; t < r.rows; t++) {
    if (tokens[t] >= 0 && tokens[t] < vocab) continue;
    return fail(error, TR_INVALID, "requests[%d]: token %d of %d = %d, want 0 to %d", i, t, r.rows, tokens[t],
                vocab - 1);
  }
  return TR_OK;
}

inline int32_t checkBiases(const Admission& m, int32_t i, const tr_request& r, const tr_bias* biases,
                    tr_error* error) {
  const int32_t vocab = m.vocab;
  for (int32_t b = 0; b < r.biases; b++) {
    if (biases[b].token >= 0 && biases[b].token < vocab && biases[b].bias < INFINITY) continue;
    return fail(error, TR_INVALID,
                "requests[%d]: bias %d = %g for token %d, want less than infinity for 0 to %d", i, b,
                double(biases[b].bias), biases[b].token, vocab - 1);
  }
  return TR_OK;
}

// The request after row rows and bias biases of others.
inline int32_t checkRequest(const Admission& m, const StepArguments& a, int32_t i, int64_t row, int64_t bias,
                     tr_error* error) {
  const tr_limits& limits = m.limits;
  const tr_request& r = a.requests[i];
  int32_t status = checkPlace(m, i, r, error);
  if (status != TR_OK) return status;
  if (r.head != 0 && r.head != 1) {
    return fail(error, TR_INVALID, "requests[%d]: head = %d, want 0 or 1", i, r.head);
  }
  if (r.top < 0 || r.top > limits.top_max) {
    return fail(error, TR_INVALID, "requests[%d]: top = %d, want 0 to %d", i, r.top, limits.top_max);
  }
  if (row + r.rows > limits.rows_max) {
    return fail(error, TR_INVALID, "requests to [%d] have %" PRId64 " rows, want at most %d", i,
                row + r.rows, limits.rows_max);
  }
  if (r.biases < 0 || bias + r.biases > limits.biases_max || (r.biases && !a.biases)) {
    return fail(error, TR_INVALID, "requests[%d]: biases = %d after %" PRId64 ", want at most %d together", i,
                r.biases, bias, limits.biases_max);
  }
  status = checkTokens(m, i, r, a.tokens + row, error);
  if (status == TR_OK) status = checkBiases(m, i, r, a.biases + bias, error);
  if (status == TR_OK && r.head) status = checkSampling(i, r, error);
  return status;
}

// Checks all of a step. Pages are freed and granted in between, before the requests are looked at.
inline int32_t admit(const Admission& m, const StepArguments& a, tr_error* error) {
  int32_t status = checkCounts(m, a, error);
  if (status == TR_OK) status = checkPages(m, a, error);
  if (status != TR_OK) return status;
  applyPages(m, a);
  ++*m.steps;
  int64_t row = 0, bias = 0;
  for (int32_t i = 0; i < a.counts->requests; i++) {
    status = checkRequest(m, a, i, row, bias, error);
    if (status != TR_OK) return status;
    row += a.requests[i].rows;
    bias += a.requests[i].biases;
  }
  return TR_OK;
}

}  // namespace native
