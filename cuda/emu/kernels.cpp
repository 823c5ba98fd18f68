// The kernels, compiled for the processor.
#include "../kernels/attention.cu"
#include "../kernels/gemm.cu"
#include "../kernels/logits.cu"
#include "../kernels/pages.cu"
#include "../kernels/random.cu"
#include "../kernels/rotate.cu"
#include "../kernels/router.cu"
#include "../kernels/rows.cu"
