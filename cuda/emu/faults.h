/* What tests break. */
#ifndef TOKENROUTER_EMU_FAULTS_H
#define TOKENROUTER_EMU_FAULTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From the count-th call of the runtime of this thread on, all fail; 0: none. */
void emu_fail_from(int32_t count);

/* Whether this thread is inside the emulated runtime. */
int32_t emu_inside(void);

/* The version of CUDA that the driver is for, such as 12030; 0: that of the runtime, as in the beginning. One
   that is older has no device. */
void emu_driver(int32_t version);

#ifdef __cplusplus
}
#endif

#endif
