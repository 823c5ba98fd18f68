/* Calls through the pointers of a tr_backend, which Go can not make itself. */
#ifndef TOKENROUTER_TRAMPOLINES_H
#define TOKENROUTER_TRAMPOLINES_H

#include <stddef.h>

#include "native.h"

static inline int32_t tr_device_count(const tr_backend *b, int32_t *count, tr_error *error) {
  return b->device_count(count, error);
}

static inline int32_t tr_device_get_info(const tr_backend *b, int32_t ordinal, tr_device_info *info,
                                         tr_error *error) {
  return b->device_info(ordinal, info, error);
}

static inline int32_t tr_device_open(const tr_backend *b, const tr_device_options *options,
                                     tr_device **device, tr_error *error) {
  return b->device_open(options, device, error);
}

static inline void tr_device_close(const tr_backend *b, tr_device *device) { b->device_close(device); }

static inline int32_t tr_probe(const tr_backend *b, const tr_device *device, const tr_model_config *config,
                               const tr_limits *limits, tr_needs *needs, tr_error *error) {
  return b->probe(device, config, limits, needs, error);
}

static inline int32_t tr_model_new(const tr_backend *b, tr_device *device, const tr_model_config *config,
                                   tr_model **model, tr_error *error) {
  return b->model_new(device, config, model, error);
}

static inline int32_t tr_model_put(const tr_backend *b, tr_model *model, int32_t tensor, int32_t layer,
                                   int32_t type, int64_t rows, int64_t columns, const void *data,
                                   tr_error *error) {
  return b->model_put(model, tensor, layer, type, rows, columns, data, error);
}

static inline int32_t tr_model_plan(const tr_backend *b, tr_model *model, const tr_limits *limits,
                                    tr_needs *took, tr_error *error) {
  return b->model_plan(model, limits, took, error);
}

static inline int32_t tr_model_step(const tr_backend *b, tr_model *model, const tr_step_counts *counts,
                                    const int32_t *tokens, const tr_request *requests, const tr_bias *biases,
                                    const tr_grant *grants, const int32_t *freed, tr_result *results,
                                    tr_candidate *top, float *hidden, float *logits, tr_step_info *info,
                                    tr_error *error) {
  return b->model_step(model, counts, tokens, requests, biases, grants, freed, results, top, hidden, logits,
                       info, error);
}

static inline int32_t tr_has_random(const tr_backend *b) { return b->model_random != NULL; }

static inline int32_t tr_model_random(const tr_backend *b, tr_model *model, int32_t tensor, int32_t layer,
                                      int64_t rows, int64_t columns, uint64_t state, double mean,
                                      double scale, tr_error *error) {
  return b->model_random(model, tensor, layer, rows, columns, state, mean, scale, error);
}

static inline void tr_model_graphs(const tr_backend *b, const tr_model *model, tr_graphs *graphs) {
  if (b->model_graphs) b->model_graphs(model, graphs);
}

static inline void tr_model_close(const tr_backend *b, tr_model *model) { b->model_close(model); }

#endif
