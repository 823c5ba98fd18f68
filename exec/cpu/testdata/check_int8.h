// Products of 8 bits with buffers of exactly the size that they ask for.
#pragma once

#include <math.h>

#include <memory>

#include "../bf16.h"
#include "../gemm_int8.h"
#include "check_workers.h"

static void checkInt8Product(Workers& workers, Path path, int64_t columns, int64_t depth, int64_t groupInputs,
                             int64_t rows) {
  CHECK(int8GroupFits(depth, groupInputs));
  Numbers numbers(uint32_t(columns * 31 + depth * 7 + rows));
  std::vector<float> floats = numbers.take(size_t(columns * depth)), x = numbers.take(size_t(rows * depth));
  std::vector<uint16_t> halves;
  for (float f : floats) halves.push_back(narrow(f));
  std::unique_ptr<PackedInt8Weights> weights(
      PackedInt8Weights::make(columns, depth, groupInputs, halves.data()));
  CHECK(weights);
  const PackedInt8& w = weights->view();
  std::vector<int8_t> values(size_t(rows * w.paddedDepth()));
  std::vector<RowGroup> groups(size_t(rows * w.groups));
  const QuantisedRows quantised{values.data(), w.paddedDepth(), groups.data()};
  quantiseRows(path, w, x.data(), depth, 0, rows, quantised);
  std::vector<float> y(size_t(rows * w.paddedColumns()));
  std::vector<double> want(size_t(rows * columns)), magnitude(want.size());
  const GemmInt8 g{rows, quantised, w, y.data(), w.paddedColumns()};
  CHECK(gemmInt8(workers, path, g));
  gemmInt8Reference(g, want.data(), magnitude.data());
  for (int64_t m = 0; m < rows; m++) {
    for (int64_t n = 0; n < columns; n++) {
      size_t at = size_t(m * columns + n);
      double bound = gemmInt8Tolerance * double(w.groups + 2) * magnitude[at];
      CHECK(fabs(double(y[size_t(m * w.paddedColumns() + n)]) - want[at]) <= bound);
    }
  }
  std::vector<float> row(static_cast<size_t>(depth));
  gatherColumn(w, columns - 1, row.data());
  for (size_t k = 0; k < row.size(); k++) {  // largest 1: half a scale is 1 / 254 at most
    CHECK(fabs(double(row[k]) - double(widen(halves[size_t((columns - 1) * depth) + k]))) <= 1.001 / 254);
  }
}

static void checkInt8(Workers& workers, Path path) {
  for (int64_t rows : {1, 5, 17, 35}) {
    checkInt8Product(workers, path, 1, 1, 0, rows);
    checkInt8Product(workers, path, 65, 65, 64, rows);
    checkInt8Product(workers, path, 130, 200, 128, rows);
    checkInt8Product(workers, path, 256, 100, 0, rows);
  }
}
