#ifndef ENGRAM_TESTS_FAULT_FAULTY_TABLE_SERVER_COMMAND_READER_H_
#define ENGRAM_TESTS_FAULT_FAULTY_TABLE_SERVER_COMMAND_READER_H_

#include <string>
#include <thread>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "tests/fault/command.h"

namespace engram::fault {

// Reads commands from stdin on a thread of its own until stdin ends, and
// answers each on stdout. The destructor ends the thread.
class CommandReader {
 public:
  using Obey =
      absl::AnyInvocable<absl::StatusOr<std::string>(const Command& command)>;

  explicit CommandReader(Obey obey);
  ~CommandReader();
  CommandReader(const CommandReader&) = delete;
  CommandReader& operator=(const CommandReader&) = delete;

 private:
  void Read();
  void Answer(std::string& bytes);

  Obey obey_;
  int stop_fd_;
  std::thread thread_;
};

}  // namespace engram::fault

#endif  // ENGRAM_TESTS_FAULT_FAULTY_TABLE_SERVER_COMMAND_READER_H_
