#include "core/http/bearer_token.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/read_file.h"
#include "core/base/status_macros.h"

namespace engram {
namespace {

constexpr size_t kMaxTokenFileBytes = 64 << 10;

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  ENGRAM_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMaxTokenFileBytes));
  absl::StripAsciiWhitespace(&text);
  if (text.empty() || !std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isgraph(static_cast<unsigned char>(c));
      })) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " does not hold one token of visible ASCII"));
  }
  return text;
}

void WarnOfOpenMode(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && (info.st_mode & S_IROTH) != 0) {
    spdlog::warn("token file {} can be read by everybody", path);
  }
}

}  // namespace

BearerToken::Stamp BearerToken::StampOf(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {};
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  return {
      .device = info.st_dev,
      .inode = info.st_ino,
      .size = static_cast<uint64_t>(info.st_size),
      .changed_ns = info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec};
}

absl::StatusOr<std::unique_ptr<BearerToken>> BearerToken::Open(
    const std::string& path) {
  std::unique_ptr<BearerToken> token(new BearerToken(path));
  const Stamp stamp = StampOf(path);  // before: a change meanwhile is seen
  ENGRAM_ASSIGN_OR_RETURN(std::string text, ReadToken(path));
  WarnOfOpenMode(path);
  MutexLock lock(&token->mutex_);
  token->stamp_ = stamp;
  token->token_ = std::move(text);
  return token;
}

std::string BearerToken::Current() {
  const Stamp stamp = StampOf(path_);
  {
    MutexLock lock(&mutex_);
    if (stamp == stamp_) return token_;
  }
  absl::StatusOr<std::string> text = ReadToken(path_);
  MutexLock lock(&mutex_);
  if (text.ok()) {
    token_ = *std::move(text);
  } else if (stamp != stamp_) {
    spdlog::warn("the token stays what it was: {}",
                 std::string(text.status().message()));
  }
  stamp_ = stamp;
  return token_;
}

}  // namespace engram
