#include "core/model/checkpoint_index.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/read_file.h"
#include "core/base/status_annotate.h"
#include "core/base/status_macros.h"
#include "core/model/strict_json.h"

namespace engram {
namespace {

using WeightMap = std::map<std::string, std::string>;

constexpr size_t kMaxFileNameBytes = 255;  // that file systems have

// A name from the index must not lead out of the checkpoint's directory.
bool IsPlainFileName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxFileNameBytes && name != "." &&
         !absl::StrContains(name, "..") &&
         name.find_first_of(absl::string_view("/\0", 2)) ==
             absl::string_view::npos;
}

// Where each of `names` should be, without an index: in the single file.
absl::StatusOr<WeightMap> Locate(const std::string& dir,
                                 absl::Span<const std::string> names) {
  const std::string index_path = absl::StrCat(dir, "/", kIndexFileName);
  const absl::StatusOr<std::string> text = ReadFile(index_path, kMaxIndexBytes);
  WeightMap located;
  if (absl::IsNotFound(text.status())) {
    for (const std::string& name : names) located[name] = kSingleFileName;
    return located;
  }
  if (!text.ok()) return text.status();
  const absl::StatusOr<WeightMap> index = ParseCheckpointIndex(*text);
  if (!index.ok()) return Annotate(index.status(), index_path);
  for (const std::string& name : names) {
    const auto found = index->find(name);
    if (found == index->end()) {
      return absl::NotFoundError(
          absl::StrCat(index_path, " has no tensor ", Quoted(name)));
    }
    located[name] = found->second;
  }
  return located;
}

absl::StatusOr<std::map<std::string, SafetensorsFile>> OpenAll(
    const std::string& dir, const WeightMap& located) {
  std::map<std::string, SafetensorsFile> files;
  for (const auto& [tensor, file_name] : located) {
    if (files.count(file_name) > 0) continue;
    absl::StatusOr<SafetensorsFile> file =
        SafetensorsFile::Open(absl::StrCat(dir, "/", file_name));
    if (!file.ok()) {
      return Annotate(file.status(),
                      absl::StrCat("the file of tensor ", Quoted(tensor)));
    }
    files.emplace(file_name, *std::move(file));
  }
  return files;
}

}  // namespace

absl::StatusOr<WeightMap> ParseCheckpointIndex(absl::string_view json) {
  ENGRAM_ASSIGN_OR_RETURN(const nlohmann::json index, ParseStrictJson(json));
  if (!index.is_object()) return absl::InvalidArgumentError("not an object");
  ENGRAM_ASSIGN_OR_RETURN(const nlohmann::json* weight_map,
                          JsonMember(index, "weight_map"));
  if (!weight_map->is_object()) {
    return absl::InvalidArgumentError("weight_map is not an object");
  }
  WeightMap files;
  for (const auto& [tensor, file] : weight_map->items()) {
    const auto* name = file.get_ptr<const std::string*>();
    if (name == nullptr || !IsPlainFileName(*name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("weight_map gives tensor ", Quoted(tensor), " the file ",
                       name == nullptr ? file.type_name() : Quoted(*name),
                       ", which is not a file name of this directory"));
    }
    files.emplace_hint(files.end(), tensor, *name);
  }
  return files;
}

absl::StatusOr<std::vector<TensorView>> FindTensors(
    const std::string& dir, absl::Span<const std::string> names) {
  ENGRAM_ASSIGN_OR_RETURN(const WeightMap located, Locate(dir, names));
  ENGRAM_ASSIGN_OR_RETURN(const auto files, OpenAll(dir, located));
  std::vector<TensorView> tensors;
  for (const std::string& name : names) {
    const std::string& wanted = located.at(name);
    for (const auto& [file_name, file] : files) {
      if (file_name == wanted || file.tensors().count(name) == 0) continue;
      const bool twice = files.at(wanted).tensors().count(name) > 0;
      return absl::InvalidArgumentError(
          absl::StrCat(dir, ": tensor ", Quoted(name), " stands in ", file_name,
                       twice ? " and in " : ", the index says in ", wanted));
    }
    ENGRAM_ASSIGN_OR_RETURN(TensorView tensor, files.at(wanted).Find(name));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace engram
