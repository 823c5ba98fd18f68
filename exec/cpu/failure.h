// What a call of the C ABI says when it fails.
#pragma once

#include "../native/native.h"

namespace cpu {

// Writes a text into error, unless that is null, and returns status.
int32_t fail(tr_error* error, int32_t status, const char* format, ...) __attribute__((format(printf, 3, 4)));

// Reports whether value is min to max; if not, the failure says which name has it. Limits may be any int64.
bool inRange(tr_error* error, const char* name, int64_t value, int64_t min, int64_t max);

}  // namespace cpu
