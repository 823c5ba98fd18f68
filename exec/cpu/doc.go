// Package cpu holds the arithmetic of the embedded device: kernels in C++ for the forward pass of a language
// model on the processor, chosen at run time for the instructions that the machine has.
//
// # Paths
//
// One binary has every kernel in up to five forms: plain C++, AVX2, AVX-512, AVX-512 with bf16, AMX. A Path
// names one; Best is the last that the machine, its kernel and this process may use. A plain reference in
// double stands beside each kernel, with a named tolerance; tests force every path and compare.
//
// # The same answer alone and in a batch
//
// On one path, the result of a row has the same bits for any number of rows computed with it and any number
// of threads: sums are taken in an order that depends on the position inside the sum alone, and threads
// share out whole results, never parts of one sum.
//
// Multiplication and addition are fused only where the source says so. A NaN stays in its row; statistics of
// logits mark such a row, so that its request can fail and the others go on.
//
// # Weights
//
// Weights are bf16, packed once into 1 KiB tiles of 32 inputs and 16 outputs, in the order in which they are
// read; every path reads the same tiles. Shapes that are no multiple of 32 and 64 are filled up with zeros.
//
// Or they are 8 bits, with a scale for each output or for each group of inputs of it, and activations are
// quantised row by row in the same groups. Sums of whole numbers are exact and the rest has one order, so
// that here all paths give the same bits.
//
// # KV pages
//
// Keys and values lie in pages, head by head, in blocks of 16 tokens whose lines are operands for lanes and
// tiles alike. Softmax goes over blocks counted from position 0, so that neither the size of a page nor the
// way in which a prompt was cut changes a bit.
//
// # The device
//
// Backend is the C ABI of package native over these kernels. All workers walk through the layers together,
// in one run a step, and wait for one another where a part needs what others wrote; a part shares out whole
// rows, heads or columns. Who has done its share of the columns of a product, or of attention, takes from
// the others: processors of one machine are seldom equally fast at reading memory, and who computes a
// column changes no bit of it. Logits are described chunk by chunk, while they are near. Queries, keys and
// values are one matrix; gate and up are another whose blocks take turns, so that a worker joins them while
// they are near. After the last layer's keys and values only rows with a head are computed. All memory is
// two blocks, weights and the rest, divided by the same code that counts it for probe; a step allocates
// nothing.
//
// # Threads
//
// The caller is worker 0, whatever operating system thread it is on. Helpers are pinned if processors are
// given, spin at most 50 us, then sleep.
//
// Building needs Linux and a C++17 compiler. Nothing of the machine that builds is assumed of the one that
// runs.
package cpu
