#include "kernels_router.h"

#include <errno.h>

#include "kernels_checks.h"
#include "router.h"
#include "router_kernels.h"

using namespace cpu;

namespace {

RouterShape of(const cpu_router_shape& s) {
  return {RouterKind(s.kind), s.hidden, s.top, s.width, s.blocks, s.expanded};
}

const Router* of(const cpu_router* r) { return reinterpret_cast<const Router*>(r); }

}  // namespace

int32_t cpu_router_open(cpu_router_shape shape, cpu_router** out) {
  std::unique_ptr<Router> made;
  int32_t failed = Router::make(of(shape), &made);
  *out = reinterpret_cast<cpu_router*>(made.release());
  return failed;
}

void cpu_router_close(cpu_router* router) { delete of(router); }

int64_t cpu_router_weight_bytes(cpu_router_shape shape) { return Router::weightBytes(of(shape)); }

int64_t cpu_router_scratch_bytes(const cpu_router* router, int64_t rows) {
  return of(router)->scratchBytes(rows);
}

int32_t cpu_router_put(cpu_router* router, int32_t tensor, int64_t block, int64_t rows, int64_t columns,
                       const float* data) {
  return reinterpret_cast<Router*>(router)->put(RouterTensor(tensor), block, rows, columns, data);
}

int32_t cpu_router_evaluate(cpu_workers* workers, int32_t path, const cpu_router* router, int64_t rows,
                            const float* hidden, const float* embeddings, const float* logits,
                            double* scores) {
  int32_t failed = checkPath(path);
  if (failed) return failed;
  const Router& r = *of(router);
  if (!r.complete() || !within(rows, 1, sizeMax)) return EINVAL;
  ZeroedMemory scratch;
  if (!scratch.allocate(size_t(r.scratchBytes(rows)))) return ENOMEM;
  const RouterShape& s = r.shape();
  const RouterRows in{rows, hidden, s.hidden, embeddings, s.hidden, logits, s.top};
  Workers& all = *of(workers);
  auto body = [&](int worker) { r.evaluate(Path(path), all, worker, in, scratch.data(), scores); };
  return all.run(body) ? 0 : EBUSY;
}

int32_t cpu_gelu(int32_t path, const float* x, const float* bias, int64_t count, uint16_t* out) {
  int32_t failed = checkPath(path);
  if (failed) return failed;
  if (!within(count, 1, sizeMax) || count % 16) return EINVAL;
  routerKernels(Path(path)).gelu(x, bias, count, out);
  return 0;
}

int32_t cpu_layer_norm(int32_t path, const float* x, const float* weight, const float* bias, int64_t width,
                       float* out) {
  int32_t failed = checkPath(path);
  if (failed) return failed;
  if (!within(width, 1, sizeMax)) return EINVAL;
  routerKernels(Path(path)).layerNorm(x, weight, bias, width, out);
  return 0;
}

double cpu_router_tolerance(void) { return routerTolerance; }

double cpu_deferral_tolerance(void) { return deferralTolerance; }
