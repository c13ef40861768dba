// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// parse reads a history in readable form, one operation per line: "client call-return op arguments: outcome
// [@version]". A value is a word, and @n is an expected version. A return of - means never.
func parse(t *testing.T, text string) []*Operation {
	t.Helper()
	var history []*Operation
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		o := &Operation{Key: "k"}
		var times string
		head, tail, _ := strings.Cut(line, ": ")
		words := strings.Fields(head)
		if _, err := fmt.Sscan(words[0]+" "+words[1]+" "+words[2], &o.Client, &times, &o.Op); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		for _, word := range words[3:] {
			if strings.HasPrefix(word, "@") {
				fmt.Sscanf(word, "@%d", &o.Expected)
			} else {
				o.Value = word
			}
		}
		call, back, _ := strings.Cut(times, "-")
		fmt.Sscan(call, &o.Call)
		if back != "" {
			o.Return = new(int64)
			fmt.Sscan(back, o.Return)
		}
		o.Outcome, tail, _ = strings.Cut(tail, " ")
		fmt.Sscanf(tail, "@%d", &o.Version)
		if err := o.check(); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		history = append(history, o)
	}
	return history
}

func expect(t *testing.T, want porcupine.CheckResult, histories map[string]string) {
	for name, text := range histories {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			if got := judge(parse(t, text), 10*time.Second); got != want {
				t.Errorf("%s, not %s:\n%s", got, want, text)
			}
		})
	}
}

func TestLinearizable_ExpectOk(t *testing.T) {
	expect(t, porcupine.Ok, map[string]string{
		"one after the other": `
			0 1-2 get: no_such_key
			0 3-4 put a: ok @1
			0 5-6 get a: ok @1
			0 7-8 put_if b @1: ok @2
			0 9-10 remove_if @2: ok @3
			0 11-12 get: no_such_key
			0 13-14 put_if c @0: ok @7`,
		"versions jump with the bucket's other keys": `
			0 1-2 put a: ok @4000000000
			0 3-4 remove: ok @4294967295
			0 5-6 put b: ok @1
			0 7-8 get b: ok @1`,
		"reads around a write that is in flight": `
			0 1-2 put a: ok @1
			0 3-9 put b: ok @2
			1 4-5 get a: ok @1
			2 6-7 get b: ok @2`,
		"refusals": `
			0 1-2 remove: no_such_key
			0 3-4 remove_if @3: no_such_key
			0 5-6 remove_if @3: version_mismatch @0
			0 7-8 put_if a @3: version_mismatch @0
			0 9-10 put a: table_full
			0 11-12 put_if a @0: table_full
			0 13-14 put a: refused
			0 15-16 put b: ok @9
			0 17-18 put_if c @0: version_mismatch @9
			0 19-20 remove_if @8: version_mismatch @9
			0 21-22 get b: ok @9`,
		"unknown write took effect late": `
			0 1-2 put a: ok @1
			0 3- put b: unknown
			1 4-5 get a: ok @1
			1 6-7 get b: ok @2
			1 8-9 put_if c @2: ok @3`,
		"unknown write never took effect": `
			0 1-2 put a: ok @1
			0 3- put b: unknown
			1 4-5 get a: ok @1
			1 6-7 put_if c @1: ok @2
			1 8-9 get c: ok @2`,
		"unknown write seen by its version alone": `
			0 1-2 put a: ok @1
			0 3- put b: unknown
			1 4-5 put_if c @1: version_mismatch @2
			1 6-7 put_if c @2: ok @3`,
		"unknown write seen by a remove alone": `
			0 1- put b: unknown
			1 2-3 get: no_such_key
			1 4-5 remove: ok @2
			1 6-7 get: no_such_key`,
		"unknown write hidden by another, then seen": `
			0 1- put a: unknown
			1 1- put b: unknown
			2 1- put c: unknown
			3 4-5 get c: ok @3
			3 6-7 get a: ok @4`,
		"unknown remove took effect": `
			0 1-2 put a: ok @1
			0 3- remove: unknown
			1 4-5 get a: ok @1
			1 6-7 get: no_such_key
			1 8-9 put_if b @0: ok @3`,
		"unknown remove, then unknown conditional put": `
			0 1-2 put a: ok @1
			0 3- remove: unknown
			1 4- put_if b @0: unknown
			2 5-6 get b: ok @3`,
		"unknown conditional put onto an unknown put": `
			0 1- put a: unknown
			1 2- put_if b @5: unknown
			2 3-4 get b: ok @6`,
		"unknown reads tell nothing": `
			0 1- get: unknown
			0 2-3 get: no_such_key`,
	})
}

func TestNotLinearizable_ExpectIllegal(t *testing.T) {
	expect(t, porcupine.Illegal, map[string]string{
		"stale read": `
			0 1-2 put a: ok @1
			0 3-4 put b: ok @2
			1 5-6 get a: ok @1`,
		"stale read of nothing": `
			0 1-2 put a: ok @1
			1 3-4 get: no_such_key`,
		"new then old": `
			0 1-2 put a: ok @1
			0 3-20 put b: ok @2
			1 4-5 get b: ok @2
			2 6-7 get a: ok @1`,
		"lost update": `
			0 1-2 put a: ok @1
			0 3-4 put_if b @1: ok @2
			1 3-4 put_if c @1: ok @3`,
		"acknowledged write vanished": `
			0 1-2 put a: ok @1
			0 3-4 put b: ok @2
			0 5-6 put_if c @1: ok @3`,
		"dirty read of a value that vanished": `
			0 1-2 put a: ok @1
			0 3- put b: unknown
			1 4-5 get b: ok @2
			2 6-7 get a: ok @1`,
		"dirty read whose version was given again": `
			0 1-2 put a: ok @1
			0 3- put b: unknown
			1 4-5 get b: ok @2
			2 6-7 put c: ok @2`,
		"duplicate effect of a retried write": `
			0 1-9 put a: ok @3
			1 2-3 get a: ok @1
			1 4-5 put b: ok @2
			1 6-7 get b: ok @2
			1 10-11 get a: ok @3`,
		"duplicate effect of an unknown write": `
			0 1- put a: unknown
			1 2-3 get a: ok @1
			1 4-5 put b: ok @2
			1 6-7 get a: ok @3`,
		"refused then done all the same": `
			0 1-2 put a: ok @1
			0 3-4 put_if b @7: version_mismatch @1
			0 5-6 get b: ok @2`,
		"refused has no effect": `
			0 1-2 put b: refused
			0 3-4 get b: ok @1`,
		"put_if that should have failed": `
			0 1-2 put a: ok @1
			0 3-4 put b: ok @2
			1 5-6 put_if c @1: ok @3`,
		"put_if of a new key that was there": `
			0 1-2 put a: ok @1
			1 3-4 put_if c @0: ok @3`,
		"put_if that should have succeeded": `
			0 1-2 put a: ok @1
			1 3-4 put_if c @1: version_mismatch @1`,
		"mismatch with a version that never was": `
			0 1-2 put a: ok @1
			1 3-4 put_if c @7: version_mismatch @2`,
		"version given twice": `
			0 1-2 put a: ok @1
			0 3-4 put b: ok @1`,
		"version again after a remove": `
			0 1-2 put a: ok @5
			0 3-4 remove: ok @6
			0 5-6 put a: ok @5`,
		"version 0 was written": `
			0 1-2 put a: ok @0`,
		"value with two versions": `
			0 1-2 put a: ok @1
			1 3-4 get a: ok @2`,
		"read of a deleted key": `
			0 1-2 put a: ok @1
			0 3-4 remove: ok @2
			1 5-6 get a: ok @1`,
		"deleted twice": `
			0 1-2 put a: ok @1
			0 3-4 remove: ok @2
			0 5-6 remove: ok @3`,
		"value from nowhere": `
			0 1-2 get x: ok @1`,
		"before its call": `
			0 1-2 get a: ok @1
			1 3- put a: unknown`,
		"table full for a key that is there": `
			0 1-2 put a: ok @1
			0 3-4 put b: table_full`,
		"unknown write after an unknown remove shows the old value": `
			0 1-2 put a: ok @1
			0 3- remove: unknown
			1 4-5 get: no_such_key
			1 6-7 get a: ok @1`,
	})
}

// A search without a violation ends at one long order. With a violation, it would try all subsets of the unknown
// operations without the model's two rules.
func TestManyUnknownWrites_ExpectAVerdictSoon(t *testing.T) {
	text := "0 1-2 put first: ok @1\n"
	for i := 0; i < 40; i++ {
		text += fmt.Sprintf("%d %d- put u%d: unknown\n%d %d- remove: unknown\n", i+1, 2*i+3, i, i+50, 2*i+4)
		text += fmt.Sprintf("0 %d-%d put o%d: ok @%d\n", 1000+10*i, 1005+10*i, i, 2+2*i)
	}
	if got := judge(parse(t, text+"0 2000-2001 get o39: ok @80"), 20*time.Second); got != porcupine.Ok {
		t.Errorf("%s, not Ok", got)
	}
	if got := judge(parse(t, text+"0 2000-2001 get o38: ok @78"), 20*time.Second); got != porcupine.Illegal {
		t.Errorf("%s, not Illegal", got)
	}
}

const lines = `{"client":0,"key":"00ff","op":"put","value":"61","expected":0,"call":1,"return":2,"outcome":"ok","version":1}

{"client":1,"key":"00ff","op":"get","value":"62","expected":0,"call":3,"return":4,"outcome":"ok","version":1}
{"client":1,"key":"01","op":"remove","value":"","expected":0,"call":5,"return":null,"outcome":"unknown","version":0}
`

func TestFile_ExpectVerdictKeyAndPicture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	code, err := judgeFile(&out, path, "", time.Second)
	if err != nil || code != exitViolated {
		t.Fatalf("%d, %v", code, err)
	}
	for _, want := range []string{"NOT linearizable; 3 operations, 2 keys", "key 00ff: 2 operations", "!! client 1   [3, 4] get '62': ok @1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
	picture, err := os.ReadFile(strings.TrimSuffix(path, ".jsonl") + ".00ff.html")
	if err != nil || !bytes.Contains(picture, []byte("get '62': ok @1")) {
		t.Errorf("no picture: %v", err)
	}
}

func TestLineThatIsNoOperation_ExpectItsNumber(t *testing.T) {
	for _, bad := range []string{"{", `{"op":"get"}`, strings.Replace(lines, `"op":"put"`, `"op":"swap"`, 1),
		strings.Replace(lines, `"return":2`, `"return":0`, 1), strings.Replace(lines, `"return":2`, `"return":null`, 1),
		strings.Replace(lines, `"client"`, `"who"`, 1)} {
		_, _, err := readHistory(strings.NewReader(bad))
		if err == nil || !strings.HasPrefix(err.Error(), "line 1: ") {
			t.Errorf("%v of %s", err, bad)
		}
	}
}
