#include "failure.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

namespace cpu {

int32_t fail(tr_error* error, int32_t status, const char* format, ...) {
  if (!error) return status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->text, sizeof error->text, format, arguments);
  va_end(arguments);
  return status;
}

bool inRange(tr_error* error, const char* name, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return true;
  fail(error, TR_INVALID, "%s = %" PRId64 ", want %" PRId64 " to %" PRId64, name, value, min, max);
  return false;
}

}  // namespace cpu
