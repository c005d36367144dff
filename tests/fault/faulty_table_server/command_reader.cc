#include "tests/fault/faulty_table_server/command_reader.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "core/base/check.h"

namespace engram::fault {
namespace {

constexpr size_t kMaxCommandBytes = 4096;

}  // namespace

CommandReader::CommandReader(Obey obey)
    : obey_(std::move(obey)), stop_fd_(eventfd(0, EFD_CLOEXEC)) {
  ENGRAM_CHECK(stop_fd_ >= 0);
  thread_ = std::thread([this] { Read(); });
}

CommandReader::~CommandReader() {
  const uint64_t one = 1;
  ENGRAM_CHECK(write(stop_fd_, &one, sizeof(one)) == sizeof(one));
  thread_.join();
  close(stop_fd_);
}

void CommandReader::Read() {
  std::string bytes;
  while (bytes.size() <= kMaxCommandBytes) {
    pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                     {.fd = stop_fd_, .events = POLLIN}};
    if (poll(fds, 2, -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;
    if (fds[0].revents == 0) continue;
    char buffer[kMaxCommandBytes];
    const ssize_t size = read(STDIN_FILENO, buffer, sizeof(buffer));
    if (size <= 0) return;
    bytes.append(buffer, static_cast<size_t>(size));
    Answer(bytes);
  }
}

// Every whole line of `bytes`, which it takes away.
void CommandReader::Answer(std::string& bytes) {
  for (size_t end = bytes.find('\n'); end != std::string::npos;
       end = bytes.find('\n')) {
    const std::string answer = AnswerTo(obey_(Command(bytes.substr(0, end))));
    std::printf("%s\n", answer.c_str());
    std::fflush(stdout);
    bytes.erase(0, end + 1);
  }
}

}  // namespace engram::fault
