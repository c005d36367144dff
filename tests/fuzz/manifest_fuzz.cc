#include "core/base/check.h"
#include "core/model/manifest.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto manifest =
      engram::Manifest::Parse(engram::test::AsText(data, size));
  if (!manifest.ok()) return 0;
  for (size_t i = 0; i < manifest->layers().size(); ++i) {
    const engram::ManifestLayer& layer = manifest->layers()[i];
    const uint32_t partitions = manifest->partition_count(i);
    ENGRAM_CHECK(partitions > 0);
    ENGRAM_CHECK(layer.digests.empty() || layer.digests.size() == partitions);
    const uint64_t last =
        manifest->RowsIn(i, engram::PartitionId{partitions - 1});
    ENGRAM_CHECK((partitions - 1) * manifest->partition_rows() + last ==
                 layer.row_count);
  }
  // The canonical text of the same values is a manifest too.
  const auto again = engram::Manifest::Create(
      manifest->config(), manifest->row_format(), manifest->partition_rows(),
      {manifest->layers().begin(), manifest->layers().end()},
      manifest->source());
  ENGRAM_CHECK(again.ok() && again->config() == manifest->config());
  return 0;
}
