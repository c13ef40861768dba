// SPDX-License-Identifier: Apache-2.0
// wherry._native._core: the C++ API for Python. Thin: names, defaults and conversions that Python does better live in
// wherry/move/session.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/version.hpp"
#include "move/c_import.hpp"
#include "move/client/session_core.hpp"
#include "raise.hpp"
#include "wherry/move.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace wherry;

namespace {

using wherry::python::raise;

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.status());
  return *std::move(result);
}
void ok_or_raise(const Status& status) {
  if (!status) raise(status);
}

using Clock = std::chrono::steady_clock;

/// Not-a-number and everything beyond thirty years: thirty years.
std::chrono::nanoseconds from_seconds(double seconds) {
  constexpr double kForever = 1e9;
  if (seconds < -kForever) seconds = -kForever;
  return std::chrono::nanoseconds(static_cast<std::int64_t>((seconds < kForever ? seconds : kForever) * 1e9));
}

/// A look at something that may be over.
struct Look {
  bool over;
  Status status;
};

/// Waits in slices; returns the status of the last look. A session belongs to one thread at a time, which in Python is
/// the one that holds the GIL: so whatever changes the session (`look`, given the time that it may take) runs with the
/// GIL, and only `ready`, which must not, without. Between two slices Ctrl-C gets its turn.
template <typename LookFor, typename Ready>
Status wait_in_slices(double seconds, std::chrono::nanoseconds slice, const LookFor& look, const Ready& ready) {
  // The client notices an agent's death only in a wait of more than a millisecond.
  constexpr std::chrono::microseconds kLongLook{1200};
  constexpr std::chrono::milliseconds kBetweenLongLooks{20};
  const auto start = Clock::now();
  const auto end = start + from_seconds(seconds);
  auto long_look = start + kBetweenLongLooks;
  Look seen = look(std::chrono::nanoseconds(0));
  while (!seen.over && Clock::now() < end) {
    {
      const nb::gil_scoped_release release;
      const auto until = std::min(end, Clock::now() + slice);
      // Spin while an answer may come any moment, then let others run, then sleep.
      for (auto now = Clock::now(); now < until && !ready(); now = Clock::now()) {
        if (now - start > std::chrono::milliseconds(2))
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        else if (now - start > std::chrono::microseconds(50))
          std::this_thread::yield();
      }
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    const bool is_long = Clock::now() >= long_look;
    seen = look(is_long ? std::chrono::nanoseconds(kLongLook) : std::chrono::nanoseconds(0));
    if (is_long) long_look = Clock::now() + kBetweenLongLooks;
  }
  return std::move(seen.status);
}
constexpr std::chrono::microseconds kShortSlice{50};   ///< where `ready` cannot tell
constexpr std::chrono::microseconds kLongSlice{1000};  ///< where it can

Look look_at(const Ticket& ticket, std::chrono::nanoseconds time) {
  if (!ticket.ready()) {
    Status s = ticket.wait(time);
    // Still in flight, or the session is over.
    if (!ticket.ready()) return {s.code() != StatusCode::kDeadlineExceeded, std::move(s)};
  }
  return {true, ticket.wait(std::chrono::nanoseconds(0))};
}

Look look_at(Session& session, std::chrono::nanoseconds time) {
  if (session.in_flight() == 0) time = std::chrono::nanoseconds(0);
  Status s = session.drain(time);
  return {s.code() != StatusCode::kDeadlineExceeded, std::move(s)};
}

/// Objects of Python that belong to a session keep it alive through `session`.
struct PySession {
  explicit PySession(Session s) : session(std::move(s)) {}
  Session session;
};

struct PyMemory {
  nb::object owner;
  Memory memory;
};

struct PyRegion {
  nb::object owner;
  nb::object array;
  Region region;
};

struct PyTicket {
  nb::object owner;
  Ticket ticket;
};

/// For arrays that are made here and own nothing; a null release would mean "released already".
void borrowed(ArrowArray* /*array*/) {}

/// A numpy column as an ArrowArray: one node, or a fixed-size list and its child for two dimensions.
struct NumpyColumn {
  ArrowArray array{}, child{};
  const void* buffers[2] = {nullptr, nullptr};
  const void* child_buffers[2] = {nullptr, nullptr};
  ArrowArray* child_pointer = nullptr;
};

using AnyArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

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

class PyStream {
 public:
  PyStream(nb::object owner, Stream stream) : owner_(std::move(owner)), stream_(std::move(stream)) {}

  /// Each column: a C-contiguous numpy array, or the pair of capsules that __arrow_c_array__ returns. The caller keeps
  /// them alive.
  PyTicket post(const nb::list& columns, std::uint64_t tag, double deadline, double timeout) {
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
    const void* no_validity = nullptr;
    ArrowArray parent{};
    parent.length = rows < 0 ? 0 : rows;
    parent.release = borrowed;
    parent.n_buffers = 1;
    parent.buffers = &no_validity;
    parent.n_children = static_cast<std::int64_t>(n);
    parent.children = children_.data();
    return post_struct(parent, tag, deadline, timeout);
  }

  PyTicket post_batch(const nb::capsule& array, std::uint64_t tag, double deadline, double timeout) {
    auto* batch = static_cast<ArrowArray*>(PyCapsule_GetPointer(array.ptr(), "arrow_array"));
    if (batch == nullptr) throw nb::python_error();
    return post_struct(*batch, tag, deadline, timeout);
  }

  PyTicket post_raw(const nb::list& buffers, std::uint64_t tag, double deadline, double timeout) {
    std::vector<std::span<const std::byte>> spans;
    for (const nb::handle buffer : buffers) {
      const auto array = nb::cast<AnyArray>(buffer);
      spans.emplace_back(static_cast<const std::byte*>(array.data()), array.nbytes());
    }
    return admitted(timeout, [&] { return stream_.post_raw(spans, options(tag, deadline)); });
  }

  /// With the GIL: another thread may use the session as soon as this one gives it away.
  void close() { ok_or_raise(stream_.close()); }
  [[nodiscard]] std::string name() const { return stream_.name(); }

 private:
  static OffloadOptions options(std::uint64_t tag, double deadline) {
    return {.tag = tag, .deadline = from_seconds(deadline), .wait_for_ticket = std::chrono::nanoseconds(0)};
  }

  /// Posts, and again while it would block, `timeout` seconds at most: here and not in the client, so that other
  /// threads run and Ctrl-C works meanwhile.
  template <typename Post>
  PyTicket admitted(double timeout, const Post& post) {
    Result<Ticket> ticket = post();
    if (!ticket && ticket.status().is_would_block()) {
      const auto again = [&](std::chrono::nanoseconds) {
        ticket = post();
        return Look{ticket.ok() || !ticket.status().is_would_block(), ticket.status()};
      };
      const Status s = wait_in_slices(timeout, kShortSlice, again, [] { return false; });
      if (s.is_would_block()) {
        raise({StatusCode::kWouldBlock, "stream '" + stream_.name() +
                                            "': as many offloads are in flight as the session allows (max_tickets): "
                                            "wait for one, or give offload() a timeout"});
      }
    }
    return {owner_, value_or_raise(std::move(ticket))};
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
    return admitted(timeout, [&] { return stream_.post(tree_.columns(), options(tag, deadline)); });
  }

  nb::object owner_;
  Stream stream_;
  move::ColumnTree tree_;
  std::vector<NumpyColumn> numpy_;
  std::vector<ArrowArray*> children_;
};

PySession* open_session(const std::string& agent, const std::string& token, const std::string& name,
                        const std::string& transport, double connect_timeout, std::uint32_t max_tickets,
                        std::size_t embedded_budget, int embedded_core, bool embedded_flight,
                        const std::string& embedded_program, std::vector<std::string> embedded_args) {
  SessionOptions options;
  options.agent = agent;
  options.token = token;
  options.name = name;
  options.transport = value_or_raise(parse_transport(transport));
  options.connect_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(from_seconds(connect_timeout));
  options.max_tickets = max_tickets;
  options.embedded.budget_bytes = embedded_budget;
  options.embedded.core = embedded_core;
  options.embedded.flight = embedded_flight;
  options.embedded.program = embedded_program;
  options.embedded.arguments = std::move(embedded_args);
  Result<Session> session = Status(StatusCode::kInternal, "");
  {
    const nb::gil_scoped_release release;
    session = Session::open(options);
  }
  return new PySession(value_or_raise(std::move(session)));
}

}  // namespace

NB_MODULE(_core, m) {
  m.attr("__version__") = kVersion;

  nb::class_<SessionInfo>(m, "SessionInfo", "What the agent is and what the self-test found.")
      .def_ro("agent_version", &SessionInfo::agent_version)
      .def_ro("transports", &SessionInfo::transports)
      .def_prop_ro("heap", [](const SessionInfo& i) { return std::string(to_string(i.heap)); })
      .def_prop_ro("allocated", [](const SessionInfo& i) { return std::string(to_string(i.allocated)); })
      .def_ro("mapped", &SessionInfo::mapped)
      .def_ro("agent_pid", &SessionInfo::agent_pid)
      .def_ro("session_file", &SessionInfo::session_file)
      .def_ro("flight_uri", &SessionInfo::flight_uri)
      .def("__str__", &SessionInfo::to_string);

  nb::class_<PyMemory>(m, "Memory")
      .def(
          "array",
          [](nb::handle_t<PyMemory> self) {
            auto& memory = nb::cast<PyMemory&>(self);
            const auto bytes = memory.memory.bytes();
            return nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(bytes.data(), {bytes.size()}, self);
          },
          "The memory as a numpy array of bytes that keeps it alive.");

  nb::class_<PyRegion>(m, "Region", "Registered memory of a numpy array, which it keeps alive.")
      .def(
          "unregister", [](PyRegion& r) { ok_or_raise(r.region.unregister()); },
          "Raises FailedPrecondition while offloads that read it are in flight.");

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

  nb::class_<PyStream>(m, "Stream")
      .def("post", &PyStream::post, "columns"_a, "tag"_a, "deadline"_a, "timeout"_a)
      .def("post_batch", &PyStream::post_batch, "array"_a, "tag"_a, "deadline"_a, "timeout"_a)
      .def("post_raw", &PyStream::post_raw, "buffers"_a, "tag"_a, "deadline"_a, "timeout"_a)
      .def("close", &PyStream::close)
      .def_prop_ro("name", &PyStream::name);

  nb::class_<PySession>(m, "Session")
      .def_prop_ro("info", [](const PySession& s) { return s.session.info(); })
      .def(
          "allocate",
          [](nb::handle_t<PySession> self, std::size_t bytes) {
            return new PyMemory{nb::borrow(self), value_or_raise(nb::cast<PySession&>(self).session.allocate(bytes))};
          },
          "bytes"_a)
      .def(
          "register",
          [](nb::handle_t<PySession> self, nb::object array) {
            const auto view = nb::cast<AnyArray>(array);
            return new PyRegion{
                nb::borrow(self), array,
                value_or_raise(nb::cast<PySession&>(self).session.register_memory(view.data(), view.nbytes()))};
          },
          "array"_a)
      .def(
          "open_stream",
          [](nb::handle_t<PySession> self, const std::string& name, const nb::object& schema,
             const std::string& strategy, std::uint64_t keep_frames, std::uint64_t keep_bytes,
             const std::string& when_full, const std::string& sink_dir, const std::string& sink_format,
             const std::vector<std::uint64_t>& announce) {
            StreamOptions options;
            options.name = name;
            options.strategy = value_or_raise(parse_strategy(strategy));
            options.retention.frames = keep_frames;
            options.retention.bytes = keep_bytes;
            if (when_full != "evict" && when_full != "wait")
              raise({StatusCode::kInvalidArgument, "when_full: want 'evict' or 'wait', not '" + when_full + "'"});
            options.retention.when_full =
                when_full == "wait" ? Retention::WhenFull::kWait : Retention::WhenFull::kEvict;
            options.sink.directory = sink_dir;
            if (sink_format == "arrow")
              options.sink.format = Sink::Format::kArrow;
            else if (sink_format == "parquet")
              options.sink.format = Sink::Format::kParquet;
            else if (!sink_format.empty())
              raise(
                  {StatusCode::kInvalidArgument, "sink_format: want 'arrow' or 'parquet', not '" + sink_format + "'"});
            options.announced_bytes = announce;
            Schema fields;
            if (!schema.is_none()) {
              auto* c_schema = static_cast<ArrowSchema*>(PyCapsule_GetPointer(schema.ptr(), "arrow_schema"));
              if (c_schema == nullptr) throw nb::python_error();
              fields = value_or_raise(move::from_c_schema(*c_schema, &options.schema_metadata));
            }
            return new PyStream(nb::borrow(self),
                                value_or_raise(nb::cast<PySession&>(self).session.open_stream(options, fields)));
          },
          "name"_a, "schema"_a.none(), "strategy"_a, "keep_frames"_a, "keep_bytes"_a, "when_full"_a, "sink_dir"_a,
          "sink_format"_a, "announce"_a)
      .def("in_flight", [](const PySession& s) { return s.session.in_flight(); })
      .def(
          "leave",
          [](PySession& s) {
            fabric::EmbeddedProcess agent = s.session.core()->leave();
            const nb::gil_scoped_release release;  // while an embedded agent drains and exits
            agent = {};
          },
          "Leaves the agent at once; offloads in flight are cancelled.")
      .def(
          "drain",
          [](PySession& s, double timeout) {
            const auto look = [&](std::chrono::nanoseconds time) { return look_at(s.session, time); };
            ok_or_raise(wait_in_slices(timeout, kShortSlice, look, [] { return false; }));
          },
          "timeout"_a);

  m.def("open_session", &open_session, "agent"_a, "token"_a, "name"_a, "transport"_a, "connect_timeout"_a,
        "max_tickets"_a, "embedded_budget"_a, "embedded_core"_a, "embedded_flight"_a, "embedded_program"_a,
        "embedded_args"_a);
}
