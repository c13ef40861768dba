// SPDX-License-Identifier: Apache-2.0
// Sends sequences to a link and to a handshake. The other side sends any frames, in any pieces, while this side sends,
// gets and flushes. Memory may be unreadable. For any input, each operation must report once, writes must go only to
// memory of a get or of an allowed put, and reads must touch only offered memory.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "fabric/stream_auth.hpp"
#include "fabric/stream_link.hpp"

using namespace wherry;
using namespace wherry::fabric;

namespace {

struct Script {
  const std::uint8_t* at;
  const std::uint8_t* end;
  std::uint8_t next() { return at == end ? 0 : *at++; }
  [[nodiscard]] bool over() const { return at == end; }
};

/// A connection whose other end is the fuzzer's input.
class ScriptStream final : public ByteStream {
 public:
  std::vector<std::byte> in;
  std::size_t room = 0;
  bool faulty = false, closed = false;
  Moved read(std::span<const iovec> to) noexcept override {
    std::size_t n = 0;
    for (const iovec& part : to) {
      const std::size_t some = std::min(part.iov_len, in.size() - n);
      if (some == 0) continue;  // in.data() may be null
      std::memcpy(part.iov_base, in.data() + n, some);
      n += some;
    }
    in.erase(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n));
    if (n != 0) return {Outcome::kMoved, n};
    return {closed ? Outcome::kClosed : Outcome::kNotNow};
  }
  Moved write(std::span<const iovec> from) noexcept override {
    if (closed) return {Outcome::kClosed};
    if (std::exchange(faulty, false)) return {Outcome::kUnreadable};
    std::size_t n = 0;
    for (const iovec& part : from) {
      const std::size_t some = std::min(part.iov_len, room - n);
      for (std::size_t i = 0; i < some; ++i)
        sum += static_cast<const unsigned char*>(part.iov_base)[i];  // is it there?
      n += some;
    }
    room -= n;
    return n == 0 ? Moved{} : Moved{Outcome::kMoved, n};
  }
  [[nodiscard]] int fd() const noexcept override { return -1; }
  [[nodiscard]] std::string kind() const override { return "script"; }
  [[nodiscard]] std::string why() const override { return "the script closed it"; }
  unsigned sum = 0;
};

alignas(64) std::array<std::byte, 256> offered;
alignas(64) std::array<std::uint64_t, 24> records;  // the middle third may be written

struct Host final : StreamLink::Host {
  [[nodiscard]] static bool within(std::uint64_t address, std::uint64_t bytes, const void* base, std::uint64_t size) {
    const auto from = reinterpret_cast<std::uint64_t>(base);
    return address >= from && bytes <= size && address - from <= size - bytes;
  }
  [[nodiscard]] bool may_read(std::uint64_t address, std::uint64_t bytes) const override {
    return within(address, bytes, offered.data(), offered.size());
  }
  [[nodiscard]] bool may_write(std::uint64_t address, std::uint64_t bytes) const override {
    return within(address, bytes, records.data() + 8, 64);
  }
  [[nodiscard]] std::size_t largest_message() const override { return 1000; }
  void on_message(std::uint32_t, ByteView message) override {
    if (message.size() > 1000) std::abort();
  }
};

void handshake(Script script) {
  auto side = script.next() % 2 == 0 ? StreamHandshake::client(Purpose::kControl, 1, "secret")
                                     : StreamHandshake::server([](Purpose, std::uint64_t) { return "secret"; });
  ScriptStream stream;
  while (!script.over()) {
    stream.in.push_back(static_cast<std::byte>(script.next()));
    stream.room += script.next();
    const auto done = side.advance(stream);
    if (!done) return;
    if (*done) std::abort();  // nobody guesses a proof
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Script script{data, data + size};
  handshake(script);
  records.fill(0);
  struct Operation {
    Completion done;
    std::array<std::byte, 80> memory;  // 64 in the middle of it are a get's
  };
  std::vector<std::unique_ptr<Operation>> operations;
  Host host;
  {
    StreamLink link(host);
    auto owned = std::make_unique<ScriptStream>();
    ScriptStream& stream = *owned;
    link.attach(std::move(owned));
    while (!script.over() && operations.size() < 200) {
      const std::uint8_t what = script.next();
      operations.push_back(std::make_unique<Operation>());
      Operation& o = *operations.back();
      o.memory.fill(std::byte{0xee});
      switch (what % 12) {
        case 0:
          (void)link.send(3, o.memory, o.done);
          break;
        case 1:
        case 2:
          (void)link.get(o.memory.data() + 8, 4096, script.next() % 65, o.done);
          break;
        case 3:
          (void)link.put(offered.data(), 8 * std::uint64_t{script.next()}, 8 * (script.next() % 9U), o.done);
          break;
        case 4:
          (void)link.flush(o.done);
          break;
        case 5:
          stream.faulty = true;
          break;
        case 6:
          if (script.next() % 8 == 0) stream.closed = true;
          break;
        case 7:
          stream.room += script.next();
          break;
        case 8:
        case 9: {  // a frame, mostly a plausible one
          const FrameHead head{script.next() % 81U, static_cast<FrameType>(script.next() % 8U), script.next() % 8U};
          const auto* raw = reinterpret_cast<const std::byte*>(&head);
          stream.in.insert(stream.in.end(), raw, raw + sizeof head);
          const std::uint8_t where = script.next();
          const std::uint64_t base = where % 2 == 0 ? reinterpret_cast<std::uint64_t>(offered.data())
                                                    : reinterpret_cast<std::uint64_t>(records.data());
          const std::uint64_t body[2] = {base + where, script.next()};
          raw = reinterpret_cast<const std::byte*>(body);
          for (std::size_t i = 0; i < head.bytes; ++i)
            stream.in.push_back(i < sizeof body ? raw[i] : static_cast<std::byte>(script.next()));
          break;
        }
        case 10:
          stream.in.push_back(static_cast<std::byte>(script.next()));
          break;
        case 11:
          if (script.next() % 8 == 0) (void)link.say_bye();
          break;
      }
      (void)link.pump(script.next() * 16U);
    }
  }
  for (const auto& operation : operations) {
    if (operation->done.pending() != 0) std::abort();  // the link is gone: all have reported, and once
    for (const std::size_t i : {0U, 7U, 72U, 79U}) {
      if (operation->memory[i] != std::byte{0xee}) std::abort();
    }
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    if ((i < 8 || i >= 16) && records[i] != 0) std::abort();
  }
  return 0;
}
