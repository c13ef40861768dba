// SPDX-License-Identifier: Apache-2.0
// The paths of any Linux machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "probe/registry.hpp"
#include "wherry/transport.hpp"

namespace wherry::probe {

/// All classes of this folder, one line each.
[[nodiscard]] Paths host_paths();

// cpu: copies of the calling thread, and its way to memory.
[[nodiscard]] std::unique_ptr<Path> make_memcpy();
/// Stores that bypass the caches (base/copy.hpp).
[[nodiscard]] std::unique_ptr<Path> make_stream();
/// x86's rep movsb.
[[nodiscard]] std::unique_ptr<Path> make_movsb();
/// A copy out of another NUMA node's memory, by a thread of the first. `root`: for tests, before /sys.
[[nodiscard]] std::unique_ptr<Path> make_numa(const std::string& root = "");
/// Loads that depend on each other: a transfer is a line. Shape::bytes is the memory that they go round in, depth how
/// many independent chains there are.
[[nodiscard]] std::unique_ptr<Path> make_chase();

// ipc: a child of fork() on another core.
/// The child copies the requested bytes into shared memory. Both sides use the same ring.
[[nodiscard]] std::unique_ptr<Path> make_shm();
/// process_vm_readv(2) out of the child, process_vm_writev(2) into it. It sleeps.
[[nodiscard]] std::unique_ptr<Path> make_cma_get();
[[nodiscard]] std::unique_ptr<Path> make_cma_put();
/// The child writes the requested bytes: to a pipe; by vmsplice(2), without its own copy; to sockets.
[[nodiscard]] std::unique_ptr<Path> make_pipe();
[[nodiscard]] std::unique_ptr<Path> make_splice();
[[nodiscard]] std::unique_ptr<Path> make_unix();
[[nodiscard]] std::unique_ptr<Path> make_tcp();

// ucx: the verbs of src/fabric, with its streams over TCP.
enum class Verb : std::uint8_t { kGet, kPut, kMessage };
[[nodiscard]] std::unique_ptr<Path> make_ucx(Verb verb, Transport transport);

// wake: a line of 64 bytes to a child that waits for it by the given method, and an answer for which this side polls.
enum class Waiting : std::uint8_t { kSpin, kYield, kFutex, kEventfd, kEpoll, kNap };
[[nodiscard]] std::unique_ptr<Path> make_wake(Waiting waiting);

}  // namespace wherry::probe
