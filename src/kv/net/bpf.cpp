// SPDX-License-Identifier: Apache-2.0
#include "kv/net/bpf.hpp"

#include <fmt/core.h>
#include <linux/if_link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace wherry::kv::bpf {
namespace {

int call(bpf_cmd command, bpf_attr& attributes) noexcept {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

std::uint64_t address(const void* at) noexcept { return reinterpret_cast<std::uintptr_t>(at); }

wherry::Status error_of(const std::string& what) {
  const int error = errno;
  const bool forbidden = error == EPERM || error == EACCES;
  const bool taken = error == EBUSY || error == EEXIST;
  return {forbidden ? StatusCode::kPermissionDenied
          : taken   ? StatusCode::kAlreadyExists
                    : StatusCode::kUnavailable,
          fmt::format("XDP: {}: {}{}", what, std::strerror(error),
                      forbidden ? " (be root, or have CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF)"
                      : taken   ? " (another XDP program is in front of this interface)"
                                : "")};
}

}  // namespace

Result<Fd> make_map(bpf_map_type type, std::uint32_t entries, const std::string& what) {
  bpf_attr attributes{};
  attributes.map_type = type;
  attributes.key_size = sizeof(std::uint32_t);
  attributes.value_size = sizeof(std::uint32_t);
  attributes.max_entries = entries;
  Fd map(call(BPF_MAP_CREATE, attributes));
  if (!map) return error_of("cannot make a map of " + what);
  return map;
}

wherry::Status set(const Fd& map, std::uint32_t key, std::uint32_t value, const std::string& what) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<std::uint32_t>(map.get());
  attributes.key = address(&key);
  attributes.value = address(&value);
  return call(BPF_MAP_UPDATE_ELEM, attributes) == 0 ? wherry::Status() : error_of(what);
}

Result<Fd> load_program(std::span<const bpf_insn> code) {
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_XDP;
  attributes.insns = address(code.data());
  attributes.insn_cnt = static_cast<std::uint32_t>(code.size());
  attributes.license = address("Apache-2.0");
  std::memcpy(attributes.prog_name, "wherry_kv", sizeof "wherry_kv");
  Fd program(call(BPF_PROG_LOAD, attributes));
  if (!program) return error_of("the kernel does not take the program");
  return program;
}

Result<Fd> attach(const Fd& program, int interface, Mode mode) {
  bpf_attr attributes{};
  attributes.link_create.prog_fd = static_cast<std::uint32_t>(program.get());
  attributes.link_create.target_ifindex = static_cast<std::uint32_t>(interface);
  attributes.link_create.attach_type = BPF_XDP;
  attributes.link_create.flags = mode == Mode::native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
  Fd link(call(BPF_LINK_CREATE, attributes));
  if (link) return link;
  if (mode == Mode::native && errno == EOPNOTSUPP)
    return wherry::Status(StatusCode::kUnsupported,
                          "XDP: native mode: the driver has none; generic mode goes with any");
  return error_of(mode == Mode::native ? "native mode" : "generic mode");
}

Result<std::uint32_t> try_out(const Fd& program, ByteView frame) {
  bpf_attr attributes{};
  attributes.test.prog_fd = static_cast<std::uint32_t>(program.get());
  attributes.test.data_in = address(frame.data());
  attributes.test.data_size_in = static_cast<std::uint32_t>(frame.size());
  if (call(BPF_PROG_TEST_RUN, attributes) != 0) return error_of("cannot try the program");
  return attributes.test.retval;
}

}  // namespace wherry::kv::bpf
