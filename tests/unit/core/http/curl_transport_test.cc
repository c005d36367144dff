#include "core/http/curl_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "tests/testing/http_server.h"
#include "tests/testing/status_matchers.h"

namespace engram {
namespace {

using ::engram::test::HttpReply;
using ::engram::test::HttpServer;
using ::engram::test::IsError;
using ::engram::test::IsOk;
using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Then = HttpServer::Then;

// Keeps what came.
class Recorder final : public HttpReceiver {
 public:
  absl::Status OnHead(const HttpHead& h) override {
    ++heads;
    head = h;
    return head_status;
  }
  absl::Status OnBody(absl::Span<const std::byte> bytes) override {
    body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return body_status;
  }
  absl::Status OnWait() override {
    ++waits;
    return wait_status;
  }

  int heads = 0;
  HttpHead head;
  std::string body;
  int waits = 0;
  absl::Status head_status;
  absl::Status body_status;
  absl::Status wait_status;
};

class CurlTransportTest : public ::testing::Test {
 protected:
  // The environment's proxies know nothing of this machine's ports.
  CurlTransportTest() { setenv("no_proxy", "127.0.0.1", 1); }

  static CurlTransport::Options QuickToStall() {
    return {.stall_timeout = absl::Milliseconds(300)};
  }
};

HttpServer::Handler Always(std::string bytes, Then then = Then::kKeepOpen) {
  return [=](const HttpServer::Request&) {
    return HttpServer::Reply{bytes, then};
  };
}

TEST_F(CurlTransportTest, AsksForARangeAndTellsWhatCame) {
  HttpServer server(Always(HttpReply(
      206, {"Content-Range: bytes 3-7/10", "ETag: \"x\"", "Retry-After: 7"},
      "hello")));
  CurlTransport transport({});
  for (int i = 0; i < 3; ++i) {
    Recorder recorder;
    ASSERT_THAT(
        transport.Get({server.Url("/a%20b"), ByteRange{3, 8}}, recorder),
        IsOk());
    EXPECT_EQ(recorder.heads, 1);
    EXPECT_EQ(recorder.head.status, 206);
    EXPECT_EQ(recorder.head.content_range, "bytes 3-7/10");
    EXPECT_EQ(recorder.head.etag, "\"x\"");
    EXPECT_EQ(recorder.head.retry_after, absl::Seconds(7));
    EXPECT_EQ(recorder.body, "hello");
  }
  const auto requests = server.requests();
  EXPECT_EQ(requests[0].target, "/a%20b");
  EXPECT_EQ(requests[0].headers.at("range"), "bytes=3-7");
  EXPECT_EQ(requests[0].headers.count("authorization"), 0U);
  EXPECT_EQ(requests[0].headers.count("accept-encoding"), 0U);
  EXPECT_EQ(server.connections(), 1U);
}

TEST_F(CurlTransportTest, AnAnswerWithoutABodyHasAHead) {
  HttpServer server(Always(HttpReply(404, {}, "")));
  CurlTransport transport({});
  Recorder recorder;
  ASSERT_THAT(transport.Get({server.Url("/x")}, recorder), IsOk());
  EXPECT_EQ(recorder.heads, 1);
  EXPECT_EQ(recorder.head.status, 404);
  EXPECT_EQ(recorder.head.retry_after, std::nullopt);
  EXPECT_EQ(server.requests()[0].headers.count("range"), 0U);
}

TEST_F(CurlTransportTest, ATokenGoesToItsOwnHostOnly) {
  HttpServer other(Always(HttpReply(200, {}, "from the other")));
  HttpServer server([&](const HttpServer::Request& request) {
    const bool near = request.target == "/near";
    return HttpServer::Reply{HttpReply(
        302, {near ? "Location: /far" : "Location: " + other.Url("/y")},
        "ignored")};
  });
  CurlTransport transport({});
  Recorder recorder;
  ASSERT_THAT(
      transport.Get({server.Url("/near"), ByteRange{0, 4}, "s3cret"}, recorder),
      IsOk());
  EXPECT_EQ(recorder.body, "from the other");
  EXPECT_EQ(recorder.heads, 1);
  EXPECT_EQ(recorder.head.status, 200);
  ASSERT_EQ(server.requests().size(), 2U);
  for (const auto& request : server.requests()) {
    EXPECT_EQ(request.headers.at("authorization"), "Bearer s3cret");
  }
  ASSERT_EQ(other.requests().size(), 1U);
  EXPECT_EQ(other.requests()[0].headers.count("authorization"), 0U);
  EXPECT_EQ(other.requests()[0].headers.at("range"), "bytes=0-3");
}

TEST_F(CurlTransportTest, RedirectsAreBounded) {
  HttpServer server(Always(HttpReply(302, {"Location: /x"}, "")));
  CurlTransport transport({});
  Recorder recorder;
  EXPECT_THAT(
      transport.Get({server.Url("/x"), std::nullopt, "s3cret"}, recorder),
      IsError(absl::StatusCode::kFailedPrecondition,
              AllOf(HasSubstr("redirects"), Not(HasSubstr("s3cret")))));
  EXPECT_EQ(server.requests().size(), 6U);
}

TEST_F(CurlTransportTest, RedirectsToOtherProtocolsAreNotFollowed) {
  HttpServer server(
      Always(HttpReply(302, {"Location: file:///etc/passwd"}, "")));
  CurlTransport transport({});
  Recorder recorder;
  EXPECT_THAT(transport.Get({server.Url("/x")}, recorder),
              IsError(absl::StatusCode::kFailedPrecondition, _));
  EXPECT_EQ(recorder.body, "");
}

TEST_F(CurlTransportTest, AConnectionThatBreaksIsUnavailable) {
  HttpServer server(
      Always("HTTP/1.1 206 x\r\nContent-Length: 10\r\nContent-Range: bytes "
             "0-9/10\r\n\r\nhalf",
             Then::kClose));
  CurlTransport transport({});
  Recorder recorder;
  EXPECT_THAT(transport.Get({server.Url("/x"), ByteRange{0, 10}}, recorder),
              IsError(absl::StatusCode::kUnavailable, _));
  EXPECT_EQ(recorder.body, "half");
  HttpServer silent(Always("", Then::kClose));
  EXPECT_THAT(transport.Get({silent.Url("/x")}, recorder),
              IsError(absl::StatusCode::kUnavailable, _));
}

TEST_F(CurlTransportTest, NoServerIsUnavailable) {
  std::string url;
  {
    HttpServer server(Always(""));
    url = server.Url("/x");
  }
  CurlTransport transport({});
  Recorder recorder;
  EXPECT_THAT(transport.Get({url}, recorder),
              IsError(absl::StatusCode::kUnavailable, _));
  EXPECT_EQ(recorder.heads, 0);
}

TEST_F(CurlTransportTest, AStallEnds) {
  HttpServer server(
      Always("HTTP/1.1 200 x\r\nContent-Length: 10\r\n\r\nhalf", Then::kHold));
  CurlTransport transport(QuickToStall());
  Recorder recorder;
  EXPECT_THAT(transport.Get({server.Url("/x")}, recorder),
              IsError(absl::StatusCode::kDeadlineExceeded, HasSubstr("4096")));
  EXPECT_EQ(recorder.body, "half");
  EXPECT_GE(recorder.waits, 1);
}

TEST_F(CurlTransportTest, TheReceiverEndsTheTransfer) {
  HttpServer server(Always(HttpReply(200, {}, std::string(100'000, 'x'))));
  HttpServer holding(
      Always("HTTP/1.1 200 x\r\nContent-Length: 10\r\n\r\n", Then::kHold));
  CurlTransport transport({});
  const auto is_stopped =
      IsError(absl::StatusCode::kCancelled, HasSubstr("stopped"));
  const absl::Status stopped = absl::CancelledError("stopped");
  {
    Recorder recorder;
    recorder.head_status = stopped;
    EXPECT_THAT(transport.Get({server.Url("/x")}, recorder), is_stopped);
    EXPECT_EQ(recorder.body, "");
  }
  {
    Recorder recorder;
    recorder.body_status = stopped;
    EXPECT_THAT(transport.Get({server.Url("/x")}, recorder), is_stopped);
    EXPECT_LT(recorder.body.size(), 100'000U);
  }
  {
    Recorder recorder;  // long before the stall
    recorder.wait_status = stopped;
    EXPECT_THAT(transport.Get({holding.Url("/x")}, recorder), is_stopped);
    EXPECT_EQ(recorder.waits, 1);
  }
  Recorder recorder;
  EXPECT_THAT(transport.Get({server.Url("/x")}, recorder), IsOk());
  EXPECT_EQ(recorder.body.size(), 100'000U);
}

TEST_F(CurlTransportTest, ManyAtATime) {
  HttpServer server([](const HttpServer::Request& request) {
    return HttpServer::Reply{HttpReply(200, {}, request.target)};
  });
  CurlTransport transport({});
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string target = absl::StrCat("/", t, "_", i);
        Recorder recorder;
        ASSERT_THAT(transport.Get({server.Url(target)}, recorder), IsOk());
        EXPECT_EQ(recorder.body, target);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(server.connections(), 8U);
}

TEST_F(CurlTransportTest, ACaFileThatIsNoneIsNamed) {
  HttpServer server(Always(""));
  CurlTransport transport({.ca_file = "/nonexistent/ca.pem"});
  Recorder recorder;
  const std::string url = "https" + server.Url("/x").substr(4);
  EXPECT_THAT(transport.Get({url}, recorder),
              IsError(absl::StatusCode::kFailedPrecondition,
                      HasSubstr("/nonexistent/ca.pem")));
}

}  // namespace
}  // namespace engram
