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
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<FramePtr> queue;
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
      queue.push_back(frame);
      ++status.queued;
    }
  }
  changed.notify_all();
  if (!taken) catalogue.sunk(*frame, taken);
}

void FileSink::Impl::run(Catalogue& catalogue) {
  name_thread("wherry-sink");
  for (;;) {
    FramePtr frame;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return stopping || !queue.empty(); });
      if (stopping) break;
      frame = std::move(queue.front());
      queue.pop_front();
    }
    Result<std::uint64_t> written = Status(StatusCode::kInternal, {});
    try {
      written = write_frame_file(frame);
    } catch (const std::exception& error) {  // no memory, say
      written = Status(StatusCode::kInternal, frame_file_path(*frame) + ": " + error.what());
    }
    catalogue.sunk(*frame, written.status());
    frame.reset();
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
  std::deque<FramePtr> left;
  {
    const std::lock_guard lock(mutex);
    left.swap(queue);
    status.queued = 0;
    for (const FramePtr& frame : left) fail(not_written(*frame).message());
  }
  changed.notify_all();
  for (const FramePtr& frame : left) catalogue.sunk(*frame, not_written(*frame));
}

FileSink::FileSink(Catalogue& catalogue) : impl_(std::make_shared<Impl>()), catalogue_(catalogue) {
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
