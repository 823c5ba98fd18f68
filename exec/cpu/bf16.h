// bfloat16 numbers of rows and weights.
#pragma once

#include "../native/halves.h"

namespace cpu {

using native::narrow;
using native::widen;

}  // namespace cpu
