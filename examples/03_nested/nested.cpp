// SPDX-License-Identifier: Apache-2.0
// Teaches: Arrow's nested types without Arrow. Variable-length data has an array of offsets and one of values. Missing
// rows are zeros in a bitmap. Repeated values become indices into a dictionary.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "wherry/move.hpp"

namespace {

int fail(const wherry::Status& status) {
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return 1;
}

}  // namespace

int main() {
  using namespace std::chrono_literals;
  using wherry::Column;
  auto session = wherry::Session::open();
  if (!session) return fail(session.status());
  const wherry::Schema schema{wherry::utf8("name"), wherry::list("neighbours", wherry::field<std::int32_t>("")),
                              wherry::field<float>("load", true),                      // nullable
                              wherry::dictionary("material", "c", wherry::utf8(""))};  // 8-bit indices
  auto stream = wherry::Stream::open(*session, {.name = "cells"}, schema);
  if (!stream) return fail(stream.status());

  // name: "a", "bc", "def"
  const std::array<std::int32_t, 4> name_offsets{0, 1, 3, 6};
  const char* const names = "abcdef";
  // neighbours: [1, 2], [], [0]
  const std::array<std::int32_t, 4> list_offsets{0, 2, 2, 3};
  const std::array<std::int32_t, 3> neighbours{1, 2, 0};
  const Column item(neighbours);
  // load: 0.5, missing, 0.25
  const std::array<float, 3> load{0.5F, 0.0F, 0.25F};
  const std::uint8_t present = 0b101;
  // material: water, steel, water
  const std::array<std::int8_t, 3> index{0, 1, 0};
  const std::array<std::int32_t, 3> word_offsets{0, 5, 10};
  const Column words = Column::utf8(word_offsets, "watersteel");
  Column material(index);
  material.dictionary = &words;

  auto ticket = stream->post({Column::utf8(name_offsets, names), Column::list(list_offsets, item),
                              Column(load).with_validity(&present, 1), material});
  if (!ticket) return fail(ticket.status());
  if (auto done = ticket->wait(10s); !done) return fail(done);
  std::printf("three cells delivered as frame %llu\n", static_cast<unsigned long long>(ticket->sequence()));

  // post() refuses columns that do not match the schema, and names the column.
  auto wrong = stream->post({item, item, item, item});
  std::printf("refused: %s\n", wrong.status().message().c_str());
  return wrong.status().code() == wherry::StatusCode::kInvalidArgument ? 0 : 1;
}
