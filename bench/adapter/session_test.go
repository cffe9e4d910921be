package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/roost-dev/roost/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// talk sends lines to a fresh process's worth of adapter and gives its answers.
func talk(t *testing.T, lines ...string) []string {
	t.Helper()
	var out bytes.Buffer
	if err := serve(context.Background(), strings.NewReader(strings.Join(lines, "\n")+"\n"), &out); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func files(t *testing.T) (ui, api string) {
	t.Helper()
	dir := t.TempDir()
	ui, api = filepath.Join(dir, "ui.json"), filepath.Join(dir, "api.json")
	for path, text := range map[string]string{
		ui:  `[{"ts":1000,"type":"say","say":"text","text":"do it"}]`,
		api: `[{"role":"user","content":[{"type":"text","text":"do it"}],"ts":1001}]`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return ui, api
}

func TestProtocol(t *testing.T) {
	ui, api := files(t)
	dir := t.TempDir()
	initial := fmt.Sprintf(`{"op":"init","dir":%q,"workspace":"/ws"}`, dir)
	imported := fmt.Sprintf(`{"op":"import","task":"t1","ui":%q,"api":%q}`, ui, api)
	got := talk(t,
		initial, imported, imported,
		`{"op":"add","task":"t1","ui":{"ts":2000,"type":"say","say":"text","text":"more"}}`,
		`{"op":"add","task":"t1","api":{"role":"assistant","content":"yes","ts":2001}}`,
		`{"op":"add","task":"t1"}`,
		`{"op":"add","task":"nobody","ui":{"ts":1}}`,
		`{"op":"track","task":"t1","path":"a.go","source":"read_tool"}`,
		`{"op":"open","task":"t1"}`,
		`{"op":"rewind","task":"t1","ts":2000}`,
		`{"op":"flush"}`,
		`{"op":"add","task":"t1","ui":{"ts":3000,"type":"say","say":"text","text":"after the flush"}}`,
		`{"op":"list"}`, `{"op":"rebuild"}`, `{"op":"dance"}`, `not json`,
		`{"op":"close"}`, `{"op":"list"}`,
	)
	want := []string{
		`ok n=0`, `ok`, `no`, `ok`, `ok`, `no`, `no`, `ok`, `ok ui=2 api=2`, `no`, `ok`, `ok`,
		`ok n=1`, `ok n=1`, `no`, `no`, `ok`,
	}
	if diff := cmp.Diff(want, brief(t, got)); diff != "" {
		t.Fatalf("answers (-want +got):\n%s\n%s", diff, strings.Join(got, "\n"))
	}

	// A second process finds what was acknowledged.
	if diff := cmp.Diff([]string{`ok n=1`, `ok ui=3 api=2`}, brief(t, talk(t, initial, `{"op":"open","task":"t1"}`))); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	tracked, err := os.ReadFile(filepath.Join(dir, "tasks", "t1", "task_metadata.json"))
	if err != nil || !bytes.Contains(tracked, []byte(`"a.go"`)) {
		t.Errorf("the tracked file is not recorded: %s, %v", tracked, err)
	}
}

// brief is an answer in a form that tables can hold.
func brief(t *testing.T, lines []string) []string {
	t.Helper()
	var out []string
	for _, line := range lines {
		var a answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%q: got %v, want no error", line, err)
		}
		text := "ok"
		if !a.OK {
			text = "no"
		}
		if a.OK == (a.Err != "") {
			t.Errorf("%s: a refusal has a reason, and only a refusal", line)
		}
		for name, n := range map[string]*int{" n=%d": a.N} {
			if n != nil {
				text += fmt.Sprintf(name, *n)
			}
		}
		if a.UI != nil && a.API != nil {
			text += fmt.Sprintf(" ui=%d api=%d", *a.UI, *a.API)
		}
		out = append(out, text)
	}
	return out
}

func TestNothingBeforeInit(t *testing.T) {
	for _, op := range []string{"import", "add", "open", "rewind", "track", "list", "rebuild", "flush"} {
		if got := brief(t, talk(t, `{"op":"`+op+`","task":"t"}`)); got[0] != "no" {
			t.Errorf("%s without a store: %s", op, got[0])
		}
	}
}

// TestAddedIsSynced reads beside the living owner: a reader sees only what is
// synced, so what was acknowledged must be there.
func TestAddedIsSynced(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	ui, api := files(t)
	s := &session{}
	for _, r := range []request{
		{Op: "init", Dir: dir},
		{Op: "import", Task: "t1", UI: quoted(ui), API: quoted(api)},
		{Op: "add", Task: "t1", UI: json.RawMessage(`{"ts":2,"type":"say","say":"text","text":"x"}`)},
	} {
		if _, err := s.do(ctx, r); err != nil {
			t.Fatalf("%s: got %v, want no error", r.Op, err)
		}
	}
	other, err := store.Open(store.Options{Root: dir, Program: "reader"})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := other.Find(ctx, "t1")
	if err != nil {
		t.Fatal(err)
	}
	v, err := other.Read(ctx, ref)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(v.State.UI()); n != 2 {
		t.Errorf("another reader sees %d UI messages, want 2", n)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if err := s.release(ctx); err != nil {
		t.Error(err)
	}
}

func quoted(s string) json.RawMessage { b, _ := json.Marshal(s); return b }

// opened is a session with one imported task.
func opened(t *testing.T) (*session, string) {
	t.Helper()
	dir, s := t.TempDir(), &session{}
	ui, api := files(t)
	for _, r := range []request{{Op: "init", Dir: dir}, {Op: "import", Task: "t1", UI: quoted(ui), API: quoted(api)}} {
		if _, err := s.do(t.Context(), r); err != nil {
			t.Fatalf("%s: got %v, want no error", r.Op, err)
		}
	}
	t.Cleanup(func() {
		if err := s.release(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s, dir
}

// What Roost writes for a task that came in as two files is what was in them,
// and what was added.
func TestFilesHoldWhatWasAdded(t *testing.T) {
	s, dir := opened(t)
	const row, reply = `{"ts":2,"type":"say","say":"text","text":"é \ud800","custom":[1]}`, `{"role":"assistant","content":"yes","ts":3}`
	for _, r := range []request{{Op: "add", Task: "t1", UI: json.RawMessage(row), API: json.RawMessage(reply)}, {Op: "flush"}} {
		if _, err := s.do(t.Context(), r); err != nil {
			t.Fatalf("%s: got %v, want no error", r.Op, err)
		}
	}
	for name, want := range map[string]string{
		"ui_messages.json":              `[{"ts":1000,"type":"say","say":"text","text":"do it"},` + row + `]`,
		"api_conversation_history.json": `[{"role":"user","content":[{"type":"text","text":"do it"}],"ts":1001},` + reply + `]`,
	} {
		got, err := os.ReadFile(filepath.Join(dir, "tasks", "t1", name))
		if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// One step to both histories is one commit: they cannot drift.
func TestBothHistoriesInOneCommit(t *testing.T) {
	s, dir := opened(t)
	before := lines(t, dir)
	r := request{Op: "add", Task: "t1", UI: json.RawMessage(`{"ts":2,"type":"say","say":"text","text":"x"}`), API: json.RawMessage(`{"role":"user","content":"x"}`)}
	if _, err := s.do(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if n := lines(t, dir) - before; n != 1 {
		t.Errorf("%d commits for one step", n)
	}
}

func lines(t *testing.T, dir string) int {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(dir, "tasks", "t1", "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(log, []byte("\n"))
}

// An import that cannot be is refused, and leads nowhere outside the root.
func TestImportsThatAreRefused(t *testing.T) {
	s, dir := opened(t)
	ui, api := files(t)
	for name, r := range map[string]request{
		"a path for an id":   {Op: "import", Task: "../../t2", UI: quoted(ui), API: quoted(api)},
		"no id":              {Op: "import", UI: quoted(ui), API: quoted(api)},
		"it is there":        {Op: "import", Task: "t1", UI: quoted(ui), API: quoted(api)},
		"no file":            {Op: "import", Task: "t3", UI: quoted(filepath.Join(dir, "none")), API: quoted(api)},
		"a message, no file": {Op: "import", Task: "t4", UI: json.RawMessage(`{"ts":1}`), API: quoted(api)},
	} {
		if _, err := s.do(t.Context(), r); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "..", "t2")); err == nil {
		t.Error("something was written outside the root")
	}
}

// A second init lets the first store's tasks go: another process may have them.
func TestInitAgainLetsGo(t *testing.T) {
	s, dir := opened(t)
	if _, err := s.do(t.Context(), request{Op: "init", Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	other := &session{}
	for _, r := range []request{{Op: "init", Dir: dir}, {Op: "add", Task: "t1", UI: json.RawMessage(`{"ts":9,"type":"say","say":"text","text":"mine"}`)}} {
		if _, err := other.do(t.Context(), r); err != nil {
			t.Fatalf("%s: got %v, want no error", r.Op, err)
		}
	}
	if err := other.release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A message that is no JSON is refused, and costs the task nothing.
func TestBrokenMessageIsRefused(t *testing.T) {
	s, dir := opened(t)
	before := lines(t, dir)
	if _, err := s.do(t.Context(), request{Op: "add", Task: "t1", UI: json.RawMessage(`{"ts":`)}); err == nil {
		t.Error("taken")
	}
	if n := lines(t, dir); n != before {
		t.Errorf("%d commits, before there were %d", n, before)
	}
}

// While another process has the task, a step is refused and says by whom.
func TestBusyTaskIsRefused(t *testing.T) {
	_, dir := opened(t)
	answers := talk(t, fmt.Sprintf(`{"op":"init","dir":%q}`, dir), `{"op":"add","task":"t1","ui":{"ts":5,"type":"say","say":"text","text":"x"}}`, `{"op":"open","task":"t1"}`)
	if diff := cmp.Diff([]string{"ok n=1", "no", "ok ui=1 api=1"}, brief(t, answers)); diff != "" {
		t.Fatal(diff)
	}
	if !strings.Contains(answers[1], fmt.Sprintf("pid %d", os.Getpid())) {
		t.Error(answers[1])
	}
}
