// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "session/session_core.hpp"
#include "waiting.hpp"

namespace wherry::python {

using namespace nb::literals;

namespace {

Look look_at(Session& session, std::chrono::nanoseconds time) {
  if (session.in_flight() == 0) time = std::chrono::nanoseconds(0);
  Status s = session.drain(time);
  return {s.code() != StatusCode::kDeadlineExceeded, std::move(s)};
}

struct PyMemory {
  nb::object owner;
  Memory memory;
};

struct PyRegion {
  nb::object owner;
  nb::object array;
  Region region;
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

nb::class_<PySession> bind_session(nb::module_& m) {
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

  m.def("open_session", &open_session, "agent"_a, "token"_a, "name"_a, "transport"_a, "connect_timeout"_a,
        "max_tickets"_a, "embedded_budget"_a, "embedded_core"_a, "embedded_flight"_a, "embedded_program"_a,
        "embedded_args"_a);

  return nb::class_<PySession>(m, "Session")
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
      .def("in_flight", [](const PySession& s) { return s.session.in_flight(); })
      .def(
          "leave",
          [](PySession& s) {
            session::EmbeddedProcess agent = s.session.core()->leave();
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
}

}  // namespace wherry::python
