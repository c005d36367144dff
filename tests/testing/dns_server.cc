#include "tests/testing/dns_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace engram::test {
namespace {

constexpr size_t kMaxConnections = 64;
constexpr size_t kMaxTcpAnswerBytes = 65535;
constexpr int kBindTries = 100;

int Bind(int type, uint16_t port) {
  const int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  ENGRAM_CHECK(fd >= 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
      0) {
    return fd;
  }
  close(fd);
  return -1;
}

uint16_t PortOf(int fd) {
  sockaddr_in address = {};
  socklen_t size_bytes = sizeof(address);
  ENGRAM_CHECK(
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size_bytes) == 0);
  return ntohs(address.sin_port);
}

}  // namespace

DnsServer::DnsServer() : stop_(eventfd(0, EFD_CLOEXEC)) {
  ENGRAM_CHECK(stop_ >= 0);
  // A free port of UDP is not always one of TCP.
  for (int i = 0; i < kBindTries && tcp_ < 0; ++i) {
    if (udp_ >= 0) close(udp_);
    udp_ = Bind(SOCK_DGRAM, 0);
    ENGRAM_CHECK(udp_ >= 0);
    tcp_ = Bind(SOCK_STREAM, PortOf(udp_));
  }
  ENGRAM_CHECK(tcp_ >= 0 && listen(tcp_, kMaxConnections) == 0);
  address_ = absl::StrCat("127.0.0.1:", PortOf(udp_));
  thread_ = std::thread([this] { Run(); });
}

DnsServer::~DnsServer() {
  const uint64_t one = 1;
  ENGRAM_CHECK(write(stop_, &one, sizeof(one)) == sizeof(one));
  thread_.join();
  for (const Connection& connection : connections_) close(connection.fd);
  for (const int fd : {udp_, tcp_, stop_}) close(fd);
}

void DnsServer::SetSrv(absl::string_view name,
                       const std::vector<Srv>& servers) {
  MutexLock lock(&mutex_);
  std::vector<DnsRecord>& records = names_[std::string(name)].records;
  records.clear();
  for (const Srv& server : servers) {
    records.push_back({kDnsSrv, SrvData(server.target, server.port)});
  }
}

void DnsServer::SetAddresses(absl::string_view host,
                             const std::vector<std::string>& ips) {
  MutexLock lock(&mutex_);
  std::vector<DnsRecord>& records = names_[std::string(host)].records;
  records.clear();
  for (const std::string& ip : ips) {
    std::string data = AddressData(ip);
    records.push_back({data.size() == 4 ? kDnsA : kDnsAaaa, std::move(data)});
  }
}

void DnsServer::SetAlias(absl::string_view host, absl::string_view of) {
  MutexLock lock(&mutex_);
  std::vector<DnsRecord>& records = names_[std::string(host)].records;
  // The data of an alias is text here: RecordsFor follows it.
  records = {{kDnsCname, std::string(of)}};
}

void DnsServer::Remove(absl::string_view name) {
  MutexLock lock(&mutex_);
  names_.erase(std::string(name));
}

void DnsServer::SetFault(absl::string_view name, Fault fault) {
  MutexLock lock(&mutex_);
  names_[std::string(name)].fault = fault;
}

size_t DnsServer::udp_questions() const {
  MutexLock lock(&mutex_);
  return udp_questions_;
}

size_t DnsServer::tcp_questions() const {
  MutexLock lock(&mutex_);
  return tcp_questions_;
}

std::vector<DnsRecord> DnsServer::RecordsFor(const std::string& name,
                                             uint16_t type) const {
  std::vector<DnsRecord> found;
  for (const DnsRecord& record : names_.at(name).records) {
    if (record.type == type) found.push_back(record);
    if (record.type != kDnsCname) continue;
    found.push_back({kDnsCname, NameData(record.data)});
    for (const DnsRecord& of : names_.at(record.data).records) {
      if (of.type == type) found.push_back({type, of.data, record.data});
    }
  }
  return found;
}

std::string DnsServer::AnswerTo(absl::string_view message, bool over_udp) {
  const std::optional<DnsQuestion> question = ParseDnsQuery(message);
  if (!question.has_value()) return "";
  const size_t max_bytes =
      over_udp ? question->max_answer_bytes : kMaxTcpAnswerBytes;
  MutexLock lock(&mutex_);
  ++(over_udp ? udp_questions_ : tcp_questions_);
  const auto it = names_.find(question->name);
  if (it == names_.end()) {
    return MakeDnsAnswer(*question, DnsCode::kNoSuchName, {}, max_bytes);
  }
  std::vector<DnsRecord> records = RecordsFor(question->name, question->type);
  switch (it->second.fault) {
    case Fault::kNone:
      break;
    case Fault::kServfail:
      return MakeDnsAnswer(*question, DnsCode::kServfail, {}, max_bytes);
    case Fault::kEmpty:
      records.clear();
      break;
    case Fault::kSilent:
      return "";
    case Fault::kHalf:
      records.resize(records.size() / 2);
      break;
  }
  return MakeDnsAnswer(*question, DnsCode::kOk, records, max_bytes);
}

void DnsServer::AnswerUdp() {
  std::array<char, 4096> message;
  sockaddr_in from = {};
  socklen_t from_bytes = sizeof(from);
  const ssize_t size_bytes =
      recvfrom(udp_, message.data(), message.size(), 0,
               reinterpret_cast<sockaddr*>(&from), &from_bytes);
  if (size_bytes <= 0) return;
  const std::string answer =
      AnswerTo({message.data(), static_cast<size_t>(size_bytes)},
               /*over_udp=*/true);
  if (answer.empty()) return;
  // One that is not taken is lost, as over any network.
  sendto(udp_, answer.data(), answer.size(), 0,
         reinterpret_cast<const sockaddr*>(&from), from_bytes);
}

void DnsServer::Accept() {
  const int fd = accept4(tcp_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  if (connections_.size() >= kMaxConnections) {
    close(fd);
  } else {
    connections_.push_back({fd, ""});
  }
}

bool DnsServer::AnswerTcp(Connection* connection) {
  std::array<char, 4096> bytes;
  const ssize_t count = recv(connection->fd, bytes.data(), bytes.size(), 0);
  if (count <= 0) return false;
  std::string& received = connection->received;
  received.append(bytes.data(), static_cast<size_t>(count));
  while (received.size() >= 2) {
    const size_t size_bytes =
        static_cast<size_t>(static_cast<uint8_t>(received[0]) << 8 |
                            static_cast<uint8_t>(received[1]));
    if (received.size() < 2 + size_bytes) break;
    const std::string answer =
        AnswerTo(absl::string_view(received).substr(2, size_bytes),
                 /*over_udp=*/false);
    received.erase(0, 2 + size_bytes);
    if (answer.empty()) continue;
    std::string framed = {static_cast<char>(answer.size() >> 8),
                          static_cast<char>(answer.size() & 0xFF)};
    framed += answer;
    // Loopback's buffers take it whole.
    if (send(connection->fd, framed.data(), framed.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(framed.size())) {
      return false;
    }
  }
  return true;
}

void DnsServer::Run() {
  while (true) {
    std::vector<pollfd> polled = {
        {stop_, POLLIN, 0}, {udp_, POLLIN, 0}, {tcp_, POLLIN, 0}};
    for (const Connection& connection : connections_) {
      polled.push_back({connection.fd, POLLIN, 0});
    }
    poll(polled.data(), polled.size(), -1);  // until something, or `stop_`
    if (polled[0].revents != 0) return;
    if (polled[1].revents != 0) AnswerUdp();
    size_t i = 3;
    for (auto it = connections_.begin(); it != connections_.end(); ++i) {
      if (polled[i].revents == 0 || AnswerTcp(&*it)) {
        ++it;
        continue;
      }
      close(it->fd);
      it = connections_.erase(it);
    }
    if (polled[2].revents != 0) Accept();
  }
}

}  // namespace engram::test
