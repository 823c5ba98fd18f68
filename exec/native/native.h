/* The C ABI of native devices: what the executor asks of a processor or a graphics card.
 *
 * An implementation is one table of functions (tr_backend). exec/cpu has the one for processors, folder cuda
 * the one for NVIDIA cards; both pass the test suite of package nativetest. Package native wraps a table for
 * Go.
 *
 * Every struct that is given or filled begins with its size in bytes, so that a reader and a writer of
 * different versions are found out. Functions return a status; what went wrong stands in tr_error, which the
 * caller owns (null: no text is wanted). No function keeps a pointer that it was given. None depends on the
 * thread that calls it. Calls for one device and its models come one at a time, except that different models
 * may step at the same time.
 */
#ifndef TOKENROUTER_NATIVE_H
#define TOKENROUTER_NATIVE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TR_ABI_VERSION 2

/* Status of a call. */
enum {
  TR_OK = 0,
  TR_NO_DEVICE = 1,   /* no driver or no such device: nothing is broken */
  TR_INVALID = 2,     /* an argument is wrong; nothing has changed */
  TR_UNSUPPORTED = 3, /* right, but this device can not do it */
  TR_NO_MEMORY = 4,   /* the budget or the memory of the device is too small */
  TR_FAILED = 5       /* the device failed in the middle: what it holds is void, only close may follow */
};

typedef struct {
  char text[512]; /* ends with a zero */
} tr_error;

typedef struct {
  int32_t size;
  int32_t page_tokens; /* of a KV page, as this device likes it best */
  int32_t processors;  /* that may be given to it: cores or multiprocessors */
  int32_t reserved;
  int64_t memory_bytes, free_bytes;
  char name[128];    /* of the hardware */
  char kernels[64];  /* what a model would run with: the instructions, such as "amx", or the libraries */
} tr_device_info;

#define TR_PROCESSORS_MAX 256
#define TR_GRAPH_SIZES_MAX 32

/* How to open a device. Models of one device run on the same processors. */
typedef struct {
  int32_t size;
  int32_t ordinal;       /* 0 to device_count - 1 */
  int64_t budget_bytes;  /* for all its models together; 0: all that is free */
  /* CPU: 0: as many as processors are given, or that there are. CUDA: multiprocessors that its models have to
     themselves, at least so many; 0: all, with whoever else runs there */
  int32_t threads;
  int32_t pinned;        /* CPU: the number of entries of processors: 0, or one a thread */
  int32_t processors[TR_PROCESSORS_MAX];
  char kernels[64];      /* "": the best there are. CUDA: words of graphs, eager, own (no cuBLASLt) */
  /* CUDA: sizes to which rows and heads of a step are padded, ascending, for a graph each of their pairs that
     comes up; a step beyond either runs eagerly. No entries: the device's own choice. */
  int32_t graph_row_sizes, graph_head_sizes; /* entries of: */
  int32_t graph_rows[TR_GRAPH_SIZES_MAX], graph_heads[TR_GRAPH_SIZES_MAX];
} tr_device_options;

/* How matrices are kept. Norms, biases and the router's single rows are always fp32. */
enum {
  TR_WEIGHTS_BF16 = 1,
  TR_WEIGHTS_INT8 = 2 /* one scale an output channel, or for each group of group_inputs inputs of it */
};

/* Networks that judge a token from the small model's hidden state: result.score. */
enum {
  TR_ROUTER_NONE = 0,
  TR_ROUTER_R2R = 1,
  TR_ROUTER_CITER = 2,
  TR_ROUTER_COLLM = 3
};

/* What decides what a model computes, but for its weights. */
typedef struct {
  int32_t size;
  int32_t layers, hidden, heads, kv_heads, head_dim, intermediate;
  int32_t vocab;      /* rows of embedding and head: the width V of a logits row */
  int32_t samplable;  /* tokens below it may be sampled; the rest of the rows is padding */
  int32_t positions;  /* largest context */
  int32_t tied;       /* the head is the embedding */
  int32_t qkv_bias, output_bias, mlp_bias, qk_norm;
  int32_t weights;       /* TR_WEIGHTS_... */
  int32_t group_inputs;  /* TR_WEIGHTS_INT8: 0, or a multiple of 64 */
  float norm_epsilon;
  float rope_factor;  /* both cosine and sine are multiplied by it; 1 but for YaRN */
  int32_t router;     /* TR_ROUTER_... */
  int32_t router_top; /* R2R: how many logits it reads; at most vocab */
  int32_t router_width; /* R2R: of its backbone; CITER: of its inner layer */
  int32_t router_blocks, router_expanded; /* R2R: of its backbone */
} tr_model_config;

/* Tensors of a model, for model_put. All of them have the layer 0 but those marked [layer]. */
enum {
  TR_EMBEDDING = 1,   /* [vocab][hidden] */
  TR_HEAD,            /* [vocab][hidden]; only if not tied */
  TR_FINAL_NORM,      /* [1][hidden] */
  TR_INPUT_NORM,      /* [layer] [1][hidden] */
  TR_Q, TR_K, TR_V,   /* [layer] [heads or kv_heads * head_dim][hidden] */
  TR_Q_BIAS, TR_K_BIAS, TR_V_BIAS, /* [layer] [1][heads or kv_heads * head_dim]; if qkv_bias */
  TR_Q_NORM, TR_K_NORM,            /* [layer] [1][head_dim]; if qk_norm */
  TR_O,               /* [layer] [hidden][heads * head_dim] */
  TR_O_BIAS,          /* [layer] [1][hidden]; if output_bias */
  TR_POST_NORM,       /* [layer] [1][hidden] */
  TR_GATE, TR_UP,     /* [layer] [intermediate][hidden] */
  TR_DOWN,            /* [layer] [hidden][intermediate] */
  TR_GATE_BIAS, TR_UP_BIAS, /* [layer] [1][intermediate]; if mlp_bias */
  TR_DOWN_BIAS,       /* [layer] [1][hidden]; if mlp_bias */
  TR_ROPE_FREQUENCIES, /* TR_F64 [1][head_dim / 2]: the angle of pair i at position p is p * frequency i */
  TR_WINDOWS,          /* TR_I32 [1][layers]: positions that a layer sees, its own included; 0: all */

  /* Of the router, all TR_F32. CITER: two matrices with their biases, BatchNorm folded into the first, the
     last two linears fused: score = sigmoid(second(relu(first(h)))). Co-LLM: the row TR_ROUTER_OUT without
     a bias: score = sigmoid(out * h). R2R: score = sigmoid(out(norm(blocks(in(combined(h, e, top(z))))))),
     where every block is x + second(gelu(first(norm(x)))). */
  TR_ROUTER_TOP, TR_ROUTER_TOP_BIAS,           /* R2R: [hidden][router_top] */
  TR_ROUTER_COMBINED, TR_ROUTER_COMBINED_BIAS, /* R2R: [router_width][3 * hidden] */
  TR_ROUTER_IN, TR_ROUTER_IN_BIAS,             /* R2R: [router_width][router_width] */
  TR_ROUTER_NORM, TR_ROUTER_NORM_BIAS,         /* R2R: [layer: block] [1][router_width] */
  TR_ROUTER_FIRST, TR_ROUTER_FIRST_BIAS,   /* R2R: [layer: block] [expanded][width]; CITER: [width][hidden] */
  TR_ROUTER_SECOND, TR_ROUTER_SECOND_BIAS, /* R2R: [layer: block] [width][expanded] */
  TR_ROUTER_OUT_NORM, TR_ROUTER_OUT_NORM_BIAS, /* R2R: [1][router_width] */
  TR_ROUTER_OUT, TR_ROUTER_OUT_BIAS /* [1][n]: of R2R's width, CITER's inner width, Co-LLM's hidden */
};

/* Types of elements that are given. */
enum { TR_BF16 = 1, TR_F16, TR_F32, TR_F64, TR_I32 };

/* What a model shall be able to do. Everything that steps need is allocated for it at once. */
typedef struct {
  int32_t size;
  int32_t slots;        /* requests that hold pages at a time */
  int32_t pages;        /* of KV */
  int32_t page_tokens;  /* CPU: a multiple of 16 */
  int32_t context_max;  /* tokens of a request; at most positions */
  int32_t rows_max;     /* tokens that one step is given */
  int32_t requests_max; /* requests in one step */
  int32_t top_max;      /* entries of a top list; at most vocab */
  int32_t biases_max;   /* in one step */
  int32_t reserved;
} tr_limits;

/* Memory of a model. */
typedef struct {
  int32_t size;
  int32_t reserved;
  int64_t weight_bytes;      /* as kept, the router included */
  int64_t kv_bytes;          /* of all pages */
  int64_t kv_bytes_per_token;
  int64_t work_bytes;        /* activations, logits, tables, graphs */
} tr_needs;

/* One request of a step: rows tokens, which take the positions start to start + rows - 1. Its pages up to
   the last of them must have been granted, and the positions before start been computed, here or by a request
   that shares the pages. A dropped token is only a smaller start. */
typedef struct {
  int32_t slot;
  int32_t start, rows; /* rows is 1 or more */
  int32_t head;        /* 1: sample after the last row, and fill results */
  int32_t top;         /* entries of the top list that are wanted */
  int32_t biases;      /* entries of biases that are for this request */
  float temperature;   /* 0: the most likely token; else at least 1e-6 */
  int32_t top_k;       /* 0: all */
  float top_p;         /* above 0; 1: all */
  float min_p;         /* 0: all */
  uint64_t random;     /* uniform bits that belong to this draw alone */
} tr_request;

/* Added to the logit of a token before it is sampled, and to nothing else. */
typedef struct {
  int32_t token;
  float bias;
} tr_bias;

/* Block index of the slot's KV lies in page. */
typedef struct {
  int32_t slot, index, page;
} tr_grant;

/* Of a request with a head. With z the row of logits, before bias and temperature, and p its softmax over all
   V: */
typedef struct {
  int32_t token;   /* sampled */
  int32_t finite;  /* 0: the row has a NaN or +infinity, or nothing that may be sampled: all else is void */
  float log_probability; /* ln p(token) */
  float top_probability; /* largest p */
  float margin;          /* largest p less the second largest */
  float entropy;         /* -sum of p ln p, divided by ln V: 0 to 1 */
  float log_sum_exp;     /* of z */
  int32_t top;           /* entries of the top list: fewer where V is small or logits are -infinity */
  double score;          /* of the router, 0 to 1; NaN without one */
} tr_result;

/* An entry of a top list, most likely first, equals by token. */
typedef struct {
  float log_probability;
  int32_t token;
} tr_candidate;

/* What a step did. */
typedef struct {
  int32_t size;
  int32_t rows_computed; /* with padding */
  int32_t graph;         /* 1: a captured graph ran, 0: eager */
  int32_t reserved;
  int64_t start_ns, end_ns; /* of the work itself, by the device's clock, which starts anywhere */
} tr_step_info;

/* Graphs that a model has captured, when it was planned and since. Their memory comes on top of tr_needs. */
typedef struct {
  int32_t size;
  int32_t count;
  int64_t capture_ns; /* of all of them */
  int64_t bytes;      /* by which the free memory of the device fell meanwhile */
} tr_graphs;

/* A step. The arrays belong to the caller; requests lie one after another in tokens and in biases. Results,
   top lists, hidden states and logits have one entry for every request, with a head or not. */
typedef struct {
  int32_t size;
  int32_t requests, grants, freed; /* entries of the arrays */
} tr_step_counts;

typedef struct tr_device tr_device;
typedef struct tr_model tr_model;

typedef struct {
  int32_t size, abi_version;
  const char *kind; /* "cpu", "cuda" */

  /* How many devices there are. TR_OK with 0 where there is no driver. */
  int32_t (*device_count)(int32_t *count, tr_error *error);
  int32_t (*device_info)(int32_t ordinal, tr_device_info *info, tr_error *error);
  int32_t (*device_open)(const tr_device_options *options, tr_device **device, tr_error *error);
  /* All its models must be closed. */
  void (*device_close)(tr_device *device);

  /* What a model would take. Allocates nothing; device is null or the one that it would run on. */
  int32_t (*probe)(const tr_device *device, const tr_model_config *config, const tr_limits *limits,
                   tr_needs *needs, tr_error *error);

  /* Makes a model, its weights allocated and not there yet. */
  int32_t (*model_new)(tr_device *device, const tr_model_config *config, tr_model **model, tr_error *error);
  /* Copies, converts and packs one tensor. Matrices and vectors may be TR_BF16, TR_F16 or TR_F32. */
  int32_t (*model_put)(tr_model *model, int32_t tensor, int32_t layer, int32_t type, int64_t rows,
                       int64_t columns, const void *data, tr_error *error);
  /* Allocates all that steps need and says what the model has taken. Every tensor must have been put. */
  int32_t (*model_plan)(tr_model *model, const tr_limits *limits, tr_needs *took, tr_error *error);
  /* One forward pass. Slots in freed lose their pages first, then grants apply, in order: a later one of a
     slot and index replaces an earlier one. Everything is checked before anything is computed; TR_INVALID
     leaves the cache as it was, but for freed and granted pages. hidden [requests][hidden] (after the last
     norm) and logits [requests][vocab] may be null; top has top_max entries a request, and may be null if
     top_max is 0. */
  int32_t (*model_step)(tr_model *model, const tr_step_counts *counts, const int32_t *tokens,
                        const tr_request *requests, const tr_bias *biases, const tr_grant *grants,
                        const int32_t *freed, tr_result *results, tr_candidate *top, float *hidden,
                        float *logits, tr_step_info *info, tr_error *error);
  void (*model_close)(tr_model *model);

  /* What only some devices have; the others have null. */

  void (*model_graphs)(const tr_model *model, tr_graphs *graphs);
  /* Puts a tensor of random bf16 numbers that the device makes itself: number i is mean + scale * (a + b + c +
     d - 131070) in double, rounded to float32 and then to bf16, where a to d are the 16-bit parts of output i
     of splitmix64 from state on. */
  int32_t (*model_random)(tr_model *model, int32_t tensor, int32_t layer, int64_t rows, int64_t columns,
                          uint64_t state, double mean, double scale, tr_error *error);
} tr_backend;

#ifdef __cplusplus
}
#endif

#endif
