#ifndef ENGRAM_TESTS_TESTING_DNS_MESSAGE_H_
#define ENGRAM_TESTS_TESTING_DNS_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace engram::test {

constexpr uint16_t kDnsA = 1;
constexpr uint16_t kDnsCname = 5;
constexpr uint16_t kDnsAaaa = 28;
constexpr uint16_t kDnsSrv = 33;

// The one question of a query.
struct DnsQuestion {
  uint16_t id = 0;
  std::string name;  // lower case, without a dot at the end
  uint16_t type = 0;
  std::string bytes;              // as it was sent
  size_t max_answer_bytes = 512;  // over UDP: what the client takes
};

enum class DnsCode : uint8_t { kOk = 0, kServfail = 2, kNoSuchName = 3 };

// Of an answer.
struct DnsRecord {
  uint16_t type = 0;
  std::string data;
  std::string name = {};  // empty: the question's
};

std::optional<DnsQuestion> ParseDnsQuery(absl::string_view message);

std::string SrvData(absl::string_view target, uint16_t port);
std::string NameData(absl::string_view name);
// Of 4 or 16 bytes; `ip` in text.
std::string AddressData(const std::string& ip);

// With the TC bit and no records when it is longer than `max_bytes`.
std::string MakeDnsAnswer(const DnsQuestion& question, DnsCode code,
                          const std::vector<DnsRecord>& records,
                          size_t max_bytes);

}  // namespace engram::test

#endif  // ENGRAM_TESTS_TESTING_DNS_MESSAGE_H_
