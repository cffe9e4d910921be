package crashtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/crashtest"
	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
)

// A check that never fails proves nothing: here each of them meets what it is for.

func raws(lines ...string) []json.RawMessage {
	var out []json.RawMessage
	for _, l := range lines {
		out = append(out, json.RawMessage(l))
	}
	return out
}

func commits(events ...string) []journal.Commit {
	var out []journal.Commit
	for i, e := range events {
		out = append(out, journal.Commit{Seq: uint64(i + 1), Epoch: 1, At: 5, By: "r", Events: raws(strings.Split(e, "\n")...)})
	}
	return out
}

func TestCheckPrefix(t *testing.T) {
	before := crashtest.Look{Commits: commits(`{"type":"a"}`, `{"type":"b"}`)}
	for name, c := range map[string]struct {
		after []journal.Commit
		ok    bool
	}{
		"the same":        {commits(`{"type":"a"}`, `{"type":"b"}`), true},
		"more":            {commits(`{"type":"a"}`, `{"type":"b"}`, `{"type":"c"}`), true},
		"one is missing":  {commits(`{"type":"a"}`), false},
		"one has changed": {commits(`{"type":"a"}`, `{"type":"x"}`), false},
		"one has grown":   {commits(`{"type":"a"}`, "{\"type\":\"b\"}\n{\"type\":\"c\"}"), false},
		"other blanks":    {commits(`{"type":"a"}`, `{"type": "b"}`), false},
		"nothing is left": {nil, false},
	} {
		if err := crashtest.CheckPrefix(before, crashtest.Look{Commits: c.after}); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want (err == nil) = c.ok", name, err)
		}
	}
	moved := commits(`{"type":"a"}`, `{"type":"b"}`)
	moved[1].Epoch = 2
	if crashtest.CheckPrefix(before, crashtest.Look{Commits: moved}) == nil {
		t.Error("a commit of another epoch is taken for the same")
	}
}

func TestCheckPrinted(t *testing.T) {
	l := crashtest.Look{Commits: commits(
		`{"type":"run.started","run":"r"}`,
		"{\"type\":\"message.added\",\"message\":1,\"raw\":{\"ts\":1}}\n{\"type\":\"tool.finished\",\"call\":\"c\",\"result\":{}}",
		`{"type":"message.added","message":2,"raw":{"text":"a"}}`+"\n"+`{"type":"message.text_saved","message":2,"text":"b"}`+"\n"+`{"type":"message.text_saved","message":1,"text":"c"}`)}
	grown := `{"type":"message.added","seq":3,"message":2,"content":{"text":"ab"}}`
	saved := `{"type":"message.text_saved","seq":3,"message":2,"text":"b"}`
	started := `{"type":"run.started","seq":1,"task_id":"t","run":"r"}`
	added := `{"type":"message.added","seq":2,"message":1,"content":{"ts":1}}`
	finished := `{"type":"tool.finished","seq":2,"call":"c","result":{}}`
	for name, c := range map[string]struct {
		lines   []string
		durable int
		ok      bool
	}{
		"all of it":                    {[]string{started, added, finished}, 3, true},
		"the beginning":                {[]string{started, added}, 2, true},
		"live pieces between":          {[]string{started, `{"type":"message.delta","text":"x"}`, added}, 2, true},
		"text in the message's commit": {[]string{grown, saved}, 2, true},
		"text that is not shown yet":   {[]string{strings.Replace(grown, "ab", "a", 1)}, 0, false},
		"a commit that is not there":   {[]string{started, `{"type":"run.ended","seq":4}`}, 1, false},
		"an event too many":            {[]string{started, started}, 1, false},
		"another value":                {[]string{`{"type":"run.started","seq":1,"run":"other"}`}, 0, false},
		"a member missing":             {[]string{`{"type":"run.started","seq":1}`}, 0, false},
		"another spelling of a number": {[]string{strings.Replace(added, `"ts":1`, `"ts":1.0`, 1)}, 0, false},
		"events in another order":      {[]string{finished, added}, 0, false},
	} {
		n, err := crashtest.CheckPrinted(raws(c.lines...), l)
		if (err == nil) != c.ok || n != c.durable {
			t.Errorf("%s: %d durable, %v", name, n, err)
		}
	}
}

func TestCheckHistories(t *testing.T) {
	const (
		words  = `{"type":"say","say":"text","text":"go"}`
		answer = `{"type":"say","say":"text","text":"I look."}`
		asked  = `{"role":"user","content":[{"type":"text","text":"<user_message>\ngo\n</user_message>"},{"type":"text","text":"<environment_details>"}]}`
		call   = `{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"c"}]}`
		result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"}]}`
		ended  = `{"role":"assistant","content":[{"type":"tool_use","id":"d"}]}`
	)
	for name, c := range map[string]struct {
		ui, api []string
		says    string // "" = all is well
	}{
		"sound":                     {[]string{words, answer}, []string{asked, call, result, ended}, ""},
		"a row still partial":       {[]string{words, `{"type":"say","say":"text","text":"I look.","partial":true}`}, []string{asked, call, result}, "still partial"},
		"a call without a result":   {[]string{words, answer}, []string{asked, call, asked}, "has no result"},
		"two replies in a row":      {[]string{words, answer}, []string{asked, call, ended}, "have no results"},
		"two results":               {[]string{words, answer}, []string{asked, call, result, result}, "has 2 results"},
		"words nobody saw":          {[]string{answer}, []string{asked}, "no row shows it"},
		"a reply nobody saw":        {[]string{words}, []string{asked, call, result}, "no row shows it"},
		"the last reply's own call": {[]string{words, answer}, []string{asked, call}, ""},
	} {
		err := crashtest.CheckHistories(crashtest.Look{UI: raws(c.ui...), API: raws(c.api...)})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want (err == nil) = (c.says == \"\") and (no error or strings.Contains(err.Error(), c.says))",
				name, err)
		}
	}
	ran := crashtest.Look{Calls: []crashtest.Made{{Call: task.Call{ID: "c", Name: "act", Progress: task.Progress{Started: true}}}}, Shown: map[string]bool{}}
	if err := crashtest.CheckHistories(ran); err == nil {
		t.Error("a call ran and no row shows it")
	}
	ran.Shown["c"] = true
	if err := crashtest.CheckHistories(ran); err != nil {
		t.Error(err)
	}
}

func TestCheckFiles(t *testing.T) {
	dir := t.TempDir()
	l := crashtest.Look{Ref: store.Ref{Dir: dir}, UI: raws(`{"ts":1}`), API: raws(`{"role":"user"}`, `{"role":"assistant"}`)}
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if l.CheckFiles() == nil {
		t.Error("there are no files")
	}
	put("ui_messages.json", `[{"ts":1}]`)
	put("api_conversation_history.json", `[{"role":"user"},{"role":"assistant"}]`)
	if err := l.CheckFiles(); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{`[{"role":"user"}]`, `[{"role":"user"},{"role":"x"}]`, `[{"role":"user"}`, `[]`} {
		put("api_conversation_history.json", wrong)
		if l.CheckFiles() == nil {
			t.Errorf("%s is not what the journal says", wrong)
		}
	}
}

func TestWatcher(t *testing.T) {
	for name, c := range map[string]struct {
		then func(path string) error
		says string
	}{
		"replaced": {func(p string) error {
			if err := os.WriteFile(p+".new", []byte("[1]"), 0o600); err != nil {
				return err
			}
			return os.Rename(p+".new", p)
		}, ""},
		"cut":        {func(p string) error { return os.Truncate(p, 1) }, "is not JSON"},
		"taken away": {os.Remove, "is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "task", "ui_messages.json")
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("[]"), 0o600); err != nil {
				t.Fatal(err)
			}
			w := crashtest.Watch(dir, filepath.Join(dir, "comes later"))
			w.Look() // it must have been seen whole before
			if err := c.then(path); err != nil {
				t.Fatal(err)
			}
			w.Look()
			n, err := w.Stop()
			if n == 0 || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%d reads, %v", n, err)
			}
		})
	}
}

// A process of the bench is found whatever it calls itself, one of another is not.
func TestAlive(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are found by their environment on Linux only")
	}
	b, err := crashtest.NewBench(program, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other, err := crashtest.NewBench(program, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", "setsid sleep 60 & exec sleep 60")
	cmd.Env = b.Command(context.Background(), "", "version").Env
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	left := b.Gone(0)
	for end := time.Now().Add(time.Minute); len(left) < 2 && time.Now().Before(end); left = b.Gone(0) {
		time.Sleep(time.Millisecond) // a process that becomes another program has no mark for a moment
	}
	if len(left) != 2 || len(other.Alive()) != 0 {
		t.Errorf("found %v and %v of another", left, other.Alive())
	}
	for _, pid := range left {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // it may have gone by itself
		}
	}
	_ = cmd.Wait() // it was killed
	if left := b.Gone(30 * time.Second); len(left) != 0 {
		t.Errorf("still there: %v", left)
	}
}

// Whatever lies in the temporary folder is left, but for the folder of the sockets: what
// lies in that one is.
func TestLeft(t *testing.T) {
	b, err := crashtest.NewBench(program, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(b.Dir, "tmp")
	sockets := filepath.Join(temp, fmt.Sprintf("roost-%d", os.Geteuid()))
	at := func(when string, want ...string) {
		t.Helper()
		if left, err := b.Left(); err != nil || !slices.Equal(left, want) {
			t.Errorf("%s: %q are left, %v, wanted %q", when, left, err, want)
		}
	}
	at("nothing is there")
	for _, dir := range []string{sockets, filepath.Join(temp, "roost-spool-1")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	at("an empty folder", filepath.Join(temp, "roost-spool-1"))
	socket := filepath.Join(sockets, "1-0123456789ab.sock")
	if err := errors.Join(os.Remove(filepath.Join(temp, "roost-spool-1")), os.WriteFile(socket, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	at("a socket", socket)
	if err := errors.Join(os.RemoveAll(sockets), os.WriteFile(sockets, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if left, err := b.Left(); !slices.Equal(left, []string{sockets}) {
		t.Errorf("a file with the folder's name: %q are left, %v", left, err)
	}
	if err := os.RemoveAll(temp); err != nil {
		t.Fatal(err)
	}
	if left, err := b.Left(); err == nil {
		t.Errorf("without the folder: %q are left", left)
	}
}

// The server's place in the plan is the number of replies it is shown, so that a
// restarted client goes on where it was.
func TestAnswer(t *testing.T) {
	answer := crashtest.Answer([]crashtest.Turn{{Text: "one"}, {Calls: []crashtest.Call{{Name: "f", Input: map[string]any{"a": 1}}}}})
	for body, want := range map[string]string{
		`{"messages":[{"role":"user"}]}`:                                                                     `"text":"one"`,
		`{"messages":[{"role":"user"},{"role":"assistant"},{"role":"user"}]}`:                                `"id":"toolu_2_1","name":"f","input":{"a":1}`,
		`{"messages":[{"role":"user"},{"role":"assistant"},{"role":"assistant"},{"role":"user"}]}`:           `"name":"attempt_completion"`,
		`{"messages":[{"role":"assistant"},{"role":"assistant"},{"role":"assistant"},{"role":"assistant"}]}`: `"name":"attempt_completion"`,
	} {
		reply := answer(llmtest.Request{Body: []byte(body)})
		if len(reply.Blocks) != 1 || !strings.Contains(string(reply.Blocks[0]), want) {
			t.Errorf("%s is answered with %s", body, reply.Blocks)
		}
	}
	if answer(llmtest.Request{Body: []byte("{")}).Status != 400 {
		t.Error("what cannot be read is not refused")
	}
}
