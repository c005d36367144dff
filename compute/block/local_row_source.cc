#include "compute/block/local_row_source.h"

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/model/manifest.h"

namespace engram {
namespace {

// The fetch was over before its caller had it.
class FinishedFetch final : public RowFetch {
 public:
  void Cancel() override {}
};

absl::Status Gather(const Checkpoint& checkpoint, LayerId layer,
                    absl::Span<const RowId> row_ids, absl::Span<std::byte> out,
                    absl::Time deadline) {
  if (absl::Now() >= deadline) {
    return absl::DeadlineExceededError(
        absl::StrCat("deadline passed before rows of layer ", ToInt(layer),
                     " were gathered"));
  }
  ENGRAM_ASSIGN_OR_RETURN(const size_t index,
                          checkpoint.layout().IndexOf(layer));
  return checkpoint.GatherRows(index, row_ids, out);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalRowSource>> LocalRowSource::Create(
    std::shared_ptr<const Checkpoint> checkpoint) {
  const std::string path =
      absl::StrCat(checkpoint->dir(), "/", kManifestFileName);
  std::string version;
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    ENGRAM_ASSIGN_OR_RETURN(const Manifest manifest, Manifest::Load(path));
    ENGRAM_RETURN_IF_ERROR(CheckManifestMatches(manifest, *checkpoint));
    version = manifest.version();
  }
  return absl::WrapUnique(
      new LocalRowSource(std::move(checkpoint), std::move(version)));
}

std::unique_ptr<RowFetch> LocalRowSource::Fetch(
    LayerId layer, absl::Span<const RowId> row_ids, absl::Span<std::byte> out,
    absl::Time deadline, absl::AnyInvocable<void(absl::Status)> done) {
  ENGRAM_CHECK(out.size() == row_ids.size() * row_format().row_bytes());
  done(Gather(*checkpoint_, layer, row_ids, out, deadline));
  return std::make_unique<FinishedFetch>();
}

}  // namespace engram
