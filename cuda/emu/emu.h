// What the parts of the emulation share.
#pragma once

#include <functional>

#include "include/cuda_runtime.h"

namespace emu {

// Runs all blocks of a grid.
void runGrid(dim3 grid, int threads, const std::function<void()>& kernel);

}  // namespace emu
