#ifndef ENGRAM_DEPLOY_LOCAL_DEMO_TEXTS_H_
#define ENGRAM_DEPLOY_LOCAL_DEMO_TEXTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace engram {

// A text with its token ids, as a DeepSeek tokenizer gives them.
struct DemoText {
  std::string name;
  std::vector<uint32_t> token_ids;
};

// Reads deploy/demo-data/texts.json.
absl::StatusOr<std::vector<DemoText>> LoadDemoTexts(const std::string& path);

}  // namespace engram

#endif  // ENGRAM_DEPLOY_LOCAL_DEMO_TEXTS_H_
