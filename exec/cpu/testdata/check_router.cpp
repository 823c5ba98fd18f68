// Runs routers with buffers of exactly the size that they ask for, for sanitizers to watch.
#include "check_workers.h"

#include <math.h>
#include <string.h>

#include "../router.h"

using namespace cpu;

static const RouterShape shapes[] = {
    {RouterKind::r2r, 60, 10, 40, 2, 100}, {RouterKind::r2r, 64, 32, 64, 1, 128},
    {RouterKind::r2r, 1, 1, 1, 1, 1},      {RouterKind::citer, 37, 0, 75, 0, 0},
    {RouterKind::collm, 33, 0, 0, 0, 0},
};

// Puts every tensor that the router takes, of whatever sizes.
static void fill(Router& router) {
  const RouterShape& s = router.shape();
  const int64_t sizes[] = {1, s.hidden, s.top, s.width, 3 * s.hidden, s.expanded};
  const std::vector<float> data = Numbers(1).take(1 << 15);
  for (int32_t t = 1; t <= routerTensorMax; t++) {
    for (int64_t block = 0; block < (s.blocks ? s.blocks : 1); block++) {
      for (int64_t rows : sizes) {
        for (int64_t columns : sizes) router.put(RouterTensor(t), block, rows, columns, data.data());
      }
    }
  }
  CHECK(router.complete());
}

static void check(Workers& workers, Path path, const Router& router, int64_t rows) {
  const RouterShape& s = router.shape();
  Numbers numbers(uint32_t(s.hidden + rows));
  std::vector<float> hidden = numbers.take(size_t(rows * s.hidden)), embeddings = hidden;
  std::vector<float> logits = numbers.take(size_t(rows * s.top));
  // Scratch is aligned and ends where the memory does, which begins as NaN: what is read must be written.
  const size_t bytes = (size_t(router.scratchBytes(rows)) + 63) / 64 * 64;
  std::unique_ptr<void, void (*)(void*)> scratch(aligned_alloc(64, bytes ? bytes : 64), free);
  memset(scratch.get(), 0xff, bytes);
  std::vector<double> scores(static_cast<size_t>(rows), -1);
  const RouterRows in{rows, hidden.data(), s.hidden, embeddings.data(), s.hidden, logits.data(), s.top};
  auto body = [&](int worker) { router.evaluate(path, workers, worker, in, scratch.get(), scores.data()); };
  for (int round = 0; round < 2; round++) CHECK(workers.run(body));
  for (double score : scores) CHECK(score >= 0 && score <= 1);
}

int main() {
  for (const RouterShape& s : shapes) {
    std::unique_ptr<Router> router;
    CHECK(Router::make(s, &router) == 0 && router);
    fill(*router);
    for (int threads = 1; threads <= 3; threads++) {
      auto workers = openWorkers(threads);
      for (int32_t p = 1; p <= pathMax; p++) {
        if (!available(Path(p))) continue;
        for (int64_t rows : {1, 17}) check(*workers, Path(p), *router, rows);
      }
    }
  }
  puts("ok");
}
