// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/proxy_message.hpp"

#include <fmt/core.h>

namespace wherry::sim {
namespace {

constexpr std::uint64_t kConfigBody = 12;  ///< {u32 address, u32 value, int bytes}
constexpr std::uint64_t kBarBody = 24;     ///< {u64 address, u64 value, unsigned bytes, bool memory}
constexpr std::uint64_t kConfigSpace = 4096;

Status no_message(const std::string& what) { return {StatusCode::kProtocol, "multi-process QEMU: " + what}; }

std::uint64_t body_of(ProxyCommand command) {
  switch (command) {
    case ProxyCommand::kSyncMemory:
      return kProxyMaxBody;
    case ProxyCommand::kConfigWrite:
    case ProxyCommand::kConfigRead:
      return kConfigBody;
    case ProxyCommand::kBarWrite:
    case ProxyCommand::kBarRead:
      return kBarBody;
    default:
      return 0;
  }
}

Status check_access(const ProxyMessage& message) {
  if (message.bytes != 1 && message.bytes != 2 && message.bytes != 4 && message.bytes != 8)
    return no_message(fmt::format("an access of {} bytes", message.bytes));
  if (body_of(message.command) == kConfigBody && message.address > kConfigSpace - message.bytes)
    return no_message(fmt::format("configuration register {:#x}", message.address));
  return {};
}

}  // namespace

Result<std::optional<ParsedProxyMessage>> parse_proxy_message(ByteView in) {
  if (in.size() < kProxyHeaderBytes) return std::optional<ParsedProxyMessage>();
  Reader reader(in);
  const auto command = reader.get<std::uint32_t>();
  (void)reader.get<std::uint32_t>();  // padding
  const auto size = reader.get<std::uint64_t>();
  if (command > static_cast<std::uint32_t>(ProxyCommand::kReset) ||
      command == static_cast<std::uint32_t>(ProxyCommand::kReturn))
    return no_message(fmt::format("command {} is none that a device gets", command));
  ProxyMessage message{.command = static_cast<ProxyCommand>(command)};
  if (size != body_of(message.command))
    return no_message(fmt::format("command {} with {} bytes, want {}", command, size, body_of(message.command)));
  if (reader.remaining() < size) return std::optional<ParsedProxyMessage>();
  if (size == kConfigBody) {
    message.address = reader.get<std::uint32_t>();
    message.value = reader.get<std::uint32_t>();
    message.bytes = reader.get<std::uint32_t>();
  } else if (size == kBarBody) {
    message.address = reader.get<std::uint64_t>();
    message.value = reader.get<std::uint64_t>();
    message.bytes = reader.get<std::uint32_t>();
  }
  if (message.bytes != 0 || size == kConfigBody || size == kBarBody) {
    if (Status status = check_access(message); !status) return status;
  }
  return std::optional(ParsedProxyMessage{message, kProxyHeaderBytes + static_cast<std::size_t>(size)});
}

Bytes proxy_answer(std::uint64_t value) {
  Writer writer;
  writer.put(ProxyCommand::kReturn);
  writer.put(std::uint32_t{0});
  writer.put(std::uint64_t{sizeof value});
  writer.put(value);
  return std::move(writer).take();
}

}  // namespace wherry::sim
