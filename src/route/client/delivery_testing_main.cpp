// SPDX-License-Identifier: Apache-2.0
// A rank for the test of exact delivery: all ranks send messages of random sizes to all ranks. The receiver can check
// each message, and whether all have arrived. Usage: route_delivery MESSAGES_PER_RANK
#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "wherry/route.hpp"

namespace {

using namespace wherry;
using namespace wherry::route;

/// Message `number` of rank `from`. These two values determine its destination, size and content.
struct Letter {
  Rank to;
  std::size_t size;
  std::uint64_t seed;
};
Letter letter(Rank from, std::uint64_t number, Rank ranks) noexcept {
  const std::uint64_t seed = splitmix64(std::uint64_t{from} << 40 | number);
  // Most messages are short. One in 64 has up to 4 KiB, and one in 65536 up to 1 MiB.
  std::size_t most = 64;
  if ((seed >> 32) % 64 == 0) most = 4096;
  if ((seed >> 32) % 65536 == 0) most = 1 << 20;
  return {static_cast<Rank>(seed % ranks), 16 + splitmix64(seed) % (most - 15), seed};
}

struct Account {
  std::uint64_t messages = 0, bytes = 0, numbers = 0;
  friend bool operator==(const Account&, const Account&) noexcept = default;
};

int fail(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t messages = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  auto started = Runtime::start();
  if (!started) return fail(started.status().message());
  Runtime& runtime = *started;
  const Rank me = runtime.rank(), ranks = runtime.ranks();

  std::vector<Account> got(ranks);
  std::uint64_t wrong = 0;
  const auto take = runtime.on<ByteView>([&](ByteView bytes) {
    std::uint64_t number = 0, from = 0;
    if (bytes.size() < 16) {
      ++wrong;
      return;
    }
    std::memcpy(&number, bytes.data(), 8);
    std::memcpy(&from, bytes.data() + 8, 8);
    if (from >= ranks || number >= messages) {
      ++wrong;
      return;
    }
    const Letter wanted = letter(static_cast<Rank>(from), number, ranks);
    bool good = wanted.to == me && wanted.size == bytes.size();
    const auto filler = static_cast<std::byte>(wanted.seed);
    for (std::size_t i = 16; i < bytes.size() && good; ++i) good = bytes[i] == filler;
    wrong += good ? 0 : 1;
    Account& account = got[from];
    ++account.messages;
    account.bytes += bytes.size();
    account.numbers += splitmix64(number);  // a sum that a lost and a doubled message change
  });

  std::vector<std::byte> message(std::size_t{1} << 20);
  for (std::uint64_t number = 0; number < messages; ++number) {
    const Letter what = letter(me, number, ranks);
    const std::uint64_t from = me;
    std::memcpy(message.data(), &number, 8);
    std::memcpy(message.data() + 8, &from, 8);
    std::memset(message.data() + 16, static_cast<int>(what.seed & 0xff), what.size - 16);
    for (;;) {
      // Waits in one of two ways: the caller polls, or send() polls.
      const ByteView view(message.data(), what.size);
      const StatusCode code =
          number % 2 == 0 ? runtime.try_send(what.to, take, view) : runtime.send(what.to, take, view);
      if (code == StatusCode::kOk) break;
      if (code != StatusCode::kWouldBlock) return fail(std::string(to_string(code)));
      runtime.poll();
      if (!runtime.status()) return fail(runtime.status().message());
    }
  }
  if (Status s = runtime.quiesce(); !s) return fail(s.message());

  std::vector<Account> wanted(ranks);
  for (Rank from = 0; from < ranks; ++from) {
    for (std::uint64_t number = 0; number < messages; ++number) {
      const Letter what = letter(from, number, ranks);
      if (what.to != me) continue;
      ++wanted[from].messages;
      wanted[from].bytes += what.size;
      wanted[from].numbers += splitmix64(number);
    }
  }
  for (Rank from = 0; from < ranks; ++from) {
    if (got[from] != wanted[from]) {
      ++wrong;
      fmt::print(stderr, "rank {} got {} messages of {} bytes from rank {}; {} of {} were sent\n", me,
                 got[from].messages, got[from].bytes, from, wanted[from].messages, wanted[from].bytes);
    }
  }
  std::uint64_t bytes = 0;
  for (const Account& account : got) bytes += account.bytes;
  const auto all_wrong = runtime.reduce(wrong), all_bytes = runtime.reduce(bytes);
  if (!all_wrong || !all_bytes) return fail(runtime.status().message());
  if (me == 0) {
    fmt::print("{{\"ranks\": {}, \"messages\": {}, \"bytes\": {}, \"wrong\": {}}}\n", ranks, messages * ranks,
               *all_bytes, *all_wrong);
  }
  return *all_wrong == 0 ? 0 : 1;
}
