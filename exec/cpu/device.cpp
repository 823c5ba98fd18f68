#include "../native/failure.h"
#include "device.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "memory.h"

namespace cpu {

using native::fail;
using native::inRange;

namespace {

struct PathName {
  Path path;
  const char* name;
};

constexpr PathName pathNames[] = {{Path::plain, "plain"},
                                  {Path::avx2, "avx2"},
                                  {Path::avx512, "avx512"},
                                  {Path::avx512bf16, "avx512-bf16"},
                                  {Path::amx, "amx"}};

const char* nameOf(Path path) {
  for (const PathName& p : pathNames) {
    if (p.path == path) return p.name;
  }
  return "";
}

// Processors that this process may use.
int32_t processorsHere() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  return CPU_COUNT(&allowed);
}

void processorName(char* name, size_t size) {
  snprintf(name, size, "unknown processor");
  FILE* file = fopen("/proc/cpuinfo", "r");
  if (!file) return;
  char line[256];
  while (fgets(line, sizeof line, file)) {
    const char* text = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !text) continue;
    snprintf(name, size, "%.*s", int(strcspn(text + 2, "\n")), text + 2);
    break;
  }
  fclose(file);
}

int32_t pathOf(const char* name, Path* path, tr_error* error) {
  if (!*name) {
    *path = bestPath();
    return TR_OK;
  }
  for (const PathName& p : pathNames) {
    if (strcmp(p.name, name) != 0) continue;
    *path = p.path;
    if (available(p.path)) return TR_OK;
    return fail(error, TR_UNSUPPORTED, "kernels %s: this machine has %s at best", name, nameOf(bestPath()));
  }
  return fail(error, TR_INVALID, "kernels %.63s, want plain, avx2, avx512, avx512-bf16, amx or none", name);
}

}  // namespace

int defaultThreads() {
  int32_t here = processorsHere();
  return here < Workers::threadsMax ? here : Workers::threadsMax;
}

int32_t deviceCount(int32_t* count, tr_error*) {
  *count = 1;
  return TR_OK;
}

int32_t deviceInfo(int32_t ordinal, tr_device_info* info, tr_error* error) {
  if (ordinal != 0) return fail(error, TR_NO_DEVICE, "device %d, want 0: there is one", ordinal);
  if (info->size != int32_t(sizeof *info)) {
    return fail(error, TR_INVALID, "device_info has %d bytes, want %zu", info->size, sizeof *info);
  }
  *info = {};
  info->size = int32_t(sizeof *info);
  info->page_tokens = pageTokensBest;
  info->processors = processorsHere();
  info->memory_bytes = memoryBytes(meminfoFile);
  info->free_bytes = memoryFreeBytes(meminfoFile, groupFolder);
  processorName(info->name, sizeof info->name);
  snprintf(info->kernels, sizeof info->kernels, "%s", nameOf(bestPath()));
  return TR_OK;
}

int32_t Device::open(const tr_device_options& options, Device** out, tr_error* error) {
  *out = nullptr;
  if (options.size != int32_t(sizeof options)) {
    return fail(error, TR_INVALID, "device_options has %d bytes, want %zu", options.size, sizeof options);
  }
  if (options.ordinal != 0) {
    return fail(error, TR_NO_DEVICE, "device %d, want 0: there is one", options.ordinal);
  }
  if (!inRange(error, "threads", options.threads, 0, Workers::threadsMax) ||
      !inRange(error, "pinned", options.pinned, 0, TR_PROCESSORS_MAX) ||
      !inRange(error, "graph_row_sizes", options.graph_row_sizes, 0, 0) ||
      !inRange(error, "graph_head_sizes", options.graph_head_sizes, 0, 0) ||
      !inRange(error, "budget_bytes", options.budget_bytes, 0, INT64_MAX)) {
    return TR_INVALID;
  }
  int threads = options.threads ? options.threads : options.pinned ? options.pinned : defaultThreads();
  if (options.pinned && options.pinned != threads) {
    return fail(error, TR_INVALID, "%d processors for %d threads, want none or one each", options.pinned,
                threads);
  }
  std::unique_ptr<Device> device(new Device);
  char kernels[sizeof options.kernels];
  snprintf(kernels, sizeof kernels, "%.*s", int(sizeof kernels - 1), options.kernels);
  int32_t status = pathOf(kernels, &device->path_, error);
  if (status != TR_OK) return status;
  Workers* workers;
  int failed = Workers::open(threads, options.pinned ? options.processors : nullptr, &workers);
  if (failed == EINVAL) return fail(error, TR_INVALID, "%d threads: a processor is not to be had", threads);
  if (failed) return fail(error, TR_NO_MEMORY, "%d threads: %s", threads, strerror(failed));
  device->workers_.reset(workers);
  device->budget_.set(options.budget_bytes ? options.budget_bytes
                                           : memoryFreeBytes(meminfoFile, groupFolder));
  *out = device.release();
  return TR_OK;
}

}  // namespace cpu
