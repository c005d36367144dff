#include "table_server/loading/open_local_store.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "table_server/store/flat_store.h"
#include "table_server/store/rocks_store.h"
#include "table_server/store/store_manifest.h"

namespace engram {

absl::StatusOr<LocalStorePlace> LocalStorePlace::Parse(absl::string_view text) {
  absl::string_view dir = text;
  if (absl::ConsumePrefix(&dir, "flat:") && !dir.empty()) {
    return LocalStorePlace{Kind::kFlat, std::string(dir)};
  }
  if (absl::ConsumePrefix(&dir, "rocksdb:") && !dir.empty()) {
    return LocalStorePlace{Kind::kRocks, std::string(dir)};
  }
  return absl::InvalidArgumentError(absl::StrCat("local store \"", text,
                                                 "\" is neither flat:DIR nor "
                                                 "rocksdb:DIR"));
}

std::string LocalStorePlace::manifests() const {
  return kind == Kind::kFlat ? ManifestsOfFlatStores(dir)
                             : ManifestsOfRocksStores(dir);
}

absl::StatusOr<std::unique_ptr<LocalStore>> OpenLocalStore(
    const Manifest& manifest, const LocalStorePlace& place,
    const TierOptions& options) {
  if (place.kind == LocalStorePlace::Kind::kFlat) {
    return FlatStore::Open(
        manifest, {.dir = place.dir,
                   .max_bytes = options.max_store_bytes,
                   .remove_other_versions = options.remove_other_versions});
  }
  return RocksStore::Open(
      manifest, {.dir = place.dir,
                 .max_bytes = options.max_store_bytes,
                 .remove_other_versions = options.remove_other_versions});
}

absl::StatusOr<std::unique_ptr<LocalStore>> OpenLocalStoreToRead(
    const Manifest& manifest, const LocalStorePlace& place) {
  if (place.kind == LocalStorePlace::Kind::kFlat) {
    return FlatStore::Open(manifest, {.dir = place.dir, .read_only = true});
  }
  return RocksStore::Open(manifest, {.dir = place.dir, .read_only = true});
}

}  // namespace engram
