// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/pcap.hpp"

#include <cerrno>
#include <cstring>

#include "kv/sim/wire.hpp"

namespace wherry::kv::sim {
namespace {

// https://ietf-opsawg-wg.github.io/draft-ietf-opsawg-pcap/draft-ietf-opsawg-pcap.html, with nanoseconds and in the
// writing machine's byte order, which the format permits.
struct FileHeader {
  std::uint32_t magic = 0xa1b23c4d;
  std::uint16_t major = 2;
  std::uint16_t minor = 4;
  std::uint32_t reserved[2] = {};
  std::uint32_t longest = 65535;
  std::uint32_t link = 1;  // Ethernet
};
struct PacketHeader {
  std::uint32_t seconds;
  std::uint32_t nanoseconds;
  std::uint32_t captured;
  std::uint32_t length;
};
static_assert(sizeof(FileHeader) == 24 && sizeof(PacketHeader) == 16);

}  // namespace

Result<std::unique_ptr<Pcap>> Pcap::create(const std::string& path, Fate shown) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return wherry::Status(StatusCode::kInvalidArgument, path + ": " + std::strerror(errno));
  const FileHeader header;
  std::fwrite(&header, sizeof header, 1, file);
  return std::unique_ptr<Pcap>(new Pcap(file, shown));
}

void Pcap::see(Cycles now, Fate fate, const Packet& packet) {
  if (fate != shown_) return;
  FrameBuffer buffer;
  const ByteView frame =
      packet.form == Form::kFrame ? packet.bytes : frame_of(packet.from, packet.to, packet.bytes, buffer);
  const std::uint64_t ns = now * kCycleNs;
  const auto length = static_cast<std::uint32_t>(frame.size());
  const PacketHeader header{static_cast<std::uint32_t>(ns / 1'000'000'000),
                            static_cast<std::uint32_t>(ns % 1'000'000'000), length, length};
  std::fwrite(&header, sizeof header, 1, file_.get());
  std::fwrite(frame.data(), 1, frame.size(), file_.get());
}

}  // namespace wherry::kv::sim
