// SPDX-License-Identifier: Apache-2.0

// linearizable judges histories of the kv store. It searches for an order of all operations, each between its call and
// its return, in which a store would have given exactly these answers. See docs/project/kv-testing.md.
//
// Exit status: 0 all are linearizable; 1 one is not; 2 undecided within the time limit; 3 a file is not a history.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	exitLinearizable = iota
	exitViolated
	exitUnknown
	exitUnreadable
)

func main() {
	timeout := flag.Duration("timeout", time.Minute, "how long one history may take")
	html := flag.String("html", "", "folder for the pictures of violations (default: beside the history)")
	flag.BoolVar(&refreshed, "refreshed", false, "versions may also grow by themselves: locations that lagged were refreshed")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "linearizable [--timeout 60s] [--html FOLDER] HISTORY.jsonl...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(exitUnreadable)
	}
	// The worst result of all files. A violation is worse than an undecided file.
	worst := exitLinearizable
	for _, path := range flag.Args() {
		code, err := judgeFile(os.Stdout, path, *html, *timeout)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			os.Exit(exitUnreadable)
		}
		if code == exitViolated || worst == exitLinearizable {
			worst = code
		}
	}
	os.Exit(worst)
}

func judgeFile(out io.Writer, path, html string, timeout time.Duration) (int, error) {
	file, err := os.Open(path)
	if err != nil {
		return exitUnreadable, err
	}
	defer file.Close()
	byKey, keys, err := readHistory(file)
	if err != nil {
		return exitUnreadable, err
	}
	if html == "" {
		html = filepath.Dir(path)
	}
	picture := func(key string) string {
		name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		return filepath.Join(html, name+"."+strings.ReplaceAll(key, "/", "_")+".html")
	}

	start := time.Now()
	total := 0
	var violated, doubtful []string
	for i, key := range keys {
		total += len(byKey[key])
		// An equal share of the remaining time, so that one hard key does not use the time of others.
		share := (timeout - time.Since(start)) / time.Duration(len(keys)-i)
		switch judge(byKey[key], share) {
		case porcupine.Illegal:
			violated = append(violated, key)
		case porcupine.Unknown:
			doubtful = append(doubtful, key)
		}
	}
	verdict, code := "linearizable", exitLinearizable
	if len(doubtful) > 0 {
		verdict, code = "unknown, out of time at key "+strings.Join(doubtful, ", "), exitUnknown
	}
	if len(violated) > 0 {
		verdict, code = "NOT linearizable", exitViolated
	}
	fmt.Fprintf(out, "%s: %s; %d operations, %d keys, %v\n", path, verdict, total, len(keys), time.Since(start).Round(time.Millisecond))
	for _, key := range violated {
		if err := explain(out, key, byKey[key], picture(key), timeout); err != nil {
			return code, err
		}
	}
	return code, nil
}

// judge looks for a linearization of one key's history.
func judge(history []*Operation, timeout time.Duration) porcupine.CheckResult {
	if timeout <= 0 {
		timeout = 1 // 0 would mean no limit
	}
	return porcupine.CheckOperationsTimeout(model, operations(history), timeout)
}
