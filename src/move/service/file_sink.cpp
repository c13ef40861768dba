// SPDX-License-Identifier: Apache-2.0
#include "move/service/file_sink.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <list>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/guarded.hpp"
#include "move/service/frame_file.hpp"

namespace wherry::move {
namespace {
constexpr std::size_t kMaxDisks = 16;
}  // namespace

struct FileSink::Impl : std::enable_shared_from_this<FileSink::Impl> {
  struct Job {
    FramePtr frame;
    std::shared_ptr<const SinkDirectory> directory;  ///< its own: the stream may be closed before it is written
  };

  /// The queue of files for one file system, in the order of publication.
  struct Disk {
    std::list<Job> queue;
    std::thread thread;
    FramePtr in_hand;        ///< being written
    bool ended = false;      ///< the thread does nothing more
    bool abandoned = false;  ///< the sink does not wait for the thread, and has reported what is in hand
  };

  Writer write;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::list<Job> arrived;       ///< for disks that have no thread yet, too
  std::map<dev_t, Disk> disks;  ///< made by `thread`, never taken away
  FileSinkStatus status;
  bool stopping = false;
  std::thread thread;  ///< gives each job to its disk, and starts that: the data thread starts no threads

  std::mutex reporting;            ///< before `mutex`, if both
  Catalogue* catalogue = nullptr;  ///< guarded by `reporting`: threads that were abandoned must not use it

  Status push(const FramePtr& frame);
  void distribute();
  Disk* disk_for(dev_t device);
  void run(Disk& disk);
  void give_up(std::list<Job>& queue);
  void report(const Frame& frame, const Status& outcome) {
    const std::lock_guard lock(reporting);
    if (catalogue != nullptr) catalogue->sunk(frame, outcome);
  }
  void fail(const std::string& what) noexcept {  // under the lock
    ++status.errors;
    status.failing = true;
    attempt([&] { status.last_error = what; });
  }
};

Status not_written(const Frame& frame) noexcept {
  return guarded([&] {
    return Status(StatusCode::kUnavailable, frame_file_path(frame) + ": not written, the file sink has stopped");
  });
}

Status FileSink::Impl::push(const FramePtr& frame) {
  Status taken;
  {
    const std::lock_guard lock(mutex);
    if (stopping) {
      taken = not_written(*frame);
    } else if (attempt([&] { arrived.push_back({frame, frame->stream->files}); })) {
      ++status.queued;
    } else {
      taken = no_memory();
    }
    if (!taken) fail(taken.message());
  }
  changed.notify_all();
  return taken;
}

/// Call it under the lock. Beyond kMaxDisks threads, or if no thread can be started, file systems share a thread.
FileSink::Impl::Disk* FileSink::Impl::disk_for(dev_t device) {
  if (const auto known = disks.find(device); known != disks.end()) return &known->second;
  if (disks.size() >= kMaxDisks) return &disks.begin()->second;
  auto made = disks.end();
  try {
    made = disks.try_emplace(device).first;
    made->second.thread = std::thread([self = shared_from_this(), disk = &made->second] { self->run(*disk); });
  } catch (const std::exception&) {
    if (made != disks.end()) disks.erase(made);
    return disks.empty() ? nullptr : &disks.begin()->second;
  }
  return &made->second;
}

void FileSink::Impl::distribute() {
  name_thread("wherry-sink");
  for (std::list<Job> nowhere;;) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return stopping || !arrived.empty(); });
      if (stopping) return;
      Disk* const disk = disk_for(arrived.front().directory->device());
      std::list<Job>& queue = disk == nullptr ? nowhere : disk->queue;
      queue.splice(queue.end(), arrived, arrived.begin());
    }
    changed.notify_all();
    give_up(nowhere);
  }
}

void FileSink::Impl::run(Disk& disk) {
  name_thread("wherry-sink");
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || !disk.queue.empty(); });
      if (stopping) break;
      job = std::move(disk.queue.front());
      disk.queue.pop_front();
      disk.in_hand = job.frame;
    }
    Result<std::uint64_t> written = Status(StatusCode::kInternal, {});
    try {
      written = write(job.frame, *job.directory);
    } catch (const std::exception& error) {  // no memory, say
      written = guarded([&] {
        return Result<std::uint64_t>(Status(StatusCode::kInternal, frame_file_path(*job.frame) + ": " + error.what()));
      });
    }
    FramePtr done;  // goes without the lock
    {
      const std::lock_guard one_report(reporting);
      {
        const std::lock_guard lock(mutex);
        if (disk.abandoned) return;
        done = std::move(disk.in_hand);
      }
      catalogue->sunk(*done, written.status());
    }
    job = {};
    done.reset();
    {
      const std::lock_guard lock(mutex);
      --status.queued;
      if (written) {
        ++status.files;
        status.failing = false;
        status.bytes += *written;
      } else {
        fail(written.status().message());
      }
    }
    changed.notify_all();
  }
  {
    const std::lock_guard lock(mutex);
    disk.ended = true;
  }
  changed.notify_all();
}

/// Fails all queued jobs: their files will not be written.
void FileSink::Impl::give_up(std::list<Job>& queue) {
  std::list<Job> left;
  {
    const std::lock_guard lock(mutex);
    left.swap(queue);
    status.queued -= left.size();
    for (const Job& job : left) fail(not_written(*job.frame).message());
  }
  if (left.empty()) return;
  changed.notify_all();
  for (const Job& job : left) report(*job.frame, not_written(*job.frame));
}

FileSink::FileSink(Catalogue& catalogue, Writer write) : impl_(std::make_shared<Impl>()), catalogue_(catalogue) {
  impl_->catalogue = &catalogue;
  impl_->write = std::move(write);
  if (!impl_->write) {
    impl_->write = [](FramePtr frame, const SinkDirectory& directory) {
      return write_frame_file(std::move(frame), directory);
    };
  }
  impl_->thread = std::thread([impl = impl_.get()] { impl->distribute(); });
  catalogue.set_sink_hook([impl = impl_](const FramePtr& frame) { return impl->push(frame); });
}

FileSink::~FileSink() { (void)stop(); }

Status FileSink::drain(std::chrono::milliseconds timeout) {
  std::unique_lock lock(impl_->mutex);
  if (impl_->changed.wait_for(lock, timeout, [this] { return impl_->status.queued == 0; })) return ok_status();
  return {StatusCode::kDeadlineExceeded,
          std::to_string(impl_->status.queued) + " frames are still to be written to files"};
}

Status FileSink::stop(std::chrono::milliseconds patience) {
  Impl& i = *impl_;
  if (!i.thread.joinable()) return ok_status();
  catalogue_.set_sink_hook({});
  {
    const std::lock_guard lock(i.mutex);
    i.stopping = true;
  }
  i.changed.notify_all();
  i.thread.join();
  i.give_up(i.arrived);
  for (auto& [device, disk] : i.disks) i.give_up(disk.queue);

  const Deadline deadline(patience);
  std::deque<FramePtr> left;
  {
    std::unique_lock lock(i.mutex);
    const auto ended = [](const auto& one) { return one.second.ended; };
    const auto ended_or_writing = [](const auto& one) { return one.second.ended || one.second.in_hand != nullptr; };
    i.changed.wait(lock, [&] { return std::ranges::all_of(i.disks, ended_or_writing); });
    while (!std::ranges::all_of(i.disks, ended) && !deadline.passed())
      i.changed.wait_for(lock, std::chrono::milliseconds(deadline.left_ms(1000)));
  }
  {
    // The lock order matters: wait for a thread that is reporting; after that it does not report again.
    const std::lock_guard one_report(i.reporting);
    const std::lock_guard lock(i.mutex);
    for (auto& [device, disk] : i.disks) {
      if (disk.in_hand == nullptr) continue;
      disk.abandoned = true;
      --i.status.queued;
      i.fail(not_written(*disk.in_hand).message());
      left.push_back(std::move(disk.in_hand));
    }
  }
  for (const FramePtr& frame : left) i.report(*frame, not_written(*frame));
  for (auto& [device, disk] : i.disks) {
    if (disk.abandoned)
      disk.thread.detach();
    else
      disk.thread.join();
  }
  {
    const std::lock_guard one_report(i.reporting);
    i.catalogue = nullptr;
  }
  if (left.empty()) return ok_status();
  return {StatusCode::kDeadlineExceeded, std::to_string(left.size()) +
                                             " files are still being written, the first one is " +
                                             frame_file_path(*left.front()) + ": does its file system hang?"};
}

FileSinkStatus FileSink::status() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->status;
}

}  // namespace wherry::move
