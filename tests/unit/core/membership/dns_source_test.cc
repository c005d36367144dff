#include "core/membership/dns_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "tests/testing/dns_server.h"
#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::test::DnsServer;
using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kName[] = "_grpc._tcp.tables.test";
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr auto kDeadlineExceeded = absl::StatusCode::kDeadlineExceeded;

std::string HostOf(int i) { return absl::StrCat("t", i, ".tables.test"); }

class DnsSourceTest : public ::testing::Test {
 protected:
  DnsSourceTest() : source_(Source(dns_.address())) {}

  std::unique_ptr<MemberSource> Source(absl::string_view server) {
    auto source = MemberSource::Parse(absl::StrCat("dns:", kName, "@", server));
    EXPECT_THAT(source, IsOk());
    return *std::move(source);
  }
  absl::StatusOr<std::vector<Member>> Read(
      absl::Duration patience = absl::Seconds(60)) {
    return source_->Read(absl::Now() + patience);
  }
  // t0, t1, ... of 10.0.x.y, all with a record.
  void SetServers(int count) {
    std::vector<DnsServer::Srv> records;
    for (int i = 0; i < count; ++i) {
      records.push_back({HostOf(i), 7100});
      dns_.SetAddresses(HostOf(i),
                        {absl::StrCat("10.0.", i / 256, ".", i % 256)});
    }
    dns_.SetSrv(kName, records);
  }

  DnsServer dns_;
  std::unique_ptr<MemberSource> source_;
};

TEST_F(DnsSourceTest, ReadsServersByName) {
  dns_.SetSrv(kName, {{"T1.tables.test", 7101},
                      {"t0.tables.test", 7100},
                      {"t2", 7102},
                      {"t3.tables.test", 7103}});
  dns_.SetAddresses(HostOf(0), {"10.0.0.10", "10.0.0.9"});
  dns_.SetAddresses(HostOf(1), {"fd00::2", "fd00::1"});
  dns_.SetAddresses("t2", {"fd00::1", "10.0.0.2"});
  dns_.SetAlias(HostOf(3), HostOf(0));
  const auto members = Read();
  ASSERT_THAT(members, IsOk());
  EXPECT_THAT(*members, ElementsAre(Member{"t0", "10.0.0.9:7100"},
                                    Member{"t1", "[fd00::1]:7101"},
                                    Member{"t2", "10.0.0.2:7102"},
                                    Member{"t3", "10.0.0.9:7103"}));
  EXPECT_FALSE(source_->absence_is_departure());
}

TEST_F(DnsSourceTest, SeesEveryChange) {
  SetServers(1);
  EXPECT_THAT(*Read(), ElementsAre(Member{"t0", "10.0.0.0:7100"}));
  SetServers(2);
  EXPECT_THAT(*Read(), ElementsAre(Member{"t0", "10.0.0.0:7100"},
                                   Member{"t1", "10.0.0.1:7100"}));
  dns_.SetFault(kName, DnsServer::Fault::kHalf);
  EXPECT_THAT(*Read(), ElementsAre(Member{"t0", "10.0.0.0:7100"}));
  dns_.SetAddresses(HostOf(0), {"10.9.9.9"});
  EXPECT_THAT(*Read(), ElementsAre(Member{"t0", "10.9.9.9:7100"}));
}

TEST_F(DnsSourceTest, LongAnswersComeOverTcp) {
  SetServers(300);
  const auto members = Read();
  ASSERT_THAT(members, IsOk());
  ASSERT_EQ(members->size(), 300);
  for (const Member& member : *members) {
    const int i = std::stoi(member.name.substr(1));
    EXPECT_EQ(member.address,
              absl::StrCat("10.0.", i / 256, ".", i % 256, ":7100"));
  }
  EXPECT_GT(dns_.tcp_questions(), 0);
}

TEST_F(DnsSourceTest, NothingThere) {
  EXPECT_THAT(Read(), IsError(kNotFound, AllOf(HasSubstr(kName),
                                               HasSubstr("no such name"))));
  SetServers(2);
  dns_.SetFault(kName, DnsServer::Fault::kEmpty);
  EXPECT_THAT(Read(), IsError(kNotFound, AllOf(HasSubstr(kName),
                                               HasSubstr("no such records"))));
  dns_.SetFault(kName, DnsServer::Fault::kNone);
  dns_.SetSrv(kName, {{".", 1}});
  EXPECT_THAT(Read(), IsError(kNotFound, HasSubstr(kName)));
}

TEST_F(DnsSourceTest, ServerFails) {
  SetServers(2);
  dns_.SetFault(kName, DnsServer::Fault::kServfail);
  EXPECT_THAT(Read(), IsError(kUnavailable, HasSubstr(kName)));
  dns_.SetFault(kName, DnsServer::Fault::kNone);
  EXPECT_THAT(Read(), IsOk());
}

TEST_F(DnsSourceTest, NobodyAnswers) {
  SetServers(1);
  dns_.SetFault(kName, DnsServer::Fault::kSilent);
  EXPECT_THAT(Read(absl::Milliseconds(20)),
              IsError(kDeadlineExceeded, HasSubstr(kName)));
  EXPECT_THAT(Read(-absl::Seconds(1)),
              IsError(kDeadlineExceeded, HasSubstr(kName)));
}

TEST_F(DnsSourceTest, ALostAnswerIsAskedForAgain) {
  SetServers(1);
  dns_.SetFault(kName, DnsServer::Fault::kSilent);
  absl::StatusOr<std::vector<Member>> members;
  std::thread reader([&] { members = Read(); });
  const absl::Time give_up = absl::Now() + absl::Seconds(60);
  while (dns_.udp_questions() == 0 && absl::Now() < give_up) {
    std::this_thread::yield();
  }
  dns_.SetFault(kName, DnsServer::Fault::kNone);
  reader.join();
  ASSERT_THAT(members, IsOk());
  EXPECT_THAT(*members, ElementsAre(Member{"t0", "10.0.0.0:7100"}));
}

TEST_F(DnsSourceTest, NoServerThere) {
  std::string address;
  {
    const DnsServer gone;
    address = gone.address();
  }
  source_ = Source(address);
  EXPECT_THAT(Read(), IsError(kUnavailable, HasSubstr(kName)));
}

TEST_F(DnsSourceTest, TargetsWithoutAnAddressAreLeftOut) {
  SetServers(5);
  dns_.Remove(HostOf(0));
  dns_.SetAddresses(HostOf(1), {});
  dns_.SetFault(HostOf(2), DnsServer::Fault::kServfail);
  dns_.SetFault(HostOf(3), DnsServer::Fault::kSilent);
  EXPECT_THAT(*Read(absl::Seconds(2)),
              ElementsAre(Member{"t4", "10.0.0.4:7100"}));
  dns_.SetFault(HostOf(3), DnsServer::Fault::kNone);
  EXPECT_THAT(*Read(), ElementsAre(Member{"t3", "10.0.0.3:7100"},
                                   Member{"t4", "10.0.0.4:7100"}));
}

TEST_F(DnsSourceTest, NoTargetHasAnAddress) {
  SetServers(2);
  dns_.Remove(HostOf(0));
  dns_.Remove(HostOf(1));
  EXPECT_THAT(Read(), IsError(kUnavailable, AllOf(HasSubstr("none of the 2"),
                                                  HasSubstr(HostOf(0)))));
}

TEST_F(DnsSourceTest, NamesTheBadRecord) {
  SetServers(2);
  dns_.SetSrv(kName, {{HostOf(0), 1}, {"T0.elsewhere.test", 2}});
  EXPECT_THAT(Read(), IsError(kInvalid, AllOf(HasSubstr("t0.tables.test:1"),
                                              HasSubstr("T0.elsewhere.test:2"),
                                              HasSubstr("one server, t0"))));
  dns_.SetSrv(kName, {{HostOf(0), 0}});
  EXPECT_THAT(Read(), IsError(kInvalid, HasSubstr("t0.tables.test:0")));
  dns_.SetSrv(kName, {{"a b.test", 1}});
  EXPECT_THAT(Read(), IsError(kInvalid, HasSubstr("a b")));
  dns_.SetSrv(kName, {{HostOf(0), 1}, {HostOf(1), 1}});
  dns_.SetAddresses(HostOf(1), {"10.0.0.0"});
  EXPECT_THAT(Read(), IsError(kInvalid, AllOf(HasSubstr(kName),
                                              HasSubstr("one address"))));
}

TEST_F(DnsSourceTest, ReadsAtTheSameTime) {
  SetServers(20);
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      const auto members = Read();
      EXPECT_THAT(members, IsOk());
      EXPECT_EQ(members->size(), 20);
    });
  }
  for (std::thread& reader : readers) reader.join();
}

TEST(DnsSourceParseTest, NameAndServer) {
  for (const char* spec : {"tables", "_grpc._tcp.tables.ns.svc.cluster.local.",
                           "tables@10.0.0.1:53", "tables@[fd00::1]:53"}) {
    EXPECT_THAT(MemberSource::Parse(absl::StrCat("dns:", spec)), IsOk());
  }
  for (const char* spec :
       {"", "@10.0.0.1:53", "a b", "tables@", "tables@ns:53", "tables@10.0.0.1",
        "tables@10.0.0.1:0", "tables@10.0.0.1:65536", "tables@[10.0.0.1]:53",
        "tables@fd00::1:53"}) {
    EXPECT_THAT(MemberSource::Parse(absl::StrCat("dns:", spec)),
                IsError(kInvalid, HasSubstr(spec)));
  }
}

TEST(NameSrvServersTest, TakesARecordOnce) {
  const SrvRecord record{"T0.a", 1};
  EXPECT_THAT(*NameSrvServers({record, record}),
              ElementsAre(SrvServer{"t0", record}));
}

}  // namespace
}  // namespace engram
