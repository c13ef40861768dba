// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as the two messages of move. An accepted offload must build to the same bytes again, and an
// accepted open must encode to bytes that decode to the same request.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "move/message.hpp"

using namespace wherry;
using namespace wherry::move;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  if (data[0] % 2 == 0) {
    auto open = decode_open(ByteView(reinterpret_cast<const std::byte*>(data) + 1, size - 1));
    if (!open) return 0;
    const Bytes again = encode(*open);
    auto second = decode_open(again);
    if (!second || encode(*second) != again) std::abort();
    return 0;
  }
  std::vector<std::uint64_t> aligned((size - 1 + 7) / 8);
  std::copy(data + 1, data + size, reinterpret_cast<std::uint8_t*>(aligned.data()));
  const ByteView message(reinterpret_cast<const std::byte*>(aligned.data()), size - 1);
  OffloadView view;
  if (!parse_offload(message, view)) return 0;
  FlatOffload flat;
  flat.nodes.assign(view.nodes.begin(), view.nodes.end());
  flat.buffers.assign(view.buffers.begin(), view.buffers.end());
  Bytes built;
  build_offload(view.header, flat, view.dropped, view.regions, built);
  if (built.size() != message.size()) std::abort();
  OffloadView second;
  if (!parse_offload(built, second)) std::abort();
  if (second.regions.size() != view.regions.size() || second.dropped.size() != view.dropped.size()) std::abort();
  return 0;
}
