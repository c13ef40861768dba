// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sort"
)

// Operation is a line of a history: a client's request, its time, and the answer. Times are nanoseconds of one clock.
type Operation struct {
	Client   int    `json:"client"`
	Key      string `json:"key"`
	Op       string `json:"op"`
	Value    string `json:"value"`    // written or read; equal texts mean equal bytes
	Expected uint32 `json:"expected"` // of put_if and remove_if; 0: no such key
	Call     int64  `json:"call"`
	Return   *int64 `json:"return"` // null while the outcome is unknown
	Outcome  string `json:"outcome"`
	Version  uint32 `json:"version"` // told by ok, or found by version_mismatch
}

const (
	opGet      = "get"
	opPut      = "put"
	opPutIf    = "put_if"
	opRemove   = "remove"
	opRemoveIf = "remove_if"

	isOK       = "ok"
	noSuchKey  = "no_such_key"
	mismatch   = "version_mismatch"
	tableFull  = "table_full"
	unknown    = "unknown" // may have taken effect, may do so later, once or never
	wasRefused = "refused" // never took effect, for a reason that is not the key's state
)

var ops = map[string]bool{opGet: true, opPut: true, opPutIf: true, opRemove: true, opRemoveIf: true}
var outcomes = map[string]bool{isOK: true, noSuchKey: true, mismatch: true, tableFull: true, unknown: true, wasRefused: true}

func (o *Operation) check() error {
	switch {
	case !ops[o.Op]:
		return fmt.Errorf("no such op: %q", o.Op)
	case !outcomes[o.Outcome]:
		return fmt.Errorf("no such outcome: %q", o.Outcome)
	case o.Key == "":
		return fmt.Errorf("no key")
	case o.Return == nil && o.Outcome != unknown:
		return fmt.Errorf("an operation that ended has a return time")
	case o.Return != nil && *o.Return < o.Call:
		return fmt.Errorf("returns before its call")
	}
	return nil
}

// readHistory reads JSON lines. It returns the operations of each key, and the keys in order for repeatable verdicts.
func readHistory(in io.Reader) (map[string][]*Operation, []string, error) {
	byKey := map[string][]*Operation{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for number := 1; lines.Scan(); number++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		decoder := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		decoder.DisallowUnknownFields()
		operation := &Operation{}
		err := decoder.Decode(operation)
		if err == nil {
			err = operation.check()
		}
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %v", number, err)
		}
		byKey[operation.Key] = append(byKey[operation.Key], operation)
	}
	keys := make([]string, 0, len(byKey))
	for key := range byKey {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return byKey, keys, lines.Err()
}
