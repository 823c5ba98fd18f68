// Steps of a model.
#include <string.h>

#include <algorithm>

#include "../../exec/native/clock.h"
#include "../../exec/native/failure.h"
#include "../../exec/native/halves.h"
#include "../kernels/pages.h"
#include "forward.h"
#include "model.h"

namespace cuda {

using native::fail;
using native::nowNs;
using native::StepArguments;

namespace {

// Lays out the work of attention.
class Items {
 public:
  Items(const Sizes& sizes, int64_t group, AttentionItem* items)
      : sizes_(sizes), group_(group), items_(items) {}

  // Rows of a request at positions from start on; out is where the first goes.
  void add(int32_t slot, int64_t row, int64_t out, int64_t start, int64_t rows) {
    const int64_t units = rows * group_, tiles = (units + unitsMax - 1) / unitsMax;
    for (int64_t tile = 0; tile < tiles; tile++) {
      const int64_t unit = tile * unitsMax, last = std::min(unit + unitsMax, units) - 1;
      const int64_t segments = (start + last / group_) / segmentTokens + 1;
      const int64_t parts = partsOf(tiles, segments);
      const AttentionItem item = {slot,
                                  int32_t(row),
                                  int32_t(out),
                                  int32_t(start),
                                  int32_t(unit),
                                  int32_t(units),
                                  0,
                                  int32_t(segments),
                                  0,
                                  int32_t(parts),
                                  int32_t(partials_),
                                  int32_t(counters_)};
      addParts(item, segments);
      if (parts == 1) continue;
      partials_ += parts;
      counters_++;
    }
  }

  int32_t count() const { return count_; }

 private:
  // How many parts the segments of a tile are dealt out to.
  int64_t partsOf(int64_t tiles, int64_t segments) const {
    const int64_t parts = std::min(segments, partsMax);
    return tiles > splitTiles || partials_ + parts > sizes_.partials ? 1 : parts;
  }

  void addParts(AttentionItem item, int64_t segments) {
    for (int32_t part = 0; part < item.parts; part++) {
      item.part = part;
      item.begin = int32_t(segments * part / item.parts);
      item.end = int32_t(segments * (part + 1) / item.parts);
      items_[count_++] = item;
    }
  }

  const Sizes& sizes_;
  const int64_t group_;
  AttentionItem* items_;
  int32_t count_ = 0;
  int64_t partials_ = 0, counters_ = 0;
};

}  // namespace

int32_t Model::step(const StepArguments& a, tr_step_info* info, tr_error* error) {
  if (info->size != int32_t(sizeof *info)) {
    return fail(error, TR_INVALID, "step_info has %d bytes, want %zu", info->size, sizeof *info);
  }
  if (broken_) return fail(error, TR_FAILED, "the model has failed in an earlier step");
  int32_t status = admit(a, error);
  if (status != TR_OK) return status;
  *info = {int32_t(sizeof *info), 0, 0, 0, 0, 0};
  if (a.counts->requests == 0) return TR_OK;
  tr_error what = {};
  status = device_.enter(&what);
  if (status == TR_OK) {
    Batch batch = layOut(a);
    layOutPages(a);
    status = run(batch, a, info, &what);
    if (status == TR_OK) answer(batch, a);
  }
  if (status == TR_OK) return status;
  broken_ = true;
  release();  // and nothing may write to the caller's arrays any more
  return fail(error, TR_FAILED, "step %llu: %.400s", static_cast<unsigned long long>(steps_), what.text);
}

int32_t Model::admit(const StepArguments& a, tr_error* error) {
  if (!planned_) return fail(error, TR_INVALID, "a step of a model that was not planned");
  const native::Admission admission = {
      limits_, shape_.config.vocab, sizes_.tablePages, pageTables_.data(), lastStep_.data(), &steps_};
  return native::admit(admission, a, error);
}

Model::Batch Model::layOut(const StepArguments& a) {
  Inbox& in = host_.inbox;
  Batch b = {};
  int32_t bias = 0;
  Items items(sizes_, shape_.group(), in.items), headItems(sizes_, shape_.group(), in.headItems);
  for (int32_t i = 0; i < a.counts->requests; i++) {
    const tr_request& r = a.requests[i];
    items.add(r.slot, b.rows, b.rows, r.start, r.rows);
    for (int32_t t = 0; t < r.rows; t++, b.rows++) {
      in.tokens[b.rows] = a.tokens[b.rows];
      in.positions[b.rows] = r.start + t;
      in.slots[b.rows] = r.slot;
    }
    if (r.head) {
      headItems.add(r.slot, b.rows - 1, b.heads, r.start + r.rows - 1, 1);
      headOf_[size_t(b.heads)] = i;
      in.headRows[b.heads] = int32_t(b.rows - 1);
      in.draws[b.heads++] = {r.temperature, r.top_p, r.min_p, r.top_k, r.top, r.biases, bias, i, r.random};
    }
    bias += r.biases;
  }
  if (bias) memcpy(in.biases, a.biases, size_t(bias) * sizeof *a.biases);
  *in.itemCount = items.count();
  *in.headItemCount = headItems.count();
  pad(&b);
  return b;
}

// Chooses the size that is computed, and makes rows of padding: they are of no request, and lie on a page of
// their own.
void Model::pad(Batch* b) {
  const int64_t rows = graphSizeOf(device_.graphRows(), b->rows);
  const int64_t heads = graphSizeOf(device_.graphHeads(), b->heads);
  b->graph = device_.graphs() && rows > 0 && rows <= sizes_.rows && (heads > 0 || b->heads == 0) &&
             heads <= sizes_.heads;
  b->computedRows = b->graph ? rows : b->rows;
  b->computedHeads = b->graph ? heads : b->heads;
  layOutPadding(*b);
}

void Model::layOutPadding(const Batch& b) {
  Inbox& in = host_.inbox;
  for (int64_t m = b.rows; m < b.computedRows; m++) {
    in.tokens[m] = in.positions[m] = 0;
    in.slots[m] = limits_.slots;
  }
  for (int64_t h = b.heads; h < b.computedHeads; h++) {
    in.headRows[h] = 0;
    in.draws[h] = {0, 1, 0, 0, 0, 0, 0, -1, 0};
  }
}

// Tells the device of the pages of this step that it does not know.
void Model::layOutPages(const StepArguments& a) {
  pending_.clear();
  for (int32_t i = 0; i < a.counts->requests; i++) {
    const tr_request& r = a.requests[i];
    const int32_t pages = (r.start + r.rows + limits_.page_tokens - 1) / limits_.page_tokens;
    for (int32_t index = 0; index < pages; index++) {
      const size_t at = size_t(r.slot * sizes_.tablePages + index);
      if (known_[at] == pageTables_[at]) continue;
      known_[at] = pageTables_[at];
      pending_.push_back({r.slot, index, pageTables_[at]});
    }
  }
}

// Leaves grants for the step's own copy: what is more of them goes before.
int32_t Model::flushGrants(tr_error* error) {
  Inbox& in = host_.inbox;
  size_t done = 0;
  while (true) {
    const size_t count = std::min(pending_.size() - done, size_t(grantsMax));
    std::copy_n(pending_.begin() + ptrdiff_t(done), count, in.grants);
    *in.grantCount = int32_t(count);
    done += count;
    if (done == pending_.size()) return TR_OK;
    int32_t status = checked(cudaMemcpyAsync(work_.inbox.grantCount, in.grantCount, size_t(work_.inboxBytes),
                                             cudaMemcpyHostToDevice, stream_),
                             "cudaMemcpyAsync of pages", error);
    const Grants grants = {work_.inbox.grants, work_.inbox.grantCount, work_.tables, sizes_.tablePages};
    if (status == TR_OK) status = checked(applyGrants(grants, grantsMax, stream_), "launch", error);
    if (status == TR_OK) status = checked(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", error);
    if (status != TR_OK) return status;
  }
}

int32_t Model::run(const Batch& batch, const StepArguments& a, tr_step_info* info, tr_error* error) {
  int32_t status = flushGrants(error);
  if (status == TR_OK) status = checked(cudaEventRecord(start_, stream_), "cudaEventRecord", error);
  if (status == TR_OK) status = batch.graph ? replay(batch, error) : enqueue(batch, error);
  if (status == TR_OK) status = checked(cudaEventRecord(end_, stream_), "cudaEventRecord", error);
  if (status == TR_OK) status = copyRows(batch, a, error);
  if (status == TR_OK) status = checked(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", error);
  if (status != TR_OK) return status;
  float milliseconds = 0;
  status = checked(cudaEventElapsedTime(&milliseconds, start_, end_), "cudaEventElapsedTime", error);
  info->rows_computed = int32_t(batch.computedRows);
  info->graph = batch.graph;
  info->end_ns = nowNs();
  info->start_ns = info->end_ns - int64_t(double(milliseconds) * 1e6);
  return status;
}

// The copy in, all launches, the copy out.
int32_t Model::enqueue(const Batch& batch, tr_error* error) {
  int32_t status = checked(cudaMemcpyAsync(work_.inbox.grantCount, host_.inbox.grantCount,
                                           size_t(work_.inboxBytes), cudaMemcpyHostToDevice, stream_),
                           "cudaMemcpyAsync to the device", error);
  if (status != TR_OK) return status;
  const Forward forward = {shape_,
                           limits_,
                           sizes_,
                           weights_,
                           work_,
                           lt_,
                           device_.multiprocessors(),
                           batch.computedRows,
                           batch.computedHeads,
                           stream_};
  const cudaError_t launched = forward();
  if (launched != cudaSuccess && lt_.status())
    return fail(error, TR_FAILED, "cublasLtMatmul: status %d", lt_.status());
  status = checked(launched, "launch", error);
  if (status != TR_OK || batch.computedHeads == 0) return status;
  const size_t results = size_t(batch.computedHeads) * sizeof *host_.outbox.results;
  const size_t top = size_t(batch.computedHeads * limits_.top_max) * sizeof *host_.outbox.top;
  status = checked(
      cudaMemcpyAsync(host_.outbox.results, work_.outbox.results, results, cudaMemcpyDeviceToHost, stream_),
      "cudaMemcpyAsync of results", error);
  if (status != TR_OK || top == 0) return status;
  return checked(cudaMemcpyAsync(host_.outbox.top, work_.outbox.top, top, cudaMemcpyDeviceToHost, stream_),
                 "cudaMemcpyAsync of top lists", error);
}

// Captures the batch's size if it is new, and launches its graph.
int32_t Model::replay(const Batch& batch, tr_error* error) {
  cudaGraphExec_t graph = graphs_.of(batch.computedRows, batch.computedHeads);
  const int32_t status = graph ? TR_OK : capture(batch, &graph, error);
  if (status != TR_OK) return status;
  return checked(cudaGraphLaunch(graph, stream_), "cudaGraphLaunch", error);
}

// Runs a batch eagerly, if none that takes the same kernels and libraries has been run so: what is loaded or
// made when it is first needed can not be while a graph is captured. A batch that runs again gives the
// same.
int32_t Model::warm(const Batch& batch, tr_error* error) {
  auto kindOf = [&](int64_t rows) {
    if (!lt_.takes(rows)) return std::min(rows, skinnyRows) / 9;  // multiplyFew has a kernel for 8
    return (rows + skinnyRows - 1) / skinnyRows * skinnyRows;
  };
  const int64_t heads = batch.computedHeads;
  const auto kind = std::make_tuple(kindOf(batch.computedRows), heads == 0, kindOf(heads));
  if (!warmed_.insert(kind).second) return TR_OK;
  const int32_t status = enqueue(batch, error);
  if (status != TR_OK) return status;
  return checked(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", error);
}

// Makes the graph of a size.
int32_t Model::capture(const Batch& batch, cudaGraphExec_t* graph, tr_error* error) {
  int32_t status = warm(batch, error);
  const int64_t began = nowNs();
  size_t before = 0, after = 0, total;
  if (status == TR_OK) status = checked(cudaMemGetInfo(&before, &total), "cudaMemGetInfo", error);
  if (status == TR_OK) {
    status = checked(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                     "cudaStreamBeginCapture", error);
  }
  if (status != TR_OK) return status;
  status = enqueue(batch, error);
  cudaGraph_t captured = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream_, &captured);
  if (status == TR_OK) status = checked(ended, "cudaStreamEndCapture", error);
  if (status == TR_OK)
    status = checked(cudaGraphInstantiate(graph, captured, 0), "cudaGraphInstantiate", error);
  if (captured) cudaGraphDestroy(captured);
  if (status != TR_OK) return status;
  graphs_.put(batch.computedRows, batch.computedHeads, *graph);
  // What a launch needs is there before the first one.
  status = checked(cudaGraphUpload(*graph, stream_), "cudaGraphUpload", error);
  if (status == TR_OK) status = checked(cudaMemGetInfo(&after, &total), "cudaMemGetInfo", error);
  graphs_.bytes += std::max<int64_t>(int64_t(before) - int64_t(after), 0);
  graphs_.captureNs += nowNs() - began;
  return status;
}

// Has the graphs of decode steps ready, the largest first: those of other steps are captured when they come.
int32_t Model::captureDecodes(tr_error* error) {
  *host_.inbox.grantCount = *host_.inbox.itemCount = *host_.inbox.headItemCount = 0;
  const GraphSizes& sizes = device_.graphHeads();
  // Of sizes that hold all requests that there can be, the smallest is enough.
  const int64_t most = graphSizeOf(sizes, std::min(limits_.requests_max, limits_.rows_max));
  for (auto heads = sizes.rbegin(); device_.graphs() && heads != sizes.rend(); ++heads) {
    const int64_t rows = graphSizeOf(device_.graphRows(), *heads);
    if (rows == 0 || rows > sizes_.rows || *heads > sizes_.heads || (most && *heads > most)) continue;
    const Batch batch = {0, 0, rows, *heads, true};
    layOutPadding(batch);
    cudaGraphExec_t graph;
    const int32_t status = capture(batch, &graph, error);
    if (status != TR_OK) return status;
  }
  return TR_OK;
}

void Model::graphs(tr_graphs* graphs) const {
  graphs->count = graphs_.count();
  graphs->capture_ns = graphs_.captureNs;
  graphs->bytes = graphs_.bytes;
}

// Logits and hidden states go to the caller only if it asks for them.
int32_t Model::copyRows(const Batch& batch, const StepArguments& a, tr_error* error) {
  const int64_t vocab = shape_.vocab();
  for (int64_t h = 0; a.logits && h < batch.heads; h++) {
    const int32_t status =
        checked(cudaMemcpyAsync(a.logits + headOf_[size_t(h)] * vocab, work_.logits + h * sizes_.logitsStride,
                                size_t(vocab) * sizeof(float), cudaMemcpyDeviceToHost, stream_),
                "cudaMemcpyAsync of logits", error);
    if (status != TR_OK) return status;
  }
  if (!a.hidden || batch.heads == 0) return TR_OK;
  const size_t bytes = size_t(batch.heads * sizes_.hiddenStride) * sizeof *host_.hidden;
  return checked(cudaMemcpyAsync(host_.hidden, work_.inputs, bytes, cudaMemcpyDeviceToHost, stream_),
                 "cudaMemcpyAsync of hidden states", error);
}

// Deals out what came back to the requests.
void Model::answer(const Batch& batch, const StepArguments& a) {
  const int64_t hidden = shape_.hidden(), topMaximum = limits_.top_max;
  for (int64_t h = 0; h < batch.heads; h++) {
    const int64_t request = headOf_[size_t(h)];
    const tr_result& result = a.results[request] = host_.outbox.results[h];
    std::copy_n(host_.outbox.top + h * topMaximum, result.top, a.top + request * topMaximum);
    for (int64_t i = 0; a.hidden && i < hidden; i++) {
      a.hidden[request * hidden + i] = native::widen(host_.hidden[h * sizes_.hiddenStride + i]);
    }
  }
}

}  // namespace cuda
