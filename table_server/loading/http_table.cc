#include "table_server/loading/http_table.h"

#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/checkpoint_index.h"
#include "core/model/config.h"
#include "core/model/manifest_json.h"
#include "core/model/safetensors_header.h"
#include "core/model/strict_json.h"

namespace engram {
namespace {

using Waiter = HttpReader::Waiter;

absl::StatusOr<std::string> ReadBytes(HttpReader& reader, HttpRange range,
                                      Waiter wait,
                                      HttpReader::FileFacts& facts) {
  std::string bytes(range.bytes.size(), '\0');
  ENGRAM_ASSIGN_OR_RETURN(
      facts, reader.ReadRange(
                 range,
                 [&](uint64_t offset, absl::Span<const std::byte> piece) {
                   std::memcpy(bytes.data() + offset, piece.data(),
                               piece.size());
                   return absl::OkStatus();
                 },
                 wait));
  return bytes;
}

// The header of one file and where its data begins.
struct RemoteFile {
  std::string url;
  HttpReader::FileFacts facts;
  uint64_t data_begin = 0;
  SafetensorsHeader header;
};

absl::StatusOr<RemoteFile> ReadHeader(HttpReader& reader,
                                      const std::string& url, Waiter wait) {
  RemoteFile file{.url = url};
  ENGRAM_ASSIGN_OR_RETURN(
      const std::string prefix,
      ReadBytes(reader, {url, {0, kSafetensorsPrefixBytes}}, wait, file.facts));
  uint64_t size = 0;
  std::memcpy(&size, prefix.data(), sizeof(size));
  ENGRAM_RETURN_IF_ERROR(Annotate(
      size == 0 ? absl::InvalidArgumentError("header of 0 bytes")
                : CheckSafetensorsHeaderSize(size, file.facts.file_bytes),
      url));
  file.data_begin = kSafetensorsPrefixBytes + size;
  ENGRAM_ASSIGN_OR_RETURN(const std::string json,
                          ReadBytes(reader,
                                    {url,
                                     {kSafetensorsPrefixBytes, file.data_begin},
                                     file.facts.file_bytes},
                                    wait, file.facts));
  absl::StatusOr<SafetensorsHeader> header =
      ParseSafetensorsHeader(json, file.facts.file_bytes - file.data_begin);
  if (!header.ok()) return Annotate(header.status(), url);
  file.header = *std::move(header);
  return file;
}

using WeightMap = std::map<std::string, std::string>;

// Which file the index gives for a tensor; without an index it is the single
// one.
class TensorFiles {
 public:
  static absl::StatusOr<TensorFiles> Fetch(HttpReader& reader,
                                           const HttpFolder& folder,
                                           Waiter wait) {
    TensorFiles files;
    files.url_ = folder.UrlOf(kIndexFileName);
    const absl::StatusOr<std::string> text =
        reader.ReadFile(files.url_, kMaxIndexBytes, wait);
    if (absl::IsNotFound(text.status())) return files;
    if (!text.ok()) return text.status();
    absl::StatusOr<WeightMap> index = ParseCheckpointIndex(*text);
    if (!index.ok()) return Annotate(index.status(), files.url_);
    files.index_ = *std::move(index);
    return files;
  }

  absl::StatusOr<std::string> FileOf(const std::string& tensor) const {
    if (!index_.has_value()) return kSingleFileName;
    const auto found = index_->find(tensor);
    if (found != index_->end()) return found->second;
    return absl::NotFoundError(
        absl::StrCat(url_, " has no tensor ", Quoted(tensor)));
  }

 private:
  std::string url_;
  std::optional<WeightMap> index_;
};

// Finds tensors and keeps the headers that it reads.
class TensorFinder {
 public:
  TensorFinder(HttpReader& reader, const HttpFolder& folder, TensorFiles files,
               Waiter wait)
      : reader_(reader),
        folder_(folder),
        index_(std::move(files)),
        wait_(wait) {}

  // The tensor, which must have this dtype and shape.
  absl::StatusOr<HttpTensor> Find(const std::string& name,
                                  const std::string& dtype,
                                  const std::vector<uint64_t>& shape) {
    ENGRAM_ASSIGN_OR_RETURN(const std::string file_name, index_.FileOf(name));
    if (files_.count(file_name) == 0) {
      absl::StatusOr<RemoteFile> file =
          ReadHeader(reader_, folder_.UrlOf(file_name), wait_);
      if (!file.ok()) {
        return Annotate(file.status(),
                        absl::StrCat("the file of tensor ", Quoted(name)));
      }
      files_.emplace(file_name, *std::move(file));
    }
    const RemoteFile& file = files_.at(file_name);
    const auto found = file.header.tensors.find(name);
    if (found == file.header.tensors.end()) {
      return absl::NotFoundError(
          absl::StrCat(file.url, " has no tensor ", Quoted(name)));
    }
    const SafetensorsEntry& entry = found->second;
    if (entry.dtype != dtype || entry.shape != shape) {
      return absl::FailedPreconditionError(
          absl::StrCat(file.url, ": tensor ", Quoted(name), " is ",
                       Quoted(entry.dtype), " ", ShapeText(entry.shape),
                       ", the manifest gives ", dtype, " ", ShapeText(shape)));
    }
    return HttpTensor{
        {file.url,
         {file.data_begin + entry.begin, file.data_begin + entry.end},
         file.facts.file_bytes},
        file.facts.etag};
  }

  // INVALID_ARGUMENT: it stands in another of the files that were read too.
  absl::Status CheckStandsOnce(const std::string& name) const {
    const RemoteFile* first = nullptr;
    for (const auto& [file_name, file] : files_) {
      if (file.header.tensors.count(name) == 0) continue;
      if (first != nullptr) {
        return absl::InvalidArgumentError(
            absl::StrCat("tensor ", Quoted(name), " stands in ", first->url,
                         " and in ", file.url));
      }
      first = &file;
    }
    return absl::OkStatus();
  }

 private:
  HttpReader& reader_;
  const HttpFolder& folder_;
  const TensorFiles index_;
  const Waiter wait_;
  std::map<std::string, RemoteFile> files_;
};

absl::Status CheckConfig(HttpReader& reader, const HttpFolder& folder,
                         const Manifest& manifest, Waiter wait) {
  const std::string url = folder.UrlOf("config.json");
  ENGRAM_ASSIGN_OR_RETURN(const std::string text,
                          reader.ReadFile(url, kMaxConfigBytes, wait));
  const absl::StatusOr<EngramConfig> config = ParseConfig(text);
  if (!config.ok()) return Annotate(config.status(), url);
  return CheckManifestConfig(manifest, *config, folder.url);
}

}  // namespace

absl::StatusOr<std::vector<HttpLayer>> FindHttpLayers(HttpReader& reader,
                                                      const HttpFolder& folder,
                                                      const Manifest& manifest,
                                                      Waiter wait) {
  ENGRAM_RETURN_IF_ERROR(CheckConfig(reader, folder, manifest, wait));
  ENGRAM_ASSIGN_OR_RETURN(TensorFiles index,
                          TensorFiles::Fetch(reader, folder, wait));
  TensorFinder finder(reader, folder, std::move(index), wait);
  const RowFormat& format = manifest.row_format();
  std::vector<HttpLayer> layers;
  std::vector<std::string> names;
  for (const ManifestLayer& layer : manifest.layers()) {
    const std::string prefix =
        absl::StrCat("layers.", ToInt(layer.layer_id), ".engram.embed.");
    ENGRAM_ASSIGN_OR_RETURN(
        HttpTensor codes,
        finder.Find(names.emplace_back(prefix + "weight"), format.code_dtype,
                    {layer.row_count, format.width}));
    ENGRAM_ASSIGN_OR_RETURN(
        HttpTensor scales,
        finder.Find(names.emplace_back(prefix + "scale"), format.scale_dtype,
                    {layer.row_count, format.scale_bytes()}));
    layers.push_back({std::move(codes), std::move(scales)});
  }
  for (const std::string& name : names) {
    ENGRAM_RETURN_IF_ERROR(finder.CheckStandsOnce(name));
  }
  return layers;
}

absl::StatusOr<Manifest> FetchManifest(HttpReader& reader,
                                       const HttpFolder& folder, Waiter wait) {
  const std::string url = folder.UrlOf(kManifestFileName);
  const absl::StatusOr<std::string> text =
      reader.ReadFile(url, kMaxManifestBytes, wait);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat(
        folder.url, " has no ", kManifestFileName,
        ": give one by --manifest, or put one there; `engramctl manifest` "
        "makes it where the checkpoint is on a disk"));
  }
  if (!text.ok()) return text.status();
  absl::StatusOr<Manifest> manifest = Manifest::Parse(*text);
  if (!manifest.ok()) return Annotate(manifest.status(), url);
  return manifest;
}

}  // namespace engram
