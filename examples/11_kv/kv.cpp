// SPDX-License-Identifier: Apache-2.0
// A counter that several programs can increment at once, and a thousand keys written with many writes in flight.
//   wherry kv up --detach
//   kv CLUSTER.toml                    the cluster file, as `wherry kv up` shows it
#include <wherry/kv.hpp>

#include <array>
#include <iostream>
#include <string>

namespace kv = wherry::kv;

namespace {

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }
std::string text(const kv::Reply& reply) {
  return {reinterpret_cast<const char*>(reply.value.data()), reply.value.size()};
}

/// Reads the counter, adds one, and writes it. Repeats if another client wrote in between.
kv::Reply raise(kv::Client& store, std::uint64_t key) {
  for (;;) {
    const kv::Reply now = store.get(key);
    if (now.outcome != kv::Outcome::kOk && now.outcome != kv::Outcome::kNoSuchKey) return now;
    const bool there = now.outcome == kv::Outcome::kOk;  // version 0: only if there is no such key
    const std::string next = std::to_string(there ? std::stoi(text(now)) + 1 : 1);
    kv::Reply written = store.put_if(key, there ? now.version : 0, bytes(next));
    if (written.outcome != kv::Outcome::kVersionMismatch) return written;
  }
}

}  // namespace

int main(int argc, char** argv) {
  kv::ClientOptions options;
  if (argc > 1) options.cluster = argv[1];
  auto store = kv::Client::connect(options);
  if (!store) return std::cerr << store.status().message() << "\n", 1;

  for (int i = 0; i < 3; ++i)
    if (const auto raised = raise(*store, 1); !raised.status())
      return std::cerr << raised.status().message() << "\n", 1;
  std::cout << "the counter is " << text(store->get(1)) << "\n";

  // Keeps up to 64 writes in flight, one for each of the client's lanes.
  std::array<kv::Completion, 64> ended;
  std::uint64_t next = 0, done = 0;
  while (done < 1000) {
    while (next < 1000 && store->post_put(100 + next, bytes("value"), next) == wherry::StatusCode::kOk) ++next;
    if (!store->wait(std::chrono::seconds(1))) continue;  // none has ended yet
    const std::size_t count = store->poll(ended);
    for (std::size_t i = 0; i < count; ++i) {
      // kUnknown would mean that the key was written once or not at all. Every other outcome is certain.
      if (ended[i].outcome != kv::Outcome::kOk) return std::cerr << to_string(ended[i].outcome) << "\n", 1;
    }
    done += count;
  }
  std::cout << done << " keys written, each on every node\n";
  return text(store->get(1099)) == "value" ? 0 : 1;
}
