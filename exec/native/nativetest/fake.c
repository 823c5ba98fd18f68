#include "fake.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SCORE_TOKEN = 1, NAN_TOKEN = 2, FAIL_TOKEN = 3, REFUSE_TOKEN = 4, FIRST_SAMPLED = 5 };

#define MEMORY_BYTES (INT64_C(1) << 30)
#define NOTHING (-1)

struct tr_device {
  int64_t budget, taken;
  int models;
};

struct tr_model {
  tr_device *device;
  tr_model_config config;
  tr_limits limits;
  uint64_t weights; /* a hash of all that was put */
  int puts, planned, broken;
  int32_t *table; /* [slots][blocks]: pages */
  int32_t *kv;    /* [pages][page_tokens]: the token of each position */
  float *logits;  /* [vocab] */
  int64_t took;
};

static int32_t fail(tr_error *error, int32_t status, const char *format, ...) {
  if (error) {
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
  }
  return status;
}

static uint64_t mix(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static int32_t device_count(int32_t *count, tr_error *error) {
  (void)error;
  *count = 1;
  return TR_OK;
}

static int32_t device_info(int32_t ordinal, tr_device_info *info, tr_error *error) {
  if (ordinal != 0) return fail(error, TR_NO_DEVICE, "device %d of 1", ordinal);
  if (info->size != sizeof *info) return fail(error, TR_INVALID, "info of %d bytes", info->size);
  info->page_tokens = 16;
  info->processors = 2;
  info->memory_bytes = info->free_bytes = MEMORY_BYTES;
  strcpy(info->name, "fake");
  strcpy(info->kernels, "none");
  return TR_OK;
}

static int32_t device_open(const tr_device_options *options, tr_device **device, tr_error *error) {
  if (options->size != sizeof *options) return fail(error, TR_INVALID, "options of %d bytes", options->size);
  if (options->ordinal != 0) return fail(error, TR_NO_DEVICE, "device %d of 1", options->ordinal);
  if (options->kernels[0]) return fail(error, TR_UNSUPPORTED, "kernels %s", options->kernels);
  *device = calloc(1, sizeof **device);
  (*device)->budget = options->budget_bytes ? options->budget_bytes : MEMORY_BYTES;
  return TR_OK;
}

static void device_close(tr_device *device) {
  if (device->models) abort();
  free(device);
}

static int64_t weight_count(const tr_model_config *c) {
  int64_t heads = c->heads * c->head_dim, keys = c->kv_heads * c->head_dim;
  int64_t layer = 2 * c->hidden * (heads + keys) + 3 * (int64_t)c->hidden * c->intermediate;
  return c->layers * layer + (c->tied ? 1 : 2) * (int64_t)c->vocab * c->hidden;
}

static int32_t probe(const tr_device *device, const tr_model_config *config, const tr_limits *limits,
                     tr_needs *needs, tr_error *error) {
  (void)device;
  if (config->size != sizeof *config || limits->size != sizeof *limits || needs->size != sizeof *needs)
    return fail(error, TR_INVALID, "structs of %d, %d and %d bytes", config->size, limits->size, needs->size);
  if (limits->page_tokens % 16) return fail(error, TR_INVALID, "pages of %d tokens", limits->page_tokens);
  if (limits->context_max > config->positions)
    return fail(error, TR_INVALID, "context of %d tokens, want at most %d", limits->context_max,
                config->positions);
  if (config->weights == TR_WEIGHTS_INT8) return fail(error, TR_UNSUPPORTED, "int8");
  needs->weight_bytes = 2 * weight_count(config);
  needs->kv_bytes_per_token = 4 * (int64_t)config->layers * config->kv_heads * config->head_dim;
  needs->kv_bytes = needs->kv_bytes_per_token * limits->page_tokens * limits->pages;
  needs->work_bytes = 4 * (int64_t)config->vocab;
  return TR_OK;
}

static int32_t model_new(tr_device *device, const tr_model_config *config, tr_model **model,
                         tr_error *error) {
  if (config->size != sizeof *config) return fail(error, TR_INVALID, "config of %d bytes", config->size);
  *model = calloc(1, sizeof **model);
  (*model)->device = device;
  (*model)->config = *config;
  (*model)->weights = config->layers;
  device->models++;
  return TR_OK;
}

static int32_t model_put(tr_model *m, int32_t tensor, int32_t layer, int32_t type, int64_t rows,
                         int64_t columns, const void *data, tr_error *error) {
  int32_t blocks = m->config.router_blocks ? m->config.router_blocks : 1;
  int32_t layers = tensor < TR_ROUTER_TOP ? m->config.layers : blocks;
  if (tensor < TR_EMBEDDING || tensor > TR_ROUTER_OUT_BIAS || layer < 0 || layer >= layers)
    return fail(error, TR_INVALID, "tensor %d of layer %d", tensor, layer);
  const int64_t sizes[] = {0, 2, 2, 4, 8, 4};
  const unsigned char *bytes = data;
  uint64_t hash = mix((uint64_t)tensor << 32 | (uint32_t)layer);
  for (int64_t i = 0; i < rows * columns * sizes[type]; i++) hash = hash * 0x100000001b3u ^ bytes[i];
  m->weights += mix(hash); /* in any order */
  m->puts++;
  return TR_OK;
}

static int32_t blocks(const tr_limits *l) { return (l->context_max + l->page_tokens - 1) / l->page_tokens; }

static int32_t model_plan(tr_model *m, const tr_limits *limits, tr_needs *took, tr_error *error) {
  int32_t status = probe(m->device, &m->config, limits, took, error);
  if (status) return status;
  const tr_model_config *c = &m->config;
  int per_layer = 9 + 3 * c->qkv_bias + c->output_bias + 3 * c->mlp_bias + 2 * c->qk_norm;
  const int router[] = {0, 10 + 6 * c->router_blocks, 4, 1};
  int want = c->layers * per_layer + (c->tied ? 2 : 3) + 2 + router[c->router];
  if (m->puts != want)
    return fail(error, TR_INVALID, "%d tensors have been put, want %d", m->puts, want);
  int64_t bytes = took->weight_bytes + took->kv_bytes + took->work_bytes;
  if (m->device->taken + bytes > m->device->budget)
    return fail(error, TR_NO_MEMORY, "%lld bytes", (long long)bytes);
  m->limits = *limits;
  size_t table = (size_t)limits->slots * blocks(limits), kv = (size_t)limits->pages * limits->page_tokens;
  m->table = malloc(table * sizeof *m->table);
  m->kv = malloc(kv * sizeof *m->kv);
  m->logits = malloc(c->vocab * sizeof *m->logits);
  for (size_t i = 0; i < table; i++) m->table[i] = NOTHING;
  for (size_t i = 0; i < kv; i++) m->kv[i] = NOTHING;
  m->planned = 1;
  m->took = bytes;
  m->device->taken += bytes;
  return TR_OK;
}

static void model_close(tr_model *m) {
  m->device->models--;
  m->device->taken -= m->took;
  free(m->table);
  free(m->kv);
  free(m->logits);
  free(m);
}

/* The place of a position's token, or null where no page was granted. */
static int32_t *cell(const tr_model *m, int32_t slot, int32_t position) {
  int32_t tokens = m->limits.page_tokens;
  int32_t page = m->table[slot * blocks(&m->limits) + position / tokens];
  return page == NOTHING ? NULL : &m->kv[page * tokens + position % tokens];
}

static int32_t apply_pages(tr_model *m, const tr_step_counts *counts, const tr_grant *grants,
                           const int32_t *freed, tr_error *error) {
  int32_t row = blocks(&m->limits);
  for (int32_t i = 0; i < counts->freed; i++) {
    if (freed[i] < 0 || freed[i] >= m->limits.slots)
      return fail(error, TR_INVALID, "freed slot %d", freed[i]);
    for (int32_t j = 0; j < row; j++) m->table[freed[i] * row + j] = NOTHING;
  }
  for (int32_t i = 0; i < counts->grants; i++) {
    const tr_grant *g = &grants[i];
    if (g->slot < 0 || g->slot >= m->limits.slots || g->index < 0 || g->index >= row || g->page < 0 ||
        g->page >= m->limits.pages)
      return fail(error, TR_INVALID, "grant %d: slot %d, index %d, page %d", i, g->slot, g->index, g->page);
    m->table[g->slot * row + g->index] = g->page;
  }
  return TR_OK;
}

static int32_t check_request(const tr_model *m, const tr_request *r, const int32_t *tokens, tr_error *error) {
  if (r->slot < 0 || r->slot >= m->limits.slots || r->start < 0 || r->rows < 1 ||
      r->start + r->rows > m->limits.context_max)
    return fail(error, TR_INVALID, "slot %d: positions %d + %d", r->slot, r->start, r->rows);
  if (r->top > m->limits.top_max) return fail(error, TR_INVALID, "top %d", r->top);
  if (r->temperature != 0 && !(r->temperature >= 1e-6f))
    return fail(error, TR_INVALID, "temperature %g", (double)r->temperature);
  if (!(r->top_p > 0 && r->top_p <= 1) || !(r->min_p >= 0 && r->min_p <= 1) || r->top_k < 0)
    return fail(error, TR_INVALID, "top_p %g, min_p %g, top_k %d", (double)r->top_p, (double)r->min_p,
                r->top_k);
  for (int32_t p = 0; p < r->start + r->rows; p++) {
    const int32_t *at = cell(m, r->slot, p);
    if (!at) return fail(error, TR_INVALID, "slot %d: position %d has no page", r->slot, p);
    if (p < r->start && *at == NOTHING)
      return fail(error, TR_INVALID, "slot %d: position %d was never computed", r->slot, p);
  }
  for (int32_t i = 0; i < r->rows; i++)
    if (tokens[i] < 0 || tokens[i] >= m->config.vocab) return fail(error, TR_INVALID, "token %d", tokens[i]);
  if (tokens[r->rows - 1] == REFUSE_TOKEN)
    return fail(error, TR_INVALID, "token %d is refused", REFUSE_TOKEN);
  return TR_OK;
}

/* The token of z + bias at the temperature: the most likely, or the one at the quantile that random says. */
static int32_t sample(const tr_model *m, const tr_request *r, const tr_bias *biases) {
  const float *z = m->logits;
  int32_t best = FIRST_SAMPLED;
  double total = 0, most = 0;
  for (int pass = 0; pass < 3; pass++) { /* the most likely, the sum, the token at the quantile */
    double running = 0, quantile = (double)(r->random >> 11) * 0x1p-53 * total;
    for (int32_t v = FIRST_SAMPLED; v < m->config.samplable; v++) {
      double x = z[v];
      for (int32_t i = 0; i < r->biases; i++)
        if (biases[i].token == v) x += (double)biases[i].bias;
      if (pass == 0) {
        if (v == FIRST_SAMPLED || x > most) most = x, best = v;
        continue;
      }
      running += exp((x - most) / (double)r->temperature);
      if (pass == 2 && running > quantile) return v;
    }
    if (r->temperature == 0) return best;
    total = running;
  }
  return best;
}

static void fill_top(const tr_model *m, const tr_request *r, tr_result *result, tr_candidate *top) {
  const float *z = m->logits;
  result->top = r->top < m->config.vocab ? r->top : m->config.vocab;
  for (int32_t k = 0; k < result->top; k++) {
    int32_t best = NOTHING;
    for (int32_t v = 0; v < m->config.vocab; v++) {
      int used = 0;
      for (int32_t i = 0; i < k; i++) used |= top[i].token == v;
      if (!used && (best == NOTHING || z[v] > z[best])) best = v;
    }
    top[k].token = best;
    top[k].log_probability = z[best] - result->log_sum_exp;
  }
}

static void head(const tr_model *m, const tr_request *r, const tr_bias *biases, tr_result *result,
                 tr_candidate *top) {
  memset(result, 0, sizeof *result);
  int32_t end = r->start + r->rows, n = m->config.vocab;
  if (*cell(m, r->slot, end - 1) == NAN_TOKEN) return;
  uint64_t hash = m->weights;
  for (int32_t p = 0; p < end; p++) hash = mix(hash * 3 + (uint64_t)*cell(m, r->slot, p) + 1);
  double sum = 0, first = 0, second = 0, entropy = 0;
  for (int32_t v = 0; v < n; v++) {
    m->logits[v] = (float)((double)(mix(hash + (uint64_t)v * 0x9e3779b97f4a7c15u) >> 40) * 0x1p-21);
    sum += exp((double)m->logits[v]);
  }
  for (int32_t v = 0; v < n; v++) {
    double p = exp((double)m->logits[v]) / sum;
    entropy -= p * log(p);
    if (p > first)
      second = first, first = p;
    else if (p > second)
      second = p;
  }
  result->finite = 1;
  result->log_sum_exp = (float)log(sum);
  result->top_probability = (float)first;
  result->margin = (float)(first - second);
  result->entropy = n > 1 ? (float)(entropy / log(n)) : 0;
  int scored = m->config.router && *cell(m, r->slot, end - 1) != SCORE_TOKEN;
  result->score = scored ? (double)(hash >> 11) * 0x1p-53 : (double)NAN;
  result->token = sample(m, r, biases);
  result->log_probability = m->logits[result->token] - result->log_sum_exp;
  fill_top(m, r, result, top);
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int32_t check_step(tr_model *m, const tr_step_counts *counts, const int32_t *tokens,
                          const tr_request *requests, const tr_step_info *info, tr_error *error) {
  if (counts->requests > m->limits.requests_max)
    return fail(error, TR_INVALID, "%d requests", counts->requests);
  if (info->size != sizeof *info) return fail(error, TR_INVALID, "info of %d bytes", info->size);
  int32_t rows = 0;
  for (int32_t i = 0; i < counts->requests; i++) {
    int32_t status = check_request(m, &requests[i], tokens + rows, error);
    if (status) return status;
    rows += requests[i].rows;
  }
  if (rows > m->limits.rows_max) return fail(error, TR_INVALID, "%d rows", rows);
  return TR_OK;
}

static int32_t model_step(tr_model *m, const tr_step_counts *counts, const int32_t *tokens,
                          const tr_request *requests, const tr_bias *biases, const tr_grant *grants,
                          const int32_t *freed, tr_result *results, tr_candidate *top, float *hidden,
                          float *logits, tr_step_info *info, tr_error *error) {
  if (m->broken) return fail(error, TR_FAILED, "the device has failed before");
  if (counts->size != sizeof *counts) return fail(error, TR_INVALID, "counts of %d bytes", counts->size);
  int32_t status = apply_pages(m, counts, grants, freed, error);
  if (!status) status = check_step(m, counts, tokens, requests, info, error);
  if (status) return status;
  info->start_ns = now();
  info->rows_computed = 0;
  for (int32_t i = 0; i < counts->requests; i++) {
    const tr_request *r = &requests[i];
    for (int32_t j = 0; j < r->rows; j++) *cell(m, r->slot, r->start + j) = *tokens++;
    if (tokens[-1] == FAIL_TOKEN) {
      m->broken = 1;
      return fail(error, TR_FAILED, "token %d", FAIL_TOKEN);
    }
    if (r->head) {
      head(m, r, biases, &results[i], top ? top + (size_t)i * m->limits.top_max : NULL);
      if (logits) memcpy(logits + (size_t)i * m->config.vocab, m->logits, m->config.vocab * sizeof *logits);
      if (hidden) memset(hidden + (size_t)i * m->config.hidden, 0, m->config.hidden * sizeof *hidden);
    }
    biases += r->biases;
    info->rows_computed += r->rows;
  }
  info->graph = 0;
  info->end_ns = now();
  return TR_OK;
}

const tr_backend *tr_fake_backend(void) {
  static const tr_backend backend = {
      .size = sizeof backend, .abi_version = TR_ABI_VERSION, .kind = "fake",
      .device_count = device_count, .device_info = device_info, .device_open = device_open,
      .device_close = device_close, .probe = probe, .model_new = model_new, .model_put = model_put,
      .model_plan = model_plan, .model_step = model_step, .model_close = model_close,
  };
  return &backend;
}
