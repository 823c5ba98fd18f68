// What the parts of the emulation share.
#pragma once

#include <functional>

#include "include/cuda_runtime.h"

namespace emu {

// Runs all blocks of a grid.
void runGrid(dim3 grid, int threads, const std::function<void()>& kernel);

// Adds work to a stream, or to the graph that it is recording.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> run, bool launch);

}  // namespace emu
