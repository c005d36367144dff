#include "core/rpc/admin_server.h"

#include <civetweb.h>
#include <prometheus/gauge.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/build_info.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/rpc/address.h"
#include "core/rpc/listening_sockets.h"

namespace engram {
namespace {

constexpr char kPlainText[] = "text/plain; charset=utf-8";
constexpr char kMetricsText[] = "text/plain; version=0.0.4; charset=utf-8";

int Reply(mg_connection* connection, int code, const char* phrase,
          const char* content_type, const std::string& body) {
  mg_printf(connection,
            "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
            "Connection: close\r\nCache-Control: no-store\r\n\r\n",
            code, phrase, content_type, body.size());
  mg_write(connection, body.data(), body.size());
  return code;
}

bool IsRead(mg_connection* connection) {
  const char* method = mg_get_request_info(connection)->request_method;
  return absl::string_view(method) == "GET" ||
         absl::string_view(method) == "HEAD";
}

int LogMessage(const mg_connection*, const char* message) {
  spdlog::warn("admin port: {}", message);
  return 1;
}

class AdminServerImpl final : public AdminServer {
 public:
  explicit AdminServerImpl(Options options) : options_(std::move(options)) {}
  ~AdminServerImpl() override {
    if (context_ != nullptr) mg_stop(context_);
  }

  const std::string& address() const override { return address_; }

  absl::Status Listen() {
    const size_t colon = options_.listen.rfind(':');
    const std::string host = options_.listen.substr(0, colon);
    // civetweb takes IP addresses only.
    const std::string port_option =
        absl::StrCat(host == "localhost" ? "127.0.0.1" : host,
                     options_.listen.substr(colon));
    const char* settings[] = {"listening_ports",
                              port_option.c_str(),
                              "num_threads",
                              "3",
                              "request_timeout_ms",
                              "10000",
                              "max_request_size",
                              "16384",
                              "enable_keep_alive",
                              "no",
                              nullptr};
    mg_callbacks callbacks{};
    callbacks.log_message = &LogMessage;
    mg_init_data init{};
    init.callbacks = &callbacks;
    init.user_data = this;
    init.configuration_options = settings;
    std::array<char, 256> text{};
    unsigned code = 0;
    mg_error_data error{&code, text.data(), text.size()};
    context_ = mg_start2(&init, &error);
    if (context_ == nullptr) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen on admin address ", options_.listen, ": ",
                       WhyNotBound(options_.listen)));
    }
    mg_server_port bound{};
    if (mg_get_server_ports(context_, 1, &bound) != 1) {
      return absl::InternalError("the admin port cannot be told");
    }
    address_ = absl::StrCat(host, ":", bound.port);
    mg_set_request_handler(context_, "/metrics$", &OnMetrics, this);
    mg_set_request_handler(context_, "/healthz$", &OnHealth, this);
    mg_set_request_handler(context_, "/readyz$", &OnReady, this);
    mg_set_request_handler(context_, "/", &OnOther, this);
    return absl::OkStatus();
  }

 private:
  static int OnMetrics(mg_connection* connection, void* self) {
    if (!IsRead(connection)) return MethodNotAllowed(connection);
    const Options& options = static_cast<AdminServerImpl*>(self)->options_;
    if (options.before_scrape) options.before_scrape();
    const std::string body = options.registry == nullptr
                                 ? std::string()
                                 : prometheus::TextSerializer().Serialize(
                                       options.registry->Collect());
    return Reply(connection, 200, "OK", kMetricsText, body);
  }

  static int OnHealth(mg_connection* connection, void*) {
    if (!IsRead(connection)) return MethodNotAllowed(connection);
    return Reply(connection, 200, "OK", kPlainText, "ok\n");
  }

  static int OnReady(mg_connection* connection, void* self) {
    if (!IsRead(connection)) return MethodNotAllowed(connection);
    const Options& options = static_cast<AdminServerImpl*>(self)->options_;
    const std::string reason =
        options.not_ready_reason ? options.not_ready_reason() : std::string();
    if (reason.empty()) {
      return Reply(connection, 200, "OK", kPlainText, "ready\n");
    }
    return Reply(connection, 503, "Service Unavailable", kPlainText,
                 absl::StrCat("not ready: ", reason, "\n"));
  }

  static int OnOther(mg_connection* connection, void*) {
    return Reply(connection, 404, "Not Found", kPlainText,
                 "try /metrics, /healthz or /readyz\n");
  }

  static int MethodNotAllowed(mg_connection* connection) {
    return Reply(connection, 405, "Method Not Allowed", kPlainText,
                 "GET or HEAD only\n");
  }

  const Options options_;
  std::string address_;
  mg_context* context_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(
    Options options) {
  ENGRAM_RETURN_IF_ERROR(CheckAddress(options.listen));
  if (absl::StartsWith(options.listen, "unix:")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "admin address ", options.listen, ": only HOST:PORT is supported"));
  }
  auto server = std::make_unique<AdminServerImpl>(std::move(options));
  ENGRAM_RETURN_IF_ERROR(server->Listen());
  return server;
}

void AddBuildInfo(prometheus::Registry& registry,
                  const std::string& component) {
  prometheus::BuildGauge()
      .Name("engram_build_info")
      .Help("Release and commit of this binary; always 1.")
      .Register(registry)
      .Add({{"version", kBuildVersion},
            {"commit", kBuildCommit},
            {"component", component}})
      .Set(1);
}

}  // namespace engram
