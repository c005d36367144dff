#ifndef ENGRAM_CORE_MODEL_STRICT_JSON_H_
#define ENGRAM_CORE_MODEL_STRICT_JSON_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace engram {

// Deeper nesting is refused: nothing this project reads needs it, and code
// that walks a tree recursively must not overflow its stack.
inline constexpr size_t kMaxJsonDepth = 32;

// Parses JSON from outside. INVALID_ARGUMENT: not JSON (with the position), a
// key that stands twice in one object (named), nesting above kMaxJsonDepth.
absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text);

// Text from outside, made fit for a message: quoted, escaped, cut short.
std::string Quoted(absl::string_view text);

// For handlers of nlohmann's SAX interface of one's own: runs `handler` over
// the text. A zero byte, where nlohmann would stop as at the end, is
// INVALID_ARGUMENT; other errors are the handler's, a syntax error by
// JsonSyntaxError.
absl::Status RunSaxParser(absl::string_view text,
                          nlohmann::json_sax<nlohmann::json>& handler);
absl::Status JsonSyntaxError(const nlohmann::detail::exception& error);

// Member `key` of `object`. INVALID_ARGUMENT names the key when it is missing
// or of another type; REQUIRES for all: object.is_object().
absl::StatusOr<const nlohmann::json*> JsonMember(const nlohmann::json& object,
                                                 const std::string& key);
absl::StatusOr<std::string> JsonString(const nlohmann::json& object,
                                       const std::string& key);
// A whole number of at most `max`; the message names value and limit.
absl::StatusOr<uint64_t> JsonUint(const nlohmann::json& object,
                                  const std::string& key, uint64_t max);

}  // namespace engram

#endif  // ENGRAM_CORE_MODEL_STRICT_JSON_H_
