// SPDX-License-Identifier: Apache-2.0
// Feeds a control channel with bytes in pieces of any size. The received frames must equal the sent ones, whatever the
// pieces are, and other bytes must be refused.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/frame_channel.hpp"

using namespace wherry;

namespace {

struct Taken {
  Bytes bytes;  ///< of whole frames, as they were sent
  std::size_t frames = 0;
  bool refused = false;
};

void take_all(Bytes& arrived, Taken& taken) {
  while (!taken.refused) {
    auto frame = take_frame(arrived);
    if (!frame) {
      if (frame.status().code() != StatusCode::kProtocol) std::abort();
      taken.refused = true;
    } else if (frame->has_value()) {
      const auto length = static_cast<std::uint32_t>((*frame)->payload.size() + 2);
      Writer sent;
      sent.put(length);
      sent.put((*frame)->type);
      taken.bytes.insert(taken.bytes.end(), sent.bytes().begin(), sent.bytes().end());
      taken.bytes.insert(taken.bytes.end(), (*frame)->payload.begin(), (*frame)->payload.end());
      ++taken.frames;
    } else {
      return;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteView input = std::as_bytes(std::span(data, size)).subspan(1);
  const std::size_t piece = 1 + data[0];

  Bytes whole(input.begin(), input.end());
  Taken at_once;
  take_all(whole, at_once);
  if (at_once.bytes.size() + whole.size() != input.size()) std::abort();
  if (!at_once.bytes.empty() && std::memcmp(at_once.bytes.data(), input.data(), at_once.bytes.size()) != 0)
    std::abort();

  Bytes arrived;
  Taken in_pieces;
  for (std::size_t i = 0; i < input.size() && !in_pieces.refused; i += piece) {
    const ByteView part = input.subspan(i, std::min(piece, input.size() - i));
    arrived.insert(arrived.end(), part.begin(), part.end());
    take_all(arrived, in_pieces);
  }
  if (in_pieces.bytes != at_once.bytes || in_pieces.frames != at_once.frames || in_pieces.refused != at_once.refused)
    std::abort();
  return 0;
}
