// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// Of a long history, the number of operations shown before the one that does not fit, and in total.
const (
	shownBefore = 30
	shownAtMost = 60
)

// explain shows a violated key: its operations around the first that does not fit into any order, and a picture.
func explain(out io.Writer, key string, history []*Operation, picture string, timeout time.Duration) error {
	// Searches again and records how far each attempt came. The first search does not, because this costs memory.
	_, info := porcupine.CheckOperationsVerbose(model, operations(history), timeout)
	placed := map[*Operation]bool{}
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, attempt := range partition {
			if len(attempt) > len(placed) {
				placed = map[*Operation]bool{}
				for _, one := range attempt {
					placed[one.Input.(*Operation)] = true
				}
			}
		}
	}
	sorted := append([]*Operation(nil), history...)
	sort.SliceStable(sorted, func(i, j int) bool { return sorted[i].Call < sorted[j].Call })
	// The longest attempt stopped at its missing operation with the earliest return.
	var stuck *Operation
	at := 0
	for i, o := range sorted {
		if !placed[o] && o.Outcome != unknown && o.Outcome != wasRefused && (stuck == nil || *o.Return < *stuck.Return) {
			stuck, at = o, i
		}
	}
	first := at - shownBefore
	if first < 0 {
		first = 0
	}
	fmt.Fprintf(out, "  key %s: %d operations, %d of them in the longest order found\n", key, len(history), len(placed))
	for i, o := range sorted {
		if i < first || i >= first+shownAtMost {
			continue
		}
		mark := "  "
		switch {
		case o == stuck:
			mark = "!!"
		case !placed[o]:
			mark = " ?"
		}
		returned := "-"
		if o.Return != nil {
			returned = fmt.Sprint(*o.Return)
		}
		fmt.Fprintf(out, "  %s client %-3d [%d, %s] %s\n", mark, o.Client, o.Call, returned, o.describe())
	}
	fmt.Fprintf(out, "  !! is in no order together with what was before it; ? is not in the longest order; picture: %s\n", picture)
	return porcupine.VisualizePath(model, info, picture)
}
