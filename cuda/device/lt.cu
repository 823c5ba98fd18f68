#include "lt.h"

#include <string.h>

#include <tuple>

#include "../../exec/native/failure.h"

namespace cuda {

namespace {

// Of cublasLt.h, which is not needed to build: what is used here has been the same since version 11.
constexpr int compute32F = 68, real32F = 0, real16BF = 14, transposed = 1;
constexpr int descTransposeA = 3, preferWorkspaceBytes = 1, preferAlignments = 5;  // to 8: A, B, C, D
constexpr int statusSuccess = 0, statusNotSupported = 15;

struct Heuristic {
  LtAlgorithm algorithm;
  size_t workspaceBytes;
  int state;
  float waves;
  int reserved[4];
};

// 32 MiB are what NVIDIA advises for its cards of compute capability 9.
constexpr int64_t workspaceBytes = 32 << 20;

struct Library {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  size_t (*version)();
  int (*descCreate)(void** desc, int computeType, int scaleType);
  int (*descSet)(void* desc, int attribute, const void* value, size_t bytes);
  int (*descDestroy)(void* desc);
  int (*layoutCreate)(void** layout, int type, uint64_t rows, uint64_t columns, int64_t stride);
  int (*layoutDestroy)(void* layout);
  int (*preferenceCreate)(void** preference);
  int (*preferenceSet)(void* preference, int attribute, const void* value, size_t bytes);
  int (*preferenceDestroy)(void* preference);
  int (*heuristic)(void* handle, void* desc, void* a, void* b, void* c, void* d, void* preference, int most,
                   Heuristic* results, int* found);
  int (*matmul)(void* handle, void* desc, const void* alpha, const void* a, void* aLayout, const void* b,
                void* bLayout, const void* beta, const void* c, void* cLayout, void* d, void* dLayout,
                const LtAlgorithm* algorithm, void* workspace, size_t workspaceBytes, cudaStream_t stream);

  Library() {
    complete = find("cublasLtCreate", &create) && find("cublasLtDestroy", &destroy) &&
               find("cublasLtGetVersion", &version) && find("cublasLtMatmulDescCreate", &descCreate) &&
               find("cublasLtMatmulDescSetAttribute", &descSet) &&
               find("cublasLtMatmulDescDestroy", &descDestroy) &&
               find("cublasLtMatrixLayoutCreate", &layoutCreate) &&
               find("cublasLtMatrixLayoutDestroy", &layoutDestroy) &&
               find("cublasLtMatmulPreferenceCreate", &preferenceCreate) &&
               find("cublasLtMatmulPreferenceSetAttribute", &preferenceSet) &&
               find("cublasLtMatmulPreferenceDestroy", &preferenceDestroy) &&
               find("cublasLtMatmulAlgoGetHeuristic", &heuristic) && find("cublasLtMatmul", &matmul);
  }

  bool complete;

 private:
  template <class F>
  bool find(const char* name, F* function) {
    void* found = ltFunction(name);
    memcpy(function, &found, sizeof found);
    return found != nullptr;
  }
};

const Library& library() {
  static const Library found;
  return found;
}

}  // namespace

int64_t ltVersion() { return library().complete ? int64_t(library().version()) : 0; }

int64_t ltWorkspaceBytes() { return library().complete ? workspaceBytes : 0; }

bool Lt::Key::operator<(const Key& k) const {
  return std::tie(columns, depth, rows, xStride, yStride) <
         std::tie(k.columns, k.depth, k.rows, k.xStride, k.yStride);
}

Lt::~Lt() {
  const Library& l = library();
  for (auto& entry : plans_) {
    Plan& p = entry.second;
    if (p.desc) l.descDestroy(p.desc);
    for (void* layout : {p.weights, p.inputs, p.outputs}) {
      if (layout) l.layoutDestroy(layout);
    }
  }
  if (handle_) l.destroy(handle_);
}

int32_t Lt::open(void* workspace, tr_error* error) {
  workspace_ = workspace;
  const int status = library().create(&handle_);
  if (status == statusSuccess) return TR_OK;
  handle_ = nullptr;
  return native::fail(error, TR_FAILED, "cublasLtCreate: status %d", status);
}

int Lt::choose(const Product& p, int64_t rows, Plan* plan) {
  const Library& l = library();
  const uint64_t columns = uint64_t(paddedColumns(p.matrix.columns)), depth = uint64_t(p.matrix.stride());
  void* preference = nullptr;
  Heuristic best = {};
  int found = 0, status = l.descCreate(&plan->desc, compute32F, real32F);
  auto then = [&](auto call) {
    if (status == statusSuccess) status = call();
  };
  then([&] { return l.descSet(plan->desc, descTransposeA, &transposed, sizeof transposed); });
  then([&] { return l.layoutCreate(&plan->weights, real16BF, depth, columns, int64_t(depth)); });
  then([&] { return l.layoutCreate(&plan->inputs, real16BF, depth, uint64_t(rows), p.xStride); });
  then([&] { return l.layoutCreate(&plan->outputs, real32F, columns, uint64_t(rows), p.yStride); });
  then([&] { return l.preferenceCreate(&preference); });
  const size_t most = size_t(workspaceBytes);
  then([&] { return l.preferenceSet(preference, preferWorkspaceBytes, &most, sizeof most); });
  const uint32_t alignment = 64;  // of Carver
  for (int matrix = 0; matrix < 4; matrix++) {
    const int attribute = preferAlignments + matrix;
    then([&] { return l.preferenceSet(preference, attribute, &alignment, sizeof alignment); });
  }
  then([&] {
    return l.heuristic(handle_, plan->desc, plan->weights, plan->inputs, plan->outputs, plan->outputs,
                       preference, 1, &best, &found);
  });
  if (preference) l.preferenceDestroy(preference);
  if (status == statusSuccess && (found == 0 || best.state != statusSuccess)) status = statusNotSupported;
  plan->algorithm = best.algorithm;
  plan->usable = status == statusSuccess;
  return status;
}

// A plan is made the first time that a size comes.
cudaError_t Lt::planOf(const Product& p, int64_t rows, const Plan** plan) {
  const Key key = {p.matrix.columns, p.matrix.depth, rows, p.xStride, p.yStride};
  const auto [entry, isNew] = plans_.try_emplace(key);
  *plan = &entry->second;
  const int status = isNew ? choose(p, rows, &entry->second) : statusSuccess;
  if (entry->second.usable || status == statusNotSupported || status == statusSuccess) return cudaSuccess;
  status_ = status;
  return cudaErrorLaunchFailure;
}

cudaError_t Lt::multiply(const Product& p, int64_t rows, cudaStream_t stream) {
  const int64_t padded = (rows + skinnyRows - 1) / skinnyRows * skinnyRows;
  const Plan* plan;
  const cudaError_t failed = planOf(p, padded, &plan);
  if (failed != cudaSuccess) return failed;
  if (!plan->usable) return cudaErrorNotSupported;
  const float one = 1, zero = 0;
  status_ = library().matmul(handle_, plan->desc, &one, p.matrix.weights, plan->weights, p.x, plan->inputs,
                             &zero, p.y, plan->outputs, p.y, plan->outputs, &plan->algorithm, workspace_,
                             size_t(workspaceBytes), stream);
  return status_ == statusSuccess ? cudaSuccess : cudaErrorLaunchFailure;
}

}  // namespace cuda
