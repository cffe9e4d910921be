// Command adapter puts Roost's store behind the line protocol of an outside store
// benchmark: one JSON request per line on standard input, one JSON answer per
// line on standard output, strictly in turn.
//
// "ok" is said only when the change is synced. What the store cannot do is
// refused with a reason and never imitated; rewind is refused so far. The program
// goes through the packages store and task like the engine does: it has no way of
// its own to the disk, apart from laying out a folder of Roo's files for import.
//
// The list is what store.List gives. There is no catalogue yet, so a list reads
// every task, and "rebuild" is the same work.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "adapter:", err)
		os.Exit(1)
	}
}

// request is one line of the protocol.
type request struct {
	Op     string          `json:"op"`
	Dir    string          `json:"dir"`
	Task   string          `json:"task"`
	Path   string          `json:"path"`
	Source string          `json:"source"`
	UI     json.RawMessage `json:"ui"` // a message, or for import a file name
	API    json.RawMessage `json:"api"`
}

// answer is what a request gets. Counts that do not belong to it are left out.
type answer struct {
	OK  bool   `json:"ok"`
	N   *int   `json:"n,omitempty"`
	UI  *int   `json:"ui,omitempty"`
	API *int   `json:"api,omitempty"`
	Err string `json:"err,omitempty"`
}

// serve answers until close or the end of the input, then lets every task go.
func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	s := &session{}
	lines := bufio.NewReaderSize(in, 1<<16)
	to := json.NewEncoder(out)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return s.release(ctx)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("read a request: %w", err), s.release(ctx))
		}
		var r request
		var a answer
		err = json.Unmarshal(line, &r)
		if err == nil {
			a, err = s.do(ctx, r)
		}
		a.OK = err == nil
		if err != nil {
			a.Err = err.Error()
		}
		if err := to.Encode(a); err != nil {
			return errors.Join(fmt.Errorf("answer a request: %w", err), s.release(ctx))
		}
		if r.Op == "close" {
			return nil
		}
	}
}
