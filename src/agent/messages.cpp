// SPDX-License-Identifier: Apache-2.0
// Transports, and the messages that arrive over them.
#include <cstring>
#include <utility>

#include "agent/impl.hpp"
#include "base/try.hpp"

namespace wherry {

Result<session::Plane*> Agent::Impl::plane_for(Transport transport) {
  if (const auto it = planes.find(transport); it != planes.end()) return &it->second;
  if (const auto it = no_planes.find(transport); it != no_planes.end()) return it->second;
  auto context = fabric::Context::create(transport);
  if (!context) return no_planes.emplace(transport, context.status()).first->second;
  session::Plane plane;
  plane.context = *std::move(context);
  WHERRY_ASSIGN(plane.worker, fabric::Worker::create(plane.context));
  WHERRY_ASSIGN(plane.arena, plane.context->register_memory(host.arena->memory().data(), host.arena->memory().size()));
  WHERRY_TRY(route(plane, session::kPingMessage, nullptr));
  for (const auto& service : services) {
    if (service->message_id() != 0) WHERRY_TRY(route(plane, service->message_id(), service.get()));
  }
  return &planes.emplace(transport, std::move(plane)).first->second;
}

Status Agent::Impl::route(const session::Plane& plane, unsigned id, session::Service* service) {
  routes.push_back(std::make_unique<Route>(Route{this, service}));
  return plane.worker->on_message(id, on_fabric_message, routes.back().get());
}

/// Every fabric message starts with the secret session id that its sender got in the greeting.
void Agent::Impl::on_fabric_message(void* context, ByteView data) {
  const Route& route = *static_cast<Route*>(context);
  std::uint64_t session = 0;
  if (data.size() < sizeof session) return;
  std::memcpy(&session, data.data(), sizeof session);
  const auto it = route.agent->by_session.find(session);
  if (it == route.agent->by_session.end()) return;
  AgentClient& client = *it->second;
  // UCX calls this function, so no exception may leave it.
  Status s = guarded([&]() -> Status {
    if (route.service == nullptr) {
      client.on_ping();
    } else if (client.state != AgentClient::State::kReady) {
      return ok_status();
    } else if (client.has_mailbox()) {
      client.defer(data);
    } else {
      route.service->on_message(client, data);
    }
    return ok_status();
  });
  if (!s) client.fail(std::move(s));
}

/// Handles messages in the mailboxes of clients on this machine.
bool Agent::Impl::mailboxes() {
  bool worked = false;
  for (auto it = clients.begin(); it != clients.end();) {
    AgentClient& client = **it++;
    if (client.state != AgentClient::State::kReady || !client.has_mailbox()) continue;
    const auto read = guarded([&] {
      return client.read_mailbox([&](std::uint8_t kind, ByteView message) {
        for (const auto& service : services) {
          if (service->message_id() == kind) service->on_message(client, message);
        }
      });
    });
    if (!read) {
      tell(client, read.status());
      end(client, read.status());
    }
    worked |= !read || *read;
  }
  return worked;
}

}  // namespace wherry
