#ifndef ENGRAM_TESTS_TESTING_DNS_SERVER_H_
#define ENGRAM_TESTS_TESTING_DNS_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "tests/testing/dns_message.h"

namespace engram::test {

// A DNS server on loopback, UDP and TCP, whose answers a test sets.
//
// Thread safety: all methods may be called concurrently.
class DnsServer {
 public:
  enum class Fault {
    kNone,
    kServfail,
    kEmpty,   // no error and no records
    kSilent,  // no answer
    kHalf     // of the records, rounded down
  };

  DnsServer();
  ~DnsServer();
  DnsServer(const DnsServer&) = delete;
  DnsServer& operator=(const DnsServer&) = delete;

  const std::string& address() const { return address_; }  // 127.0.0.1:PORT

  // Records of a name: what was there before goes. Names without records do
  // not exist.
  struct Srv {
    std::string target;
    uint16_t port = 0;
  };
  void SetSrv(absl::string_view name, const std::vector<Srv>& servers);
  // IPv4 and IPv6, in text; none: the name is there and has no address.
  void SetAddresses(absl::string_view host,
                    const std::vector<std::string>& ips);
  void SetAlias(absl::string_view host, absl::string_view of);
  void Remove(absl::string_view name);

  void SetFault(absl::string_view name, Fault fault);  // of this name's answers

  // How many questions came over UDP and TCP.
  size_t udp_questions() const;
  size_t tcp_questions() const;

 private:
  struct Name {
    std::vector<DnsRecord> records;
    Fault fault = Fault::kNone;
  };
  struct Connection {
    int fd = -1;
    std::string received;
  };

  void Run();
  void AnswerUdp();
  void Accept();
  // False: the connection is over.
  bool AnswerTcp(Connection* connection);
  // Empty: none.
  std::string AnswerTo(absl::string_view message, bool over_udp);
  std::vector<DnsRecord> RecordsFor(const std::string& name,
                                    uint16_t type) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  int udp_ = -1;
  int tcp_ = -1;
  int stop_ = -1;  // an eventfd
  std::string address_;
  std::list<Connection> connections_;  // of the thread

  mutable Mutex mutex_;
  std::map<std::string, Name, std::less<>> names_ ABSL_GUARDED_BY(mutex_);
  size_t udp_questions_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t tcp_questions_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace engram::test

#endif  // ENGRAM_TESTS_TESTING_DNS_SERVER_H_
