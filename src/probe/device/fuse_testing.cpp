// SPDX-License-Identifier: Apache-2.0
#include "probe/device/fuse_testing.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace wherry::probe::testing_support {
namespace {

constexpr std::uint64_t kFile = 2;  // node; the root is 1
constexpr std::size_t kMostWrite = 128 * 1024;

fuse_attr attributes(std::uint64_t node, std::size_t bytes) {
  fuse_attr attr{};
  attr.ino = node;
  attr.size = node == kFile ? bytes : 0;
  attr.mode = node == kFile ? S_IFREG | 0600 : S_IFDIR | 0700;
  attr.nlink = 1;
  attr.uid = getuid();
  attr.gid = getgid();
  attr.blksize = 4096;
  return attr;
}

}  // namespace

Result<std::unique_ptr<FuseCard>> FuseCard::mount() {
  std::unique_ptr<FuseCard> card(new FuseCard);
  auto directory = TemporaryDirectory::create("probe-fuse");
  if (!directory) return std::move(directory).status();
  card->directory_ = *std::move(directory);
  card->fuse_ = Fd(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!card->fuse_) return Status(StatusCode::kUnavailable, fmt::format("/dev/fuse: {}", std::strerror(errno)));
  const std::string options =
      fmt::format("fd={},rootmode=40000,user_id={},group_id={}", card->fuse_.get(), getuid(), getgid());
  if (::mount("wherry-probe", card->directory_.path().c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return Status(StatusCode::kUnavailable, fmt::format("mount: {}", std::strerror(errno)));
  card->server_ = std::thread([one = card.get()] { one->serve(); });
  return card;
}

FuseCard::~FuseCard() {
  if (!server_.joinable()) return;
  umount2(directory_.path().c_str(), MNT_DETACH);
  server_.join();
}

void FuseCard::answer_at_most(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  most_ = bytes;
}
void FuseCard::delay(std::chrono::milliseconds time) {
  const std::lock_guard lock(mutex_);
  delay_ = time;
}
void FuseCard::flip_in_call(unsigned number, bool writing) {
  const std::lock_guard lock(mutex_);
  flip_ = number;
  flip_writes_ = writing;
}
void FuseCard::fail_call(unsigned number, int error) {
  const std::lock_guard lock(mutex_);
  fail_ = number;
  error_ = error;
}
void FuseCard::behave() {
  const std::lock_guard lock(mutex_);
  most_ = SIZE_MAX;
  delay_ = {};
  flip_ = fail_ = 0;
}
unsigned FuseCard::calls() {
  const std::lock_guard lock(mutex_);
  return calls_;
}

void FuseCard::answer(std::uint64_t unique, int error, const void* data, std::size_t bytes) const {
  fuse_out_header head{};
  head.len = static_cast<std::uint32_t>(sizeof head + bytes);
  head.error = -error;
  head.unique = unique;
  const iovec parts[] = {{&head, sizeof head}, {const_cast<void*>(data), bytes}};
  (void)!writev(fuse_.get(), parts, bytes == 0 ? 1 : 2);
}

void FuseCard::on_read(std::uint64_t unique, const std::byte* argument) {
  fuse_read_in in;
  std::memcpy(&in, argument, sizeof in);
  ++calls_;
  if (fail_ != 0 && --fail_ == 0) return answer(unique, error_, nullptr, 0);
  const std::size_t first = std::min<std::size_t>(in.offset, kBytes),
                    bytes = std::min({std::size_t{in.size}, most_, kBytes - first});
  std::vector<std::byte> out(memory_.begin() + static_cast<std::ptrdiff_t>(first),
                             memory_.begin() + static_cast<std::ptrdiff_t>(first + bytes));
  if (!flip_writes_ && flip_ != 0 && --flip_ == 0 && out.size() > 5) out[5] ^= std::byte{0x20};
  answer(unique, 0, out.data(), out.size());
}

void FuseCard::on_write(std::uint64_t unique, const std::byte* argument) {
  fuse_write_in in;
  std::memcpy(&in, argument, sizeof in);
  ++calls_;
  if (fail_ != 0 && --fail_ == 0) return answer(unique, error_, nullptr, 0);
  const std::size_t first = std::min<std::size_t>(in.offset, kBytes),
                    bytes = std::min({std::size_t{in.size}, most_, kBytes - first});
  std::memcpy(memory_.data() + first, argument + sizeof in, bytes);
  if (flip_writes_ && flip_ != 0 && --flip_ == 0 && bytes > 5) memory_[first + 5] ^= std::byte{0x20};
  fuse_write_out out{};
  out.size = static_cast<std::uint32_t>(bytes);
  answer(unique, 0, &out, sizeof out);
}

void FuseCard::serve() {
  std::vector<std::byte> request(kMostWrite + 4096);
  for (;;) {
    const ssize_t read = ::read(fuse_.get(), request.data(), request.size());
    if (read < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN)) continue;
    if (read < static_cast<ssize_t>(sizeof(fuse_in_header))) return;  // ENODEV: unmounted
    fuse_in_header head;
    std::memcpy(&head, request.data(), sizeof head);
    const std::byte* const argument = request.data() + sizeof head;
    std::unique_lock lock(mutex_);
    switch (head.opcode) {
      case FUSE_INIT: {
        fuse_init_in in{};
        std::memcpy(&in, argument, std::min(sizeof in, static_cast<std::size_t>(read) - sizeof head));
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = std::min<std::uint32_t>(in.minor, FUSE_KERNEL_MINOR_VERSION);
        out.max_readahead = 0;
        out.max_write = kMostWrite;
        out.time_gran = 1;
        answer(head.unique, 0, &out, sizeof out);
        break;
      }
      case FUSE_LOOKUP: {
        if (std::strcmp(reinterpret_cast<const char*>(argument), "card") != 0) {
          answer(head.unique, ENOENT, nullptr, 0);
          break;
        }
        fuse_entry_out out{};
        out.nodeid = kFile;
        out.attr = attributes(kFile, kBytes);
        answer(head.unique, 0, &out, sizeof out);
        break;
      }
      case FUSE_GETATTR: {
        fuse_attr_out out{};
        out.attr = attributes(head.nodeid, kBytes);
        answer(head.unique, 0, &out, sizeof out);
        break;
      }
      case FUSE_OPEN: {
        fuse_open_out out{};
        out.open_flags = FOPEN_DIRECT_IO;  // each call of the path is one request, and no page cache answers
        answer(head.unique, 0, &out, sizeof out);
        break;
      }
      case FUSE_READ:
      case FUSE_WRITE: {
        const auto late = delay_;
        if (late.count() != 0) {
          lock.unlock();
          std::this_thread::sleep_for(late);
          lock.lock();
        }
        if (head.opcode == FUSE_READ)
          on_read(head.unique, argument);
        else
          on_write(head.unique, argument);
        break;
      }
      case FUSE_FLUSH:
      case FUSE_RELEASE:
        answer(head.unique, 0, nullptr, 0);
        break;
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        break;  // no answer
      default:
        answer(head.unique, ENOSYS, nullptr, 0);
    }
  }
}

}  // namespace wherry::probe::testing_support
