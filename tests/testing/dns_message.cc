#include "tests/testing/dns_message.h"

#include <arpa/inet.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/check.h"

namespace engram::test {
namespace {

constexpr size_t kHeaderBytes = 12;
constexpr uint16_t kInternet = 1;
constexpr uint16_t kEdns = 41;
constexpr uint16_t kQuestionName = 0xC00C;  // "the name at byte 12"

std::string Big(uint16_t value) {
  return {static_cast<char>(value >> 8), static_cast<char>(value & 0xFF)};
}

uint16_t BigAt(absl::string_view message, size_t at) {
  return static_cast<uint16_t>(static_cast<uint8_t>(message[at]) << 8 |
                               static_cast<uint8_t>(message[at + 1]));
}

}  // namespace

std::optional<DnsQuestion> ParseDnsQuery(absl::string_view message) {
  if (message.size() < kHeaderBytes || BigAt(message, 4) != 1) return {};
  DnsQuestion question;
  question.id = BigAt(message, 0);
  size_t at = kHeaderBytes;
  while (at < message.size() && message[at] != 0) {
    const auto label_bytes = static_cast<uint8_t>(message[at]);
    if (label_bytes > 63 || at + 1 + label_bytes > message.size()) return {};
    absl::StrAppend(&question.name, question.name.empty() ? "" : ".",
                    message.substr(at + 1, label_bytes));
    at += 1 + label_bytes;
  }
  if (at + 5 > message.size()) return {};
  absl::AsciiStrToLower(&question.name);
  question.type = BigAt(message, at + 1);
  question.bytes =
      std::string(message.substr(kHeaderBytes, at + 5 - kHeaderBytes));
  at += 5;
  // An OPT record: the root's name, its type, and as class the size.
  const bool has_edns = BigAt(message, 10) == 1 && at + 5 <= message.size() &&
                        message[at] == 0 && BigAt(message, at + 1) == kEdns;
  if (has_edns) question.max_answer_bytes = BigAt(message, at + 3);
  return question;
}

std::string NameData(absl::string_view name) {
  std::string data;
  for (const absl::string_view label :
       absl::StrSplit(name, '.', absl::SkipEmpty())) {
    ENGRAM_CHECK(label.size() <= 63);
    data += static_cast<char>(label.size());
    absl::StrAppend(&data, label);
  }
  return data + '\0';
}

std::string SrvData(absl::string_view target, uint16_t port) {
  return absl::StrCat(Big(0), Big(1), Big(port), NameData(target));
}

std::string AddressData(const std::string& ip) {
  const int family = ip.find(':') == std::string::npos ? AF_INET : AF_INET6;
  std::string data(family == AF_INET ? 4 : 16, '\0');
  ENGRAM_CHECK(inet_pton(family, ip.c_str(), data.data()) == 1);
  return data;
}

std::string MakeDnsAnswer(const DnsQuestion& question, DnsCode code,
                          const std::vector<DnsRecord>& records,
                          size_t max_bytes) {
  // A response; authoritative, recursion desired and available.
  const auto flags =
      static_cast<uint16_t>(0x8580 | static_cast<uint16_t>(code));
  const std::string counts_after = absl::StrCat(Big(0), Big(0));
  std::string answer = absl::StrCat(Big(question.id), Big(flags), Big(1),
                                    Big(static_cast<uint16_t>(records.size())),
                                    counts_after, question.bytes);
  for (const DnsRecord& record : records) {
    absl::StrAppend(
        &answer,
        record.name.empty() ? Big(kQuestionName) : NameData(record.name),
        Big(record.type), Big(kInternet), Big(0),
        Big(1),  // for a second
        Big(static_cast<uint16_t>(record.data.size())), record.data);
  }
  if (answer.size() <= max_bytes) return answer;
  constexpr uint16_t kTruncated = 0x0200;
  return absl::StrCat(Big(question.id),
                      Big(static_cast<uint16_t>(flags | kTruncated)), Big(1),
                      Big(0), counts_after, question.bytes);
}

}  // namespace engram::test
