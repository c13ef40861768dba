// SPDX-License-Identifier: Apache-2.0
// Arbitrary input on a control connection: it is refused with a reason, or it encodes to the same message again. The
// first byte gives its direction.
#include <cstdlib>

#include "kv/control/control.hpp"

namespace {

template <typename Message, typename Decode>
void round_trip(std::string_view line, Decode decode) {
  const auto message = decode(line);
  if (!message) {
    if (message.status().message().empty()) std::abort();
    return;
  }
  const auto again = decode(wherry::kv::encode(*message));
  if (again && !(*again == *message)) std::abort();
  // Bytes that are not UTF-8 are refused by the parser; an escaped text may grow beyond a line.
  if (!again && wherry::kv::encode(*message).size() <= wherry::kv::kMaxControlLine) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry::kv;
  if (size == 0) return 0;
  const std::string_view line(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 3 == 0) {
    round_trip<ToKeeper>(line, decode_to_keeper);
  } else if (data[0] % 3 == 1) {
    round_trip<FromKeeper>(line, decode_from_keeper);
  } else {
    round_trip<Configuration>(line, decode_configuration);
  }
  return 0;
}
