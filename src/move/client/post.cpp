// SPDX-License-Identifier: Apache-2.0
#include "move/client/post.hpp"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "base/try.hpp"

namespace wherry::move {
namespace {

/// The Status of a failed offload.
Status describe(std::uint64_t ticket, StatusCode code, std::uint64_t detail) {
  switch (code) {
    case StatusCode::kOk:
      return ok_status();
    case StatusCode::kSourceFault:
      return {code, fmt::format("offload {}: the agent could not read buffer {} of the request: was its memory "
                                "released or changed before the ticket was ready?",
                                ticket, detail)};
    case StatusCode::kResourceExhausted:
      return {code, fmt::format("offload {}: {}", ticket, limit_text(detail))};
    case StatusCode::kCancelled:
      return {code,
              fmt::format("offload {}: the agent could not place the data before the deadline that was given", ticket)};
    case StatusCode::kInvalidArgument:
      return {code,
              fmt::format("offload {}: the agent refused the request at buffer {}; its log says why", ticket, detail)};
    case StatusCode::kNotFound:
      return {code, fmt::format("offload {}: the stream was closed", ticket)};
    case StatusCode::kUnavailable:
      if (detail == 0) break;
      return {code, fmt::format("offload {}: its step cannot become complete: part {} of the stream has gone or was "
                                "closed (the agent's log says when); open that part again, or close this one",
                                ticket, detail - 1)};
    case StatusCode::kFailedPrecondition:
      if (detail == kStepIsOver)
        return {code, fmt::format("offload {}: the step of its tag, or a later one, is complete already", ticket)};
      if (detail == kNoFirstHalf)
        return {code, fmt::format("offload {}: the first half of its frame failed; see that one's ticket", ticket)};
      if (detail != 0) {
        return {code, fmt::format("offload {}: its step cannot become complete: part {} of the stream has gone on to a "
                                  "later tag",
                                  ticket, detail - 1)};
      }
      return {code, fmt::format("offload {}: the agent does not know the step, whose first post it refused: bind it "
                                "again",
                                ticket)};
    default:
      break;
  }
  return {code, fmt::format("offload {} failed: {}", ticket, wherry::to_string(code))};
}

/// Closes a stream that the agent opened after the caller had stopped waiting for the answer.
void close_again(detail::SessionCore& session, const session::Response& opened) {
  if (opened.code != StatusCode::kOk) return;
  Writer out;
  out.put(Reader(opened.payload).get<std::uint32_t>());
  out.put(std::uint64_t{0});
  (void)session.tell(kServiceName, "close", out.bytes());  // fails only with the session, whose end closes it, too
}

}  // namespace

Result<std::uint32_t> open_stream(detail::SessionCore& session, OpenRequest request) {
  std::string name = fmt::format("move open {} {}", request.options.name, request.options.part);
  request.again = session.recall(name);
  // Recompute the number each time: late answers in this loop may send further requests.
  const std::uint64_t number = session.last_request() + 1;
  const auto answer = session.ask(kServiceName, "open", encode(request));
  if (!answer) {
    if (answer.status().code() == StatusCode::kDeadlineExceeded) {
      session.abandon(std::move(name), number,
                      [&session](const session::Response& late) { close_again(session, late); });
    }
    return answer.status();
  }
  if (answer->code != StatusCode::kOk) return Status(answer->code, answer->message);
  Reader in(answer->payload);
  const auto stream = in.get<std::uint32_t>();
  if (!in.at_end()) return Status(StatusCode::kProtocol, "the agent's answer to open is malformed");
  return stream;
}

namespace {

/// The last step of posting: fills in the rest of the header and sends. On failure the ticket's slot is free again.
[[gnu::always_inline]] inline Status send(detail::SessionCore& session, detail::SessionCore::Slot& slot,
                                          OffloadHeader& header, const FlatOffload& flat,
                                          const OffloadOptions& options) {
  const auto dropped = session.dropped(kMaxOffloadBuffers);
  const auto announcements = session.announcements();
  header.session = session.id();
  header.ticket = slot.ticket;
  header.tag = options.tag;
  header.deadline_ns = options.deadline.count() > 0 ? static_cast<std::uint64_t>(options.deadline.count()) : 0;
  header.node_count = static_cast<std::uint16_t>(flat.nodes.size());
  header.buffer_count = static_cast<std::uint32_t>(flat.buffers.size());
  header.dropped_count = static_cast<std::uint32_t>(dropped.size());
  header.region_count = static_cast<std::uint32_t>(announcements.size());
  const std::size_t bytes = offload_bytes(flat, dropped, announcements);
  Status sent = session.send(slot, kOffloadMessage, bytes, options.wait_for_ticket,
                             [&](std::byte* to) { write_offload(header, flat, dropped, announcements, to); });
  if (!sent) {
    session.undo(slot);
    Status alive = session.health();
    return alive ? std::move(sent) : std::move(alive);
  }
  session.posted(dropped.size());
  return ok_status();
}

}  // namespace

Result<std::uint64_t> post(detail::SessionCore& session, std::uint32_t stream, std::uint64_t rows, FlatOffload& flat,
                           HotVector<std::uint32_t>& hints, const OffloadOptions& options, Half half) {
  WHERRY_ASSIGN(detail::SessionCore::Slot* const slot, session.begin(options.wait_for_ticket, describe));
  const std::uint64_t ticket = slot->ticket;
  hints.resize(flat.buffers.size(), detail::kNoRegion);
  for (std::size_t i = 0; i < flat.buffers.size(); ++i) {
    BufferRef& buffer = flat.buffers[i];
    if (buffer.bytes == 0 || (half != Half::kWhole && buffer.address == 0)) continue;
    auto region = session.reads(*slot, buffer.address, buffer.bytes, hints[i]);
    if (!region) {
      session.undo(*slot);
      return std::move(region).status();
    }
    buffer.region = *region;
  }
  OffloadHeader header;
  header.rows = rows;
  header.stream = stream;
  header.half = half;
  WHERRY_TRY(send(session, *slot, header, flat, options));
  return ticket;
}

Status bind(detail::SessionCore& session, Bound& bound) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> buffers;
  buffers.reserve(bound.flat.buffers.size());
  for (const BufferRef& buffer : bound.flat.buffers) buffers.emplace_back(buffer.address, buffer.bytes);
  WHERRY_ASSIGN(bound.hold, session.add_hold(buffers, bound.hints));
  return ok_status();
}

Result<std::uint64_t> post(detail::SessionCore& session, std::uint32_t stream, Bound& bound,
                           const OffloadOptions& options) {
  static const FlatOffload kNothing;
  WHERRY_ASSIGN(detail::SessionCore::Slot* const slot, session.begin(options.wait_for_ticket, describe));
  const std::uint64_t ticket = slot->ticket;
  session.reads_hold(*slot, bound.hold);
  for (std::size_t i = 0; !bound.told && i < bound.hints.size(); ++i) {
    if (bound.hints[i] != detail::kNoRegion) bound.flat.buffers[i].region = session.reads_region(*slot, bound.hints[i]);
  }
  OffloadHeader header;
  header.rows = bound.rows;
  header.stream = stream;
  header.binding = session.hold_id(bound.hold);
  WHERRY_TRY(send(session, *slot, header, bound.told ? kNothing : bound.flat, options));
  bound.told = true;
  return ticket;
}

}  // namespace wherry::move
