// SPDX-License-Identifier: Apache-2.0
#include "move/service/operators.hpp"

#include <arrow/record_batch.h>
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/cpu.hpp"
#include "base/guarded.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "move/arrow_status.hpp"
#include "move/operate/arena_pool.hpp"
#include "move/operate/pipeline.hpp"
#include "move/service/derived_frame.hpp"
#include "move/service/frame_arrow.hpp"

namespace wherry::move {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kFirstSlice{1};
constexpr std::chrono::milliseconds kLastSlice{64};
constexpr std::chrono::milliseconds kIdleSlice{250};  ///< how long stop() may stay unnoticed
constexpr std::chrono::seconds kPatience{10};         ///< while there is no memory

using Info = std::shared_ptr<const StreamInfo>;

std::shared_ptr<arrow::MemoryPool> pool_for(Catalogue& catalogue, std::shared_ptr<Arena> arena) {
  return ArenaPool::make(std::move(arena), {.make_room = [&catalogue] { return catalogue.evict_for_reader(); }});
}

}  // namespace

struct Operators::Impl : std::enable_shared_from_this<Operators::Impl> {
  Impl(Catalogue& c, std::shared_ptr<Arena> a) : catalogue(c), arena(std::move(a)), pool(pool_for(c, arena)) {}

  struct Worker {
    std::thread thread;
    Info source;
    bool ended = false;  ///< under the mutex
  };

  void push(Info source);
  void distribute();
  void reap(std::list<Worker>& ended);
  void run(Worker& worker);
  void work_off(const StreamInfo& source);
  Status operate(const FramePtr& step, const StreamStatus& status);
  Status derive(const FramePtr& step, const Info& derived);
  Result<FramePtr> result_of(const FramePtr& step, const Info& derived, bool& again);
  bool pause(std::chrono::milliseconds& slice);
  [[nodiscard]] bool replaced(const StreamInfo& stream) const {
    const auto now = catalogue.find(stream.name);
    return !now || now->info.get() != &stream;
  }
  [[nodiscard]] std::uint64_t left() const;

  Catalogue& catalogue;
  const std::shared_ptr<Arena> arena;
  const std::shared_ptr<arrow::MemoryPool> pool;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::list<Info> arrived;
  std::list<Worker> workers;
  bool stopping = false;
  std::thread starter;  ///< starts the others: the data thread starts none
};

void Operators::Impl::push(Info source) {
  Status taken;
  {
    const std::lock_guard lock(mutex);
    if (stopping)
      taken = {StatusCode::kUnavailable, "the agent is shutting down"};
    else if (!attempt([&] { arrived.push_back(source); }))
      taken = no_memory();
  }
  changed.notify_all();
  if (taken) return;
  for (const Info& derived : source->derived) catalogue.close(*derived);
  catalogue.end_operators(*source, taken, 0);
}

void Operators::Impl::reap(std::list<Worker>& ended) {
  for (auto it = workers.begin(); it != workers.end();) {
    const auto next = std::next(it);
    if (it->ended) ended.splice(ended.end(), workers, it);
    it = next;
  }
}

void Operators::Impl::distribute() {
  name_thread("wherry-operate");
  for (;;) {
    std::list<Worker> ended;
    Info source;
    Status started;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] {
        return stopping || !arrived.empty() ||
               std::ranges::any_of(workers, [](const Worker& one) { return one.ended; });
      });
      if (stopping) return;
      reap(ended);
      if (!arrived.empty()) {
        source = std::move(arrived.front());
        arrived.pop_front();
        try {
          Worker& worker = workers.emplace_back();
          worker.source = source;
          worker.thread = std::thread([self = this, &worker] { self->run(worker); });
        } catch (const std::exception& error) {
          if (!workers.empty() && !workers.back().thread.joinable()) workers.pop_back();
          started = {StatusCode::kResourceExhausted, fmt::format("no thread for them: {}", error.what())};
        }
      }
    }
    for (Worker& worker : ended) worker.thread.join();
    if (started) continue;
    for (const Info& derived : source->derived) catalogue.close(*derived);
    catalogue.end_operators(*source, started, 0);
  }
}

void Operators::Impl::run(Worker& worker) {
  name_thread("wherry-operate");
  try {
    work_off(*worker.source);
  } catch (const std::exception& error) {  // no memory, say
    (void)attempt([&] { catalogue.end_operators(*worker.source, {StatusCode::kInternal, error.what()}, 0); });
  }
  for (const Info& derived : worker.source->derived) catalogue.close(*derived);
  {
    const std::lock_guard lock(mutex);
    worker.ended = true;
  }
  changed.notify_all();
}

/// Processes the source's frames until it ends or another stream takes its name.
void Operators::Impl::work_off(const StreamInfo& source) {
  using What = Catalogue::Next::What;
  const auto status = catalogue.find(source.name);
  if (!status || status->info.get() != &source) return;
  std::uint64_t at = 0;
  for (;;) {
    {
      const std::lock_guard lock(mutex);
      if (stopping) return;
    }
    Catalogue::Next next = catalogue.next(source.name, at, kIdleSlice, status->generation);
    if (next.what == What::kTimeout) continue;
    if (next.what != What::kFrame) {
      catalogue.end_operators(source, ok_status(), next.skipped);
      return;
    }
    at = next.frame->sequence + 1;
    Status outcome = operate(next.frame, *status);
    catalogue.operated(*next.frame, outcome, next.skipped);
    next.frame.reset();
    changed.notify_all();
  }
}

/// Makes the frame of each derived stream, even if another one fails. Returns the first failure.
Status Operators::Impl::operate(const FramePtr& step, const StreamStatus& status) {
  Status first;
  for (const Info& derived : status.info->derived) {
    Status s = guarded([&] { return derive(step, derived); });
    if (!s && first) first = Status(s.code(), fmt::format("stream \"{}\": {}", derived->name, s.message()));
  }
  return first;
}

Status Operators::Impl::derive(const FramePtr& step, const Info& derived) {
  auto slice = kFirstSlice;
  const auto given_up = [] { return Status(StatusCode::kUnavailable, "the agent is shutting down"); };
  while (!catalogue.make_room(*derived)) {
    if (replaced(*derived)) return ok_status();
    if (!pause(slice)) return given_up();
  }
  slice = kFirstSlice;
  for (auto began = Clock::now();;) {
    bool again = false;
    auto frame = result_of(step, derived, again);
    if (frame) {
      catalogue.publish(*std::move(frame));
      return ok_status();
    }
    if (!again) return frame.status();
    const auto now = catalogue.find(derived->name);
    if (!now || now->info != derived) return ok_status();
    // Waiting helps if readers make room by reading: under kWait no frame is lost meanwhile.
    const bool worth_waiting = derived->retention.when_full == Retention::WhenFull::kWait && now->held_frames != 0;
    if (worth_waiting) began = Clock::now();
    if (Clock::now() - began > kPatience) return frame.status();
    if (!pause(slice)) return given_up();
  }
}

/// Computes the frame. `again`: set if there is no memory now, so try again.
Result<FramePtr> Operators::Impl::result_of(const FramePtr& step, const Info& derived, bool& again) {
  const auto failed = [&](const arrow::Status& s) {
    again = s.IsOutOfMemory();
    std::string text = with_cause(s);
    std::ranges::replace(text, '\n', ' ');
    return Status(again ? StatusCode::kResourceExhausted : StatusCode::kInvalidArgument, std::move(text));
  };
  arrow::RecordBatchVector batches;
  for (std::size_t i = 0; i < step->frames(); ++i) {
    WHERRY_ASSIGN(auto batch, read_frame(frame_of(step, i)));
    batches.push_back(std::move(batch));
  }
  const auto results = derived->pipeline->apply(batches, pool.get());
  if (!results.ok()) return failed(results.status());
  std::shared_ptr<Frame> first;
  for (const auto& batch : *results) {
    auto made = make_derived_frame(derived, *batch, *arena, pool.get(), [&] { return catalogue.evict_one(*derived); });
    if (!made.ok()) return failed(made.status());
    Frame& frame = **made;
    frame.sequence = step->sequence;
    frame.tag = step->tag;
    frame.transfer_ns = step->transfer_ns;
    frame.source_bytes = step->sum([](const Frame& f) { return f.source_bytes; });
    if (first == nullptr) {
      first = *std::move(made);
    } else {
      frame.part = static_cast<std::uint32_t>(first->frames());
      first->others.push_back(*std::move(made));
    }
  }
  return FramePtr(std::move(first));
}

/// Waits a moment. False: the operators are stopping.
bool Operators::Impl::pause(std::chrono::milliseconds& slice) {
  std::unique_lock lock(mutex);
  const auto until = Clock::now() + slice;
  slice = std::min(2 * slice, kLastSlice);
  return !changed.wait_until(lock, until, [this] { return stopping; });
}

/// Call it under the lock.
std::uint64_t Operators::Impl::left() const {
  std::uint64_t frames = 0;
  const auto add = [&](const StreamInfo& source) {
    const auto now = catalogue.find(source.name);
    if (now && now->info.get() == &source) frames += now->operator_lag;
  };
  for (const Info& source : arrived) add(*source);
  for (const Worker& worker : workers) {
    if (!worker.ended) add(*worker.source);
  }
  return frames;
}

Operators::Operators(Catalogue& catalogue, std::shared_ptr<Arena> arena)
    : impl_(std::make_shared<Impl>(catalogue, std::move(arena))) {
  impl_->starter = std::thread([impl = impl_.get()] { impl->distribute(); });
  catalogue.set_operate_hook([impl = impl_](Info source) { impl->push(std::move(source)); });
}

Operators::~Operators() { stop(); }

Status Operators::drain(std::chrono::milliseconds timeout) {
  std::unique_lock lock(impl_->mutex);
  if (impl_->changed.wait_for(lock, timeout, [this] { return impl_->left() == 0; })) return ok_status();
  return {StatusCode::kDeadlineExceeded, fmt::format("{} frames still wait for operators", impl_->left())};
}

void Operators::stop() {
  Impl& i = *impl_;
  if (!i.starter.joinable()) return;
  i.catalogue.set_operate_hook({});
  std::uint64_t left = 0;
  {
    const std::lock_guard lock(i.mutex);
    left = i.left();
    i.stopping = true;
  }
  i.changed.notify_all();
  i.starter.join();
  for (Impl::Worker& worker : i.workers) worker.thread.join();
  i.workers.clear();
  if (left != 0) spdlog::warn("{} frames were not worked off by operators before the end", left);
}

}  // namespace wherry::move
