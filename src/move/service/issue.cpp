// SPDX-License-Identifier: Apache-2.0
// The third step of an offload: one-sided gets of its buffers. Offloads take turns.
#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "base/copy.hpp"
#include "base/try.hpp"
#include "move/service/state.hpp"

namespace wherry::move {

/// Makes one step of a moving offload. True if it made progress.
bool OffloadEngine::advance(StreamState& stream, Offload& o) {
  ClientState& client = *stream.client;
  if (client.reconnect) return false;  // recover() decides when nothing is in flight
  const bool on_trial = client.suspects != 0;
  if (on_trial) {
    if (client.trial == nullptr && o.suspect) client.trial = &o;
    if (client.trial != &o) return false;
  }
  if (o.done.error() != nullptr) {
    client.reconnect = true;
    return true;
  }
  bool worked = false;
  if (o.started_ns == 0) o.started_ns = now_ns();
  const std::uint32_t in_flight_limit =
      on_trial ? 1 : static_cast<std::uint32_t>(std::max<std::size_t>(1, options_.window / options_.transfer_unit));
  if (!o.all_issued() && (o.done.pending() < in_flight_limit)) {
    worked = true;
    // Copies run in this thread, so use smaller slices for them; other offloads then get their turn sooner.
    const std::size_t turn = client.handle->reader() != nullptr ? options_.transfer_unit : options_.window;
    if (Status s = issue(client, o, turn, on_trial); !s) {
      if (client.handle->reader() != nullptr && s.code() == StatusCode::kUnavailable) {
        lose(client);
      } else if (client.handle->reader() != nullptr && o.done.pending() == 0) {
        fail(stream, o, s, o.at_buffer);  // the connection is none the worse for it
      } else {
        client.reconnect = true;
      }
      return true;
    }
  }
  if (o.all_issued() && o.done.pending() == 0) {
    if (o.done.error() != nullptr) {
      client.reconnect = true;
    } else if (o.first_half) {
      finish_first_half(stream, o);
    } else {
      place(stream, o);
    }
    worked = true;
  }
  return worked;
}

/// Issues gets (or copies) for about `bytes` more bytes. `one_get`: stops after the first get that stays in flight.
Status OffloadEngine::issue(ClientState& client, Offload& o, std::size_t bytes, bool one_get) {
  std::byte* frame = o.frame->extent.bytes().data();
  fabric::ProcessReader* const reader = client.handle->reader();
  piece_buffers_.clear();
  while (!o.all_issued() && bytes > 0 && !(one_get && o.done.pending() != 0)) {
    const BufferRef& buffer = o.buffers[o.at_buffer];
    const std::size_t n =
        std::min({static_cast<std::size_t>(buffer.bytes - o.at_offset), options_.transfer_unit, bytes});
    if (n > 0 && !(o.halves && buffer.region == 0)) {
      const fabric::RemoteRegion* region = region_of(client, buffer.region);
      o.last_get = o.at_buffer;
      // Since the message was admitted, the client may have announced another region with this id.
      if (region == nullptr || !region->contains(buffer.address, buffer.bytes))
        return {StatusCode::kSourceFault, "the region is gone"};
      std::byte* to = frame + o.destination[o.at_buffer] + o.at_offset;
      const std::uint64_t from = buffer.address + o.at_offset;
      if (const std::byte* mapped = region->mapped(from)) {
        if (o.source_bytes >= options_.streaming_copy_from) {
          copier_.copy(to, mapped, n, o.source_bytes);
        } else {
          std::memcpy(to, mapped, n);
        }
        ++counters_.mapped_copies;
      } else if (reader != nullptr) {
        ++counters_.gets;
        piece_buffers_.push_back(o.at_buffer);
        if (!reader->add(to, from, n)) {
          WHERRY_TRY(read_pieces(*reader, o));
        }
      } else {
        ++counters_.gets;
        WHERRY_TRY(client.handle->endpoint().get(to, client.handle->arena_region(), *region, from, n, o.done));
      }
    }
    bytes -= n;
    o.at_offset += n;
    if (o.at_offset == buffer.bytes) {
      ++o.at_buffer;
      o.at_offset = 0;
    }
  }
  return reader == nullptr ? ok_status() : read_pieces(*reader, o);
}

/// Reads the pieces that issue() collected. On failure, sets the offload's position to the buffer at fault.
Status OffloadEngine::read_pieces(fabric::ProcessReader& reader, Offload& o) {
  if (piece_buffers_.empty()) return ok_status();
  Status s = reader.read();
  if (!s) o.at_buffer = piece_buffers_[reader.failed()];
  piece_buffers_.clear();
  return s;
}

/// Ends the moving state of an offload without gets in flight.
void OffloadEngine::stop_moving(StreamState& stream, Offload& o) {
  ClientState& client = *stream.client;
  --stream.moving;
  --client.moving;
  if (std::exchange(o.suspect, false)) --client.suspects;
  if (client.trial == &o) client.trial = nullptr;
}

}  // namespace wherry::move
