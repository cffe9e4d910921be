//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// A page is read without the rest, so damage in the middle may only be met when a
// message is asked for: that one is told of, and the others are shown.
func TestShowLeavesOutWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	st, err := store.Open(store.Options{Root: s.root, Program: "test"})
	must(t, err)
	k, err := st.Create(t.Context(), task.Created{Task: "long-one", Title: "long", Number: 1, CreatedAt: 1776200000000})
	must(t, err)
	for i := range 450 {
		row := fmt.Sprintf(`{"ts":%d,"type":"say","say":"text","text":"row %d."}`, 1776200000000+i, i)
		must(t, k.Commit(t.Context(), task.MessageAdded{History: task.UI, Message: k.State().NextMessage(), Body: task.Body{Raw: []byte(row)}}))
	}
	log := filepath.Join(k.Ref.Log, "journal.jsonl")
	must(t, k.Close(t.Context()))
	info, err := os.Stat(log)
	must(t, err)
	data, err := os.ReadFile(log)
	must(t, err)
	data[bytes.Index(data, []byte("row 250."))] ^= 1
	f, err := os.OpenFile(log, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt(data, 0)
	must(t, err)
	must(t, f.Close())
	must(t, os.Chtimes(log, info.ModTime(), info.ModTime())) // as a bad disk does it

	got := s.roost("show", "long-one", "--ui", "--json")
	var rows []json.RawMessage
	if err := json.Unmarshal([]byte(got.out), &rows); err != nil || len(rows) != 449 || got.code != 0 {
		t.Errorf("exit %d, %d rows, %v", got.code, len(rows), err)
	}
	if !strings.Contains(got.err, "message 251 cannot be read") || strings.Count(got.err, "cannot be read") != 1 {
		t.Errorf("stderr: %s", got.err)
	}
	if got := s.roost("show", "long-one", "--tail", "5"); got.code != 0 || strings.Contains(got.err, "cannot") || !strings.Contains(got.out, "row 449.") {
		t.Errorf("the last page: exit %d\n%s%s", got.code, got.out, got.err)
	}
	if got := s.roost("doctor", "long-one"); got.code != failure.ExitDamaged {
		t.Errorf("doctor: exit %d\n%s%s", got.code, got.out, got.err)
	}
}

// Where a damaged journal's messages are back from Roo's files, the question about the damage does
// not say that they are gone.
func TestTheQuestionAboutDamageKnowsWhatIsBack(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script("- text: I look around.\n  tools: [{name: list_files, input: {path: .}}]\n" + finish("done") + finish("again"))
	if r := s.roost("run", "--provider", "script", "--model", model, "-C", s.ws, "--yes", "begin"); r.code != 0 {
		t.Fatal(r.code, r.err)
	}
	id := s.list()[0].ID
	journal := filepath.Join(s.root, "tasks", id, "journal.jsonl")
	data, err := os.ReadFile(journal)
	must(t, err)
	data[bytes.Index(data, []byte("I look around."))] ^= 1
	must(t, os.WriteFile(journal, data, 0o600))
	r := s.roost("resume", id, "--no-input", "go on")
	if r.code != failure.ExitInput {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	var page struct{ Items []struct{ Kind, Text string } }
	must(t, json.Unmarshal([]byte(s.roost("questions", "--json").out), &page))
	if len(page.Items) != 1 || page.Items[0].Kind != "damage" || strings.Contains(page.Items[0].Text, "gone") || !strings.Contains(page.Items[0].Text, "is back, under other numbers") {
		t.Errorf("%+v", page.Items)
	}
}

// A run's last line counts tokens as lists do: those of the cache among them.
func TestTheClosingLineCountsAsListsDo(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	model := s.script("- usage: {input: 3500, output: 10, cache_read: 200, cache_write: 1000}\n  tools: [{name: attempt_completion, input: {result: done}}]\n")
	r := s.roost("run", "--provider", "script", "--model", model, "-C", s.ws, "begin")
	if in := s.list()[0].Usage.TokensIn; r.code != 0 || in != 4700 || !strings.Contains(r.err, " "+view.Count(in)+" in, 10 out") {
		t.Errorf("exit %d, %d in\n%s", r.code, in, r.err)
	}
}
