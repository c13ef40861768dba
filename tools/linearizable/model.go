// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// state is a possible state of one key between two operations.
//
// The store chooses the versions, and a key's versions only grow (docs/design/kv-protocol.md, section 2). After an
// operation of unknown outcome, only a lower bound of the version is known until a client sees it.
//
// Any subset of the operations of unknown outcome could take effect, each anywhere after its call: too many cases for a
// search. Two rules keep one linearization of each family of equivalent ones, and lose none that matters:
//   - An unknown operation is placed before `ended` only where it has an effect. Without an effect it is placed after
//     `ended`, where everything is allowed.
//   - The next operation must depend on that effect. If it is a blind write, or an unknown one that hides the effect,
//     the same history without the effect is linearizable, too.
type state struct {
	present bool
	value   string
	version uint32 // present: the version; absent: of the last write; 0: of none
	exact   bool   // else present with version or a newer one
	hidden  bool   // the last effect was of unknown outcome, and nothing has depended on it yet
	ended   bool   // all that returned has its place
}

// end is an operation that the checker adds, after all operations with a return and before the end of unknown ones.
var end = &Operation{Op: "end"}

// refreshed: versions also grow when a leader refreshes a location that lags behind
// (docs/design/kv-protocol.md, section 5).
var refreshed bool

func newer(a, b uint32) bool {
	if b == 0 {
		return a != 0
	}
	return a != b && a-b < 1<<31
}

// matches reports whether the key may have exactly this version.
func (s state) matches(version uint32) bool {
	switch {
	case !s.present:
		return version == 0
	case version == 0:
		return false
	case s.exact && !refreshed:
		return version == s.version
	}
	return version == s.version || newer(version, s.version)
}

// seen is the state after a client saw the key with a version that matches.
func (s state) seen(version uint32) state {
	s.hidden = false
	if s.present {
		s.version, s.exact = version, true
	}
	return s
}

func (s state) written(value string, version uint32) state {
	return state{present: true, value: value, version: version, exact: true}
}

func (s state) removed(version uint32) state { return state{version: version} }

// after returns a lower bound for the version of a write that follows this state.
func (s state) after() uint32 {
	if s.version == 0 {
		return 0 // the bucket's other keys may have brought it anywhere
	}
	if s.version+1 == 0 {
		return 1
	}
	return s.version + 1
}

func step(before, input, _ interface{}) (bool, interface{}) {
	s, o := before.(state), input.(*Operation)
	if o == end {
		return true, state{ended: true}
	}
	if s.ended { // only those of unknown outcome are left
		return true, s
	}
	if o.Outcome == unknown {
		return stepUnknown(s, o)
	}
	absent := !s.present
	conditional := o.Op == opPutIf || o.Op == opRemoveIf
	writes := o.Op == opPut || o.Op == opPutIf
	switch o.Outcome {
	case isOK:
		return stepOK(s, o)
	case noSuchKey: // of remove_if as well, whatever it expected
		return absent && !writes, s.seen(0)
	case mismatch:
		return conditional && o.Version != o.Expected && s.matches(o.Version), s.seen(o.Version)
	case tableFull:
		return absent && writes && (o.Op == opPut || o.Expected == 0), s.seen(0)
	}
	return false, s
}

func stepOK(s state, o *Operation) (bool, interface{}) {
	if o.Op == opGet {
		return s.present && o.Value == s.value && s.matches(o.Version), s.seen(o.Version)
	}
	if o.Op == opPut && s.hidden {
		return false, s // the second rule
	}
	if o.Op == opPutIf || o.Op == opRemoveIf {
		if !s.matches(o.Expected) {
			return false, s
		}
		s = s.seen(o.Expected)
	}
	if !newer(o.Version, s.version) {
		return false, s
	}
	if o.Op == opPut || o.Op == opPutIf {
		return true, s.written(o.Value, o.Version)
	}
	return s.present, s.removed(o.Version)
}

func stepUnknown(s state, o *Operation) (bool, interface{}) {
	if o.Op == opPutIf || o.Op == opRemoveIf {
		if !s.matches(o.Expected) {
			return false, s
		}
		s = s.seen(o.Expected)
	}
	if s.hidden { // the second rule
		return false, s
	}
	switch o.Op {
	case opPut, opPutIf:
		return true, state{present: true, value: o.Value, version: s.after(), hidden: true}
	case opRemove, opRemoveIf:
		return s.present, state{version: s.after(), hidden: true}
	}
	return false, s
}

// model is the specification of one key, with which porcupine searches.
var model = porcupine.Model{
	Init:  func() interface{} { return state{} },
	Step:  step,
	Equal: func(a, b interface{}) bool { return a.(state) == b.(state) },
	Hash: func(of interface{}) uint64 {
		s := of.(state)
		hash := uint64(s.version) * 0x9e3779b97f4a7c15
		for i := 0; i < len(s.value) && i < 32; i++ {
			hash = (hash ^ uint64(s.value[i])) * 0x100000001b3
		}
		return hash
	},
	DescribeOperation: func(input, _ interface{}) string { return input.(*Operation).describe() },
	DescribeState:     func(of interface{}) string { return of.(state).describe() },
}

// operations converts a key's history for porcupine. It drops operations without information, and adds `end`.
func operations(history []*Operation) []porcupine.Operation {
	var last int64
	for _, o := range history {
		if o.Call > last {
			last = o.Call
		}
		if o.Return != nil && *o.Return > last {
			last = *o.Return
		}
	}
	out := []porcupine.Operation{{Input: end, Call: last + 1, Return: last + 2}}
	for _, o := range history {
		one := porcupine.Operation{ClientId: o.Client + 1, Input: o, Call: o.Call, Return: last + 3}
		switch {
		case o.Outcome == wasRefused, o.Outcome == unknown && o.Op == opGet:
			continue
		case o.Outcome != unknown:
			one.Return = *o.Return
		}
		out = append(out, one)
	}
	return out
}

func short(value string) string {
	if len(value) > 24 {
		return value[:24] + ".."
	}
	return value
}

func (o *Operation) describe() string {
	if o == end {
		return "end"
	}
	what := o.Op
	if o.Op == opPutIf || o.Op == opRemoveIf {
		what += fmt.Sprintf(" @%d", o.Expected)
	}
	if o.Op == opPut || o.Op == opPutIf || o.Op == opGet && o.Outcome == isOK {
		what += fmt.Sprintf(" '%s'", short(o.Value))
	}
	what += ": " + o.Outcome
	if o.Outcome == isOK || o.Outcome == mismatch {
		what += fmt.Sprintf(" @%d", o.Version)
	}
	return what
}

func (s state) describe() string {
	switch {
	case s.ended:
		return "end"
	case !s.present:
		return fmt.Sprintf("absent, was @%d", s.version)
	case s.exact:
		return fmt.Sprintf("'%s' @%d", short(s.value), s.version)
	}
	return fmt.Sprintf("'%s' @%d or newer", short(s.value), s.version)
}
