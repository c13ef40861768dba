// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as answers of a physical function's driver. The parser must not read beyond their end.
#include <cstdlib>

#include "bypass/nic/virtchnl.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry::bypass;
  const wherry::ByteView message(reinterpret_cast<const std::byte*>(data), size);
  (void)virtchnl::parse_version(message);
  (void)virtchnl::parse_event(message);
  (void)virtchnl::parse_request_queues(message);
  const auto resources = virtchnl::parse_resources(message);
  if (resources && (size < 36 || resources->queue_pairs == 0)) std::abort();
  return 0;
}
