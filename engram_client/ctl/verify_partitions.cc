#include "engram_client/ctl/verify_partitions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/mutex.h"

namespace engram::ctl {
namespace {

std::string ToHex(const PartitionDigest& digest) {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(digest.data()), digest.size()));
}

std::string Both(const std::string& codes, const std::string& scales) {
  return codes == scales ? codes : absl::StrCat(codes, " and ", scales);
}

// What there is to say against a partition that was read, or was not.
std::optional<BadPartition> Judge(const Manifest& manifest,
                                  const PartitionRef& ref,
                                  const absl::Status& read,
                                  absl::Span<const std::byte> packed) {
  const ManifestLayer& layer =
      manifest.layers()[manifest.IndexOf(ref.layer).value()];
  const PartitionDigest& expected = layer.digests[ToInt(ref.partition)];
  BadPartition bad{.ref = ref, .expected_digest = ToHex(expected)};
  if (!read.ok()) {
    bad.damaged = absl::IsDataLoss(read) || absl::IsNotFound(read);
    bad.error = std::string(read.message());
    return bad;
  }
  const PartitionDigest actual = DigestOf(packed);
  if (actual == expected) return std::nullopt;
  bad.actual_digest = ToHex(actual);
  return bad;
}

}  // namespace

VerifiedPlace PlaceOfStore(LocalStore& store) {
  return {.read =
              [&store](const PartitionRef& ref, absl::Span<std::byte> packed,
                       OnBytes on_bytes) {
                return store.Read(ref, packed, on_bytes);
              },
          .files =
              [&store](const PartitionRef& ref) { return store.PlaceOf(ref); }};
}

VerifiedPlace PlaceOfCheckpoint(const TableSource& source,
                                PartitionSource& partitions) {
  return {.read =
              [&partitions](const PartitionRef& ref,
                            absl::Span<std::byte> packed, OnBytes on_bytes) {
                return partitions.Read(ref, packed, on_bytes);
              },
          .files =
              [&source](const PartitionRef& ref) {
                const size_t i = source.manifest.IndexOf(ref.layer).value();
                if (source.http != nullptr) {
                  const HttpLayer& layer = source.http->layers[i];
                  return Both(layer.codes.range.url, layer.scales.range.url);
                }
                const LayerTensors& layer = source.checkpoint->layers()[i];
                return Both(layer.embed_weight.file->path(),
                            layer.embed_scale.file->path());
              }};
}

VerifyResult VerifyPartitions(const Manifest& manifest,
                              const VerifiedPlace& place,
                              absl::Span<const PartitionRef> refs,
                              const PartitionRunOptions& options) {
  Mutex mutex;
  VerifyResult result;  // of `mutex`, while threads run
  const auto looked_at = RunOverPartitions(
      manifest, refs,
      [&](const PartitionRef& ref, absl::Span<std::byte> packed,
          OnBytes on_bytes) {
        const absl::Status read = place.read(ref, packed, on_bytes);
        std::optional<BadPartition> bad = Judge(manifest, ref, read, packed);
        if (bad.has_value()) bad->files = place.files(ref);
        MutexLock lock(&mutex);
        if (bad.has_value()) {
          result.bad.push_back(*std::move(bad));
        } else {
          ++result.sound;
          result.sound_bytes += packed.size();
        }
        return absl::OkStatus();
      },
      options);
  ENGRAM_CHECK(looked_at.ok());  // no partition's work fails
  result.looked_at = *looked_at;
  std::sort(result.bad.begin(), result.bad.end(),
            [](const BadPartition& a, const BadPartition& b) {
              return a.ref < b.ref;
            });
  return result;
}

}  // namespace engram::ctl
