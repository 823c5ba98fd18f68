/* Routers as C functions: see kernels.h for what they return, router.h for what they compute. */
#ifndef TOKENROUTER_KERNELS_ROUTER_H
#define TOKENROUTER_KERNELS_ROUTER_H

#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cpu_router cpu_router;

/* kind 1 to 3: R2R, CITER, Co-LLM. */
typedef struct {
  int64_t kind, hidden, top, width, blocks, expanded;
} cpu_router_shape;

/* A router without weights. */
int32_t cpu_router_open(cpu_router_shape shape, cpu_router **out);
void cpu_router_close(cpu_router *router);

/* The bytes of its weights, and of the scratch memory for rows. */
int64_t cpu_router_weight_bytes(cpu_router_shape shape);
int64_t cpu_router_scratch_bytes(const cpu_router *router, int64_t rows);

/* tensor is a RouterTensor. */
int32_t cpu_router_put(cpu_router *router, int32_t tensor, int64_t block, int64_t rows, int64_t columns,
                       const float *data);

/* scores[rows] of rows without gaps; embeddings and logits are read by R2R only. EINVAL if a tensor has not
   been put. */
int32_t cpu_router_evaluate(cpu_workers *workers, int32_t path, const cpu_router *router, int64_t rows,
                            const float *hidden, const float *embeddings, const float *logits,
                            double *scores);

/* out[count] = gelu(x + bias) in bf16, and out = LayerNorm of x[width]: kernels of router_kernels.h. */
int32_t cpu_gelu(int32_t path, const float *x, const float *bias, int64_t count, uint16_t *out);
int32_t cpu_layer_norm(int32_t path, const float *x, const float *weight, const float *bias, int64_t width,
                       float *out);

double cpu_router_tolerance(void);
double cpu_deferral_tolerance(void);

#ifdef __cplusplus
}
#endif

#endif
