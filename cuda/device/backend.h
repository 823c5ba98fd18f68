/* This device behind the C ABI of native devices. */
#ifndef TOKENROUTER_CUDA_BACKEND_H
#define TOKENROUTER_CUDA_BACKEND_H

#ifdef __cplusplus
extern "C" {
#endif

/* The const tr_backend * of exec/native/native.h. */
const void* cuda_backend(void);

#ifdef __cplusplus
}
#endif

#endif
