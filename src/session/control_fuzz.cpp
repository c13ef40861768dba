// SPDX-License-Identifier: Apache-2.0
// Runs each decoder of the control protocol on arbitrary bytes. The first byte selects the decoder. Accepted input must
// encode to bytes that decode to the same message.
#include <cstdlib>

#include "session/control.hpp"

using namespace wherry;
using namespace wherry::session;

namespace {
template <typename Decode>
void round_trip(ByteView in, Decode decode) {
  auto first = decode(in);
  if (!first) return;
  const Bytes again = encode(*first);
  auto second = decode(again);
  if (!second || encode(*second) != again) std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteView in(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      if (auto m = decode_hello(in); m && m->version == kProtocolVersion) round_trip(in, decode_hello);
      break;
    case 1:
      round_trip(in, decode_greeting);
      break;
    case 2:
      round_trip(in, decode_attach);
      break;
    case 3:
      round_trip(in, decode_verdict);
      break;
    case 4:
      round_trip(in, decode_request);
      break;
    case 5:
      round_trip(in, decode_response);
      break;
    default:
      round_trip(in, decode_failure);
      break;
  }
  return 0;
}
