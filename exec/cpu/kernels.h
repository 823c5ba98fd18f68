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

/* Memory that is left, of memory.h. */
int64_t cpu_memory_free_bytes(const char *meminfo, const char *group_folder);

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

/* Rows of rows.h. x, gate_up, delta and out are [rows][...] without gaps: width, 2 * width (gate, then up),
   width, padded; padded at least width. delta may be NULL. */
int32_t cpu_norm(cpu_workers *workers, int32_t path, int64_t rows, float *x, const float *delta,
                 const float *weight, float epsilon, int64_t width, uint16_t *out, int64_t padded);
int32_t cpu_swiglu(cpu_workers *workers, int32_t path, int64_t rows, const float *gate_up, int64_t width,
                   uint16_t *out, int64_t padded);
int32_t cpu_round(cpu_workers *workers, int32_t path, int64_t rows, const float *x, int64_t width,
                  uint16_t *out, int64_t padded);
int32_t cpu_add(cpu_workers *workers, int32_t path, int64_t rows, float *x, const float *bias, int64_t width);

/* Heads x[rows][heads][dim] in place; positions[rows] are rows of cosines and sines [table][dim / 2].
   weight[dim] may be NULL. dim is even. */
int32_t cpu_rotate(cpu_workers *workers, int32_t path, int64_t rows, int64_t heads, int64_t dim, float *x,
                   const float *weight, float epsilon, const int32_t *positions, int64_t table,
                   const float *cosines, const float *sines);

/* One row or head in double, and the tolerances of results in bf16 and of cpu_rotate. */
void cpu_norm_reference(double *x, const float *delta, const float *weight, double epsilon, int64_t width,
                        double *out);
void cpu_swiglu_reference(const float *gate_up, int64_t width, double *out);
void cpu_rotate_reference(const float *x, const float *weight, double epsilon, const float *cosines,
                          const float *sines, int64_t dim, double *out);
double cpu_rounded_tolerance(void);
double cpu_rotate_tolerance(void);

/* The portable rounding of one number that the kernels must agree with. */
uint16_t cpu_narrow(float f);

/* out[count][depth]: the weights of output columns. */
int32_t cpu_gather(const cpu_weights *weights, const int32_t *columns, int64_t count, float *out);

/* Statistics of a row of logits: logits.h. */
typedef struct {
  int32_t token, finite;
  float max_logit, log_sum_exp, entropy, top_probability, margin;
  int32_t reserved;
} cpu_statistics;

int32_t cpu_logits(cpu_workers *workers, int32_t path, int64_t rows, const float *z, int64_t stride,
                   int64_t vocabulary, cpu_statistics *out);
int32_t cpu_logits_reference(const float *z, int64_t vocabulary, cpu_statistics *out);
double cpu_statistics_tolerance(void);

/* The k best of one row; *count of them. */
int32_t cpu_top(int32_t path, const float *z, int64_t vocabulary, int64_t k, int32_t *tokens, float *logits,
                int64_t *count);

/* One token of a row, whose largest logit is max_logit. */
int32_t cpu_sample(int32_t path, const float *z, int64_t vocabulary, float max_logit, float temperature,
                   int32_t top_k, float top_p, float min_p, uint64_t random, int32_t *token);

/* Keys and values, [pages][kv_heads][page_tokens * head_dim] each, in the order of attention.h. */
typedef struct {
  int64_t pages, kv_heads, head_dim, page_tokens;
} cpu_kv_shape;

/* Writes tokens first to first + count - 1 of a request; k and v are [count][kv_heads][head_dim]. */
int32_t cpu_store_kv(cpu_kv_shape shape, uint16_t *keys, uint16_t *values, const int32_t *page_table,
                     int64_t table_pages, int64_t first, int64_t count, const float *k, const float *v);

/* q and out are [rows][heads][head_dim]. Request i has rows[i] rows and kv_lengths[i] tokens, and page_tables
   [requests][table_pages] its pages. The second is in double. */
int32_t cpu_attend(cpu_workers *workers, int32_t path, cpu_kv_shape shape, const uint16_t *keys,
                   const uint16_t *values, int64_t heads, int64_t window, float scale, int64_t requests,
                   const int64_t *rows, const int64_t *kv_lengths, const int32_t *page_tables,
                   int64_t table_pages, const float *q, float *out);
int32_t cpu_attend_reference(cpu_kv_shape shape, const uint16_t *keys, const uint16_t *values, int64_t heads,
                             int64_t window, float scale, int64_t requests, const int64_t *rows,
                             const int64_t *kv_lengths, const int32_t *page_tables, int64_t table_pages,
                             const float *q, double *out);
double cpu_attention_tolerance(int32_t path);

#ifdef __cplusplus
}
#endif

#endif
