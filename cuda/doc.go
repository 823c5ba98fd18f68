// Package cuda is the device for NVIDIA cards: package native's C ABI over the CUDA runtime. It is part of a
// program that is built with the tag "cuda", which `make cuda` does; without the tag there is no such device,
// and nothing of CUDA is needed to build.
//
// The kernels and their references are in cuda/kernels, what drives them in cuda/device, an emulation on
// which both are tested without a card in cuda/emu, and a program that checks kernels on a card in
// cuda/check.
package cuda
