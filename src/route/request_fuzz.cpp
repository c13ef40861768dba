// SPDX-License-Identifier: Apache-2.0
// Fuzz target: requests of ranks to their agent. The first byte selects the request. A decoded request must encode to
// bytes that can be decoded again.
#include <cstdint>

#include "route/request.hpp"

using namespace wherry;
using namespace wherry::route;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteView bytes(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  switch (data[0] % 3) {
    case 0:
      if (const auto request = decode_join(bytes); request && !decode_join(encode(*request))) __builtin_trap();
      break;
    case 1:
      if (const auto request = decode_connect(bytes); request && !decode_connect(encode(*request))) __builtin_trap();
      break;
    default:
      if (const auto addresses = decode_addresses(bytes); addresses && !decode_addresses(encode(*addresses)))
        __builtin_trap();
  }
  return 0;
}
