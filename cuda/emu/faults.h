/* What tests break. */
#ifndef TOKENROUTER_EMU_FAULTS_H
#define TOKENROUTER_EMU_FAULTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From the count-th call of the runtime of this thread on, all fail; 0: none. */
void emu_fail_from(int32_t count);

#ifdef __cplusplus
}
#endif

#endif
