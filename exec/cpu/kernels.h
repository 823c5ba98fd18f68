/* The kernels as C functions. Each returns 0 or an errno value: EINVAL for an argument that is out of range,
   ENOTSUP for a path that this machine lacks, ENOMEM, EBUSY when the workers are in another call. No pointer
   is kept after a call; what *_open returns, the matching *_close frees. */
#ifndef TOKENROUTER_CPU_KERNELS_H
#define TOKENROUTER_CPU_KERNELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cpu_workers cpu_workers;
typedef struct cpu_weights cpu_weights;

/* The last available path, 1 to 5: plain, AVX2, AVX-512, AVX-512 bf16, AMX. */
int32_t cpu_best_path(void);

/* threads 1 to 256; processors is NULL or has one number a thread. */
int32_t cpu_workers_open(int32_t threads, const int32_t *processors, cpu_workers **out);
void cpu_workers_close(cpu_workers *workers);

/* Packs bf16 source[columns][depth]. */
int32_t cpu_weights_open(int64_t columns, int64_t depth, const uint16_t *source, cpu_weights **out);
void cpu_weights_close(cpu_weights *weights);

/* y[rows][y_stride] = bf16 x[rows][x_stride] * weights; strides at least depth and columns, rounded up to 32
   and 64, and x zero from depth on. */
int32_t cpu_gemm(cpu_workers *workers, int32_t path, int64_t rows, const uint16_t *x, int64_t x_stride,
                 const cpu_weights *weights, float *y, int64_t y_stride);

/* The same in double without padding, and the sums of the terms' magnitudes. */
int32_t cpu_gemm_reference(int64_t rows, const uint16_t *x, int64_t x_stride, const cpu_weights *weights,
                           double *y, double *magnitude);
double cpu_gemm_tolerance(void);

/* Reads all bytes of weights as fast as it can and adds their words to *sum: what benchmarks compare with. */
int32_t cpu_stream(cpu_workers *workers, const cpu_weights *weights, uint64_t *sum);

#ifdef __cplusplus
}
#endif

#endif
