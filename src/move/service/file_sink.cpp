// SPDX-License-Identifier: Apache-2.0
#include "move/service/file_sink.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/cpu.hpp"
#include "move/service/frame_file.hpp"

namespace wherry::move {
namespace {
constexpr std::size_t kMaxDisks = 16;
}  // namespace

struct FileSink::Impl {
  struct Job {
    FramePtr frame;
    std::shared_ptr<const SinkDirectory> directory;  ///< its own: the stream may be closed before it is written
  };

  /// The files of one file system, in the order of publication.
  struct Disk {
    std::deque<Job> queue;
    std::thread thread;
  };

  Writer write;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> arrived;      ///< for disks that have no thread yet, too
  std::map<dev_t, Disk> disks;  ///< made by `thread`, never taken away
  FileSinkStatus status;
  bool stopping = false;
  std::thread thread;  ///< gives each job to its disk, and starts that: the data thread starts no threads

  void push(Catalogue& catalogue, const FramePtr& frame);
  void distribute(Catalogue& catalogue);
  Disk* disk_for(dev_t device, Catalogue& catalogue);
  void run(Catalogue& catalogue, Disk& disk);
  void give_up(Catalogue& catalogue, std::deque<Job>& queue);
  void fail(std::string what) {  // under the lock
    ++status.errors;
    status.last_error = std::move(what);
  }
};

Status not_written(const Frame& frame) {
  return {StatusCode::kUnavailable, frame_file_path(frame) + ": not written, the file sink has stopped"};
}

void FileSink::Impl::push(Catalogue& catalogue, const FramePtr& frame) {
  Status taken;
  {
    const std::lock_guard lock(mutex);
    if (stopping) {
      taken = not_written(*frame);
      fail(taken.message());
    } else {
      arrived.push_back({frame, frame->stream->files});
      ++status.queued;
    }
  }
  changed.notify_all();
  if (!taken) catalogue.sunk(*frame, taken);
}

/// Under the lock. Where there are kMaxDisks, or threads cannot be had, file systems share one.
FileSink::Impl::Disk* FileSink::Impl::disk_for(dev_t device, Catalogue& catalogue) {
  if (const auto known = disks.find(device); known != disks.end()) return &known->second;
  if (disks.size() >= kMaxDisks) return &disks.begin()->second;
  const auto made = disks.try_emplace(device).first;
  try {
    made->second.thread = std::thread([this, &catalogue, disk = &made->second] { run(catalogue, *disk); });
  } catch (const std::system_error&) {
    disks.erase(made);
    return disks.empty() ? nullptr : &disks.begin()->second;
  }
  return &made->second;
}

void FileSink::Impl::distribute(Catalogue& catalogue) {
  name_thread("wherry-sink");
  for (std::deque<Job> nowhere;;) {
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return stopping || !arrived.empty(); });
      if (stopping) break;
      Disk* const disk = disk_for(arrived.front().directory->device(), catalogue);
      (disk == nullptr ? nowhere : disk->queue).push_back(std::move(arrived.front()));
      arrived.pop_front();
    }
    changed.notify_all();
    give_up(catalogue, nowhere);
  }
  for (auto& [device, disk] : disks) disk.thread.join();
  give_up(catalogue, arrived);
}

void FileSink::Impl::run(Catalogue& catalogue, Disk& disk) {
  name_thread("wherry-sink");
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stopping || !disk.queue.empty(); });
      if (stopping) break;
      job = std::move(disk.queue.front());
      disk.queue.pop_front();
    }
    Result<std::uint64_t> written = Status(StatusCode::kInternal, {});
    try {
      written = write(job.frame, *job.directory);
    } catch (const std::exception& error) {  // no memory, say
      written = Status(StatusCode::kInternal, frame_file_path(*job.frame) + ": " + error.what());
    }
    catalogue.sunk(*job.frame, written.status());
    job = {};
    {
      const std::lock_guard lock(mutex);
      --status.queued;
      if (written) {
        ++status.files;
        status.bytes += *written;
      } else {
        fail(written.status().message());
      }
    }
    changed.notify_all();
  }
  give_up(catalogue, disk.queue);
}

/// Nobody will write these.
void FileSink::Impl::give_up(Catalogue& catalogue, std::deque<Job>& queue) {
  std::deque<Job> left;
  {
    const std::lock_guard lock(mutex);
    left.swap(queue);
    status.queued -= left.size();
    for (const Job& job : left) fail(not_written(*job.frame).message());
  }
  if (left.empty()) return;
  changed.notify_all();
  for (const Job& job : left) catalogue.sunk(*job.frame, not_written(*job.frame));
}

FileSink::FileSink(Catalogue& catalogue, Writer write) : impl_(std::make_shared<Impl>()), catalogue_(catalogue) {
  impl_->write = std::move(write);
  if (!impl_->write) {
    impl_->write = [](FramePtr frame, const SinkDirectory& directory) {
      return write_frame_file(std::move(frame), directory);
    };
  }
  impl_->thread = std::thread([impl = impl_.get(), &catalogue] { impl->distribute(catalogue); });
  catalogue.set_sink_hook([impl = impl_, &catalogue](const FramePtr& frame) { impl->push(catalogue, frame); });
}

FileSink::~FileSink() { stop(); }

Status FileSink::drain(std::chrono::milliseconds timeout) {
  std::unique_lock lock(impl_->mutex);
  if (impl_->changed.wait_for(lock, timeout, [this] { return impl_->status.queued == 0; })) return ok_status();
  return {StatusCode::kDeadlineExceeded,
          std::to_string(impl_->status.queued) + " frames are still to be written to files"};
}

void FileSink::stop() {
  if (!impl_->thread.joinable()) return;
  catalogue_.set_sink_hook({});
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->changed.notify_all();
  impl_->thread.join();
}

FileSinkStatus FileSink::status() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->status;
}

}  // namespace wherry::move
