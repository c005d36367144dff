#include "table_server/store/rocks_store.h"
#include "tests/unit/table_server/store/local_store_contract.h"
#include "tests/unit/table_server/store/local_store_disk_contract.h"
#include "tests/unit/table_server/store/local_store_fetch_contract.h"
#include "tests/unit/table_server/store/local_store_read_only_contract.h"

namespace engram::test {
namespace {

INSTANTIATE_TEST_SUITE_P(
    Rocks, LocalStoreContract,
    ::testing::Values(StoreKind{
        "rocksdb",
        [](const Manifest& manifest, const StoreSetup& setup)
            -> absl::StatusOr<std::unique_ptr<LocalStore>> {
          return RocksStore::Open(
              manifest,
              {.dir = setup.dir,
               .max_bytes = setup.max_bytes,
               .reads = {.thread_count = 4, .max_queued = setup.max_queued},
               .remove_other_versions = setup.remove_other_versions,
               .read_only = setup.read_only});
        },
        ManifestsOfRocksStores}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace engram::test
