// Random gathers of V4.1's rows from tables of 8 and 90 GB on the device and
// of 4 GB in pinned memory.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/gpu/gpu_gather.h"
#include "tests/gpu/check/checks.h"
#include "tests/gpu/check/fill_random_launch.h"
#include "tests/gpu/check/gpu_arrays.h"
#include "tests/gpu/check/gpu_timer.h"
#include "tests/gpu/check/random_inputs.h"

namespace engram::gpu_check {
namespace {

constexpr uint32_t kRowBytes = 264;
constexpr uint32_t kPartitionRowsLog2 = 16;
constexpr uint64_t kPartitionBytes = uint64_t{kRowBytes} << kPartitionRowsLog2;
constexpr uint64_t kGb = 1'000'000'000;
constexpr size_t kSets = 4;
constexpr uint64_t kSpareBytes = 3 * kGb;  // ids, outputs, the driver's own

// A table of random rows: word i of its memory is RandomWord(seed, i).
struct BigTable {
  DeviceBuffer device;
  PinnedBuffer pinned;
  DeviceBuffer pointers;
  GpuRowTable table;
  uint64_t seed = 0;
};

absl::Status AddPartitions(const std::byte* base, uint64_t partitions,
                           BigTable* big) {
  std::vector<const std::byte*> pointers;
  for (uint64_t p = 0; p < partitions; ++p) {
    pointers.push_back(base + p * kPartitionBytes);
  }
  ENGRAM_ASSIGN_OR_RETURN(big->pointers, Upload(pointers));
  big->table.partitions = big->pointers.as<const std::byte*>();
  big->table.partition_count = static_cast<uint32_t>(partitions);
  big->table.partition_rows_log2 = kPartitionRowsLog2;
  big->table.row_count = partitions << kPartitionRowsLog2;
  big->table.row_bytes = kRowBytes;
  return absl::OkStatus();
}

absl::StatusOr<BigTable> TableOnDevice(GpuContext& context, uint64_t bytes) {
  BigTable big;
  big.seed = context.seed();
  const uint64_t partitions = bytes / kPartitionBytes;
  ENGRAM_ASSIGN_OR_RETURN(big.device,
                          DeviceBuffer::Allocate(partitions * kPartitionBytes));
  ENGRAM_RETURN_IF_GPU_ERROR(
      LaunchFillRandom({big.device.as<uint64_t>(),
                        partitions * kPartitionBytes / 8, big.seed},
                       context.stream().handle()),
      "filling a table");
  ENGRAM_RETURN_IF_ERROR(context.stream().Synchronize());
  ENGRAM_RETURN_IF_ERROR(AddPartitions(big.device.data(), partitions, &big));
  return big;
}

absl::StatusOr<BigTable> TableInPinned(GpuContext& context, uint64_t bytes) {
  BigTable big;
  big.seed = context.seed();
  const uint64_t partitions = bytes / kPartitionBytes;
  ENGRAM_ASSIGN_OR_RETURN(big.pinned,
                          PinnedBuffer::Allocate(partitions * kPartitionBytes));
  context.pool().ParallelFor(partitions, [&](size_t p) {
    uint64_t* words = big.pinned.as<uint64_t>() + p * (kPartitionBytes / 8);
    for (uint64_t i = 0; i < kPartitionBytes / 8; ++i) {
      words[i] = RandomWord(big.seed, p * (kPartitionBytes / 8) + i);
    }
  });
  ENGRAM_RETURN_IF_ERROR(AddPartitions(big.pinned.data(), partitions, &big));
  return big;
}

// Row ids and outputs of `kSets` gathers.
struct Gathers {
  uint64_t count = 0;
  std::vector<std::vector<uint32_t>> ids;
  std::vector<DeviceBuffer> device_ids;
  std::vector<DeviceBuffer> outs;
  DeviceBuffer first_bad;
};

absl::StatusOr<Gathers> MakeGathers(GpuContext& context, const BigTable& big,
                                    uint64_t count) {
  Gathers gathers;
  gathers.count = count;
  Random random(context.seed() + count);
  for (size_t set = 0; set < kSets; ++set) {
    std::vector<uint32_t>& ids = gathers.ids.emplace_back(count);
    for (uint32_t& id : ids) {
      id = random.Below(static_cast<uint32_t>(big.table.row_count));
    }
    ENGRAM_ASSIGN_OR_RETURN(gathers.device_ids.emplace_back(), Upload(ids));
    ENGRAM_ASSIGN_OR_RETURN(gathers.outs.emplace_back(),
                            AllocatePoisoned(count * kRowBytes, 0xA5));
  }
  ENGRAM_ASSIGN_OR_RETURN(gathers.first_bad,
                          AllocatePoisoned(sizeof(uint32_t), 0xFF));
  return gathers;
}

// Every byte of the last gather of each set.
absl::Status Verify(GpuContext& context, const BigTable& big,
                    const Gathers& gathers) {
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<uint32_t> bad,
                          Download<uint32_t>(gathers.first_bad, 1));
  if (bad[0] != 0xFFFFFFFF) {
    return absl::DataLossError(
        absl::StrCat("row ", bad[0], " of a gather is reported as bad"));
  }
  constexpr uint64_t kWords = kRowBytes / 8;
  for (size_t set = 0; set < kSets; ++set) {
    ENGRAM_ASSIGN_OR_RETURN(
        const std::vector<uint64_t> out,
        Download<uint64_t>(gathers.outs[set], gathers.count * kWords));
    std::vector<uint8_t> wrong(gathers.count);
    context.pool().ParallelFor((gathers.count + 4095) / 4096, [&](size_t part) {
      for (uint64_t i = part * 4096;
           i < std::min<uint64_t>((part + 1) * 4096, gathers.count); ++i) {
        for (uint64_t w = 0; w < kWords; ++w) {
          const uint64_t word = gathers.ids[set][i] * kWords + w;
          wrong[i] |= out[i * kWords + w] != RandomWord(big.seed, word);
        }
      }
    });
    for (uint64_t i = 0; i < gathers.count; ++i) {
      if (wrong[i] == 0) continue;
      return absl::DataLossError(
          absl::StrCat("slot ", i, " is not row ", gathers.ids[set][i]));
    }
  }
  return absl::OkStatus();
}

struct Comparison {
  double useful_per_row = 0;
  double rate = 0;
  const char* ceiling = "";
};

absl::Status TimeGathers(GpuContext& context, const BigTable& big,
                         absl::string_view name, uint64_t count,
                         const Comparison& with, std::optional<double> goal) {
  ENGRAM_ASSIGN_OR_RETURN(const Gathers gathers,
                          MakeGathers(context, big, count));
  const TimingPlan plan = context.Plan(kSets);
  ENGRAM_ASSIGN_OR_RETURN(
      const Timed timed,
      TimeLaunches(context.stream(), plan,
                   [&](size_t set, GpuStreamHandle stream) {
                     GatherRowsArgs args;
                     args.table = big.table;
                     args.row_ids = gathers.device_ids[set].as<uint32_t>();
                     args.count = count;
                     args.out = gathers.outs[set].data();
                     args.first_bad = gathers.first_bad.as<uint32_t>();
                     return GatherRowsOnGpu(args, stream);
                   }));
  ENGRAM_RETURN_IF_ERROR(Verify(context, big, gathers));
  context.report().AddRate(
      FigureOf(absl::StrCat("gather ", count, " rows, ", name), timed,
               with.useful_per_row * static_cast<double>(count), "B",
               with.ceiling),
      with.rate, goal);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Outcome> TimeGatherFromDevice(GpuContext& context) {
  ENGRAM_ASSIGN_OR_RETURN(const double copy_rate, context.CopyRate());
  // Each row is read once and written once, as a copy's bytes are.
  const Comparison with = {2.0 * kRowBytes, copy_rate, kCopyCeiling};
  struct Size {
    uint64_t gb;
    double goal;
  };
  const uint64_t few_rows = context.Sized<uint64_t>(65'536, 100);
  const uint64_t many_rows = context.Sized<uint64_t>(1 << 20, 500);
  std::string skipped;
  for (const Size size : {Size{8, 0.8}, Size{90, 0.6}}) {
    const uint64_t bytes = context.Sized(size.gb * kGb, 3 * kPartitionBytes);
    size_t free_bytes = 0;
    size_t all_bytes = 0;
    ENGRAM_RETURN_IF_GPU_ERROR(cudaMemGetInfo(&free_bytes, &all_bytes),
                               "asking for free memory");
    if (free_bytes < bytes + kSpareBytes) {
      skipped =
          absl::StrCat("; the table of ", size.gb,
                       " GB left out: ", free_bytes / kGb, " GB are free");
      context.report().AddNote(absl::StrCat("gather", skipped));
      continue;
    }
    ENGRAM_ASSIGN_OR_RETURN(const BigTable big, TableOnDevice(context, bytes));
    const std::string name = absl::StrCat(size.gb, " GB on the device");
    ENGRAM_RETURN_IF_ERROR(
        TimeGathers(context, big, name, few_rows, with, std::nullopt));
    ENGRAM_RETURN_IF_ERROR(
        TimeGathers(context, big, name, many_rows, with, size.goal));
  }
  return Passed(absl::StrCat("264-byte rows, every byte compared", skipped));
}

absl::StatusOr<Outcome> TimeGatherFromPinned(GpuContext& context) {
  ENGRAM_ASSIGN_OR_RETURN(const double rate, context.HostToDeviceRate());
  const Comparison with = {1.0 * kRowBytes, rate, kHostToDeviceCeiling};
  ENGRAM_ASSIGN_OR_RETURN(
      const BigTable big,
      TableInPinned(context, context.Sized(4 * kGb, 2 * kPartitionBytes)));
  const std::string name = "4 GB pinned";
  ENGRAM_RETURN_IF_ERROR(TimeGathers(context, big, name,
                                     context.Sized<uint64_t>(1536, 24), with,
                                     std::nullopt));
  ENGRAM_RETURN_IF_ERROR(TimeGathers(
      context, big, name, context.Sized<uint64_t>(65'536, 300), with, 0.75));
  return Passed("264-byte rows, every byte compared");
}

}  // namespace engram::gpu_check
