#ifndef ENGRAM_CORE_MODEL_SYNTHETIC_ROWS_H_
#define ENGRAM_CORE_MODEL_SYNTHETIC_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "core/base/ids.h"
#include "core/model/row_format.h"

namespace engram {

// Writes the packed row that `--source synthetic:SEED` serves for this id: a
// fixed pseudo-random function of (seed, layer, row), codes without NaN, scales
// 113 .. 119. Serves the true 384M-row layout with nothing stored, and lets any
// client check every byte. out.size() == format.row_bytes().
void SyntheticRow(uint64_t seed, LayerId layer, RowId row,
                  const RowFormat& format, absl::Span<std::byte> out);

}  // namespace engram

#endif  // ENGRAM_CORE_MODEL_SYNTHETIC_ROWS_H_
