/* The kernels of 8 bit products as C functions, by the rules of kernels.h. */
#ifndef TOKENROUTER_CPU_KERNELS_INT8_H
#define TOKENROUTER_CPU_KERNELS_INT8_H

#include <stdint.h>

#include "kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cpu_int8_weights cpu_int8_weights;

/* Quantises and packs bf16 source[columns][depth]. group_inputs is a multiple of 64, or 0 for one scale a
   column. */
int32_t cpu_int8_weights_open(int64_t columns, int64_t depth, int64_t group_inputs, const uint16_t *source,
                              cpu_int8_weights **out);
void cpu_int8_weights_close(cpu_int8_weights *weights);

/* Bytes of the packed matrix, and groups of a row. */
int64_t cpu_int8_bytes(const cpu_int8_weights *weights);
int64_t cpu_int8_groups(const cpu_int8_weights *weights);

/* Packs bf16 columns first to first + count - 1 anew, or those of fp32 source. */
int32_t cpu_int8_pack(cpu_int8_weights *weights, int64_t first, int64_t count, const uint16_t *source);
int32_t cpu_int8_pack_floats(cpu_int8_weights *weights, int64_t first, int64_t count, const float *source);

/* Compares all bytes of two packed matrices of one shape: 1 if they are equal. */
int32_t cpu_int8_equal(const cpu_int8_weights *a, const cpu_int8_weights *b);

/* What the inputs of a row share in one group: quantise.h. */
typedef struct {
  float scale;
  int32_t offset;
} cpu_row_group;

/* x[rows][x_stride] to values[rows][stride] and row_groups[rows][groups]; stride at least depth rounded up to
   64, x_stride at least depth. The second takes fp32. */
int32_t cpu_int8_quantise(cpu_workers *workers, int32_t path, const cpu_int8_weights *weights, int64_t rows,
                          const uint16_t *x, int64_t x_stride, int8_t *values, int64_t stride,
                          cpu_row_group *row_groups);
int32_t cpu_int8_quantise_floats(cpu_workers *workers, int32_t path, const cpu_int8_weights *weights,
                                 int64_t rows, const float *x, int64_t x_stride, int8_t *values,
                                 int64_t stride, cpu_row_group *row_groups);

/* y[rows][y_stride] = x * weights; strides at least depth and columns, rounded up to 64. */
int32_t cpu_int8_gemm(cpu_workers *workers, int32_t path, int64_t rows, int8_t *values, int64_t stride,
                      cpu_row_group *row_groups, const cpu_int8_weights *weights, float *y, int64_t y_stride);

/* The same in double without padding, and the sums of the magnitudes of the groups' terms. */
int32_t cpu_int8_gemm_reference(int64_t rows, int8_t *values, int64_t stride, cpu_row_group *row_groups,
                                const cpu_int8_weights *weights, double *y, double *magnitude);
double cpu_int8_gemm_tolerance(void);

/* Reads all bytes of weights: cpu_stream. */
int32_t cpu_int8_stream(cpu_workers *workers, const cpu_int8_weights *weights, uint64_t *sum);

/* out[count][depth]: the weights of output columns. */
int32_t cpu_int8_gather(const cpu_int8_weights *weights, const int32_t *columns, int64_t count, float *out);

#ifdef __cplusplus
}
#endif

#endif
