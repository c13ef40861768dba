// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand"
	"testing"

	"github.com/anishathalye/porcupine"
)

// The model in its simplest form. Each version up to naiveVersions that the store could choose is a state. An unknown
// operation may take effect at any place, or not at all.
const naiveVersions = 12

type naiveState struct {
	present bool
	value   string
	version uint32 // of the last write, even if the key is absent
}

func naiveStep(before, input, _ interface{}) (after []interface{}) {
	s, o := before.(naiveState), input.(*Operation)
	if o == end {
		return []interface{}{s}
	}
	current := uint32(0) // what a condition is compared with
	if s.present {
		current = s.version
	}
	writes := o.Op == opPut || o.Op == opPutIf
	conditional := o.Op == opPutIf || o.Op == opRemoveIf
	matches := !conditional || o.Expected == current
	effect := o.Outcome == isOK && o.Op != opGet && matches && (writes || s.present)
	for version := s.version + 1; version <= naiveVersions; version++ {
		next := naiveState{present: writes, version: version}
		if writes {
			next.value = o.Value
		}
		if effect && version == o.Version || o.Outcome == unknown && matches && (writes || s.present) {
			after = append(after, next)
		}
	}
	if o.Outcome == unknown ||
		o.Op == opGet && o.Outcome == isOK && s.present && s.value == o.Value && s.version == o.Version ||
		o.Outcome == noSuchKey && !s.present && !writes ||
		o.Outcome == mismatch && conditional && !matches && o.Version == current ||
		o.Outcome == tableFull && writes && !s.present && matches {
		after = append(after, s)
	}
	return after
}

func randomHistory(random *rand.Rand) []*Operation {
	names := []string{opGet, opPut, opPutIf, opRemove, opRemoveIf}
	results := []string{isOK, isOK, isOK, unknown, unknown, noSuchKey, mismatch, tableFull}
	// An unknown write to a key without a version may have any version, and the next write may wrap around. The naive
	// model cannot express this, so the key begins with a version.
	history := []*Operation{{Key: "k", Op: opPut, Value: "a", Call: -2, Return: new(int64), Outcome: isOK, Version: 1}}
	*history[0].Return = -1
	for i := 2 + random.Intn(6); i > 0; i-- {
		o := &Operation{Client: i, Key: "k", Op: names[random.Intn(len(names))], Outcome: results[random.Intn(len(results))]}
		o.Call = int64(random.Intn(8))
		if o.Outcome != unknown {
			o.Return = new(int64)
			*o.Return = o.Call + int64(random.Intn(5))
		}
		// Uses few values and versions, so that many of the histories are linearizable.
		o.Value = string(rune('a' + random.Intn(3)))
		o.Version = uint32(1 + random.Intn(5))
		if o.Outcome == mismatch {
			o.Version = uint32(random.Intn(5))
		}
		if o.Op == opPutIf || o.Op == opRemoveIf {
			o.Expected = uint32(random.Intn(5))
		}
		history = append(history, o)
	}
	return history
}

func TestRandomHistories_ExpectTheNaiveModelsVerdict(t *testing.T) {
	naive := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{naiveState{}} },
		Step: naiveStep,
	}
	reference := naive.ToModel()
	random := rand.New(rand.NewSource(1))
	tally := map[porcupine.CheckResult]int{}
	for i := 0; i < 40000; i++ {
		history := randomHistory(random)
		want := porcupine.CheckOperationsTimeout(reference, operations(history), 0)
		got := judge(history, 1<<40)
		tally[want]++
		if got != want {
			for _, o := range history {
				t.Logf("%d-%v %s", o.Call, o.Return, o.describe())
			}
			t.Fatalf("history %d: %s, not %s", i, got, want)
		}
	}
	t.Logf("%v", tally)
	if tally[porcupine.Ok] < 2000 || tally[porcupine.Illegal] < 2000 {
		t.Errorf("too few of one kind to mean anything: %v", tally)
	}
}
