// The device, on the emulated runtime.
#include "../device/backend.cu"
#include "../device/device.cu"
#include "../device/forward.cu"
#include "../device/model.cu"
#include "../device/shape.cu"
#include "../device/step.cu"
#include "../device/weights.cu"
#include "../device/work.cu"
