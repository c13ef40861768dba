// SPDX-License-Identifier: Apache-2.0
// The paths that any Linux machine may have.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "probe/registry.hpp"
#include "wherry/transport.hpp"

namespace wherry::probe {

/// All paths of this folder.
[[nodiscard]] Paths host_paths();

// cpu: copies by the calling thread, and its access to memory.
[[nodiscard]] std::unique_ptr<Path> make_memcpy();
/// Stores that bypass the caches (base/copy.hpp).
[[nodiscard]] std::unique_ptr<Path> make_stream();
/// x86's rep movsb.
[[nodiscard]] std::unique_ptr<Path> make_movsb();
/// A copy from another NUMA node's memory, by a thread on the first node. `root`: for tests, a prefix of /sys.
[[nodiscard]] std::unique_ptr<Path> make_numa(const std::string& root = "");
/// Dependent loads, each of a line. Shape::bytes is the memory of the
/// circle of lines, and depth is the number of independent chains.
[[nodiscard]] std::unique_ptr<Path> make_chase();

// ipc: a child process (fork()) on another core.
/// The child copies the requested bytes to shared memory. Both sides use the same ring.
[[nodiscard]] std::unique_ptr<Path> make_shm();
/// process_vm_readv(2) from the child, and process_vm_writev(2) to it. The child sleeps.
[[nodiscard]] std::unique_ptr<Path> make_cma_get();
[[nodiscard]] std::unique_ptr<Path> make_cma_put();
/// The child writes the requested bytes: to a pipe; by vmsplice(2), without a copy of its own; to sockets.
[[nodiscard]] std::unique_ptr<Path> make_pipe();
[[nodiscard]] std::unique_ptr<Path> make_splice();
[[nodiscard]] std::unique_ptr<Path> make_unix();
[[nodiscard]] std::unique_ptr<Path> make_tcp();

// ucx: the verbs of src/fabric, with its streams over TCP.
enum class Verb : std::uint8_t { kGet, kPut, kMessage };
[[nodiscard]] std::unique_ptr<Path> make_ucx(Verb verb, Transport transport);

// wake: a line of 64 bytes for a child, which waits by the given method and answers. This side polls for the answer.
enum class Waiting : std::uint8_t { kSpin, kYield, kFutex, kEventfd, kEpoll, kNap };
[[nodiscard]] std::unique_ptr<Path> make_wake(Waiting waiting);

}  // namespace wherry::probe
