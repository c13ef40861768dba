// SPDX-License-Identifier: Apache-2.0
// Fuzz target: frames of a launcher. The first byte selects the kind. Each frame must be refused, or decode to a value
// of bounded size.
#include <algorithm>
#include <cstdlib>

#include "route/client/bootstrap_protocol.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry;
  using namespace wherry::route;
  if (size == 0) return 0;
  const ByteView payload = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 3) {
    case 0: {
      const auto gathered = decode_gathered(payload);
      if (!gathered) break;
      // An accepted frame must encode to the same bytes.
      Writer again;
      again.put(gathered->round);
      again.put(gathered->first);
      again.put(static_cast<std::uint32_t>(gathered->contributions.size()));
      for (const Bytes& bytes : gathered->contributions) again.put_bytes(bytes);
      if (!std::ranges::equal(again.bytes(), payload)) std::abort();
      break;
    }
    case 1: {
      const std::string why = decode_abort(payload);
      if (why.empty() || why.size() > 4096 || why.find('\n') != std::string::npos) std::abort();
      break;
    }
    default:
      if (decode_welcome(payload) && payload.size() != 8) std::abort();
  }
  return 0;
}
