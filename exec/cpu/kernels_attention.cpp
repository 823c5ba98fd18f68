#include <memory>
#include <new>

#include "bf16.h"
#include "kernels.h"
#include "kernels_checks.h"
#include "lane_kernels.h"

using namespace cpu;

namespace {

bool sound(const cpu_kv_shape& s) {
  return within(s.pages, 1, sizeMax) && within(s.kv_heads, 1, sizeMax) &&
         within(s.head_dim, 16, headDimMax) && s.head_dim % 16 == 0 &&
         within(s.page_tokens, blockTokens, sizeMax) && s.page_tokens % blockTokens == 0;
}

bool pagesExist(const cpu_kv_shape& s, const int32_t* table, int64_t tablePages, int64_t tokens) {
  const int64_t used = (tokens + s.page_tokens - 1) / s.page_tokens;
  if (used > tablePages) return false;
  for (int64_t i = 0; i < used; i++) {
    if (!within(table[i], 0, s.pages - 1)) return false;
  }
  return true;
}

KVPages pagesOf(const cpu_kv_shape& s, const uint16_t* keys, const uint16_t* values) {
  return {const_cast<uint16_t*>(keys), const_cast<uint16_t*>(values), s.pages, s.kv_heads, s.head_dim,
          s.page_tokens};
}

// The requests of a call, checked. Null with *failed set if there is a fault.
std::unique_ptr<AttentionRequest[]> requestsOf(const cpu_kv_shape& s, int64_t heads, int64_t count,
                                               const int64_t* rows, const int64_t* lengths,
                                               const int32_t* tables, int64_t tablePages, int32_t* failed) {
  *failed = EINVAL;
  if (!sound(s) || !within(count, 1, sizeMax) || !within(heads, s.kv_heads, sizeMax) || heads % s.kv_heads ||
      heads / s.kv_heads > groupMax) {
    return nullptr;
  }
  std::unique_ptr<AttentionRequest[]> requests(new (std::nothrow) AttentionRequest[size_t(count)]);
  if (!requests) {
    *failed = ENOMEM;
    return nullptr;
  }
  int64_t row = 0;
  for (int64_t i = 0; i < count; i++) {
    const int32_t* table = tables + i * tablePages;
    if (!within(lengths[i], 1, sizeMax) || !within(rows[i], 1, lengths[i])) return nullptr;
    if (!pagesExist(s, table, tablePages, lengths[i])) return nullptr;
    requests[size_t(i)] = {row, rows[i], lengths[i], table};
    row += rows[i];
  }
  *failed = 0;
  return requests;
}

}  // namespace

int32_t cpu_store_kv(cpu_kv_shape shape, uint16_t* keys, uint16_t* values, const int32_t* page_table,
                     int64_t table_pages, int64_t first, int64_t count, const float* k, const float* v) {
  if (!sound(shape) || !within(first, 0, sizeMax) || !within(count, 1, sizeMax)) return EINVAL;
  if (!pagesExist(shape, page_table, table_pages, first + count)) return EINVAL;
  const KVPages kv = pagesOf(shape, keys, values);
  uint16_t key[headDimMax], value[headDimMax];
  for (int64_t i = 0; i < count * kv.kvHeads; i++) {
    for (int64_t d = 0; d < kv.headDim; d++) {
      key[d] = narrow(k[i * kv.headDim + d]);
      value[d] = narrow(v[i * kv.headDim + d]);
    }
    storeKV(kv, page_table, first + i / kv.kvHeads, i % kv.kvHeads, key, value);
  }
  return 0;
}

int32_t cpu_attend(cpu_workers* workers, int32_t path, cpu_kv_shape shape, const uint16_t* keys,
                   const uint16_t* values, int64_t heads, int64_t window, float scale, int64_t requests,
                   const int64_t* rows, const int64_t* kv_lengths, const int32_t* page_tables,
                   int64_t table_pages, const float* q, float* out) {
  int32_t failed = checkPath(path);
  if (failed) return failed;
  auto made = requestsOf(shape, heads, requests, rows, kv_lengths, page_tables, table_pages, &failed);
  if (failed) return failed;
  const int64_t stride = heads * shape.head_dim;
  const KVPages kv = pagesOf(shape, keys, values);
  const Attention a{kv, heads, window, scale, q, stride, out, stride, made.get(), requests};
  Workers& all = *of(workers);
  auto body = [&](int worker) { attend(laneKernels(Path(path)).attention, a, all, worker); };
  return all.run(body) ? 0 : EBUSY;
}

int32_t cpu_attend_reference(cpu_kv_shape shape, const uint16_t* keys, const uint16_t* values, int64_t heads,
                             int64_t window, float scale, int64_t requests, const int64_t* rows,
                             const int64_t* kv_lengths, const int32_t* page_tables, int64_t table_pages,
                             const float* q, double* out) {
  int32_t failed;
  auto made = requestsOf(shape, heads, requests, rows, kv_lengths, page_tables, table_pages, &failed);
  if (failed) return failed;
  const int64_t stride = heads * shape.head_dim;
  const KVPages kv = pagesOf(shape, keys, values);
  attentionReference({kv, heads, window, scale, q, stride, nullptr, stride, made.get(), requests}, out);
  return 0;
}

double cpu_attention_tolerance(int32_t path) { return laneKernels(Path(path)).attention.tolerance; }
