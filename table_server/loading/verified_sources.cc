#include "table_server/loading/verified_sources.h"

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

std::string ToHex(const PartitionDigest& digest) {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(digest.data()), digest.size()));
}

// What is told of a partition that no source gave: that bytes are there and
// wrong says more than that there are none.
int Severity(const absl::Status& status) {
  if (status.ok()) return -1;
  if (absl::IsCancelled(status)) return 4;
  if (absl::IsFailedPrecondition(status)) return 3;
  if (absl::IsDataLoss(status)) return 2;
  return absl::IsNotFound(status) ? 0 : 1;
}

// Counts what no sound checkpoint has in rows that have just been filled, while
// a core's cache still has them.
class DefectCounter {
 public:
  DefectCounter(const RowFormat& format, absl::Span<const std::byte> packed)
      : format_(format), packed_(packed) {}

  void Filled(size_t bytes) {
    filled_bytes_ += bytes;
    const size_t whole = filled_bytes_ - filled_bytes_ % format_.row_bytes();
    const RowDefects found = CountDefects(
        format_, packed_.subspan(counted_bytes_, whole - counted_bytes_));
    counted_bytes_ = whole;
    found_.nan_codes += found.nan_codes;
    found_.nan_scales += found.nan_scales;
  }

  const RowDefects& found() const { return found_; }

 private:
  const RowFormat& format_;
  const absl::Span<const std::byte> packed_;
  size_t filled_bytes_ = 0;
  size_t counted_bytes_ = 0;
  RowDefects found_;
};

}  // namespace

std::string NameOf(const PartitionRef& ref) {
  return absl::StrCat("layer ", ToInt(ref.layer), " partition ",
                      ToInt(ref.partition));
}

VerifiedSources::VerifiedSources(const Manifest& manifest,
                                 std::vector<PartitionSource*> sources)
    : manifest_(manifest),
      sources_(std::move(sources)),
      defects_(manifest.layers().size()) {}

absl::Status VerifiedSources::Fill(const PartitionRef& ref,
                                   absl::Span<std::byte> packed,
                                   OnBytes on_bytes) {
  absl::Status worst;
  for (PartitionSource* const source : sources_) {
    absl::Status status = FillFrom(*source, ref, packed, on_bytes);
    if (status.ok()) return status;
    const bool cancelled = absl::IsCancelled(status);
    if (Severity(status) > Severity(worst)) worst = std::move(status);
    if (cancelled) break;
  }
  if (!worst.ok()) return worst;
  return absl::NotFoundError(NameOf(ref) + ": nothing to load it from");
}

absl::Status VerifiedSources::FillFrom(PartitionSource& source,
                                       const PartitionRef& ref,
                                       absl::Span<std::byte> packed,
                                       OnBytes on_bytes) {
  ENGRAM_ASSIGN_OR_RETURN(const size_t layer_index,
                          manifest_.IndexOf(ref.layer));
  DefectCounter counter(manifest_.row_format(), packed);
  absl::Status status = source.Read(ref, packed, [&](size_t bytes) {
    counter.Filled(bytes);
    return on_bytes(bytes);
  });
  if (status.ok()) status = Verify(ref, layer_index, packed);
  if (!status.ok()) {
    return Annotate(status, NameOf(ref) + " from " + source.description());
  }
  MutexLock lock(&mutex_);
  defects_[layer_index].nan_codes += counter.found().nan_codes;
  defects_[layer_index].nan_scales += counter.found().nan_scales;
  return absl::OkStatus();
}

absl::Status VerifiedSources::Verify(const PartitionRef& ref,
                                     size_t layer_index,
                                     absl::Span<const std::byte> packed) const {
  const PartitionDigest found = DigestOf(packed);
  const PartitionDigest& wanted =
      manifest_.layers()[layer_index].digests[ToInt(ref.partition)];
  if (found == wanted) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "manifest of another checkpoint or damaged file: the digest is ",
      ToHex(found), ", the manifest says ", ToHex(wanted)));
}

std::vector<RowDefects> VerifiedSources::defects() const {
  MutexLock lock(&mutex_);
  return defects_;
}

}  // namespace engram
