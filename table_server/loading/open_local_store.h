#ifndef ENGRAM_TABLE_SERVER_LOADING_OPEN_LOCAL_STORE_H_
#define ENGRAM_TABLE_SERVER_LOADING_OPEN_LOCAL_STORE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/model/manifest.h"
#include "table_server/loading/tier_options.h"
#include "table_server/store/local_store.h"

namespace engram {

// A local store as flags name it: "flat:DIR" or "rocksdb:DIR".
struct LocalStorePlace {
  enum class Kind { kFlat, kRocks };

  // INVALID_ARGUMENT: no such kind, or no directory.
  static absl::StatusOr<LocalStorePlace> Parse(absl::string_view text);

  // Where its stores keep their manifests (store_manifest.h).
  std::string manifests() const;

  Kind kind = Kind::kFlat;
  std::string dir;
};

// As the store's Open, with the limits of `options`. `manifest` must outlive
// the store.
absl::StatusOr<std::unique_ptr<LocalStore>> OpenLocalStore(
    const Manifest& manifest, const LocalStorePlace& place,
    const TierOptions& options);

// To be read only. As the store's Open; `manifest` must outlive the store.
absl::StatusOr<std::unique_ptr<LocalStore>> OpenLocalStoreToRead(
    const Manifest& manifest, const LocalStorePlace& place);

}  // namespace engram

#endif  // ENGRAM_TABLE_SERVER_LOADING_OPEN_LOCAL_STORE_H_
