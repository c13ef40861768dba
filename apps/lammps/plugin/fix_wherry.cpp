// SPDX-License-Identifier: Apache-2.0
#include "plugin/fix_wherry.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "atom.h"
#include "comm.h"
#include "error.h"
#include "library.h"
#include "update.h"

namespace wherry::lammps {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = 60s;  // for an agent that takes nothing, for example because its readers do not
constexpr auto kClosing = 10s;
constexpr double kGrowth = 1.1;  // of the copies beyond the atoms at hand: atoms come and go between ranks

/// Adds the time of its scope to one of the HostTime's parts.
class Timed {
 public:
  explicit Timed(double& seconds) : seconds_(seconds) {}
  ~Timed() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  double& seconds_;
  Clock::time_point start_ = Clock::now();
};

/// These change when atoms are created, move (x) or change ranks. All of that comes before the forces.
bool is_final_early(std::string_view name) {
  static constexpr std::string_view kEarly[] = {"id", "type", "mask", "image", "molecule", "x"};
  return std::ranges::find(kEarly, name) != std::end(kEarly);
}

/// Fixes that name the same agent share a session: an embedded agent is started once.
Result<std::shared_ptr<Session>> session_for(const SessionOptions& options) {
  static std::map<std::string, std::weak_ptr<Session>> open;
  if (auto session = open[options.agent].lock()) return session;
  auto opened = Session::open(options);
  if (!opened) return opened.status();
  auto session = std::make_shared<Session>(*std::move(opened));
  open[options.agent] = session;
  return session;
}

/// Broadcasts the text of rank `from`.
void broadcast(std::string& text, int from, MPI_Comm world) {
  auto bytes = static_cast<std::uint64_t>(text.size());
  MPI_Bcast(&bytes, 1, MPI_UINT64_T, from, world);
  text.resize(bytes);
  MPI_Bcast(text.data(), static_cast<int>(bytes), MPI_CHAR, from, world);
}

/// Bytes of one value. 0 if it is not a number for each atom.
std::size_t value_bytes(int datatype) {
  switch (datatype) {
    case LAMMPS_INT:
    case LAMMPS_INT_2D:
      return sizeof(std::int32_t);
    case LAMMPS_INT64:
    case LAMMPS_INT64_2D:
      return sizeof(std::int64_t);
    case LAMMPS_DOUBLE:
    case LAMMPS_DOUBLE_2D:
      return sizeof(double);
    default:
      return 0;
  }
}

bool is_table(int datatype) {
  return datatype == LAMMPS_INT_2D || datatype == LAMMPS_INT64_2D || datatype == LAMMPS_DOUBLE_2D;
}

Field number_field(const std::string& name, int datatype) {
  switch (value_bytes(datatype) == sizeof(std::int32_t) ? LAMMPS_INT : datatype) {
    case LAMMPS_INT:
      return field<std::int32_t>(name);
    case LAMMPS_INT64:
    case LAMMPS_INT64_2D:
      return field<std::int64_t>(name);
    default:
      return field<double>(name);
  }
}

}  // namespace

// ---------------------------------------------------------------- arguments

FixWherry::FixWherry(LAMMPS_NS::LAMMPS* lammps, int argument_count, char** arguments)
    : Fix(lammps, argument_count, arguments) {
  // fix ID group wherry N stream attribute ... keyword value ...
  if (argument_count < 6) LAMMPS_NS::utils::missing_cmd_args(FLERR, "fix wherry", error);
  if (std::strcmp(arguments[1], "all") != 0) {
    error->all(FLERR, 1, "fix wherry takes the group all, not {}", arguments[1]);
  }
  nevery = LAMMPS_NS::utils::inumeric(FLERR, arguments[3], false, lmp);
  if (nevery <= 0) error->all(FLERR, 3, "fix wherry: N, of every N steps, is at least 1, not {}", nevery);
  if (lmp->kokkos != nullptr)
    error->all(FLERR, "fix wherry does not work with the KOKKOS package: its data is elsewhere");

  options_.name = arguments[4];
  options_.strategy = Strategy::kIpcPageAligned;
  int at = 5;
  while (at < argument_count && read_options(argument_count, arguments, at) == at) add_attribute(arguments[at++]);
  if (attributes_.empty()) error->all(FLERR, "fix wherry: name the per-atom attributes to send, such as id type x v");
  while (at < argument_count) {
    const int next = read_options(argument_count, arguments, at);
    if (next == at) {
      error->all(FLERR, at, "fix wherry: {} is not a keyword; attributes come before keywords", arguments[at]);
    }
    at = next;
  }

  scalar_flag = vector_flag = 1;
  size_vector = 7;
  global_freq = 1;
  extscalar = extvector = 0;

  open_session();
}

FixWherry::~FixWherry() {
  if (stream_) {
    // An exception must not leave a destructor; and LAMMPS may be ending because of an error.
    const Status drained = session_->drain(kClosing);
    const Status closed = stream_->close();
    for (const Status& s : {drained, closed}) {
      if (!s) LAMMPS_NS::utils::logmesg(lmp, "WARNING: fix wherry: {}\n", s.message());
    }
  }
  for (Snapshot& snapshot : snapshots_) snapshot = Snapshot();
  for (Attribute& a : attributes_) a.region = Region();
  stream_.reset();
  if (failed_ || !session_ || comm->nprocs == 1) return;
  if (comm->me != 0) session_.reset();
  MPI_Barrier(world);
}

/// If each rank looked for an agent, it would find none, and start one. But parts of one stream need one agent.
void FixWherry::open_session() {
  session_options_.name = "fix wherry";
  if (comm->nprocs != 1) session_options_.name += ", rank " + std::to_string(comm->me);
  const bool finds = session_options_.agent == "auto" || session_options_.agent == "embedded";
  const auto open = [&] {
    auto session = session_for(session_options_);
    if (session) session_ = *std::move(session);
    return session ? Status() : session.status();
  };
  if (comm->nprocs == 1 || !finds) return agree(open());

  Status status;
  std::string file;
  if (comm->me == 0) {
    status = open();
    if (status) file = session_->info().session_file;
  }
  agree(status);
  broadcast(file, 0, world);
  if (comm->me != 0) {
    session_options_.agent = file;
    status = open();
  }
  agree(status);
}

/// Reads the keyword at `at` and its value. Returns the next index.
int FixWherry::read_options(int argument_count, char** arguments, int at) {
  const std::string keyword = arguments[at];
  static constexpr std::string_view kKeywords[] = {"agent", "strategy", "keep", "full", "budget", "core"};
  if (std::ranges::find(kKeywords, keyword) == std::end(kKeywords)) return at;
  if (at + 1 == argument_count) LAMMPS_NS::utils::missing_cmd_args(FLERR, "fix wherry " + keyword, error);
  const std::string value = arguments[at + 1];
  if (keyword == "agent") {
    session_options_.agent = value;
  } else if (keyword == "strategy") {
    const auto strategy = parse_strategy(value);
    if (!strategy || *strategy == Strategy::kRaw) {
      error->all(FLERR, at + 1, "fix wherry: {} is not a strategy for columns", value);
    }
    options_.strategy = *strategy;
  } else if (keyword == "full") {
    if (value != "wait" && value != "evict") {
      error->all(FLERR, at + 1, "fix wherry: full is wait or evict, not {}", value);
    }
    options_.retention.when_full = value == "wait" ? Retention::WhenFull::kWait : Retention::WhenFull::kEvict;
  } else {
    const auto number = LAMMPS_NS::utils::bnumeric(FLERR, value, false, lmp);
    if (number < 0 || (number == 0 && keyword == "budget")) {
      error->all(FLERR, at + 1, "fix wherry: {} is a positive number, not {}", keyword, value);
    }
    if (keyword == "keep") options_.retention.frames = static_cast<std::uint64_t>(number);
    if (keyword == "budget") session_options_.embedded.budget_bytes = static_cast<std::size_t>(number);
    if (keyword == "core") session_options_.embedded.core = static_cast<int>(number);
  }
  return at + 2;
}

void FixWherry::add_attribute(const char* name) {
  Attribute a;
  a.name = name;
  a.datatype = atom->extract_datatype(name);
  const std::size_t width = value_bytes(a.datatype);
  if (width == 0 || a.name == "mass") {  // mass is of a type, not of an atom
    error->all(FLERR, "fix wherry: LAMMPS has no per-atom attribute {}", name);
  }
  if (std::ranges::find(attributes_, a.name, &Attribute::name) != attributes_.end()) {
    error->all(FLERR, "fix wherry: attribute {} is named twice", name);
  }
  if (atom->extract(name) == nullptr) {
    error->all(FLERR, "fix wherry: atom style {} has no attribute {}", atom->get_style(), name);
  }
  if (is_table(a.datatype)) a.columns = atom->extract_size(name, LMP_SIZE_COLS);
  if (a.columns < 1) error->all(FLERR, "fix wherry: attribute {} has rows of varying length", name);
  a.bytes = width * static_cast<std::size_t>(a.columns);
  a.final_early = is_final_early(a.name);
  if (a.final_early) {
    early_ = true;
  } else {
    late_bytes_ += a.bytes;
  }
  attributes_.push_back(std::move(a));
}

int FixWherry::modify_param(int argument_count, char** arguments) {
  if (std::strcmp(arguments[0], "active") != 0) return 0;
  if (argument_count < 2) LAMMPS_NS::utils::missing_cmd_args(FLERR, "fix_modify active", error);
  active_ = LAMMPS_NS::utils::logical(FLERR, arguments[1], false, lmp) != 0;
  return 2;
}

// ---------------------------------------------------------------- a run

int FixWherry::setmask() {
  using namespace LAMMPS_NS::FixConst;
  return PRE_FORCE | POST_FORCE | END_OF_STEP;
}

void FixWherry::init() {
  if (LAMMPS_NS::utils::strmatch(update->integrate_style, "^respa")) {
    error->all(FLERR, "fix wherry works with run_style verlet, not {}", update->integrate_style);
  }
  if (!stream_) open_stream();
}

void FixWherry::open_stream() {
  Schema schema;
  std::uint64_t row = 0;
  for (const Attribute& a : attributes_) {
    row += a.bytes;
    if (is_table(a.datatype)) {
      schema.push_back(fixed_size_list(a.name, a.columns, number_field("item", a.datatype)));
    } else {
      schema.push_back(number_field(a.name, a.datatype));
    }
  }
  options_.announced_bytes = {row * static_cast<std::uint64_t>(atom->nlocal)};
  if (comm->nprocs > 1) {
    options_.part = static_cast<std::uint32_t>(comm->me);
    options_.parts = static_cast<std::uint32_t>(comm->nprocs);
  }
  auto stream = Stream::open(*session_, options_, schema);
  agree(stream ? Status() : stream.status());
  stream_.emplace(*std::move(stream));
  columns_.resize(attributes_.size());
  items_.resize(attributes_.size());
}

bool FixWherry::due() const { return active_ && update->ntimestep % nevery == 0; }

/// The atoms have moved, changed ranks and been sorted; forces come next.
void FixWherry::pre_force(int /*vflag*/) {
  if (!early_ || !due()) return;
  const Timed timed(lost_.calls), early(lost_.early);
  for (std::size_t i = 0; i < attributes_.size(); ++i) {
    Attribute& a = attributes_[i];
    const std::byte* const data = a.final_early ? data_of(a) : nullptr;
    if (data != nullptr && session_->info().mapped) keep_registered(a, data);
    columns_[i] = column_of(a, data, i);
  }
  early_ticket_ = posted(stream_->post(columns_, {.tag = static_cast<std::uint64_t>(update->ntimestep)}));
}

/// Forces are computed, so velocities and, by some fixes, positions change from here on.
void FixWherry::post_force(int /*vflag*/) {
  if (!early_ticket_) return;
  const Timed timed(lost_.waits), early(lost_.early);
  wait(*std::exchange(early_ticket_, std::nullopt));
}

/// The velocities of this step are valid until the next step begins.
void FixWherry::end_of_step() {
  if (!active_) return;
  ++frames_;
  for (const Attribute& a : attributes_) bytes_ += a.bytes * static_cast<std::uint64_t>(atom->nlocal);
  if (late_bytes_ == 0 || (early_ && atom->nlocal == 0)) return;  // pre_force() posted all there is
  Snapshot& snapshot = snapshots_[turn_++ % snapshots_.size()];
  if (snapshot.reader) {
    const Timed timed(lost_.waits);
    wait(*std::exchange(snapshot.reader, std::nullopt));
  }
  copy_late(snapshot);
  const Timed timed(lost_.calls);
  const OffloadOptions options{.tag = static_cast<std::uint64_t>(update->ntimestep)};
  snapshot.reader = posted(early_ ? stream_->post_rest(columns_, options) : stream_->post(columns_, options));
}

/// Registers the array anew if LAMMPS has moved it. No agent reads it at that time, because each transfer ends before
/// the forces do. Only for an agent on the same machine, which reads by addresses. A network adapter could still read
/// the old pages of the array.
void FixWherry::keep_registered(Attribute& a, const std::byte* data) {
  if (a.registered == data && a.capacity == atom->nmax) return;
  a.region = Region();
  auto region = session_->register_memory(data, a.bytes * static_cast<std::size_t>(atom->nmax));
  if (!region) fail(region.status());
  a.region = *std::move(region);
  a.registered = data;
  a.capacity = atom->nmax;
}

/// Copies the attributes that are final late, and points columns_ to the copies.
void FixWherry::copy_late(Snapshot& to) {
  const auto atoms = static_cast<std::size_t>(atom->nlocal);
  if (to.memory.bytes().size() < atoms * late_bytes_) {
    const Timed timed(lost_.calls);
    auto allocated = session_->allocate(static_cast<std::size_t>(static_cast<double>(atoms) * kGrowth) * late_bytes_);
    if (!allocated) fail(allocated.status());
    to.memory = *std::move(allocated);
  }
  const Timed timed(lost_.copies);
  std::byte* at = to.memory.bytes().data();
  for (std::size_t i = 0; i < attributes_.size(); ++i) {
    const Attribute& a = attributes_[i];
    if (a.final_early) continue;
    copier_.copy(at, data_of(a), atoms * a.bytes);
    columns_[i] = column_of(a, at, i);
    at += atoms * a.bytes;
  }
}

// ---------------------------------------------------------------- pieces

/// The first value of the first atom: LAMMPS's tables are pointers to rows that follow one another in memory.
const std::byte* FixWherry::data_of(const Attribute& a) const {
  void* const array = atom->extract(a.name.c_str());
  if (atom->nlocal == 0) return nullptr;
  return static_cast<const std::byte*>(is_table(a.datatype) ? *static_cast<void**>(array) : array);
}

/// `data` is null if it is set later. The column refers to items_[index].
Column FixWherry::column_of(const Attribute& a, const std::byte* data, std::size_t index) {
  const std::int64_t atoms = atom->nlocal;
  Column& values = items_[index];
  values = Column();
  values.length = atoms * a.columns;
  values.values = data;
  values.later = data == nullptr && atoms != 0;
  return is_table(a.datatype) ? Column::fixed_list(atoms, values) : values;
}

/// Blocks until the agent has read the ticket's data.
void FixWherry::wait(const Ticket& ticket) {
  if (ticket.ready() && ticket.wait(0s)) return;
  if (const Status s = ticket.wait(kPatience); !s) fail(s);
}

Ticket FixWherry::posted(Result<Ticket> ticket) {
  if (!ticket) fail(ticket.status());
  return *ticket;
}

void FixWherry::fail(const Status& status) {
  failed_ = true;
  error->one(FLERR, "fix wherry, stream {}, step {}: {}", options_.name, update->ntimestep, status.message());
}

/// Ends LAMMPS on all ranks if `status` is an error on any. It reports the lowest such rank's. All ranks call it.
void FixWherry::agree(const Status& status) const {
  const int mine = status ? comm->nprocs : comm->me;
  int first = 0;
  MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, world);
  if (first == comm->nprocs) return;
  std::string message(status ? std::string_view() : status.message());
  broadcast(message, first, world);
  error->all(FLERR, "fix wherry{}: {}", comm->nprocs == 1 ? "" : ", rank " + std::to_string(first), message);
}

// ---------------------------------------------------------------- what it tells

double FixWherry::compute_scalar() { return lost_.total(); }

double FixWherry::compute_vector(int index) {
  const double values[] = {static_cast<double>(frames_),
                           static_cast<double>(bytes_),
                           lost_.calls,
                           lost_.copies,
                           lost_.waits,
                           lost_.total(),
                           lost_.early};
  return values[index];
}

double FixWherry::memory_usage() {
  std::size_t bytes = 0;
  for (const Snapshot& s : snapshots_) bytes += s.memory.bytes().size();
  return static_cast<double>(bytes);
}

}  // namespace wherry::lammps
