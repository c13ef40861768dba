// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "move/c_import.hpp"
#include "waiting.hpp"
#include "wherry/move.hpp"

namespace wherry::python {

using namespace nb::literals;

namespace {

Look look_at(const Ticket& ticket, std::chrono::nanoseconds time) {
  if (!ticket.ready()) {
    Status s = ticket.wait(time);
    // The transfer is still in flight, or the session has ended.
    if (!ticket.ready()) return {s.code() != StatusCode::kDeadlineExceeded, std::move(s)};
  }
  return {true, ticket.wait(std::chrono::nanoseconds(0))};
}

struct PyTicket {
  nb::object owner;
  Ticket ticket;
};

/// The release function of arrays made here, which own no memory. A null release would mean "already released".
void borrowed(ArrowArray* /*array*/) {}

/// A numpy column as an ArrowArray: one node; with two dimensions, a fixed-size list and its child.
struct NumpyColumn {
  ArrowArray array{}, child{};
  const void* buffers[2] = {nullptr, nullptr};
  const void* child_buffers[2] = {nullptr, nullptr};
  ArrowArray* child_pointer = nullptr;
};

bool same_type(const nb::dlpack::dtype& type, std::string_view format) {
  using Code = nb::dlpack::dtype_code;
  if (type.lanes != 1) return false;
  const auto is = [&](Code code, int bits) {
    return type.code == static_cast<std::uint8_t>(code) && type.bits == bits;
  };
  switch (format.empty() ? '?' : format.front()) {
    case 'c':
      return is(Code::Int, 8);
    case 'C':
      return is(Code::UInt, 8);
    case 's':
      return is(Code::Int, 16);
    case 'S':
      return is(Code::UInt, 16);
    case 'i':
      return is(Code::Int, 32);
    case 'I':
      return is(Code::UInt, 32);
    case 'l':
      return is(Code::Int, 64);
    case 'L':
      return is(Code::UInt, 64);
    case 'e':
      return is(Code::Float, 16);
    case 'f':
      return is(Code::Float, 32);
    case 'g':
      return is(Code::Float, 64);
    case 't':  // numpy's datetime64 and timedelta64, viewed as integers; dates in days and times of day in 32 bits
      return is(Code::Int, format == "tdD" || format == "tts" || format == "ttm" || format == "tiM" ? 32 : 64);
    default:
      return false;
  }
}

OffloadOptions options(std::uint64_t tag, double deadline) {
  return {.tag = tag, .deadline = from_seconds(deadline), .wait_for_ticket = std::chrono::nanoseconds(0)};
}

/// Posts, and retries for at most `timeout` seconds while the post would block. The client does not retry, so that
/// other threads run and Ctrl-C works.
template <typename Post>
PyTicket admitted(const nb::object& owner, const std::string& stream, double timeout, const Post& post) {
  Result<Ticket> ticket = post();
  if (!ticket && ticket.status().is_would_block()) {
    const auto again = [&](std::chrono::nanoseconds) {
      ticket = post();
      return Look{ticket.ok() || !ticket.status().is_would_block(), ticket.status()};
    };
    const Status s = wait_in_slices(timeout, kShortSlice, again, [] { return false; });
    if (s.is_would_block()) {
      raise({StatusCode::kWouldBlock, "stream '" + stream +
                                          "': as many offloads are in flight as the session allows (max_tickets): "
                                          "wait for one, or give a timeout"});
    }
  }
  return {owner, value_or_raise(std::move(ticket))};
}

struct PyStep {
  nb::object owner;
  std::string stream;
  Step step;

  PyTicket post(std::uint64_t tag, double deadline, double timeout) {
    return admitted(owner, stream, timeout, [&] { return step.post(options(tag, deadline)); });
  }
};

class PyStream {
 public:
  PyStream(nb::object owner, Stream stream) : owner_(std::move(owner)), stream_(std::move(stream)) {}

  /// Each column: a C-contiguous numpy array, or the pair of capsules that __arrow_c_array__ returns. The caller keeps
  /// them alive.
  PyTicket post(const nb::list& columns, std::uint64_t tag, double deadline, double timeout) {
    take(columns);
    return post_struct(parent_, tag, deadline, timeout);
  }

  /// Like post(), for columns that are posted repeatedly. The caller keeps them alive and does not move them.
  PyStep bind(const nb::list& columns) {
    take(columns);
    return bind_struct(parent_);
  }

  PyTicket post_batch(const nb::capsule& array, std::uint64_t tag, double deadline, double timeout) {
    return post_struct(batch_of(array), tag, deadline, timeout);
  }
  PyStep bind_batch(const nb::capsule& array) { return bind_struct(batch_of(array)); }

  PyTicket post_raw(const nb::list& buffers, std::uint64_t tag, double deadline, double timeout) {
    const auto spans = spans_of(buffers);
    return admitted(owner_, stream_.name(), timeout, [&] { return stream_.post_raw(spans, options(tag, deadline)); });
  }
  PyStep bind_raw(const nb::list& buffers) {
    return {owner_, stream_.name(), value_or_raise(stream_.bind_raw(spans_of(buffers)))};
  }

  /// Keeps the GIL, because another thread may use the session as soon as this thread releases it.
  void close() { ok_or_raise(stream_.close()); }
  [[nodiscard]] std::string name() const { return stream_.name(); }

 private:
  /// Makes views of the columns, as children of parent_.
  void take(const nb::list& columns) {
    const Schema& schema = stream_.schema();
    const std::size_t n = columns.size();
    if (n != schema.size()) {
      raise({StatusCode::kInvalidArgument, "stream '" + stream_.name() + "' has " + std::to_string(schema.size()) +
                                               " columns, " + std::to_string(n) + " were given"});
    }
    numpy_.assign(n, {});
    children_.resize(n);
    std::int64_t rows = -1;
    for (std::size_t i = 0; i < n; ++i) {
      const nb::handle column = columns[i];
      if (nb::isinstance<nb::tuple>(column)) {
        const nb::tuple pair = nb::cast<nb::tuple>(column);
        auto* array = pair.size() == 2
                          ? static_cast<ArrowArray*>(PyCapsule_GetPointer(nb::object(pair[1]).ptr(), "arrow_array"))
                          : nullptr;
        if (array == nullptr) throw nb::python_error();
        children_[i] = array;
      } else {
        children_[i] = from_numpy(column, schema[i], numpy_[i]);
      }
      if (rows < 0) rows = children_[i]->length;
      if (children_[i]->length != rows) {
        raise({StatusCode::kInvalidArgument, "column '" + schema[i].name + "' has " +
                                                 std::to_string(children_[i]->length) +
                                                 " rows where the first column has " + std::to_string(rows)});
      }
    }
    parent_ = {};
    parent_.length = rows < 0 ? 0 : rows;
    parent_.release = borrowed;
    parent_.n_buffers = 1;
    parent_.buffers = &no_validity_;
    parent_.n_children = static_cast<std::int64_t>(n);
    parent_.children = children_.data();
  }

  static const ArrowArray& batch_of(const nb::capsule& array) {
    auto* batch = static_cast<ArrowArray*>(PyCapsule_GetPointer(array.ptr(), "arrow_array"));
    if (batch == nullptr) throw nb::python_error();
    return *batch;
  }

  static std::vector<std::span<const std::byte>> spans_of(const nb::list& buffers) {
    std::vector<std::span<const std::byte>> spans;
    for (const nb::handle buffer : buffers) {
      const auto array = nb::cast<AnyArray>(buffer);
      spans.emplace_back(static_cast<const std::byte*>(array.data()), array.nbytes());
    }
    return spans;
  }

  static ArrowArray* from_numpy(nb::handle object, const Field& field, NumpyColumn& out) {
    const auto refuse = [&](const std::string& why) {
      raise({StatusCode::kInvalidArgument, "column '" + field.name + "': " + why});
    };
    AnyArray array;
    if (!nb::try_cast(object, array)) refuse("neither a C-contiguous numpy array nor an Arrow array");
    const bool two = field.format.starts_with("+w:");
    if (array.ndim() != (two ? 2U : 1U)) {
      refuse("an array of " + std::to_string(array.ndim()) + " dimensions for type '" + field.format + "'");
    }
    const Field& values = two ? field.children.front() : field;
    if (!same_type(array.dtype(), values.format))
      refuse("the array's dtype is not the stream's type '" + values.format + "'");
    const auto rows = static_cast<std::int64_t>(array.shape(0));
    out.buffers[1] = array.data();
    out.array.length = rows;
    out.array.release = borrowed;
    out.array.n_buffers = 2;
    out.array.buffers = out.buffers;
    if (two) {
      const std::string want = "+w:" + std::to_string(array.shape(1));
      if (field.format != want)
        refuse("rows of " + std::to_string(array.shape(1)) + " values for type '" + field.format + "'");
      out.child = out.array;
      out.child.length = rows * static_cast<std::int64_t>(array.shape(1));
      out.child_buffers[1] = array.data();
      out.child.buffers = out.child_buffers;
      out.buffers[1] = nullptr;
      out.array.n_buffers = 1;
      out.array.n_children = 1;
      out.child_pointer = &out.child;
      out.array.children = &out.child_pointer;
    }
    return &out.array;
  }

  PyTicket post_struct(const ArrowArray& batch, std::uint64_t tag, double deadline, double timeout) {
    ok_or_raise(move::columns_from_c_array(stream_.schema(), batch, tree_));
    return admitted(owner_, stream_.name(), timeout,
                    [&] { return stream_.post(tree_.columns(), options(tag, deadline)); });
  }

  PyStep bind_struct(const ArrowArray& batch) {
    ok_or_raise(move::columns_from_c_array(stream_.schema(), batch, tree_));
    return {owner_, stream_.name(), value_or_raise(stream_.bind(tree_.columns()))};
  }

  nb::object owner_;
  Stream stream_;
  move::ColumnTree tree_;
  std::vector<NumpyColumn> numpy_;
  std::vector<ArrowArray*> children_;
  const void* no_validity_ = nullptr;
  ArrowArray parent_{};
};

/// StreamOptions from the arguments of Session.open_stream().
StreamOptions stream_options(const std::string& name, const std::string& strategy, std::uint64_t keep_frames,
                             std::uint64_t keep_bytes, const std::string& when_full, const std::string& sink_dir,
                             const std::string& sink_format, const std::vector<std::uint64_t>& announce,
                             std::uint32_t part, std::uint32_t parts, const std::string& operators) {
  StreamOptions options;
  options.name = name;
  options.strategy = value_or_raise(parse_strategy(strategy));
  options.retention.frames = keep_frames;
  options.retention.bytes = keep_bytes;
  if (when_full != "evict" && when_full != "wait")
    raise({StatusCode::kInvalidArgument, "when_full: want 'evict' or 'wait', not '" + when_full + "'"});
  options.retention.when_full = when_full == "wait" ? Retention::WhenFull::kWait : Retention::WhenFull::kEvict;
  options.sink.directory = sink_dir;
  if (sink_format == "arrow")
    options.sink.format = Sink::Format::kArrow;
  else if (sink_format == "parquet")
    options.sink.format = Sink::Format::kParquet;
  else if (!sink_format.empty())
    raise({StatusCode::kInvalidArgument, "sink_format: want 'arrow' or 'parquet', not '" + sink_format + "'"});
  options.announced_bytes = announce;
  options.part = part;
  options.parts = parts;
  options.operators = operators;
  return options;
}

}  // namespace

void bind_move(nb::module_& m, nb::class_<PySession>& session) {
  nb::class_<PyTicket>(m, "Ticket", "A posted offload.")
      .def(
          "ready", [](const PyTicket& t) { return t.ticket.ready(); },
          "True once the source memory may be reused, or the offload failed.")
      .def(
          "wait",
          [](const PyTicket& t, double timeout) {
            const auto look = [&](std::chrono::nanoseconds time) { return look_at(t.ticket, time); };
            ok_or_raise(wait_in_slices(timeout, kLongSlice, look, [&] { return t.ticket.ready(); }));
          },
          "timeout"_a)
      .def_prop_ro("id", [](const PyTicket& t) { return t.ticket.id(); })
      .def_prop_ro("transfer_ns", [](const PyTicket& t) { return t.ticket.transfer_ns(); })
      .def_prop_ro("sequence", [](const PyTicket& t) { return t.ticket.sequence(); });

  nb::class_<PyStep>(m, "Step")
      .def("post", &PyStep::post, "tag"_a, "deadline"_a, "timeout"_a)
      .def("in_flight", [](const PyStep& s) { return s.step.in_flight(); })
      .def("release", [](PyStep& s) { s.step.release(); });

  nb::class_<PyStream>(m, "Stream")
      .def("bind", &PyStream::bind, "columns"_a)
      .def("bind_batch", &PyStream::bind_batch, "array"_a)
      .def("bind_raw", &PyStream::bind_raw, "buffers"_a)
      .def("post", &PyStream::post, "columns"_a, "tag"_a, "deadline"_a, "timeout"_a)
      .def("post_batch", &PyStream::post_batch, "array"_a, "tag"_a, "deadline"_a, "timeout"_a)
      .def("post_raw", &PyStream::post_raw, "buffers"_a, "tag"_a, "deadline"_a, "timeout"_a)
      .def("close", &PyStream::close)
      .def_prop_ro("name", &PyStream::name);

  session.def(
      "open_stream",
      [](nb::handle_t<PySession> self, const std::string& name, const nb::object& schema, const std::string& strategy,
         std::uint64_t keep_frames, std::uint64_t keep_bytes, const std::string& when_full, const std::string& sink_dir,
         const std::string& sink_format, const std::vector<std::uint64_t>& announce, std::uint32_t part,
         std::uint32_t parts, const std::string& operators) {
        StreamOptions options = stream_options(name, strategy, keep_frames, keep_bytes, when_full, sink_dir,
                                               sink_format, announce, part, parts, operators);
        Schema fields;
        if (!schema.is_none()) {
          auto* c_schema = static_cast<ArrowSchema*>(PyCapsule_GetPointer(schema.ptr(), "arrow_schema"));
          if (c_schema == nullptr) throw nb::python_error();
          fields = value_or_raise(move::from_c_schema(*c_schema, &options.schema_metadata));
        }
        return new PyStream(nb::borrow(self),
                            value_or_raise(Stream::open(nb::cast<PySession&>(self).session, options, fields)));
      },
      "name"_a, "schema"_a.none(), "strategy"_a, "keep_frames"_a, "keep_bytes"_a, "when_full"_a, "sink_dir"_a,
      "sink_format"_a, "announce"_a, "part"_a, "parts"_a, "operators"_a);
}

}  // namespace wherry::python
