// SPDX-License-Identifier: Apache-2.0
// Reads a mailbox in arbitrary memory. The reader must stay inside the memory and must terminate.
#include <cstdlib>
#include <cstring>

#include "base/aligned.hpp"
#include "fabric/mailbox.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wherry::fabric;
  constexpr std::size_t kBytes = Mailbox::bytes_for(4096);
  static const wherry::AlignedBytes owner = wherry::aligned_bytes(kBytes, 64);
  std::byte* const memory = owner.get();
  std::memset(memory, 0, kBytes);
  if (size != 0) std::memcpy(memory, data, std::min(size, kBytes));
  MailboxReader reader({memory, kBytes});
  MailboxRecord record;
  std::uint64_t sum = 0;
  // Records that were read are not cleared, so a lap may read the same records again. Two laps cover all cases.
  for (int i = 0; i < 2048; ++i) {
    if (reader.try_read(record) != MailboxReader::Outcome::kRecord) break;
    if (record.payload.size() > 4096 || record.kind == 0 || record.kind == Mailbox::kSkip) std::abort();
    for (const std::byte b : record.payload) sum += static_cast<std::uint64_t>(b);
  }
  return sum == 42 ? 1 : 0;
}
