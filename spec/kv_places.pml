/* SPDX-License-Identifier: Apache-2.0
 *
 * One key and two of its buckets, for Spin: docs/design/kv-protocol.md, sections 2, 5, 6 and 8. `tools/check_model.py` runs it.
 * kv.pml has the lanes, retries, conditions and returns; here a key may be at either of two locations, be removed and
 * come again at the other one, while leaders die. Network and steps are those of kv.pml: a frame once sent stays.
 *
 * What else is in the buckets is chance: a key that is nowhere goes to either location. That the first bucket's written
 * ways may end a search early is not here, nor are other keys' versions.
 *
 * Operations are 1 to K; which are removals, the mask REMOVALS says. Each is taken once at most, at any time, by any leader: invoked
 * at that moment, and complete when it is committed, which is the strictest case. The monitor is that of kv.pml: versions are the witness. Of
 * an absent key the witness is the highest version of both locations, which no client sees. A failure is a lease that lapses; the node
 * goes on with all but reads and new operations, or does nothing more, as if it had stopped.
 *
 * Size, by -D: NODES, K, REMOVALS, E (epochs), FAILURES, MOVES. Faults that must be found: BUG_*; situations: REACH_*.
 */

#ifndef NODES
#define NODES 3
#endif
#ifndef K
#define K 3 /* operations */
#endif
#ifndef E
#define E 2
#endif
#ifndef FAILURES
#define FAILURES 1
#endif
#ifndef REMOVALS
#define REMOVALS (1 << 2)
#endif

#define ALL ((1 << NODES) - 1)
#define BIT(n) (1 << (n))
#define HAS(mask, n) (((mask) >> (n)) & 1)
#define AT(n, l) ((n) * 2 + (l))
#define FR(e, l, v) (((e) * 2 + (l)) * (K + 1) + (v))
#define REMOVES(k) (((REMOVALS) >> (k)) & 1)
#define PRESENT(n, l) (cell[AT(n, l)] > 0 && !REMOVES(cell[AT(n, l)]))
#define NEWEST(n) (version[AT(n, 0)] > version[AT(n, 1)] -> version[AT(n, 0)] : version[AT(n, 1)])
#define LAST(n) (version[AT(n, 0)] > version[AT(n, 1)] -> cell[AT(n, 0)] : cell[AT(n, 1)])

byte epoch = 1;
byte members[E + 1], leader[E + 1]; /* all members serve */
byte failures;
byte lease = ALL, opened;
byte at[NODES];
byte version[NODES * 2], cell[NODES * 2]; /* by node and location: the last operation there */
byte pending[2], leftover[2];             /* by location: a bit for each node */
byte window[NODES * 2], window_version[NODES * 2];

byte replicate[(E + 1) * 2 * (K + 1)], ack[(E + 1) * 2 * (K + 1)], entry[(E + 1) * 2 * (K + 1)];
byte commit[(E + 1) * 2], synced[E + 1];

byte taken; /* mask of operations */
byte floor, acknowledged;
byte invoked_at[K + 1], write_of[K + 2], version_of[K + 1];

hidden byte i, k, v, l, r;

inline see(k_, v_) {
  if
  :: v_ == 0 -> assert(k_ == 0)
  :: else ->
    assert(write_of[v_] == 0 || write_of[v_] == k_);     /* one version, one operation */
    assert(version_of[k_] == 0 || version_of[k_] == v_); /* which takes effect once */
    assert(v_ > invoked_at[k_]);                         /* not before its invocation */
    write_of[v_] = k_;
    version_of[k_] = v_
  fi;
  if
  :: v_ > floor -> floor = v_
  :: else
  fi
}
inline look(k_, v_) {
  assert(v_ >= floor);
  see(k_, v_)
}

#define LEADS(n) (at[n] > 0 && leader[at[n]] == n && HAS(members[at[n]], n))
#define FOLLOWS(n) (at[n] > 0 && leader[at[n]] != n && HAS(members[at[n]], n))
#define OPEN(n) (LEADS(n) && HAS(opened, n) && HAS(lease, n))
#define ACKED(n, l_) (((ack[FR(at[n], l_, window_version[AT(n, l_)])] | BIT(n)) & members[at[n]]) == members[at[n]])
#ifdef BUG_OPEN_EARLY
#define ALL_SYNCED(n) 1
#else
#define ALL_SYNCED(n) (((synced[at[n]] | BIT(n)) & members[at[n]]) == members[at[n]])
#endif

/* ---- a leader takes an operation: the search, and where it ends ---- */

#ifdef BUG_OTHER_FLIGHT
#define FLIGHT(n, l_) (window[AT(n, l_)] > 0)
#else
#define FLIGHT(n, l_) (window[AT(n, l_)] > 0 || (!PRESENT(n, 0) && window[AT(n, 0)] + window[AT(n, 1)] > 0))
#endif
#ifdef BUG_OWN_VERSIONS
#define NEW_VERSION(n, l_) (version[AT(n, l_)] + 1)
#else
#define NEW_VERSION(n, l_) (PRESENT(n, l_) -> version[AT(n, l_)] + 1 : NEWEST(n) + 1)
#endif

/* Where the key is; where it may go, if it is nowhere. */
#define TAKE(n, k_, l_)                                                                            \
  :: d_step { OPEN(n) && !HAS(taken, k_) && !FLIGHT(n, l_) &&                          \
              (PRESENT(n, l_) || (!PRESENT(n, 1 - l_) && !REMOVES(k_))) ->                         \
      taken = taken | BIT(k_);                                                                     \
      invoked_at[k_] = floor;                                                                      \
      v = NEW_VERSION(n, l_);                                                                      \
      REACHED_AGAIN(n, l_);                                                                        \
      assert(v <= K);                                                                              \
      window[AT(n, l_)] = k_;                                                                      \
      window_version[AT(n, l_)] = v;                                                               \
      assert(replicate[FR(at[n], l_, v)] == 0);                                                    \
      replicate[FR(at[n], l_, v)] = k_ }
/* no_such_key: a read */
#define REFUSE(n, k_)                                                                              \
  :: d_step { OPEN(n) && !HAS(taken, k_) && REMOVES(k_) && !FLIGHT(n, 0) && !FLIGHT(n, 1) && \
              !PRESENT(n, 0) && !PRESENT(n, 1) ->                                                  \
      taken = taken | BIT(k_);                                                                     \
      v = NEWEST(n);                                                                               \
      k = LAST(n);                                                                                 \
      look(k, v); skip }

#define LEAD(n, l_)                                                                                \
  :: d_step { LEADS(n) && window[AT(n, l_)] > 0 && ACKED(n, l_) && (members[at[n]] != BIT(n) || HAS(lease, n)) -> \
      v = window_version[AT(n, l_)];                                                               \
      k = window[AT(n, l_)];                                                                       \
      version[AT(n, l_)] = v;                                                                      \
      cell[AT(n, l_)] = k;                                                                         \
      leftover[l_] = leftover[l_] & ~BIT(n);                                                       \
      window[AT(n, l_)] = 0;                                                                       \
      window_version[AT(n, l_)] = 0;                                                               \
      commit[at[n] * 2 + l_] = commit[at[n] * 2 + l_] | BIT(v);                                    \
      see(k, v);                                                                                   \
      acknowledged = (v > acknowledged -> v : acknowledged);                                       \
      for (i : 0 .. NODES - 1) {                                                                   \
        assert(!HAS(members[epoch] & lease, i) || version[AT(i, l_)] >= v)                         \
      };                                                                                           \
      assert(!(PRESENT(n, 0) && PRESENT(n, 1))) /* one place */ }                                  \
  :: d_step { LEADS(n) && HAS(leftover[l_], n) && window[AT(n, l_)] == 0 -> /* its own: completed */ \
      window[AT(n, l_)] = cell[AT(n, l_)];                                                         \
      window_version[AT(n, l_)] = version[AT(n, l_)];                                              \
      REACHED_REPLAY(n, l_);                                                                       \
      replicate[FR(at[n], l_, version[AT(n, l_)])] = cell[AT(n, l_)] }                             \
  :: d_step { LEADS(n) && !HAS(leftover[l_], n) && leftover[l_] > 0 && entry[FR(at[n], l_, version[AT(n, l_)])] == 0 -> \
      entry[FR(at[n], l_, version[AT(n, l_)])] = 1 + cell[AT(n, l_)] }
#define OPENS(n)                                                                                   \
  :: d_step { LEADS(n) && !HAS(opened | leftover[0] | leftover[1], n) && ALL_SYNCED(n) -> opened = opened | BIT(n) }

/* ---- followers ---- */

#define STORE(n, l_, v_)                                                                           \
  :: d_step { FOLLOWS(n) && replicate[FR(at[n], l_, v_)] > 0 &&                                    \
              (version[AT(n, l_)] < v_ || HAS(leftover[l_], n) || !HAS(ack[FR(at[n], l_, v_)], n)) -> \
      if                                                                                           \
      :: version[AT(n, l_)] < v_ || HAS(leftover[l_], n) ->                                        \
        version[AT(n, l_)] = v_;                                                                   \
        cell[AT(n, l_)] = replicate[FR(at[n], l_, v_)];                                            \
        pending[l_] = pending[l_] | BIT(n);                                                        \
        leftover[l_] = leftover[l_] & ~BIT(n)                                                      \
      :: else                                                                                      \
      fi;                                                                                          \
      ack[FR(at[n], l_, v_)] = ack[FR(at[n], l_, v_)] | BIT(n) }                                   \
  :: d_step { FOLLOWS(n) && HAS(commit[at[n] * 2 + l_], v_) && HAS(pending[l_], n) && version[AT(n, l_)] == v_ -> \
      pending[l_] = pending[l_] & ~BIT(n) }
#define ADOPT(n, l_, v_)                                                                           \
  :: d_step { FOLLOWS(n) && HAS(leftover[l_], n) && entry[FR(at[n], l_, v_)] > 0 ->                \
      REACHED_ROLLBACK(n, l_, v_);                                                                 \
      version[AT(n, l_)] = v_;                                                                     \
      cell[AT(n, l_)] = entry[FR(at[n], l_, v_)] - 1;                                              \
      leftover[l_] = leftover[l_] & ~BIT(n);                                                       \
      assert(NEWEST(n) >= acknowledged || !HAS(members[epoch] & lease, n)) }
#define SYNC(n)                                                                                    \
  :: d_step { FOLLOWS(n) && !HAS(leftover[0] | leftover[1], n) && !HAS(synced[at[n]], n) ->        \
      synced[at[n]] = synced[at[n]] | BIT(n) }

/* ---- reads ---- */

#ifdef BUG_READ_FIRST_BUCKET
#define BLOCKED(n, l_) (l_ == 0 && HAS(pending[l_] | leftover[l_], n))
#else
#define BLOCKED(n, l_) HAS(pending[l_] | leftover[l_], n)
#endif
#define READ(n)                                                                                    \
  :: d_step { HAS(lease, n) && at[n] > 0 && HAS(members[at[n]], n) && !BLOCKED(n, 0) && PRESENT(n, 0) -> \
      v = version[AT(n, 0)];                                                                       \
      k = cell[AT(n, 0)];                                                                          \
      look(k, v); skip }                                                                            \
  :: d_step { HAS(lease, n) && at[n] > 0 && HAS(members[at[n]], n) && !BLOCKED(n, 0) && !PRESENT(n, 0) && !BLOCKED(n, 1) -> \
      if                                                                                           \
      :: PRESENT(n, 1) -> v = version[AT(n, 1)]; k = cell[AT(n, 1)]                                \
      :: else -> v = NEWEST(n); k = LAST(n)                                                        \
      fi;                                                                                          \
      look(k, v); skip }

/* ---- nodes fail, the keeper decides ---- */

inline enter(n_) {
  at[n_]++;
  opened = opened & ~BIT(n_);
  for (l : 0 .. 1) {
    if
    :: HAS(pending[l], n_) ->
      pending[l] = pending[l] & ~BIT(n_);
      leftover[l] = leftover[l] | BIT(n_)
    :: else
    fi;
    if
    :: window[AT(n_, l)] > 0 && LEADS(n_) -> replicate[FR(at[n_], l, window_version[AT(n_, l)])] = window[AT(n_, l)]
    :: window[AT(n_, l)] > 0 && !LEADS(n_) ->
      window[AT(n_, l)] = 0;
      window_version[AT(n_, l)] = 0
    :: else
    fi
  }
}

#define FATE(n)                                                                                    \
  :: d_step { at[n] < epoch && HAS(members[at[n] + 1], n) -> enter(n); skip }     \
  :: d_step { failures < FAILURES && HAS(lease & members[epoch], n) && epoch < E ->        \
      failures++;                                                                                  \
      lease = lease & ~BIT(n) }
#define REMOVE(n, to)                                                                              \
  :: d_step { epoch < E && HAS(members[epoch] & ~lease, n) && HAS(members[epoch] & lease, to) &&   \
              (leader[epoch] == n || leader[epoch] == to) ->                                       \
      members[epoch + 1] = members[epoch] & ~BIT(n);                                               \
      leader[epoch + 1] = to;                                                                      \
      epoch++ }
#define MOVE(to)                                                                                   \
  :: d_step { epoch < E && HAS(members[epoch] & lease, to) && leader[epoch] != to ->               \
      members[epoch + 1] = members[epoch];                                                         \
      leader[epoch + 1] = to;                                                                      \
      epoch++ }

#ifdef REACH_AGAIN
#define REACHED_AGAIN(n, l_) assert(!(v > 2 && !PRESENT(n, l_) && cell[AT(n, l_)] == 0))
#else
#define REACHED_AGAIN(n, l_) skip
#endif
#ifdef REACH_REPLAY
#define REACHED_REPLAY(n, l_) assert(!(l_ == 1 && version[AT(n, 1)] > 2))
#else
#define REACHED_REPLAY(n, l_) skip
#endif
#ifdef REACH_ROLLBACK
#define REACHED_ROLLBACK(n, l_, v_) assert(!(l_ == 1 && v_ < version[AT(n, 1)] && version[AT(n, 0)] > 1))
#else
#define REACHED_ROLLBACK(n, l_, v_) skip
#endif

#if K > 3
#define OPERATIONS(F, n) F(n, 1) F(n, 2) F(n, 3) F(n, 4)
#define VERSIONS(F, n, l_) F(n, l_, 1) F(n, l_, 2) F(n, l_, 3) F(n, l_, 4)
#elif K > 2
#define OPERATIONS(F, n) F(n, 1) F(n, 2) F(n, 3)
#define VERSIONS(F, n, l_) F(n, l_, 1) F(n, l_, 2) F(n, l_, 3)
#else
#define OPERATIONS(F, n) F(n, 1) F(n, 2)
#define VERSIONS(F, n, l_) F(n, l_, 1) F(n, l_, 2)
#endif
#define TAKE_ANY(n, k_) TAKE(n, k_, 0) TAKE(n, k_, 1) REFUSE(n, k_)
#define NODE(n)                                                                                    \
  OPERATIONS(TAKE_ANY, n) LEAD(n, 0) LEAD(n, 1) OPENS(n) VERSIONS(STORE, n, 0) VERSIONS(STORE, n, 1) \
  ADOPT(n, 0, 0) ADOPT(n, 1, 0) VERSIONS(ADOPT, n, 0) VERSIONS(ADOPT, n, 1) SYNC(n) READ(n) FATE(n)

init {
  d_step {
    members[1] = ALL;
    leader[1] = 0;
    for (i : 0 .. NODES - 1) { at[i] = 1 };
    opened = BIT(0)
  }
end:
  do
  NODE(0) NODE(1)
  REMOVE(0, 1) REMOVE(1, 0)
#if NODES > 2
  NODE(2)
  REMOVE(0, 2) REMOVE(1, 2) REMOVE(2, 0) REMOVE(2, 1)
#endif
#ifdef MOVES
  MOVE(0) MOVE(1)
#if NODES > 2
  MOVE(2)
#endif
#endif
  od
}
