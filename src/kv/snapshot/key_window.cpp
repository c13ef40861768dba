// SPDX-License-Identifier: Apache-2.0
#include "kv/snapshot/key_window.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.hpp"
#include "base/try.hpp"
#include "base/unix_socket.hpp"
#include "kv/generated/registers.hpp"

namespace wherry::kv {
namespace {

constexpr std::size_t kMostReaders = 4;

}  // namespace

std::string key_window_path(const std::string& cluster_file, std::uint32_t node) {
  return fmt::format("{}.node{}.keys", cluster_file, node);
}

struct KeyWindow::Impl {
  struct Listing {
    Fd socket;
    Bytes out;
    std::size_t sent = 0;
    std::uint64_t next = 0;  ///< bucket
    bool ends = false;       ///< after `out`
  };

  std::string path;
  std::uint32_t node;
  SnapshotSource source;
  RegisterIo& core;
  TableLister& lister;
  Fd socket;
  std::vector<Listing> listings;
  std::vector<std::uint64_t> keys;

  void accept_one();
  /// False: the listing has ended.
  [[nodiscard]] bool go_on(Listing& listing);
  void fill(Listing& listing);
  /// Only in epoch 0 the table can be emptied, and the node's driver needs several turns to return from there.
  [[nodiscard]] bool has_table() { return core.read(registers::kEpochOffset) != 0; }
};

Result<KeyWindow> KeyWindow::open(const std::string& path, std::uint32_t node, SnapshotSource source, RegisterIo& core,
                                  TableLister& lister) {
  WHERRY_ASSIGN(Fd socket, listen_unix(path));
  return KeyWindow(std::unique_ptr<Impl>(new Impl{path, node, source, core, lister, std::move(socket), {}, {}}));
}

KeyWindow::KeyWindow(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
KeyWindow::KeyWindow(KeyWindow&&) noexcept = default;
KeyWindow& KeyWindow::operator=(KeyWindow&&) noexcept = default;
KeyWindow::~KeyWindow() {
  if (impl_ != nullptr) ::unlink(impl_->path.c_str());
}

bool KeyWindow::busy() const noexcept { return !impl_->listings.empty(); }

void KeyWindow::turn() {
  impl_->accept_one();
  std::erase_if(impl_->listings, [this](Impl::Listing& listing) { return !impl_->go_on(listing); });
}

void KeyWindow::Impl::accept_one() {
  Fd peer(::accept4(socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!peer || listings.size() >= kMostReaders) return;
  // The file's mode has the same effect, but this check holds even if the mode changes.
  const auto who = peer_credentials(peer.get());
  if (!who || (who->uid != 0 && who->uid != ::geteuid())) return;
  Listing listing{std::move(peer), {}, 0, 0, false};
  lister.settle();
  const bool serves = registers::kStateServing.get(core.read(registers::kStateOffset)) != 0;
  listing.out = pack_greeting({.node = static_cast<std::uint8_t>(node),
                               .source = source,
                               .bucket_bits = core.read(registers::kBucketBitsOffset),
                               .epoch = core.read(registers::kEpochOffset),
                               .serves = serves});
  listing.ends = !serves;
  if (serves) spdlog::info("kv node {}: process {} of user {} lists its keys", node, who->pid, who->uid);
  listings.push_back(std::move(listing));
}

bool KeyWindow::Impl::go_on(Listing& listing) {
  if (!listing.ends && !has_table()) {
    const Bytes end = pack_key_end(false);
    listing.out.insert(listing.out.end(), end.begin(), end.end());
    listing.ends = true;
  }
  if (listing.sent == listing.out.size() && !listing.ends) fill(listing);
  while (listing.sent < listing.out.size()) {
    const auto sent = ::send(listing.socket.get(), listing.out.data() + listing.sent, listing.out.size() - listing.sent,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    listing.sent += static_cast<std::size_t>(sent);
  }
  return !listing.ends;
}

void KeyWindow::Impl::fill(Listing& listing) {
  const std::uint64_t all = std::uint64_t{1} << core.read(registers::kBucketBitsOffset);
  const auto buckets = static_cast<std::uint32_t>(std::min<std::uint64_t>(kMaxPieceBuckets, all - listing.next));
  keys.clear();
  lister.list(static_cast<std::uint32_t>(listing.next), buckets, keys);
  listing.next += buckets;
  listing.out = pack_keys(buckets, keys);
  listing.sent = 0;
  if (listing.next < all) return;
  const Bytes end = pack_key_end(true);
  listing.out.insert(listing.out.end(), end.begin(), end.end());
  listing.ends = true;
}

}  // namespace wherry::kv
