// The functions of cuda_runtime_api.h.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "emu.h"
#include "faults.h"

namespace {

// Something that a stream does.
struct Action {
  std::function<void()> run;
  bool launch;
};

constexpr size_t memoryBytes = size_t(1) << 30;
std::atomic<size_t> usedBytes{0};

thread_local int callsToFailure = 0;
thread_local long launchCount = 0;

int64_t nowNs() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

// Whether a call fails because a test wants it to.
bool broken() {
  if (callsToFailure > 1)
    callsToFailure--;
  else if (callsToFailure == 1)
    return true;
  return false;
}

// The size stands before what is given out, a cache line apart.
constexpr size_t headerBytes = 256;

cudaError_t allocate(void** memory, size_t bytes) {
  *memory = nullptr;
  if (broken()) return cudaErrorLaunchFailure;
  if (bytes > memoryBytes - usedBytes) return cudaErrorMemoryAllocation;
  const size_t whole = (bytes + 2 * headerBytes - 1) / headerBytes * headerBytes;
  char* block = static_cast<char*>(aligned_alloc(headerBytes, whole));
  if (!block) return cudaErrorMemoryAllocation;
  memcpy(block, &bytes, sizeof bytes);
  memset(block + headerBytes, 0xff, bytes);
  usedBytes += bytes;
  *memory = block + headerBytes;
  return cudaSuccess;
}

cudaError_t release(void* memory) {
  if (!memory) return cudaSuccess;
  char* block = static_cast<char*>(memory) - headerBytes;
  size_t bytes;
  memcpy(&bytes, block, sizeof bytes);
  usedBytes -= bytes;
  free(block);
  return cudaSuccess;
}

}  // namespace

struct emuGraph {
  std::vector<Action> actions;
};

struct emuStream {
  std::deque<Action> waiting;
  emuGraph* captured = nullptr;  // what is being recorded, or null
};

struct emuEvent {
  int64_t at;  // ns
};

namespace {

// Memory that a graph takes of the device, for each of its actions.
constexpr size_t actionBytes = 1024;

cudaError_t add(cudaStream_t stream, std::function<void()> run, bool launch = false) {
  if (broken()) return cudaErrorLaunchFailure;
  if (stream->captured) {
    stream->captured->actions.push_back({std::move(run), launch});
  } else {
    launchCount += launch;
    stream->waiting.push_back({std::move(run), launch});
  }
  return cudaSuccess;
}

}  // namespace

namespace emu {

cudaError_t enqueue(cudaStream_t stream, std::function<void()> run, bool launch) {
  return add(stream, std::move(run), launch);
}

cudaError_t launch(cudaStream_t stream, dim3 grid, int threads, std::function<void()> kernel) {
  if (threads < 1 || threads > 1024 || grid.x < 1 || grid.y < 1 || grid.z < 1 || grid.y > 65535 ||
      grid.z > 65535) {
    return cudaErrorInvalidValue;
  }
  return add(stream, [=] { runGrid(grid, threads, kernel); }, true);
}

long launches() { return launchCount; }

}  // namespace emu

int32_t emu_inside(void) { return emu::inside > 0; }

void emu_fail_from(int32_t count) { callsToFailure = count; }

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    default:
      return "unspecified launch failure";
  }
}

cudaError_t cudaGetDeviceCount(int* count) {
  int version;
  cudaDriverGetVersion(&version);
  *count = version >= CUDART_VERSION;
  return *count ? cudaSuccess : cudaErrorInsufficientDriver;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return cudaErrorInvalidDevice;
  *properties = {};
  snprintf(properties->name, sizeof properties->name, "emulated on the processor");
  properties->totalGlobalMem = memoryBytes;
  properties->major = 8;
  properties->multiProcessorCount = 4;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (broken()) return cudaErrorLaunchFailure;
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  if (broken()) return cudaErrorLaunchFailure;
  *total = memoryBytes;
  *free = memoryBytes - usedBytes;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) { return allocate(memory, bytes); }
cudaError_t cudaFree(void* memory) { return release(memory); }
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return allocate(memory, bytes); }
cudaError_t cudaFreeHost(void* memory) { return release(memory); }

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  emu::Inside inside;
  return add(stream, [=] { memcpy(to, from, bytes); });
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  emu::Inside inside;
  return add(stream, [=] { memset(memory, value, bytes); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new emuStream;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  if (priority < -1 || priority > 0) return cudaErrorInvalidValue;
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -1;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  emu::Inside inside;
  if (broken()) {
    stream->waiting.clear();
    return cudaErrorLaunchFailure;
  }
  if (stream->captured) return cudaErrorStreamCaptureInvalidated;
  for (; !stream->waiting.empty(); stream->waiting.pop_front()) stream->waiting.front().run();
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new emuEvent;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  emu::Inside inside;
  return add(stream, [=] { event->at = nowNs(); });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (broken()) return cudaErrorLaunchFailure;
  *milliseconds = float(double(end->at - start->at) / 1e6);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  emu::Inside inside;
  if (broken()) return cudaErrorLaunchFailure;
  if (stream->captured) return cudaErrorInvalidValue;
  stream->captured = new emuGraph;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  emu::Inside inside;
  *graph = stream->captured;
  stream->captured = nullptr;
  if (*graph && broken()) {
    delete *graph;
    *graph = nullptr;
  }
  return *graph ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* instance, cudaGraph_t graph, unsigned long long) {
  emu::Inside inside;
  *instance = nullptr;
  if (broken()) return cudaErrorLaunchFailure;
  if (graph->actions.size() * actionBytes > memoryBytes - usedBytes) return cudaErrorMemoryAllocation;
  *instance = new emuGraph(*graph);
  usedBytes += graph->actions.size() * actionBytes;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t instance) {
  usedBytes -= instance->actions.size() * actionBytes;
  delete instance;
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  return broken() ? cudaErrorLaunchFailure : cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t instance, cudaStream_t stream) {
  emu::Inside inside;
  if (broken()) return cudaErrorLaunchFailure;
  if (stream->captured) return cudaErrorStreamCaptureInvalidated;
  for (const Action& action : instance->actions) {
    const cudaError_t failed = add(stream, action.run, action.launch);
    if (failed) return failed;
  }
  return cudaSuccess;
}
