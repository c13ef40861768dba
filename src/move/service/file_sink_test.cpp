// SPDX-License-Identifier: Apache-2.0
#include "move/service/file_sink.hpp"
#include "base/testing.hpp"

#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <parquet/arrow/reader.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <set>
#include <thread>

#include "base/clock.hpp"
#include "move/service/frame_file.hpp"
#include "move/service/testing.hpp"

namespace wherry::move {
namespace {

using namespace std::chrono_literals;
using testing::particles;
using testing_support::kPatience;
namespace fs = std::filesystem;

class FileSinkTest : public ::testing::Test {
 protected:
  std::shared_ptr<Arena> arena = *Arena::create(64 << 20);
  Catalogue catalogue;
  fs::path directory = fs::temp_directory_path() / ("wherry-sink-test-" + std::to_string(::getpid())) / "out";

  void TearDown() override { fs::remove_all(directory.parent_path()); }

  std::shared_ptr<const StreamInfo> opened(Sink::Format format, Retention retention = {},
                                           const std::string& name = "s") {
    auto info = testing::stream(name, retention, {format, directory.string()});
    if (format != Sink::Format::kNone) {
      auto files = SinkDirectory::open("", directory, name, format);
      EXPECT_TRUE(files) << files.status().message();
      if (files) info->files = *std::move(files);
    }
    EXPECT_TRUE(catalogue.open(info));
    return info;
  }
  void publish(const std::shared_ptr<const StreamInfo>& info, std::uint64_t sequence, std::int64_t rows = 100) {
    catalogue.publish(testing::frame(arena, info, sequence, *particles(rows, static_cast<std::int64_t>(sequence))));
  }
  [[nodiscard]] std::set<std::string> files() const {
    std::set<std::string> names;
    if (fs::exists(directory)) {
      for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename());
    }
    return names;
  }
};

std::shared_ptr<arrow::Table> read_arrow(const fs::path& path) {
  const auto file = arrow::io::MemoryMappedFile::Open(path.string(), arrow::io::FileMode::READ).ValueOrDie();
  return arrow::ipc::RecordBatchFileReader::Open(file).ValueOrDie()->ToTable().ValueOrDie();
}

std::shared_ptr<arrow::Table> read_parquet(const fs::path& path) {
  const auto file = arrow::io::ReadableFile::Open(path.string()).ValueOrDie();
  return parquet::arrow::OpenFile(file, arrow::default_memory_pool()).ValueOrDie()->ReadTable().ValueOrDie();
}

TEST_F(FileSinkTest, ArrowFilesHoldTheFrames) {
  const auto info = opened(Sink::Format::kArrow);
  FileSink sink(catalogue);
  for (std::uint64_t i = 0; i < 3; ++i) publish(info, i);
  ASSERT_TRUE(sink.drain(kPatience));
  EXPECT_EQ(files(), (std::set<std::string>{"s-00000000.arrow", "s-00000001.arrow", "s-00000002.arrow"}));
  std::uint64_t bytes = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    const fs::path path = directory / ("s-0000000" + std::to_string(i) + ".arrow");
    EXPECT_TRUE(read_arrow(path)->Equals(*arrow::Table::FromRecordBatches({particles(100, i)}).ValueOrDie()));
    bytes += fs::file_size(path);
  }
  EXPECT_EQ(sink.status().files, 3u);
  EXPECT_EQ(sink.status().bytes, bytes);
  EXPECT_EQ(sink.status().errors, 0u) << sink.status().last_error;
}

TEST_F(FileSinkTest, ParquetFilesHoldTheFrames) {
  const auto info = opened(Sink::Format::kParquet);
  FileSink sink(catalogue);
  publish(info, 0, 1000);
  publish(info, 1, 0);
  ASSERT_TRUE(sink.drain(kPatience));
  EXPECT_EQ(sink.status().errors, 0u) << sink.status().last_error;
  const auto table = read_parquet(directory / "s-00000000.parquet");
  const auto wanted = arrow::Table::FromRecordBatches({particles(1000, 0)}).ValueOrDie();
  ASSERT_EQ(table->num_rows(), 1000);
  for (int column = 0; column < 4; ++column)
    EXPECT_TRUE(table->column(column)->Equals(*wanted->column(column))) << column;
  const auto& kinds = static_cast<const arrow::DictionaryArray&>(*table->column(4)->chunk(0));
  const auto& names = static_cast<const arrow::StringArray&>(*kinds.dictionary());
  for (std::int64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(names.GetView(kinds.GetValueIndex(i)), i % 2 == 0 ? "electron0" : "ion0");
  }
  EXPECT_EQ(read_parquet(directory / "s-00000001.parquet")->num_rows(), 0);
}

TEST_F(FileSinkTest, StreamsWithoutASinkLeaveNoFiles) {
  FileSink sink(catalogue);
  publish(opened(Sink::Format::kNone), 0);
  ASSERT_TRUE(sink.drain(kPatience));
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(sink.status().files, 0u);
}

TEST_F(FileSinkTest, AnEvictedFrameIsWrittenAllTheSame) {
  const auto info = opened(Sink::Format::kArrow, {.frames = 1});
  FileSink sink(catalogue);
  for (std::uint64_t i = 0; i < 200; ++i) publish(info, i, 10);
  ASSERT_TRUE(sink.drain(kPatience));
  EXPECT_EQ(files().size(), 200u);
  EXPECT_EQ(sink.status().files, 200u);
  for (const std::int64_t i : {0, 77, 199}) {
    EXPECT_TRUE(read_arrow(directory / fmt::format("s-{:08}.arrow", i))
                    ->Equals(*arrow::Table::FromRecordBatches({particles(10, i)}).ValueOrDie()));
  }
}

TEST_F(FileSinkTest, AWrittenFrameCountsAsRead) {
  const auto info = opened(Sink::Format::kArrow, {.frames = 1, .when_full = Retention::WhenFull::kWait});
  FileSink sink(catalogue);
  publish(info, 0);
  ASSERT_TRUE(sink.drain(kPatience));
  EXPECT_TRUE(catalogue.make_room(*info));
  EXPECT_EQ(arena->in_use(), 0u);
}

TEST_F(FileSinkTest, AFailureIsCountedNamedAndLeavesNothing) {
  const auto info = opened(Sink::Format::kArrow, {.frames = 1, .when_full = Retention::WhenFull::kWait});
  fs::remove_all(directory);
  FileSink sink(catalogue);
  publish(info, 0);
  ASSERT_TRUE(sink.drain(kPatience));
  EXPECT_EQ(sink.status().errors, 1u);
  EXPECT_NE(sink.status().last_error.find("s-00000000.arrow"), std::string::npos) << sink.status().last_error;
  EXPECT_NE(sink.status().last_error.find("was removed"), std::string::npos) << sink.status().last_error;
  EXPECT_FALSE(catalogue.make_room(*info));  // not read: it is not lost
  EXPECT_EQ(catalogue.find("s")->sink_errors, 1u);
  EXPECT_EQ(catalogue.find("s")->sink_error, sink.status().last_error);
  const auto other = opened(Sink::Format::kArrow, {}, "t");
  publish(other, 0);
  ASSERT_TRUE(sink.drain(kPatience));
  EXPECT_EQ(files(), (std::set<std::string>{"t-00000000.arrow"}));
}

TEST_F(FileSinkTest, TheDiskTakesNoMore_ExpectTheSystemsReason) {
  const auto info = opened(Sink::Format::kArrow);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  (void)std::signal(SIGXFSZ, SIG_IGN);  // write() fails with EFBIG then
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written =
      write_frame_file(testing::frame(arena, info, 0, *particles(10'000, 0)), *info->files, Unfinished::kUnnamed);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  (void)std::signal(SIGXFSZ, SIG_DFL);
  ASSERT_FALSE(written);
  EXPECT_NE(written.status().message().find(std::strerror(EFBIG)), std::string::npos) << written.status().message();
}

TEST_F(FileSinkTest, OneDiskStandsStill_ExpectFilesOnOthers) {
  const fs::path memory = fs::path("/dev/shm") / ("wherry-sink-test-" + std::to_string(::getpid()));
  std::promise<void> go_on;
  const std::shared_future<void> may_go(go_on.get_future());
  const auto slow = opened(Sink::Format::kArrow);
  const fs::path first = std::exchange(directory, memory);
  const auto quick = opened(Sink::Format::kArrow, {}, "quick");
  directory = first;
  struct stat a{}, b{};
  ASSERT_EQ(::stat(directory.c_str(), &a), 0);
  ASSERT_EQ(::stat(memory.c_str(), &b), 0);
  if (a.st_dev == b.st_dev) {
    fs::remove_all(memory);
    GTEST_SKIP() << "the directory for temporary files lies in /dev/shm: there is only one file system";
  }
  FileSink sink(catalogue, [&](FramePtr frame, const SinkDirectory& to) {
    if (frame->stream->name == "s") may_go.wait();
    return write_frame_file(std::move(frame), to);
  });
  for (std::uint64_t i = 0; i < 3; ++i) {
    publish(slow, i);
    publish(quick, i);
  }
  for (const auto deadline = std::chrono::steady_clock::now() + 60s;
       sink.status().files < 3 && std::chrono::steady_clock::now() < deadline;)
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(sink.status().files, 3U);
  EXPECT_EQ(std::distance(fs::directory_iterator(memory), fs::directory_iterator()), 3);
  EXPECT_TRUE(files().empty());
  go_on.set_value();
  EXPECT_TRUE(sink.drain(kPatience));
  EXPECT_EQ(files().size(), 3U);
  fs::remove_all(memory);
}

TEST_F(FileSinkTest, StreamClosedBeforeItsFramesAreWritten_ExpectTheFilesAllTheSame) {
  std::promise<void> may_write;
  FileSink sink(catalogue, [&, go = may_write.get_future().share()](FramePtr frame, const SinkDirectory& to) {
    go.wait();
    return write_frame_file(std::move(frame), to);
  });
  const auto info = opened(Sink::Format::kArrow);
  for (std::uint64_t i = 0; i < 3; ++i) publish(info, i, 10);
  const std::weak_ptr<const SinkDirectory> handle = info->files;
  catalogue.close("s");
  info->files.reset();  // as the service does
  may_write.set_value();
  ASSERT_TRUE(sink.drain(kPatience));
  EXPECT_EQ(files().size(), 3u);
  // The catalogue remembers the stream for long, but does not keep its descriptor.
  for (int i = 0; i < 20000 && !handle.expired(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(handle.expired());
  EXPECT_TRUE(catalogue.find("s"));
}

TEST_F(FileSinkTest, ANameThatIsTaken_ExpectAnErrorAndNothingReplaced) {
  for (const Unfinished unfinished : {Unfinished::kUnnamed, Unfinished::kNamed}) {
    fs::remove_all(directory);
    const auto info = opened(Sink::Format::kArrow, {}, unfinished == Unfinished::kNamed ? "named" : "unnamed");
    const std::string name = info->name + "-00000000.arrow";
    const FramePtr made = testing::frame(arena, info, 0, *particles(10, 0));
    const fs::path precious = directory.parent_path() / "precious";
    std::ofstream(precious) << "precious";
    const auto refused = [&] {
      const auto written = write_frame_file(made, *info->files, unfinished);
      ASSERT_FALSE(written);
      EXPECT_NE(written.status().message().find(name), std::string::npos);
      EXPECT_NE(written.status().message().find("exists already"), std::string::npos) << written.status().message();
      EXPECT_EQ(files(), (std::set<std::string>{name})) << "no temporary file";
    };
    fs::create_directories(directory / name);  // a directory of that name
    refused();
    fs::remove(directory / name);
    fs::create_symlink(precious, directory / name);
    refused();
    EXPECT_EQ(fs::file_size(precious), 8u);
    fs::remove(directory / name);
    std::ofstream(directory / name) << "earlier";
    refused();
    EXPECT_EQ(fs::file_size(directory / name), 7u);
    fs::remove(directory / name);
    ASSERT_TRUE(write_frame_file(made, *info->files, unfinished));
    EXPECT_EQ(read_arrow(directory / name)->num_rows(), 10);
  }
}

TEST_F(FileSinkTest, LinksUnderTheNamesThatTemporaryFilesHadOnce_ExpectThemLeftAlone) {
  const auto info = opened(Sink::Format::kArrow);
  const fs::path precious = directory.parent_path() / "precious";
  std::ofstream(precious) << "precious";
  fs::create_symlink(precious, directory / fmt::format(".s-00000000.arrow.{}.part", ::getpid()));
  const FramePtr made = testing::frame(arena, info, 0, *particles(10, 0));
  ASSERT_TRUE(write_frame_file(made, *info->files));
  std::string text;
  std::getline(std::ifstream(precious), text);
  EXPECT_EQ(text, "precious");
  EXPECT_FALSE(fs::is_symlink(directory / "s-00000000.arrow"));
}

TEST_F(FileSinkTest, NumbersOfMoreThanEightDigits_ExpectTheLongestAllowedNameToFit) {
  const auto info = opened(Sink::Format::kParquet, {}, std::string(226, 'n'));
  const FramePtr made = testing::frame(arena, info, std::numeric_limits<std::uint64_t>::max(), *particles(10, 0));
  const auto written = write_frame_file(made, *info->files, Unfinished::kNamed);
  EXPECT_TRUE(written) << written.status().message();
}

TEST_F(FileSinkTest, OffsetsThatLieAreAnErrorNotACrash) {
  const auto info = opened(Sink::Format::kParquet);
  const FramePtr made = testing::frame(arena, info, 0, *particles(100, 0));
  // A host can send such data: inner offsets of "label" point far outside of its data.
  auto bytes = made->extent.bytes();
  const auto labels = particles(100, 0)->column_data(2)->buffers[1];
  std::size_t at = 0;
  while (std::memcmp(bytes.data() + at, labels->data(), 404) != 0) ++at;
  const std::int32_t lie = 0x7fff'0000;
  std::memcpy(bytes.data() + at + 40, &lie, 4);
  const auto written = write_frame_file(made, *info->files);
  ASSERT_FALSE(written);
  EXPECT_TRUE(files().empty());
}

TEST_F(FileSinkTest, StopSaysWhatWasNotWritten) {
  const auto info = opened(Sink::Format::kArrow, {.frames = 1});
  fs::create_directories(directory);
  FileSink sink(catalogue);
  constexpr std::uint64_t kFrames = 300;
  std::thread publisher([&] {
    for (std::uint64_t i = 0; i < kFrames; ++i) publish(info, i, 10);
  });
  std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(sink.stop());
  publisher.join();
  const FileSinkStatus status = sink.status();
  EXPECT_EQ(status.queued, 0u);
  EXPECT_EQ(files().size(), status.files);
  EXPECT_EQ(catalogue.find("s")->sink_errors, status.errors);
  EXPECT_LE(status.files + status.errors, kFrames);  // what came after the hook was given back was not for the sink
  for (const auto& name : files()) EXPECT_EQ(read_arrow(directory / name)->num_rows(), 10);
  EXPECT_TRUE(sink.drain(0ms));
}

TEST_F(FileSinkTest, FrameIsOfferedWhileTheSinkStops_ExpectItCountedByTheCatalogueToo) {
  const auto info = opened(Sink::Format::kArrow);
  FileSink sink(catalogue);
  auto late = catalogue.insert(testing::frame(arena, info, 0, *particles(10, 0)));  // takes the hook
  ASSERT_TRUE(sink.stop());
  catalogue.announce(std::move(late));
  EXPECT_EQ(sink.status().errors, 1u);
  const auto status = catalogue.find("s");
  EXPECT_EQ(status->sink_errors, 1u);
  EXPECT_NE(status->sink_error.find("the file sink has stopped"), std::string::npos) << status->sink_error;
}

TEST_F(FileSinkTest, DiskHangsAtTheEnd_ExpectItLeftAloneAndWhatWasNotWrittenReported) {
  std::promise<void> disk;  // hangs until it is told
  std::atomic<int> began{0}, over{0};
  std::weak_ptr<const Frame> last;
  FileSinkStatus status;
  {
    Catalogue short_lived;
    const auto info = testing::stream("s", {.frames = 10}, {Sink::Format::kArrow, directory.string()});
    info->files = *SinkDirectory::open("", directory, "s", Sink::Format::kArrow);
    ASSERT_TRUE(short_lived.open(info));
    FileSink sink(short_lived, [&, go = disk.get_future().share()](FramePtr frame, const SinkDirectory& to) {
      ++began;
      last = frame;
      go.wait();
      auto written = write_frame_file(std::move(frame), to);
      ++over;
      return written;
    });
    for (std::uint64_t i = 0; i < 3; ++i)
      short_lived.publish(testing::frame(arena, info, i, *particles(10, static_cast<std::int64_t>(i))));
    for (const Deadline patience(kPatience); began == 0 && !patience.passed();) std::this_thread::yield();
    const Status stopped = sink.stop(0ms);
    EXPECT_EQ(stopped.code(), StatusCode::kDeadlineExceeded);
    EXPECT_NE(stopped.message().find("s-00000000.arrow"), std::string::npos) << stopped.message();
    status = sink.status();
    EXPECT_EQ(short_lived.find("s")->sink_errors, 3u);
    EXPECT_EQ(over, 0);
  }
  EXPECT_EQ(status.queued, 0u);
  EXPECT_EQ(status.errors, 3u);
  disk.set_value();  // it goes on after all that it knew has gone
  for (const Deadline patience(kPatience); (over == 0 || !last.expired()) && !patience.passed();)
    std::this_thread::yield();
  EXPECT_EQ(over, 1);
  EXPECT_TRUE(last.expired()) << "its memory comes back";
}

TEST_F(FileSinkTest, DrainHasADeadline) {
  const auto info = opened(Sink::Format::kArrow);
  std::promise<void> disk;  // hangs until it is told
  FileSink sink(catalogue, [go = disk.get_future().share()](FramePtr frame, const SinkDirectory& to) {
    go.wait();
    return write_frame_file(std::move(frame), to);
  });
  publish(info, 0);
  const Status late = sink.drain(50ms);
  EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(sink.status().queued, 1u);
  // A publisher does not wait for the disk: make_room() returns false.
  const auto other = opened(Sink::Format::kNone, {}, "other");
  std::uint64_t sequence = 1;
  for (; catalogue.make_room(*info) && sequence < 1000; ++sequence) publish(info, sequence, 1);
  EXPECT_EQ(sequence, kSinkQueue);
  publish(info, sequence, 1);  // of an offload that was under way
  EXPECT_TRUE(catalogue.make_room(*other));
  disk.set_value();
  EXPECT_TRUE(sink.drain(kPatience));
  EXPECT_EQ(sink.status().errors, 0u) << sink.status().last_error;
  EXPECT_EQ(files().size(), kSinkQueue + 1);
  EXPECT_TRUE(catalogue.make_room(*info));
}

}  // namespace
}  // namespace wherry::move
