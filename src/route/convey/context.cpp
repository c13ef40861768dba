// SPDX-License-Identifier: Apache-2.0
#include "route/convey/context.hpp"
#include "base/try.hpp"
#include "route/client/runtime_access.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

namespace wherry::route::convey {
namespace {

using detail::Handled;

/// Calls `take(at, limit, header)` for messages.
template <typename Take>
struct Entry final : detail::HandlerEntry {
  explicit Entry(Take t) : HandlerEntry(&handle), take(std::move(t)) {}
  static Handled handle(void* self, const std::byte* at, const std::byte* limit, Header header) noexcept {
    return static_cast<Entry*>(self)->take(at, limit, header);
  }
  Take take;
};

/// `part`: distinguishes this handler from other handlers of conveyors.
template <typename Take>
std::uint32_t add(detail::RuntimeCore& core, std::string part, Take take) {
  detail::HandlerInfo info;
  info.type = "a conveyor";
  info.function = std::move(part);
  return core.add(std::make_unique<Entry<Take>>(std::move(take)), std::move(info));
}

/// For messages that are handled one at a time. `good(payload)` returns false if the message is malformed.
template <typename Good>
Handled one(const std::byte* at, Header header, Good good) {
  if (!good(ByteView(at + 8, header.size()))) return {};
  return {at + header.stride(), 1};
}

Context* the_context = nullptr;

}  // namespace

Slot::Slot(detail::RuntimeCore& core, std::size_t number) {
  const auto part = [&](std::string_view what) { return fmt::format("{} of conveyor {}", what, number); };
  data_ = add(core, part("packets"), [this](const std::byte* at, const std::byte* limit, Header header) -> Handled {
    return conveyor_ == nullptr ? Handled{} : conveyor_->conveyor.receive(at, limit, header);
  });
  credit_ = add(core, part("credit"), [this](const std::byte* at, const std::byte*, Header header) {
    return one(at, header, [this](ByteView message) {
      Credit credit;
      if (message.size() != sizeof credit) return false;
      std::memcpy(&credit, message.data(), sizeof credit);
      if (conveyor_ != nullptr) conveyor_->conveyor.receive_credit(credit);
      return true;
    });
  });
  const std::uint32_t up = add(core, part("reports"), [this](const std::byte* at, const std::byte*, Header header) {
    return one(at, header,
               [this](ByteView message) { return agreement_->on_report(message) && !agreement_->mismatch(); });
  });
  const std::uint32_t down = add(core, part("outcomes"), [this](const std::byte* at, const std::byte*, Header header) {
    return one(at, header, [this](ByteView message) { return agreement_->on_outcome(message); });
  });
  agreement_.emplace(core.place().rank, core.place().topology.tree_links(core.place().rank), up, down,
                     [&core](Rank to, std::uint32_t handler, ByteView message) {
                       // The send is refused only if the job has failed, which advance() reports.
                       (void)core.send(to, handler, message, detail::WhenFull::kMust);
                     });
}

convey_t* Slot::create(detail::RuntimeCore& core, Traits traits) {
  ++epoch_;
  conveyor_.reset(new convey_t{Conveyor(core, *agreement_, data_, credit_, traits, epoch_), this});
  return conveyor_.get();
}

Result<Context*> Context::get() {
  if (the_context != nullptr) return the_context;
  WHERRY_ASSIGN(auto runtime, Runtime::start());
  the_context = new Context(std::move(runtime));
  std::atexit([] { leave(); });
  return the_context;
}

/// Credits may travel through any rank, so no rank leaves before all credits have arrived. A process that exits during
/// a session cannot wait for the other ranks, because they wait for it. So it reports that to them and ends.
void Context::leave() noexcept {
  try {
    detail::RuntimeCore& core = detail::core_of(the_context->runtime_);
    if (the_context->under_way()) {
      core.fail(Status{StatusCode::kUnavailable,
                       fmt::format("rank {} has ended in the middle of a conveyor's session", core.place().rank)});
    } else {
      (void)the_context->runtime_.quiesce();  // if the job has failed, there is nothing to wait for
    }
  } catch (const std::exception&) {  // no memory for the reason
  }
  delete std::exchange(the_context, nullptr);
}

bool Context::under_way() const noexcept {
  return std::ranges::any_of(slots_, [](const std::unique_ptr<Slot>& slot) {
    return slot->conveyor() != nullptr && slot->conveyor()->conveyor.under_way();
  });
}

Result<convey_t*> Context::create(Traits traits) {
  detail::RuntimeCore& core = detail::core_of(runtime_);
  auto free = std::ranges::find_if(slots_, [](const auto& slot) { return slot->conveyor() == nullptr; });
  if (free == slots_.end()) {
    slots_.reserve(slots_.size() + 1);  // or push_back() could throw after the handlers are registered
    slots_.push_back(std::make_unique<Slot>(core, slots_.size()));
    free = slots_.end() - 1;
  }
  convey_t* const made = (*free)->create(core, traits);
  // Packets of the new conveyor must not reach a rank that has not made it yet.
  if (auto together = core.reduce(0, detail::Agreement::Combine::kSum); !together) {
    (*free)->destroy();
    return together.status();
  }
  return made;
}

}  // namespace wherry::route::convey
