/* SPDX-License-Identifier: Apache-2.0
 *
 * The kv protocol of docs/design/kv-protocol.md for one key, checked by Spin: `tools/check_model.py` runs it (`make model`).
 *
 * The network is a set: a frame once sent stays, and any node may receive it at any time, any number of times, or never.
 * That is loss, duplication and reordering without bound, and it makes acknowledgements and retransmissions free: a sender
 * that repeats a frame changes nothing, and a leader "has received" an acknowledgement when it takes the step that needs it.
 *
 * One process takes all steps, each of them one d_step: what a node does with one frame is atomic, as in the hardware.
 *
 * The monitor. Versions are a witness: reads and writes are linearizable if every value is seen with one version only,
 * every version with one value only, nothing is seen with a version at or below what was complete before its write was
 * invoked, and no read returns less than what was complete before the read. `floor` is the highest version that any
 * complete operation returned. A read is invoked, looked up and complete in one step, which is the strictest case.
 * "Acknowledged means on every live replica": when a write is acknowledged, and whenever a replica lowers a version or is
 * promoted, every live serving replica has the highest acknowledged version.
 *
 * A question for a lane's record and its answer are one step: all that the returning node does with answers is to keep the
 * newest, and nobody asks it before it serves, so an answer that comes later tells it less.
 *
 * Size, by -D: NODES, S0 and S1 (writes of writer 0 and 1), E (epochs), FAILURES (crashes or lapsed leases), OUT (a mask: nodes
 * that are not there at the beginning), RETURNS (a mask: nodes that, when they are out, may come back, empty), and the switches
 * CAS (the writes of writer 1 are conditional), MOVES (leadership may change without a failure), GIVE_UP (a client may abandon
 * a request). Faults of the protocol, which must be found: BUG_*.
 * REACH_*: assertions that fail when a situation is reached, so that no property holds for want of it.
 */

#ifndef NODES
#define NODES 3
#endif
#ifndef S0
#define S0 1
#endif
#ifndef S1
#define S1 1
#endif
#ifndef E
#define E 2
#endif
#ifndef FAILURES
#define FAILURES 1
#endif

#ifndef OUT
#define OUT 0
#endif

#define K (S0 + S1) /* writes, numbered from 1: those of writer 0, then those of writer 1 */
#define V K         /* highest version: each write takes effect once */
#define ALL ((1 << NODES) - 1)
#define BIT(n) (1 << (n))
#define HAS(mask, n) (((mask) >> (n)) & 1)
#define EV(e, v) ((e) * (V + 1) + (v))
#define EK(e, k) ((e) * (K + 1) + (k))
#define LN(n, w) ((n) * 2 + (w))
#define WRITER(k) ((k) > S0)
#define SEQUENCE(k) ((k) > S0 -> (k) - S0 : (k))
#define WRITE(w, s) ((w) * S0 + (s))
#define FAILED 100 /* lane record: refused, at version lver - FAILED */

/* The keeper's configurations, one for each epoch from 1. */
byte epoch = 1;
byte members[E + 1], serving[E + 1], leader[E + 1];
byte failures;
byte synced_all; /* mask: nodes that told the keeper that they have everything */

/* Nodes. Masks have a bit for each node. */
byte alive = ALL, lease = ALL;
byte at[NODES];          /* epoch that the node has entered */
byte version[NODES], value[NODES];
byte pending;            /* stored, not known to be committed */
byte leftover;           /* pending, and of an earlier epoch: to be reconciled with the leader */
byte opened;             /* as leader: takes writes */
byte lane[NODES * 2], result[NODES * 2]; /* per writer: last sequence, and its version; 0: none to tell */
byte unsettled[2];       /* per writer: that sequence is of a write that is pending or leftover here */
byte window[NODES], window_version[NODES]; /* the leader's write in flight */
byte have_entry, have_lane0, have_lane1; /* what a returning node has fetched */
#ifdef RETURNS
byte told[NODES * 2];    /* per writer: who told its record, in this epoch */
#endif

/* The network: frames sent, by epoch. */
byte request[E + 1];                        /* mask of writes */
byte replicate[(E + 1) * (V + 1)];          /* write, by version */
byte ack[(E + 1) * (V + 1)];                /* mask of followers, by version */
byte commit[E + 1];                         /* mask of versions */
byte synced[E + 1];                         /* mask of followers */
byte entry[(E + 1) * (V + 1)];              /* 1 + write, by version */
byte done_ok[(E + 1) * (K + 1)];            /* version, by write */
byte done_refused[(E + 1) * (K + 1)];       /* 1 + version found, by write */

/* Clients. */
byte sequence[2], known[2] = 1; /* last sequence begun; epoch that the client knows */
bit waiting[2];
byte expected[K + 1];

/* Monitor. */
byte floor, acknowledged;
byte invoked_at[K + 1]; /* floor at the write's invocation */
byte write_of[V + 1], version_of[K + 1];
bit refused[K + 1];

hidden byte i, k, v, w, s, n, f;

inline see(k_, v_) {
  if
  :: k_ == 0 -> assert(v_ == 0) /* nothing written yet */
  :: else ->
    assert(write_of[v_] == 0 || write_of[v_] == k_);    /* one version, one value */
    assert(version_of[k_] == 0 || version_of[k_] == v_); /* a write takes effect once */
    assert(!refused[k_]);                                /* what was refused has no effect */
    assert(v_ > invoked_at[k_]);                         /* not before its invocation */
    write_of[v_] = k_;
    version_of[k_] = v_
  fi
}

inline complete(v_) {
  if
  :: v_ > floor -> floor = v_
  :: else
  fi
}

inline every_live_replica_has(v_, k_) {
  for (i : 0 .. NODES - 1) {
    if
    :: HAS(alive & serving[epoch], i) ->
      assert(version[i] >= v_);
      assert(version[i] > v_ || value[i] == k_)
    :: else
    fi
  }
}

/* What a write that did not survive left in the table of lanes goes back: a retry of it is new again. */
inline forget(n_, k_) {
#ifndef BUG_ROLLBACK_KEEPS_RECORD
  if
  :: k_ > 0 && lane[LN(n_, WRITER(k_))] == SEQUENCE(k_) ->
    lane[LN(n_, WRITER(k_))] = SEQUENCE(k_) - 1;
    result[LN(n_, WRITER(k_))] = 0;
    unsettled[WRITER(k_)] = unsettled[WRITER(k_)] & ~BIT(n_)
  :: else
  fi
#else
  skip
#endif
}

/* What was pending here is committed. */
inline settle(n_, k_) {
  if
  :: k_ > 0 && lane[LN(n_, WRITER(k_))] == SEQUENCE(k_) -> unsettled[WRITER(k_)] = unsettled[WRITER(k_)] & ~BIT(n_)
  :: else
  fi
}

/* The location takes what the leader of the new epoch has; what was there is committed if the leader's version is higher. */
inline adopt(n_, v_, k_) {
  if
  :: v_ < version[n_] || (v_ == version[n_] && k_ != value[n_]) -> forget(n_, value[n_])
  :: else -> settle(n_, value[n_])
  fi;
  assert(v_ >= acknowledged || !HAS(serving[epoch], n_));
  version[n_] = v_;
  value[n_] = k_;
  leftover = leftover & ~BIT(n_)
}

#define LEADS(n) (HAS(alive, n) && at[n] > 0 && leader[at[n]] == n && HAS(members[at[n]], n))
#define FOLLOWS(n) (HAS(alive, n) && at[n] > 0 && leader[at[n]] != n && HAS(members[at[n]], n))
#ifdef BUG_NO_LEASE
#define LEASED(n) 1
#define MAY_REMOVE(n) 1
#else
#define LEASED(n) HAS(lease, n)
#define MAY_REMOVE(n) (!HAS(lease, n))
#endif

/* ---- clients ---- */

#define CLIENT(w_, limit)                                                                          \
  :: d_step { !waiting[w_] && sequence[w_] < limit ->                                              \
      sequence[w_]++;                                                                              \
      waiting[w_] = 1;                                                                             \
      k = WRITE(w_, sequence[w_]);                                                                 \
      invoked_at[k] = floor;                                                                       \
      request[known[w_]] = request[known[w_]] | BIT(k) }                                           \
  :: d_step { waiting[w_] && known[w_] < epoch -> /* learns of an epoch, and sends again in it */  \
      known[w_]++;                                                                                 \
      k = WRITE(w_, sequence[w_]);                                                                 \
      request[known[w_]] = request[known[w_]] | BIT(k) }                                           \
  CLIENT_REPLY(w_, known[w_])

#define CLIENT_REPLY(w_, e_)                                                                       \
  :: d_step { waiting[w_] && done_ok[EK(e_, WRITE(w_, sequence[w_]))] > 0 ->                       \
      k = WRITE(w_, sequence[w_]);                                                                 \
      v = done_ok[EK(e_, k)];                                                                      \
      waiting[w_] = 0;                                                                             \
      see(k, v);                                                                                   \
      complete(v); skip }                                                                                \
  :: d_step { waiting[w_] && done_refused[EK(e_, WRITE(w_, sequence[w_]))] > 0 ->                  \
      k = WRITE(w_, sequence[w_]);                                                                 \
      v = done_refused[EK(e_, k)] - 1;                                                             \
      waiting[w_] = 0;                                                                             \
      assert(version_of[k] == 0);                                                                  \
      assert(v >= invoked_at[k] && v != expected[k]); /* a refusal is a read */                    \
      refused[k] = 1;                                                                              \
      complete(v); skip }

/* Writer 1 chooses what it expects; the choice is made once, before it begins. */
#define CHOOSE(v_)                                                                                 \
  :: d_step { !waiting[1] && sequence[1] < S1 && expected[WRITE(1, sequence[1] + 1)] == 0 && v_ <= V -> \
      expected[WRITE(1, sequence[1] + 1)] = v_ }

#ifdef CAS
#define CONDITIONAL(k_) (WRITER(k_) && expected[k_] > 0)
#else
#define CONDITIONAL(k_) 0
#endif

/* ---- leader ---- */

#ifdef BUG_NO_DEDUP
#define IS_NEW(n_, k_) (window[n_] != k_)
#else
#define IS_NEW(n_, k_) (lane[LN(n_, WRITER(k_))] < SEQUENCE(k_))
#endif

inline remember(n_, k_, r_) {
  lane[LN(n_, WRITER(k_))] = SEQUENCE(k_);
  result[LN(n_, WRITER(k_))] = r_;
  unsettled[WRITER(k_)] = unsettled[WRITER(k_)] & ~BIT(n_)
}

#define TAKE(n_, k_)                                                                               \
  :: d_step { LEADS(n_) && HAS(opened, n_) && HAS(request[at[n_]], k_) && window[n_] == 0 && IS_NEW(n_, k_) && LEASED(n_) -> \
      if                                                                                           \
      :: CONDITIONAL(k_) && version[n_] != expected[k_] ->                                         \
        done_refused[EK(at[n_], k_)] = version[n_] + 1;                                            \
        REMEMBER_REFUSAL(n_, k_)                                                                   \
      :: else ->                                                                                   \
        assert(version[n_] < V);                                                                   \
        window[n_] = k_;                                                                           \
        window_version[n_] = version[n_] + 1;                                                      \
        remember(n_, k_, 0);                                                                       \
        assert(replicate[EV(at[n_], version[n_] + 1)] == 0 || replicate[EV(at[n_], version[n_] + 1)] == k_); \
        replicate[EV(at[n_], version[n_] + 1)] = k_                                                \
      fi; skip }                                                                                   \
  :: d_step { LEADS(n_) && HAS(request[at[n_]], k_) && window[n_] != k_ && HAS(opened, n_) &&      \
              lane[LN(n_, WRITER(k_))] == SEQUENCE(k_) && result[LN(n_, WRITER(k_))] > 0 ->        \
      if                                                                                           \
      :: result[LN(n_, WRITER(k_))] < FAILED -> REACHED_RETRY(n_, k_);                             \
        done_ok[EK(at[n_], k_)] = result[LN(n_, WRITER(k_))]                                       \
      :: else -> done_refused[EK(at[n_], k_)] = result[LN(n_, WRITER(k_))] - FAILED + 1            \
      fi }

#ifdef BUG_REFUSAL_NOT_RECORDED
#define REMEMBER_REFUSAL(n_, k_) skip
#else
#define REMEMBER_REFUSAL(n_, k_) remember(n_, k_, FAILED + version[n_])
#endif

#ifdef BUG_ACK_EARLY
#define ALL_ACKED(n_) 1
#else
#define ALL_ACKED(n_) (((ack[EV(at[n_], window_version[n_])] | BIT(n_)) & members[at[n_]]) == members[at[n_]])
#endif
#ifdef BUG_OPEN_EARLY
#define ALL_SYNCED(n_) 1
#else
#define ALL_SYNCED(n_) (((synced[at[n_]] | BIT(n_)) & members[at[n_]]) == members[at[n_]])
#endif

#define LEAD(n_)                                                                                   \
  :: d_step { LEADS(n_) && window[n_] > 0 && ALL_ACKED(n_) && (members[at[n_]] != BIT(n_) || LEASED(n_)) -> \
      v = window_version[n_];                                                                      \
      k = window[n_];                                                                              \
      version[n_] = v;                                                                             \
      value[n_] = k;                                                                               \
      remember_result(n_, k, v);                                                                   \
      pending = pending & ~BIT(n_);                                                                \
      leftover = leftover & ~BIT(n_);                                                              \
      window[n_] = 0;                                                                              \
      window_version[n_] = 0;                                                                      \
      commit[at[n_]] = commit[at[n_]] | BIT(v);                                                    \
      done_ok[EK(at[n_], k)] = v;                                                                  \
      if                                                                                           \
      :: v > acknowledged -> acknowledged = v                                                      \
      :: else                                                                                      \
      fi;                                                                                          \
      REACHED_COMMIT(n_);                                                                          \
      every_live_replica_has(v, k); skip }                                                               \
  :: d_step { LEADS(n_) && HAS(leftover, n_) && window[n_] == 0 -> /* replays what may be committed */ \
      REPLAY(n_); skip }                                                                                 \
  :: d_step { LEADS(n_) && !HAS(opened, n_) && !HAS(leftover, n_) && ALL_SYNCED(n_) ->             \
      opened = opened | BIT(n_) }                                                                  \
  :: d_step { LEADS(n_) && !HAS(leftover, n_) && entry[EV(at[n_], version[n_])] == 0 &&            \
              FETCHED_IN(at[n_]) ->                                                                \
      entry[EV(at[n_], version[n_])] = 1 + value[n_] }

/* Somebody in this epoch asks for the location. */
#define ASKS(n_, e_) (FOLLOWS(n_) && at[n_] == e_ && (HAS(leftover, n_) || (!HAS(serving[e_], n_) && !HAS(have_entry, n_))))
#if NODES > 2
#define FETCHED_IN(e_) (ASKS(0, e_) || ASKS(1, e_) || ASKS(2, e_))
#else
#define FETCHED_IN(e_) (ASKS(0, e_) || ASKS(1, e_))
#endif

inline remember_result(n_, k_, v_) {
  if
  :: lane[LN(n_, WRITER(k_))] <= SEQUENCE(k_) -> remember(n_, k_, v_)
  :: else
  fi
}

#ifdef BUG_NO_REPLAY
#define REPLAY(n_)                       \
  forget(n_, value[n_]);                 \
  version[n_]--;                         \
  value[n_] = write_of[version[n_]];     \
  pending = pending & ~BIT(n_);          \
  leftover = leftover & ~BIT(n_)
#else
#define REPLAY(n_)                       \
  window[n_] = value[n_];                \
  window_version[n_] = version[n_];      \
  replicate[EV(at[n_], version[n_])] = value[n_]
#endif

/* ---- follower ---- */

#ifdef BUG_LANES_LOCAL
#define LEARN_LANE(n_, k_, v_) skip
#else
#define LEARN_LANE(n_, k_, v_) learn(n_, k_, v_)
#endif
#ifdef BUG_EQUAL_STAYS_SETTLED
#define LEARNS(n_, k_) (lane[LN(n_, WRITER(k_))] < SEQUENCE(k_))
#else
#define LEARNS(n_, k_) (lane[LN(n_, WRITER(k_))] <= SEQUENCE(k_))
#endif

/* Of a write that is pending here: unless the record is newer. */
inline learn(n_, k_, v_) {
  if
  :: LEARNS(n_, k_) ->
    remember(n_, k_, v_);
    unsettled[WRITER(k_)] = unsettled[WRITER(k_)] | BIT(n_)
  :: else
  fi
}

inline receive_replicate(n_, e_, v_) {
  k = replicate[EV(e_, v_)];
  if
  :: HAS(leftover, n_) ->
    adopt(n_, v_, k);
    pending = pending | BIT(n_);
    LEARN_LANE(n_, k, v_)
  :: !HAS(leftover, n_) && v_ > version[n_] ->
    if
    :: HAS(pending, n_) -> settle(n_, value[n_])
    :: else
    fi;
    version[n_] = v_;
    value[n_] = k;
    pending = pending | BIT(n_);
    LEARN_LANE(n_, k, v_)
  :: else
  fi;
  ack[EV(e_, v_)] = ack[EV(e_, v_)] | BIT(n_)
}

#define FOLLOW_VERSION(n_, v_)                                                                     \
  :: d_step { FOLLOWS(n_) && v_ <= V && replicate[EV(at[n_], v_)] > 0 && !HAS(ack[EV(at[n_], v_)], n_) -> \
      receive_replicate(n_, at[n_], v_) }                                                          \
  :: d_step { FOLLOWS(n_) && v_ <= V && HAS(commit[at[n_]], v_) && HAS(pending, n_) && !HAS(leftover, n_) && version[n_] == v_ -> \
      settle(n_, value[n_]);                                                                       \
      pending = pending & ~BIT(n_) }                                                               \
  :: d_step { FOLLOWS(n_) && v_ <= V && HAS(leftover, n_) && entry[EV(at[n_], v_)] > 0 ->          \
      RECONCILE(n_, v_); skip }

#ifdef BUG_NO_RECONCILE
#define RECONCILE(n_, v_)                \
  leftover = leftover & ~BIT(n_)
#else
#define RECONCILE(n_, v_)                \
  REACHED_ROLLBACK(n_, v_);              \
  adopt(n_, v_, entry[EV(at[n_], v_)] - 1); \
  pending = pending & ~BIT(n_)
#endif

#ifdef BUG_NO_FENCE
#define UNFENCED(n_, v_)                                                                           \
  :: d_step { FOLLOWS(n_) && v_ <= V && at[n_] > 1 && replicate[EV(at[n_] - 1, v_)] > 0 && !HAS(ack[EV(at[n_] - 1, v_)], n_) -> \
      receive_replicate(n_, at[n_] - 1, v_) }
#else
#define UNFENCED(n_, v_)
#endif

#define FOLLOW(n_)                                                                                 \
  :: d_step { FOLLOWS(n_) && !HAS(leftover, n_) && !HAS(synced[at[n_]], n_) ->                     \
      synced[at[n_]] = synced[at[n_]] | BIT(n_) }

/* ---- epochs, failures, returns ---- */

#ifdef RETURNS
#define UNTOLD(n_) told[LN(n_, 0)] = 0; told[LN(n_, 1)] = 0
#else
#define UNTOLD(n_) skip
#endif

inline enter(n_) {
  if
  :: window[n_] > 0 && leader[epoch] != n_ -> /* not its business any more; the client will ask the new leader */
    if
    :: window_version[n_] > version[n_] -> forget(n_, window[n_])
    :: else
    fi;
    window[n_] = 0;
    window_version[n_] = 0
  :: window[n_] > 0 && leader[epoch] == n_ -> replicate[EV(epoch, window_version[n_])] = window[n_]
  :: else
  fi;
  at[n_] = epoch;
  lease = lease | BIT(n_);
  UNTOLD(n_);
  leftover = leftover | (pending & BIT(n_));
  opened = opened & ~BIT(n_)
}

inline wipe(n_) {
  at[n_] = 0;
  version[n_] = 0;
  value[n_] = 0;
  window[n_] = 0;
  window_version[n_] = 0;
  pending = pending & ~BIT(n_);
  leftover = leftover & ~BIT(n_);
  opened = opened & ~BIT(n_);
  have_entry = have_entry & ~BIT(n_);
  have_lane0 = have_lane0 & ~BIT(n_);
  have_lane1 = have_lane1 & ~BIT(n_);
  synced_all = synced_all & ~BIT(n_);
  lease = lease & ~BIT(n_);
  UNTOLD(n_);
  unsettled[0] = unsettled[0] & ~BIT(n_);
  unsettled[1] = unsettled[1] & ~BIT(n_);
  lane[LN(n_, 0)] = 0;
  lane[LN(n_, 1)] = 0;
  result[LN(n_, 0)] = 0;
  result[LN(n_, 1)] = 0
}

#define FATE(n_)                                                                                   \
  :: d_step { HAS(alive, n_) && HAS(members[epoch], n_) && at[n_] < epoch && (at[n_] > 0 || !HAS(serving[epoch], n_)) -> enter(n_); skip } \
  :: d_step { HAS(alive & lease, n_) && HAS(members[epoch], n_) && failures < FAILURES ->          \
      failures++;                                                                                  \
      alive = alive & ~BIT(n_);                                                                    \
      lease = lease & ~BIT(n_);                                                                    \
      wipe(n_) }                                                                                   \
  :: d_step { HAS(alive & lease, n_) && HAS(members[epoch], n_) && failures < FAILURES -> /* cut off from the keeper only */ \
      failures++;                                                                                  \
      lease = lease & ~BIT(n_) }                                                                   \
  :: d_step { HAS(alive, n_) && at[n_] > 0 && HAS(serving[at[n_]], n_) && LEASED(n_) &&            \
              !HAS(leftover, n_) && (leader[at[n_]] == n_ || MAY_SHOW(n_)) && version[n_] != floor -> \
      assert(version[n_] >= floor);                                                                \
      see(value[n_], version[n_]);                                                                 \
      complete(version[n_]); skip }

#ifdef BUG_READ_PENDING
#define MAY_SHOW(n_) 1
#else
#define MAY_SHOW(n_) (!HAS(pending, n_))
#endif

/* Removes n_, with l_ as leader: any serving replica that remains. */
#define REMOVE(n_, l_)                                                                             \
  :: d_step { epoch < E && HAS(members[epoch], n_) && MAY_REMOVE(n_) && n_ != l_ && failures > 0 && \
              l_ < NODES && HAS(serving[epoch], l_) && (leader[epoch] == n_ || leader[epoch] == l_) -> \
      members[epoch + 1] = members[epoch] & ~BIT(n_);                                              \
      serving[epoch + 1] = serving[epoch] & ~BIT(n_);                                              \
      leader[epoch + 1] = l_;                                                                      \
      epoch++ }

#define MOVE(l_)                                                                                   \
  :: d_step { epoch < E && HAS(serving[epoch], l_) && leader[epoch] != l_ ->                       \
      members[epoch + 1] = members[epoch];                                                         \
      serving[epoch + 1] = serving[epoch];                                                         \
      leader[epoch + 1] = l_;                                                                      \
      epoch++ }

/* Comes back empty, is admitted as a member that does not serve, fetches everything, and is promoted to leader. */
#ifdef BUG_SERVE_EARLY
#define ADMITTED_SERVING(n_) BIT(n_)
#define MAY_START(n_) 1
#else
#define ADMITTED_SERVING(n_) 0
#endif
#ifdef BUG_SYNC_NO_LANES
#define HAS_ALL(n_) HAS(have_entry, n_)
#else
#define HAS_ALL(n_) HAS(have_entry & have_lane0 & have_lane1, n_)
#endif

#define RETURN(n_)                                                                                 \
  :: d_step { !HAS(members[epoch], n_) && !(HAS(alive, n_) && at[n_] == 0) && epoch + 1 < E -> wipe(n_); alive = alive | BIT(n_) } \
  :: d_step { epoch < E && HAS(alive, n_) && at[n_] == 0 && !HAS(members[epoch], n_) ->            \
      members[epoch + 1] = members[epoch] | BIT(n_);                                               \
      serving[epoch + 1] = serving[epoch];                                                         \
      leader[epoch + 1] = leader[epoch];                                                           \
      epoch++ }                                                                                    \
  :: d_step { HAS_ALL(n_) && FOLLOWS(n_) && !HAS(synced_all, n_) && !HAS(leftover, n_) -> synced_all = synced_all | BIT(n_) } \
  :: d_step { epoch < E && HAS(members[epoch] & ~serving[epoch], n_) && MAY_PROMOTE(n_) ->         \
      assert(version[n_] >= acknowledged);                                                         \
      members[epoch + 1] = members[epoch];                                                         \
      serving[epoch + 1] = serving[epoch] | BIT(n_);                                               \
      leader[epoch + 1] = n_;                                                                      \
      epoch++ }                                                                                    \
  FETCH_LANE(n_, 0, have_lane0) FETCH_LANE(n_, 1, have_lane1)                                      \
  FETCH_ENTRY(n_, 0) FETCH_ENTRY(n_, 1) FETCH_ENTRY(n_, 2) FETCH_ENTRY(n_, 3)

#ifdef BUG_SERVE_EARLY
#define MAY_PROMOTE(n_) HAS(alive, n_)
#else
#define MAY_PROMOTE(n_) HAS(synced_all, n_)
#endif

#define FETCHES(n_) (FOLLOWS(n_) && !HAS(serving[at[n_]], n_))
#define FETCH_ENTRY(n_, v_)                                                                        \
  :: d_step { FETCHES(n_) && !HAS(have_entry, n_) && !HAS(leftover, n_) && v_ <= V && entry[EV(at[n_], v_)] > 0 -> \
      if                                                                                           \
      :: v_ > version[n_] ->                                                                       \
        if                                                                                         \
        :: HAS(pending, n_) -> settle(n_, value[n_])                                               \
        :: else                                                                                    \
        fi;                                                                                        \
        version[n_] = v_;                                                                          \
        value[n_] = entry[EV(at[n_], v_)] - 1;                                                     \
        pending = pending & ~BIT(n_)                                                               \
      :: else                                                                                      \
      fi;                                                                                          \
      have_entry = have_entry | BIT(n_) }
/* Every serving node is asked in the returning one's epoch, the leader and the followers. */
#define FETCH_LANE(n_, w_, have) FETCH_RECORD(n_, w_, have, 0) FETCH_RECORD(n_, w_, have, 1) FETCH_RECORD2(n_, w_, have)
#if NODES > 2
#define FETCH_RECORD2(n_, w_, have) FETCH_RECORD(n_, w_, have, 2)
#else
#define FETCH_RECORD2(n_, w_, have)
#endif
/* What is told of a write is that it was committed, in whatever epoch. */
inline is_final(k_, r_) {
  if
  :: r_ > 0 && r_ < FAILED ->
    f = 0;
    for (i : 1 .. E) {
      if
      :: done_ok[EK(i, k_)] == r_ -> f = 1
      :: else
      fi
    };
    assert(f == 1)
  :: else
  fi
}

#define FETCH_RECORD(n_, w_, have, m_)                                                             \
  :: d_step { FETCHES(n_) && !HAS(have, n_) && n_ != m_ && HAS(alive & serving[at[n_]], m_) &&     \
              at[m_] == at[n_] && !HAS(told[LN(n_, w_)], m_) && MAY_TELL(m_, w_) ->                                    \
      s = SAFE_SEQUENCE(m_, w_);                                                                   \
      v = (s == lane[LN(m_, w_)] -> result[LN(m_, w_)] : 0);                                       \
      is_final(WRITE(w_, s), v);                                                                   \
      if                                                                                           \
      :: s > lane[LN(n_, w_)] ->                                                                   \
        lane[LN(n_, w_)] = s;                                                                      \
        result[LN(n_, w_)] = v;                                                                    \
        unsettled[w_] = unsettled[w_] & ~BIT(n_)                                                   \
      :: else                                                                                      \
      fi;                                                                                          \
      told[LN(n_, w_)] = told[LN(n_, w_)] | BIT(m_);                                               \
      if                                                                                           \
      :: (told[LN(n_, w_)] & serving[at[n_]]) == serving[at[n_]] -> have = have | BIT(n_)          \
      :: else                                                                                      \
      fi }

/* Of a leftover nothing: it may be committed, and the returning node may have it from an entry, without a record. */
#ifdef BUG_TELL_LEFTOVERS
#define MAY_TELL(m_, w_) 1
#else
#define MAY_TELL(m_, w_) !(HAS(leftover, m_) && HAS(unsettled[w_], m_))
#endif
/* Of a write of this epoch that may yet be taken back, what is before it. */
#define SAFE_SEQUENCE(m_, w_) (HAS(unsettled[w_], m_) || IN_FLIGHT(m_, w_) -> lane[LN(m_, w_)] - 1 : lane[LN(m_, w_)])
#define IN_FLIGHT(m_, w_) (window[m_] > 0 && WRITER(window[m_]) == w_ && SEQUENCE(window[m_]) == lane[LN(m_, w_)])

/* ---- situations that the properties must have met ---- */
#ifdef REACH_RETRY_AFTER_FAILOVER
#define REACHED_RETRY(n_, k_) assert(!(at[n_] > 1 && waiting[WRITER(k_)] && done_ok[EK(at[n_], k_)] == 0 && done_ok[EK(1, k_)] > 0))
#else
#define REACHED_RETRY(n_, k_) skip
#endif
#ifdef REACH_COMMIT_IN_LAST_EPOCH
#define REACHED_COMMIT(n_) assert(!(at[n_] == E && acknowledged == V))
#else
#define REACHED_COMMIT(n_) skip
#endif
#ifdef REACH_ROLLBACK
#define REACHED_ROLLBACK(n_, v_) assert(v_ >= version[n_])
#else
#define REACHED_ROLLBACK(n_, v_) skip
#endif

#define NODE(n_) LEAD(n_) FOLLOW(n_) FATE(n_)                                                      \
  FOLLOW_VERSION(n_, 1) FOLLOW_VERSION(n_, 2) FOLLOW_VERSION(n_, 3)                                \
  FOLLOW_ENTRY0(n_) UNFENCED(n_, 1) UNFENCED(n_, 2)
#define FOLLOW_ENTRY0(n_)                                                                          \
  :: d_step { FOLLOWS(n_) && HAS(leftover, n_) && entry[EV(at[n_], 0)] > 0 -> RECONCILE(n_, 0); skip }

init {
  d_step {
    members[1] = ALL & ~OUT;
    serving[1] = ALL & ~OUT;
    leader[1] = 0;
    for (i : 0 .. NODES - 1) { at[i] = !HAS(OUT, i) };
    opened = BIT(0)
  }
end: /* wherever: no step has to be taken */
  do
  CLIENT(0, S0)
  CLIENT(1, S1)
#ifdef CAS
  CHOOSE(1) CHOOSE(2)
#endif
#ifdef GIVE_UP
  :: d_step { waiting[0] -> waiting[0] = 0 }
#endif
#ifdef BUG_OLD_REPLY
  CLIENT_REPLY(0, 1)
  CLIENT_REPLY(1, 1)
#endif
  NODE(0) TAKE(0, 1) TAKE(0, 2)
  NODE(1) TAKE(1, 1) TAKE(1, 2)
  REMOVE(0, 1) REMOVE(1, 0)
#if NODES > 2
  NODE(2) TAKE(2, 1) TAKE(2, 2)
  REMOVE(0, 2) REMOVE(1, 2) REMOVE(2, 0) REMOVE(2, 1)
#endif
#if S0 + S1 > 2
  TAKE(0, 3) TAKE(1, 3)
#if NODES > 2
  TAKE(2, 3)
#endif
#endif
#ifdef MOVES
  MOVE(0) MOVE(1)
#if NODES > 2
  MOVE(2)
#endif
#endif
#ifdef RETURNS
#if RETURNS & 1
  RETURN(0)
#endif
#if RETURNS & 2
  RETURN(1)
#endif
#if RETURNS & 4
  RETURN(2)
#endif
#endif
  od
}
