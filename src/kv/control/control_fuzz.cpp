// SPDX-License-Identifier: Apache-2.0
// Arbitrary input on a control connection. The input must be refused with a reason, or encode to the same message
// again. The first byte gives the direction.
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
  // The parser refuses bytes that are not UTF-8. An escaped text may become longer than a line.
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
