// Decoding on the device against dequant.h: every code with every scale, and
// random rows of many formats; then its time.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compute/dequant/dequant.h"
#include "compute/dequant/gpu_decode.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/number_formats.h"
#include "tests/gpu/check/checks.h"
#include "tests/gpu/check/gpu_arrays.h"
#include "tests/gpu/check/gpu_timer.h"
#include "tests/gpu/check/projection_cases.h"

namespace engram::gpu_check {
namespace {

constexpr size_t kGuardValues = 128;

struct Format {
  uint32_t width;
  uint32_t block_size;
  uint32_t columns;

  uint32_t in() const { return width * columns; }
  RowFormat Row() const {
    RowFormat format;
    format.width = width;
    format.block_size = block_size;
    return format;
  }
  std::string Name() const {
    return absl::StrCat(columns, " rows of ", width, " with scales for ",
                        block_size);
  }
};

constexpr Format kV41 = {256, 32, 24};

bool IsNan(uint16_t bits) { return std::isnan(Bf16ToFloat(bits)); }

std::vector<uint16_t> DecodeOnCpu(const Format& format,
                                  const std::vector<std::byte>& rows) {
  const size_t count = rows.size() / format.Row().row_bytes();
  std::vector<float> values(count * format.width);
  DecodeRowsForProjection(format.Row(), rows, absl::MakeSpan(values));
  std::vector<uint16_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(), FloatToBf16);
  return bits;
}

// `shift`: bytes by which the rows miss a good alignment.
absl::Status CompareDecode(GpuContext& context, const Format& format,
                           const std::vector<std::byte>& rows,
                           DecodedLayout layout, size_t shift) {
  std::vector<std::byte> shifted(shift);
  shifted.insert(shifted.end(), rows.begin(), rows.end());
  ENGRAM_ASSIGN_OR_RETURN(const DeviceBuffer device_rows, Upload(shifted));
  const std::vector<uint16_t> values = DecodeOnCpu(format, rows);
  const size_t tokens = values.size() / format.in();
  const bool row_major = layout == DecodedLayout::kRowMajor;
  std::vector<uint16_t> wanted =
      InLayout(values, format.in(), 0, tokens,
               row_major ? TokenLayout::kRowMajor : TokenLayout::kFragments);
  if (row_major) wanted.resize(values.size());
  for (const uint8_t poison : {0xA5, 0x5A}) {
    ENGRAM_ASSIGN_OR_RETURN(
        const DeviceBuffer out,
        AllocatePoisoned((wanted.size() + kGuardValues) * 2, poison));
    DecodeArgs args;
    args.token_count = static_cast<uint32_t>(tokens);
    args.columns = format.columns;
    args.width = format.width;
    args.block_size = format.block_size;
    args.rows = device_rows.data() + shift;
    args.layout = layout;
    args.out = out.as<uint16_t>();
    ENGRAM_RETURN_IF_ERROR(DecodeOnGpu(args, context.stream().handle()));
    ENGRAM_RETURN_IF_ERROR(context.stream().Synchronize());
    ENGRAM_ASSIGN_OR_RETURN(
        const std::vector<uint16_t> got,
        Download<uint16_t>(out, wanted.size() + kGuardValues));
    for (size_t i = 0; i < got.size(); ++i) {
      const uint16_t want =
          i < wanted.size() ? wanted[i] : static_cast<uint16_t>(poison * 0x101);
      if (got[i] == want || (IsNan(got[i]) && IsNan(want))) continue;
      return absl::DataLossError(
          absl::StrCat("value ", i, " of ", wanted.size(), " is ",
                       absl::Hex(got[i]), " instead of ", absl::Hex(want)));
    }
  }
  return absl::OkStatus();
}

// Every code with every scale, NaN too, in rows of V4.1's format.
std::vector<std::byte> AllCodesAndScales() {
  const RowFormat format = kV41.Row();
  std::vector<std::byte> rows;
  for (uint32_t row = 0; row < 264; ++row) {  // 11 tokens of 24 rows
    for (uint32_t code = 0; code < 256; ++code) {
      rows.push_back(std::byte(static_cast<uint8_t>(code + row * 32)));
    }
    rows.insert(rows.end(), format.scale_bytes(),
                std::byte(static_cast<uint8_t>(row)));
  }
  return rows;
}

struct DecodeSet {
  DeviceBuffer rows;
  DeviceBuffer out;
};

}  // namespace

absl::StatusOr<Outcome> CheckDecode(GpuContext& context) {
  uint64_t values = 0;
  const std::vector<std::byte> all = AllCodesAndScales();
  for (const DecodedLayout layout :
       {DecodedLayout::kRowMajor, DecodedLayout::kFragments}) {
    ENGRAM_RETURN_IF_ERROR(
        Annotate(CompareDecode(context, kV41, all, layout, 0),
                 "every code with every scale"));
  }
  Random random(context.seed());
  const std::vector<size_t> counts =
      context.quick() ? std::vector<size_t>{1, 9}
                      : std::vector<size_t>{1, 7, 8, 9, 65, 1000};
  for (const Format& format :
       {kV41, Format{32, 32, 1}, Format{96, 32, 3}, Format{64, 64, 2},
        Format{8, 8, 4}, Format{48, 16, 2}, Format{160, 32, 1}}) {
    for (const size_t tokens : counts) {
      const std::vector<std::byte> rows =
          RandomRows(random, format.Row(), tokens * format.columns);
      for (const DecodedLayout layout :
           {DecodedLayout::kRowMajor, DecodedLayout::kFragments}) {
        for (const size_t shift : {0, 1, 8}) {
          ENGRAM_RETURN_IF_ERROR(
              Annotate(CompareDecode(context, format, rows, layout, shift),
                       absl::StrCat(tokens, " tokens of ", format.Name())));
          values += tokens * format.in();
        }
      }
    }
  }
  return Passed(absl::StrCat("every code with every scale; ", values,
                             " values of 7 formats in both layouts, to the "
                             "bit"));
}

absl::StatusOr<Outcome> TimeDecode(GpuContext& context) {
  ENGRAM_ASSIGN_OR_RETURN(const double copy_rate, context.CopyRate());
  Random random(context.seed());
  struct Shape {
    size_t tokens;
    size_t sets;  // together far above the L2
  };
  for (const Shape& shape : {context.Sized(Shape{64, 128}, Shape{8, 2}),
                             context.Sized(Shape{4096, 4}, Shape{9, 2})}) {
    const std::vector<std::byte> rows =
        RandomRows(random, kV41.Row(), shape.tokens * kV41.columns);
    std::vector<DecodeSet> sets(shape.sets);
    for (DecodeSet& set : sets) {
      ENGRAM_ASSIGN_OR_RETURN(set.rows, Upload(rows));
      ENGRAM_ASSIGN_OR_RETURN(
          set.out,
          AllocatePoisoned(FragmentCount(shape.tokens, kV41.in()) * 2, 0xA5));
    }
    const TimingPlan plan = context.Plan(shape.sets);
    ENGRAM_ASSIGN_OR_RETURN(
        const Timed timed,
        TimeLaunches(context.stream(), plan,
                     [&](size_t set, GpuStreamHandle stream) {
                       DecodeArgs args;
                       args.token_count = static_cast<uint32_t>(shape.tokens);
                       args.columns = kV41.columns;
                       args.width = kV41.width;
                       args.rows = sets[set].rows.data();
                       args.layout = DecodedLayout::kFragments;
                       args.out = sets[set].out.as<uint16_t>();
                       return DecodeOnGpu(args, stream);
                     }));
    context.report().AddRate(
        FigureOf(
            absl::StrCat("decode ", shape.tokens, " tokens"), timed,
            static_cast<double>(rows.size() + shape.tokens * kV41.in() * 2),
            "B", kCopyCeiling),
        copy_rate, std::nullopt);
  }
  return Passed("24 rows of 264 bytes a token, to fragments");
}

}  // namespace engram::gpu_check
