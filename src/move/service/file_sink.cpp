// SPDX-License-Identifier: Apache-2.0
#include "move/service/file_sink.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/cpu.hpp"
#include "move/service/frame_file.hpp"

namespace wherry::move {

struct FileSink::Impl {
  struct Job {
    FramePtr frame;
    std::shared_ptr<const SinkDirectory> directory;  ///< its own: the stream may be closed before it is written
  };

  Writer write;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> queue;
  FileSinkStatus status;
  bool stopping = false;
  std::thread thread;

  void push(Catalogue& catalogue, const FramePtr& frame);
  void run(Catalogue& catalogue);
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
      queue.push_back({frame, frame->stream->files});
      ++status.queued;
    }
  }
  changed.notify_all();
  if (!taken) catalogue.sunk(*frame, taken);
}

void FileSink::Impl::run(Catalogue& catalogue) {
  name_thread("wherry-sink");
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return stopping || !queue.empty(); });
      if (stopping) break;
      job = std::move(queue.front());
      queue.pop_front();
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
  std::deque<Job> left;
  {
    const std::lock_guard lock(mutex);
    left.swap(queue);
    status.queued = 0;
    for (const Job& job : left) fail(not_written(*job.frame).message());
  }
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
  impl_->thread = std::thread([impl = impl_.get(), &catalogue] { impl->run(catalogue); });
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
