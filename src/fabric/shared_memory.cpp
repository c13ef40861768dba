// SPDX-License-Identifier: Apache-2.0
#include "fabric/shared_memory.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include "base/try.hpp"
#include "fabric/process_reader.hpp"

namespace wherry::fabric {
namespace {

/// The file that is mapped at an address, the offset in it, and the mapping's length.
struct Mapping {
  std::uint64_t bytes = 0;  ///< from the address on; 0: no shared mapping is there
  std::uint64_t offset = 0;
  std::string file;  ///< device and inode
};

Result<Mapping> mapping_at(pid_t pid, std::uint64_t address) {
  const std::string name = fmt::format("/proc/{}/maps", pid);
  std::ifstream maps(name);
  if (!maps) return Status(StatusCode::kUnsupported, name + " cannot be read, which shows where shared memory is");
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t offset = 0;
    char rights[5] = {};
    char device[32] = {};
    char inode[32] = {};
    // proc(5), in ascending order: "7f30a0000000-7f30a0100000 rw-s 00000000 00:01 1027 /dev/shm/name (deleted)".
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %31s %31s", &from, &to, rights, &offset,
                    device, inode) != 6)
      continue;
    if (address >= to) continue;
    if (address < from || rights[3] != 's') break;
    return Mapping{to - address, offset + (address - from), std::string(device) + " " + inode};
  }
  return Mapping{};
}

/// Tests by a system call, which fails where a load would kill the process.
bool readable(const std::byte* at) {
  std::byte byte{};
  ProcessReader self(getpid());
  (void)self.add(&byte, reinterpret_cast<std::uint64_t>(at), 1);
  // If the call is forbidden, the result does not matter: shared memory is not used then (AgentClient::post_probe).
  return self.read().code() != StatusCode::kSourceFault;
}

}  // namespace

Result<std::size_t> shared_bytes(pid_t owner, std::uint64_t base, const std::byte* here) {
  WHERRY_ASSIGN(const auto theirs, mapping_at(owner, base));
  WHERRY_ASSIGN(const auto ours, mapping_at(getpid(), reinterpret_cast<std::uint64_t>(here)));
  if (theirs.bytes == 0 || ours.bytes == 0 || theirs.file != ours.file || theirs.offset != ours.offset)
    return Status(StatusCode::kInvalidArgument, fmt::format("process {} has other memory there", owner));
  const std::size_t both = std::min(theirs.bytes, ours.bytes);
  if (readable(here + both - 1)) return both;
  // Only the file's end can limit the mapping, so its readable part is a prefix.
  std::size_t some = 0;
  std::size_t too_many = both;
  while (too_many - some > 1) {
    const std::size_t middle = some + (too_many - some) / 2;
    (readable(here + middle - 1) ? some : too_many) = middle;
  }
  return some;
}

}  // namespace wherry::fabric
