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

/* 0: the driver knows no partitions of a card, as before CUDA 12.4. */
void emu_partitions(int32_t known);

#ifdef __cplusplus
}
#endif

#endif
