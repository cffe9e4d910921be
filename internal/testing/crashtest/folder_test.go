package crashtest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/testing/crashtest"
)

const (
	firstRow  = `{"ts":1776200000000,"type":"say","say":"text","text":"list the files","images":[]}`
	request   = `{"ts":1776200000450,"type":"say","say":"api_req_started","text":"{\"apiProtocol\":\"anthropic\",\"tokensIn\":9,\"tokensOut\":6,\"cacheWrites\":0,\"cacheReads\":0,\"cost\":0.034}"}`
	halfAsked = `{"ts":1776200000451,"type":"say","say":"api_req_started","text":"{\"apiProtocol\":\"anthropic\"}"}`
	command   = `{"ts":1776200002500,"type":"ask","ask":"command","text":"ls"}`
	halfText  = `{"ts":1776200002600,"type":"say","say":"text","text":"I was about to","partial":true}`
	firstWord = `{"role":"user","content":[{"type":"text","text":"<user_message>\nlist the files\n</user_message>"}],"ts":1776200000900}`
	oneCall   = `{"role":"assistant","content":[{"type":"text","text":"list the files"},{"type":"tool_use","id":"c1","name":"execute_command","input":{"command":"echo twice >> acted.txt"}}],"ts":1776200003000}`
	twoCalls  = `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"list_files","input":{"path":"."}},{"type":"tool_use","id":"c2","name":"read_file","input":{"path":"a"}}],"ts":1776200003000}`
	oneResult = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a"}],"ts":1776200004000}`
)

// Folders as Roo leaves them when it is ended in the middle.
func TestFolderCutByRoo(t *testing.T) {
	for name, c := range map[string]struct{ ui, api []string }{
		"the last reply's call is open":    {[]string{firstRow, request, command}, []string{firstWord, oneCall}},
		"the last message is the user's":   {[]string{firstRow, request}, []string{firstWord}},
		"a result waits to be sent":        {[]string{firstRow, request, command, halfAsked}, []string{firstWord, oneCall, oneResult}},
		"half a text":                      {[]string{firstRow, request, halfText}, []string{firstWord}},
		"half a text and a call":           {[]string{firstRow, request, halfText, command}, []string{firstWord, oneCall}},
		"one of two results is missing":    {[]string{firstRow, request}, []string{firstWord, twoCalls, oneResult}},
		"the model's history is not there": {[]string{firstRow, request}, nil},
	} {
		for _, provider := range []string{"script", "anthropic"} {
			t.Run(name+"/"+provider, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				last := crashtest.Complete("It goes on.")
				b := newBench(t, provider, []crashtest.Turn{last, last, last, last})
				storage := filepath.Join(b.Dir, "rooveterinaryinc.roo-cline")
				dir := filepath.Join(storage, "tasks", "0198aaaa-cut")
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, "ui_messages.json"), c.ui)
				if c.api != nil {
					write(t, filepath.Join(dir, "api_conversation_history.json"), c.api)
				}
				b.Sources = storage
				w := crashtest.Watch(filepath.Join(storage, "tasks"))
				args := append([]string{"resume", "0198aaaa-cut", "--yes", "-C", b.Workspace}, b.Model...)
				child := start(ctx, t, b, "", args...)
				if _, err := w.Stop(); err != nil {
					t.Error(err)
				}
				if child.Code != 0 {
					t.Fatalf("resume: %d: %s", child.Code, child.Errors)
				}
				l := look(ctx, t, b, "0198aaaa-cut")
				// A stored turn without all its results stays as Roo wrote it, and doctor says
				// so; only what is sent is mended, and the server judges that.
				half := strings.HasPrefix(name, "one of two results")
				if err := crashtest.CheckHistories(l); err != nil && !half {
					t.Error(err)
				}
				if err := l.CheckFiles(); err != nil {
					t.Error(err)
				}
				if l.Status != "completed" || l.Ref.Dir != dir {
					t.Errorf("status %s, in %s", l.Status, l.Ref.Dir)
				}
				if _, err := os.Stat(filepath.Join(b.Workspace, "acted.txt")); err == nil {
					t.Error("a command of Roo's run was run again")
				}
				if _, err := os.Stat(filepath.Join(dir, "journal.jsonl")); err == nil {
					t.Error("the journal lies in Roo's folder")
				}
				if err := b.Doctor(ctx); half != (err != nil && strings.Contains(err.Error(), "1 tool call without a result")) {
					t.Error(err)
				}
			})
		}
	}
}

func write(t *testing.T, path string, list []string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("["+strings.Join(list, ",")+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
}
