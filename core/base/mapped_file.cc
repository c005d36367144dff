#include "core/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"

namespace engram {
namespace {

// Set while this thread is inside Guarded.
thread_local sigjmp_buf* guard = nullptr;
thread_local uintptr_t guarded_begin = 0;
thread_local uintptr_t guarded_end = 0;

struct sigaction previous_action;

void OnSigbus(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (guard != nullptr && address >= guarded_begin && address < guarded_end) {
    // sigsetjmp saved no signal mask (that would cost a system call for each
    // Guarded), so the handler's must not stay behind.
    const auto* interrupted = static_cast<const ucontext_t*>(context);
    pthread_sigmask(SIG_SETMASK, &interrupted->uc_sigmask, nullptr);
    siglongjmp(*guard, 1);
  }
  // Not ours: as if this handler had never been there.
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_DFL &&
             previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
  } else {
    std::signal(SIGBUS, SIG_DFL);
    std::raise(SIGBUS);
  }
}

void InstallHandlerOnce() {
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_sigaction = OnSigbus;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &previous_action) == 0;
  }();
  static_cast<void>(installed);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(
    const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  }
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a regular file"));
  }
  const auto size_bytes = static_cast<size_t>(info.st_size);
  void* data = nullptr;
  if (size_bytes > 0) {
    data = mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, fd, 0);
  }
  const int map_errno = errno;
  close(fd);
  if (data == MAP_FAILED) {
    return absl::ErrnoToStatus(map_errno, absl::StrCat("cannot map ", path));
  }
  InstallHandlerOnce();
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, static_cast<const std::byte*>(data), size_bytes));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_bytes_);
}

absl::Status MappedFile::Guarded(absl::FunctionRef<void()> read) const {
  sigjmp_buf here;
  sigjmp_buf* const outer_guard = guard;
  const uintptr_t outer_begin = guarded_begin;
  const uintptr_t outer_end = guarded_end;
  const bool completed = sigsetjmp(here, 0) == 0;
  if (completed) {
    guard = &here;
    guarded_begin = reinterpret_cast<uintptr_t>(data_);
    guarded_end = guarded_begin + size_bytes_;
    read();
  }
  guard = outer_guard;
  guarded_begin = outer_begin;
  guarded_end = outer_end;
  if (completed) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path_, " was truncated while it was mapped (", size_bytes_,
                   " bytes when it was opened), or its storage failed"));
}

}  // namespace engram
