// The gather against the host, byte for byte, from memory of the device, from
// pinned memory and from both in one table.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/gpu/gpu_gather.h"
#include "tests/gpu/check/checks.h"
#include "tests/gpu/check/gather_cases.h"
#include "tests/gpu/check/gpu_arrays.h"

namespace engram::gpu_check {
namespace {

enum class Place { kDevice, kPinned, kMixed };

const char* PlaceName(Place place) {
  switch (place) {
    case Place::kDevice:
      return "from the device";
    case Place::kPinned:
      return "from pinned memory";
    case Place::kMixed:
      return "from both";
  }
  return "";
}

// A table of one case, in both kinds of memory.
struct CaseTable {
  DeviceBuffer device;
  PinnedBuffer pinned;
  DeviceBuffer pointers;
  GpuRowTable table;
};

absl::StatusOr<CaseTable> UploadTable(const GatherCase& gather,
                                      const std::vector<std::byte>& bytes,
                                      Place place) {
  CaseTable made;
  ENGRAM_ASSIGN_OR_RETURN(made.device, Upload(bytes));
  ENGRAM_ASSIGN_OR_RETURN(made.pinned, PinnedBuffer::Allocate(bytes.size()));
  std::memcpy(made.pinned.data(), bytes.data(), bytes.size());
  std::vector<const std::byte*> pointers;
  for (size_t p = 0; p < gather.partition_count(); ++p) {
    const bool on_device =
        place == Place::kDevice || (place == Place::kMixed && p % 2 == 0);
    const std::byte* base = on_device ? made.device.data() : made.pinned.data();
    pointers.push_back(gather.present[p] ? base + p * gather.partition_stride()
                                         : nullptr);
  }
  ENGRAM_ASSIGN_OR_RETURN(made.pointers, Upload(pointers));
  made.table.partitions = made.pointers.as<const std::byte*>();
  made.table.partition_count = static_cast<uint32_t>(pointers.size());
  made.table.partition_rows_log2 = gather.partition_rows_log2;
  made.table.row_count = gather.row_count;
  made.table.row_bytes = gather.row_bytes;
  return made;
}

absl::Status RunCase(GpuContext& context, const GatherCase& gather, Place place,
                     uint8_t poison) {
  const std::vector<std::byte> bytes =
      TableBytes(gather, context.seed() + gather.row_bytes);
  ENGRAM_ASSIGN_OR_RETURN(const CaseTable table,
                          UploadTable(gather, bytes, place));
  ENGRAM_ASSIGN_OR_RETURN(const DeviceBuffer ids, Upload(gather.row_ids));
  const GatherResult wanted = WantedGather(gather, bytes, std::byte{poison});
  ENGRAM_ASSIGN_OR_RETURN(const DeviceBuffer out,
                          AllocatePoisoned(wanted.out.size(), poison));
  ENGRAM_ASSIGN_OR_RETURN(const DeviceBuffer first_bad,
                          AllocatePoisoned(sizeof(uint32_t), 0xFF));
  GatherRowsArgs args;
  args.table = table.table;
  args.row_ids = ids.as<uint32_t>();
  args.count = gather.row_ids.size();
  args.out = out.data();
  args.first_bad = first_bad.as<uint32_t>();
  ENGRAM_RETURN_IF_ERROR(GatherRowsOnGpu(args, context.stream().handle()));
  ENGRAM_RETURN_IF_ERROR(context.stream().Synchronize());
  GatherResult got;
  ENGRAM_ASSIGN_OR_RETURN(got.out, Download<std::byte>(out, wanted.out.size()));
  ENGRAM_ASSIGN_OR_RETURN(const std::vector<uint32_t> bad,
                          Download<uint32_t>(first_bad, 1));
  got.first_bad = bad[0];
  return CompareGather(gather, got, wanted);
}

}  // namespace

absl::StatusOr<Outcome> CheckGather(GpuContext& context) {
  uint64_t runs = 0;
  uint64_t rows = 0;
  for (const GatherCase& gather :
       GatherCases(context.quick(), context.seed())) {
    for (const Place place : {Place::kDevice, Place::kPinned, Place::kMixed}) {
      for (const uint8_t poison : {0xA5, 0x5A}) {
        ENGRAM_RETURN_IF_ERROR(Annotate(RunCase(context, gather, place, poison),
                                        PlaceName(place)));
        ++runs;
        rows += gather.row_ids.size();
      }
    }
  }
  return Passed(absl::StrCat(runs, " gathers, ", rows,
                             " rows byte for byte, from the device, from "
                             "pinned memory, from both"));
}

}  // namespace engram::gpu_check
