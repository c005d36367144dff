#include "deploy/local/demo_texts.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace engram {

absl::StatusOr<std::vector<DemoText>> LoadDemoTexts(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  const auto json = nlohmann::json::parse(file, nullptr,
                                          /*allow_exceptions=*/false);
  if (!json.is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a list of texts"));
  }
  std::vector<DemoText> texts;
  for (const auto& entry : json) {
    if (!entry.is_object() || !entry.contains("name") ||
        !entry["name"].is_string() || !entry.contains("token_ids") ||
        !entry["token_ids"].is_array()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": a text needs name and token_ids"));
    }
    DemoText text;
    text.name = entry["name"].get<std::string>();
    for (const auto& id : entry["token_ids"]) {
      if (!id.is_number_unsigned() || id.get<uint64_t>() > UINT32_MAX) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": ", text.name, " has a token id that is not"));
      }
      text.token_ids.push_back(id.get<uint32_t>());
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace engram
