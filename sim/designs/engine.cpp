// SPDX-License-Identifier: Apache-2.0
#include "sim/designs/engine.hpp"

#include <algorithm>
#include <cstring>

namespace wherry::sim::designs {

Engine::Engine(const EnginePreset& preset, Flow flow, std::uint32_t channels, std::span<std::byte> host,
               std::uint64_t seed)
    : preset_(preset),
      flow_(flow),
      host_(host),
      link_(preset.link, seed),
      channels_(channels),
      pieces_(kMostPieces),
      ids_(flow == Flow::kToCard ? preset.to_card_ids : preset.to_host_ids),
      turn_bytes_(flow == Flow::kToCard ? preset.to_card_turn : preset.to_host_turn) {
  for (std::uint32_t i = kMostPieces; i-- > 0;) {
    free_.push_back(static_cast<std::uint8_t>(i));
    pieces_[i].data.resize(preset.piece / memory::kBeatBytes);
  }
  out_.r_ready = out_.b_ready = true;
}

bool Engine::quiet() const noexcept {
  return std::ranges::none_of(channels_, [](const Channel& channel) { return channel.busy; });
}

void Engine::post(std::uint32_t index, const Transfer& transfer) {
  Channel& channel = channels_[index];
  channel.busy = channel.bell = true;
  channel.transfer = transfer;
  channel.cut = channel.described = channel.asked = channel.fetching = 0;
  channel.bell_ns = link_.now() + kOneWay * preset_.link.rtt_ns;
}

/// Reads a channel's descriptors block by block, so many in advance.
void Engine::fetch() {
  for (std::uint32_t i = 0; i < channels_.size(); ++i) {
    Channel& channel = channels_[i];
    if (!channel.bell || channel.fetching != 0 || channel.bell_ns > link_.now() || !link_.read_ready()) continue;
    const std::uint64_t left = channel.transfer.bytes - channel.asked;
    const std::uint64_t held = (channel.asked - channel.cut + preset_.descriptor_bytes - 1) / preset_.descriptor_bytes;
    if (left == 0 || held + preset_.fetch > preset_.ahead) continue;
    const std::uint64_t count =
        std::min<std::uint64_t>(preset_.fetch, (left + preset_.descriptor_bytes - 1) / preset_.descriptor_bytes);
    channel.fetching = std::min<std::uint64_t>(left, count * preset_.descriptor_bytes);
    channel.asked += channel.fetching;
    link_.request(
        {static_cast<std::uint8_t>(kDescriptorTag + i), static_cast<std::uint32_t>(count) * kDescriptorBytes, 0});
    return;
  }
}

bool Engine::may_cut(const Channel& channel) const noexcept {
  return channel.bell && channel.cut < channel.described && channel.pieces < ids_;
}

/// The channel with the turn keeps it while its turn has bytes left, and it has data to move.
bool Engine::take_turn() {
  const Channel& holder = channels_[turn_];
  if (turn_left_ != 0 && holder.bell && holder.cut < holder.described) return may_cut(holder);
  for (std::uint32_t i = 1; i <= channels_.size(); ++i) {
    const auto next = static_cast<std::uint32_t>((turn_ + i) % channels_.size());
    if (!may_cut(channels_[next])) continue;
    turn_ = next;
    turn_left_ = turn_bytes_;
    return true;
  }
  return false;
}

/// Cuts a piece for the channel that has the turn. Pieces end at multiples of their size.
std::uint32_t Engine::cut() {
  Channel& channel = channels_[turn_];
  const std::uint32_t number = free_.back();
  free_.pop_back();
  Piece& piece = pieces_[number];
  piece.channel = turn_;
  piece.host = channel.transfer.host + channel.cut;
  piece.card = channel.transfer.card + channel.cut;
  const std::uint64_t end = (piece.card / preset_.piece + 1) * preset_.piece;
  piece.bytes = static_cast<std::uint32_t>(std::min(end - piece.card, channel.described - channel.cut));
  piece.moved = 0;
  channel.cut += piece.bytes;
  channel.pieces++;
  piece.last = channel.cut == channel.transfer.bytes;
  turn_left_ -= std::min(turn_left_, piece.bytes);
  if (piece.last) channel.bell = false;
  return number;
}

/// Ends a piece that the memory, or the link, has received. The last piece ends last, because pieces end in order.
void Engine::end(Piece& piece, bool told) {
  Channel& channel = channels_[piece.channel];
  channel.pieces--;
  free_.push_back(static_cast<std::uint8_t>(&piece - pieces_.data()));
  if (!piece.last) return;
  if (told) link_.write(kStatusWord, true);
  channel.busy = false;
  channel.ended_ns = link_.now() + kOneWay * preset_.link.rtt_ns;
}

void Engine::completions() {
  const dma::CompletionBeat* const beat = link_.completion();
  if (beat == nullptr) return;
  if (beat->tag >= kDescriptorTag) {
    Channel& channel = channels_[beat->tag - kDescriptorTag];
    if (beat->final_ && beat->last) {
      channel.described += channel.fetching;
      channel.fetching = 0;
    }
  } else {
    pieces_[beat->tag].moved += beat->bytes;
  }
  link_.completion_taken();
}

memory::Beat Engine::beat_of(const Piece& piece, std::uint32_t at) const {
  memory::Beat beat;
  std::memcpy(beat.data(), &host_[piece.host + at], sizeof beat);
  return beat;
}

void Engine::step_to_card(const memory::AxiAnswer& in) {
  if (in.b_valid) {
    failed_ = failed_ || in.b_error;
    end(pieces_[answers_.front()], true);
    answers_.pop_front();
  }
  if (out_.aw_valid && in.aw_ready) out_.aw_valid = false;
  if (out_.w_valid && in.w_ready) {
    out_.w_valid = false;
    sent_ += memory::kBeatBytes;
    if (out_.w_last) {
      sent_ = 0;
      answers_.push_back(moving_.front());
      moving_.pop_front();
    }
  }
  completions();
  if (!free_.empty() && link_.read_ready() && take_turn()) {
    const std::uint32_t number = cut();
    const Piece& piece = pieces_[number];
    link_.request({static_cast<std::uint8_t>(number), piece.bytes, piece.host});
    order_.push_back(static_cast<std::uint8_t>(number));
  }
  // In the order of the requests: each write goes out when its data are complete.
  if (!out_.aw_valid && !order_.empty() && pieces_[order_.front()].moved == pieces_[order_.front()].bytes) {
    const Piece& piece = pieces_[order_.front()];
    out_.aw_valid = true;
    out_.aw = {piece.card, piece.bytes / static_cast<std::uint32_t>(memory::kBeatBytes) - 1};
    moving_.push_back(order_.front());
    order_.pop_front();
  }
  if (!out_.w_valid && !moving_.empty()) {
    const Piece& piece = pieces_[moving_.front()];
    out_.w_valid = true;
    out_.w_data = beat_of(piece, sent_);
    out_.w_last = sent_ + memory::kBeatBytes == piece.bytes;
  }
}

void Engine::step_to_host(const memory::AxiAnswer& in) {
  if (out_.ar_valid && in.ar_ready) {
    out_.ar_valid = false;
  }
  if (in.r_valid) {
    failed_ = failed_ || in.r_error;
    Piece& piece = pieces_[order_.front()];
    piece.data[piece.moved / memory::kBeatBytes] = in.r_data;
    piece.moved += memory::kBeatBytes;
    if (in.r_last) {
      piece.ready = link_.now() + preset_.to_host_cycles * dma::kCycleNs;
      moving_.push_back(order_.front());
      order_.pop_front();
    }
  }
  completions();
  if (!out_.ar_valid && !free_.empty() && take_turn()) {
    const std::uint32_t number = cut();
    const Piece& piece = pieces_[number];
    out_.ar_valid = true;
    out_.ar = {piece.card, piece.bytes / static_cast<std::uint32_t>(memory::kBeatBytes) - 1};
    order_.push_back(static_cast<std::uint8_t>(number));
  }
  if (!moving_.empty() && pieces_[moving_.front()].ready <= link_.now() && link_.write_ready()) {
    Piece& piece = pieces_[moving_.front()];
    link_.write(memory::kBeatBytes, sent_ % preset_.mps == 0);
    std::memcpy(&host_[piece.host + sent_], &piece.data[sent_ / memory::kBeatBytes], memory::kBeatBytes);
    sent_ += memory::kBeatBytes;
    if (sent_ == piece.bytes) {
      sent_ = 0;
      moving_.pop_front();
      end(piece, true);
    }
  }
}

void Engine::step(const memory::AxiAnswer& in) {
  link_.cycle();
  fetch();
  if (flow_ == Flow::kToCard)
    step_to_card(in);
  else
    step_to_host(in);
}

}  // namespace wherry::sim::designs
