// What a call of the C ABI says when it fails.
#pragma once

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include <new>

#include "native.h"

namespace native {

// Writes a text into error, unless that is null, and returns status.
inline int32_t fail(tr_error* error, int32_t status, const char* format, ...)
    __attribute__((format(printf, 3, 4)));

inline int32_t fail(tr_error* error, int32_t status, const char* format, ...) {
  if (!error) return status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->text, sizeof error->text, format, arguments);
  va_end(arguments);
  return status;
}

// Reports whether value is min to max; if not, the failure says which name has it.
inline bool inRange(tr_error* error, const char* name, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return true;
  fail(error, TR_INVALID, "%s = %" PRId64 ", want %" PRId64 " to %" PRId64, name, value, min, max);
  return false;
}

// Runs call, in which small things may be allocated.
template <class F>
int32_t guarded(tr_error* error, F call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return fail(error, TR_NO_MEMORY, "no memory for bookkeeping");
  }
}

}  // namespace native
