// SPDX-License-Identifier: Apache-2.0
#include "move/arrow_schema.hpp"

#include <arrow/c/bridge.h>
#include <arrow/result.h>
#include <arrow/type.h>

#include <deque>
#include <string>
#include <vector>

#include "base/try.hpp"
#include "move/arrow_status.hpp"
#include "move/c_data.hpp"
#include "move/c_import.hpp"
#include "move/message.hpp"
#include "move/plan.hpp"

namespace wherry::move {
namespace {

/// ArrowSchema structs that borrow the strings of a Schema. Arrow reads them within one call, so they need no release
/// callback.
class BorrowedTree {
 public:
  BorrowedTree(const Schema& schema, const std::string& metadata) {
    root_ = make();
    root_->metadata = metadata.empty() ? nullptr : metadata.data();
    root_->format = "+s";
    root_->name = "";
    adopt(*root_, schema);
  }
  [[nodiscard]] ArrowSchema* root() noexcept { return root_; }

 private:
  ArrowSchema* make() {
    ArrowSchema& node = nodes_.emplace_back();
    node = {};
    node.release = [](ArrowSchema* released) { released->release = nullptr; };
    return &node;
  }

  void adopt(ArrowSchema& parent, const std::vector<Field>& fields) {
    std::vector<ArrowSchema*>& children = children_.emplace_back();
    for (const Field& field : fields) children.push_back(borrow(field));
    parent.n_children = static_cast<std::int64_t>(children.size());
    parent.children = children.data();
  }

  ArrowSchema* borrow(const Field& field) {
    ArrowSchema* node = make();
    node->format = field.format.c_str();
    node->name = field.name.c_str();
    node->metadata = field.metadata.empty() ? nullptr : field.metadata.data();
    if (field.nullable) node->flags |= ARROW_FLAG_NULLABLE;
    if (field.dictionary_ordered) node->flags |= ARROW_FLAG_DICTIONARY_ORDERED;
    if (field.map_keys_sorted) node->flags |= ARROW_FLAG_MAP_KEYS_SORTED;
    adopt(*node, field.children);
    if (!field.dictionary.empty()) node->dictionary = borrow(field.dictionary.front());
    return node;
  }

  std::deque<ArrowSchema> nodes_;  // deques: what they hold never moves
  std::deque<std::vector<ArrowSchema*>> children_;
  ArrowSchema* root_ = nullptr;
};

}  // namespace

Result<std::shared_ptr<arrow::Schema>> to_arrow(const Schema& schema, const std::string& metadata) {
  // Arrow trusts the C data interface, so metadata without an end and text with zero bytes must not reach it.
  if (Result<Plan> plan = make_plan(schema); !plan) return plan.status();
  WHERRY_TRY(check_schema_metadata(metadata));
  BorrowedTree tree(schema, metadata);
  arrow::Result<std::shared_ptr<arrow::Schema>> imported = arrow::ImportSchema(tree.root());
  if (!imported.ok())
    return Status(StatusCode::kInvalidArgument, "Arrow refuses the schema: " + imported.status().message());
  return *std::move(imported);
}

Result<Schema> from_arrow_schema(const arrow::Schema& schema, std::string& metadata) {
  ArrowSchema exported{};
  if (const arrow::Status s = arrow::ExportSchema(schema, &exported); !s.ok()) return from_arrow(s, "schema");
  Result<Schema> made = from_c_schema(exported, &metadata);
  exported.release(&exported);
  if (!made) return made;
  if (Result<Plan> plan = make_plan(*made); !plan) return plan.status();
  return made;
}

}  // namespace wherry::move
