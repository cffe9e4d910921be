package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

// twins are two roots with the same tasks: what is asked of one here is asked of the
// other through a server, and must give the same.
type twins struct {
	*testing.T
	dir, url string
}

const (
	hereRoot = "root-1"
	farRoot  = "root-2"
)

// command runs a command line in this process.
func (w *twins) command(ctx context.Context, root string, out io.Writer, args ...string) (code int, errs string) {
	var told bytes.Buffer
	a, _, _ := clitest.New(w.T, "XDG_STATE_HOME="+filepath.Join(w.dir, "state"))
	a.Out, a.Err, a.Dir = out, &told, filepath.Join(w.dir, "ws")
	args = append([]string{"--root", filepath.Join(w.dir, root), "--cache", filepath.Join(w.dir, root+"-cache"), "--sources", "none"}, args...)
	return Run(ctx, a, args), told.String()
}

// serve serves the far root until the test ends.
func (w *twins) serve() {
	w.Helper()
	ctx, stop := context.WithCancel(context.Background())
	in, out := io.Pipe()
	done := make(chan string, 1)
	go func() {
		_, errs := w.command(ctx, farRoot, out, "serve", "--listen", "127.0.0.1:0", "--json", "-q")
		out.Close()
		done <- errs
	}()
	line, err := bufio.NewReader(in).ReadString('\n')
	go io.Copy(io.Discard, in)
	var hello struct{ URL string }
	if err != nil || json.Unmarshal([]byte(line), &hello) != nil {
		stop()
		w.Fatal(line, err, <-done)
	}
	w.url = hello.URL
	w.Cleanup(func() {
		stop()
		<-done
	})
}

func (w *twins) write(name, text string) {
	w.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
}

// newTwins makes the roots: one task that changed a file, and one that asks.
func newTwins(t *testing.T) *twins {
	t.Helper()
	w := &twins{T: t, dir: t.TempDir()}
	w.write("ws/a.txt", "before\n")
	w.write("work.yaml", `
- text: some words that stream
  usage: {input: 10, output: 20}
  tools: [{name: execute_command, input: {command: "echo one"}}]
- tools: [{name: read_file, input: {path: a.txt}}]
- tools: [{name: write_to_file, input: {path: a.txt, content: "after\n"}}]
- tools: [{name: attempt_completion, input: {result: "done"}}]
- tools: [{name: attempt_completion, input: {result: "more is done"}}]
- tools: [{name: attempt_completion, input: {result: "still more is done"}}]
`)
	w.write("ask.yaml", `
- text: a question
  tools: [{name: ask_followup_question, input: {question: "which colour?", follow_up: [{text: red}, {text: blue}]}}]
- tools: [{name: attempt_completion, input: {result: "coloured"}}]
`)
	for _, run := range [][]string{
		{"run", "--provider", "script", "--model", filepath.Join(w.dir, "work.yaml"), "--yes", "paint the fence"},
		{"run", "--provider", "script", "--model", filepath.Join(w.dir, "ask.yaml"), "ask about the fence"},
	} {
		if code, errs := w.command(context.Background(), hereRoot, io.Discard, run...); code != failure.ExitDone && code != failure.ExitInput {
			t.Fatal(code, errs)
		}
	}
	if err := os.CopyFS(filepath.Join(w.dir, farRoot), os.DirFS(filepath.Join(w.dir, hereRoot))); err != nil {
		t.Fatal(err)
	}
	if code, errs := w.command(context.Background(), farRoot, io.Discard, "root", "trust"); code != failure.ExitDone {
		t.Fatal(code, errs)
	}
	w.serve()
	return w
}

func (w *twins) ids() (work, ask string) {
	w.Helper()
	var out bytes.Buffer
	code, errs := w.command(context.Background(), hereRoot, &out, "list", "--json", "--sort", "oldest")
	var page struct{ Items []struct{ ID, Title string } }
	if err := json.Unmarshal(out.Bytes(), &page); err != nil || len(page.Items) != 2 {
		w.Fatal(code, errs, out.String())
	}
	if strings.HasPrefix(page.Items[0].Title, "ask") {
		slices.Reverse(page.Items)
	}
	return page.Items[0].ID, page.Items[1].ID
}

var (
	anyID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// What the system gave, and what follows from the path.
	given = regexp.MustCompile(`"(mark|commit|pgid|started|mtime|ctime|inode)":("[^"]*"|\d+)`)
	live  = regexp.MustCompile(`(?m)^\{"type":"(\w+\.delta|notice)".*\n`)
)

// plain takes out what differs between two roots and two moments: paths, and ids that
// were made since.
func (w *twins) plain(text string) string {
	text = strings.ReplaceAll(text, farRoot, hereRoot)
	text = live.ReplaceAllString(text, "")
	text = given.ReplaceAllString(text, `"$1":0`)
	seen := map[string]string{}
	return anyID.ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("id-%d", len(seen)+1)
		}
		return seen[id]
	})
}

// Each command prints the same, and ends with the same code, whether it does its work
// here or a server does it. The commands follow each other: each finds what those before
// it did.
func TestServerAndHereAreTheSame(t *testing.T) {
	t.Parallel()
	w := newTwins(t)
	work, ask := w.ids()
	model := filepath.Join(w.dir, "work.yaml")
	for _, line := range []string{
		"list", "list --json", "list --tree", "list --status waiting --json", "list --group workspace", "list --limit 1 --json", "list --sort cost", "list --status nonsense",
		"show WORK", "show WORK --json", "show WORK -v", "show WORK --tail 2", "show WORK --before 3", "show ASK", "show nothing", "show WORK --ui --api",
		"show WORK --ui --json", "show WORK --api --json", "show WORK --api", "show WORK --effective --json", "show WORK --effective", "show WORK --ui --json --tail 1",
		"show WORK --usage", "show WORK --usage --json", "show WORK --tree", "show WORK --tree --json", "show WORK --journal", "show WORK --journal --json --tail 3",
		"show WORK --context", "show WORK --context --json", "show WORK --branches", "show WORK --branches --json",
		"search fence", "search fence --json", "search fence --in ui --limit 1", "search nowhere",
		"usage", "usage --json --by model", "usage --by task", "usage --by nonsense", "sources", "sources --json",
		"files WORK", "files WORK --json", "files WORK --check", "files WORK --path a.txt --json", "files WORK --path b.txt",
		"export WORK", "export WORK --format html", "export WORK --format json", "export WORK ASK", "export nothing",
		"runs", "runs --json", "runs WORK --json", "runs --state nonsense", "questions", "questions --json", "questions WORK",
		"wait WORK", "wait WORK --json", "wait ASK", "wait nothing", "attach WORK", "cancel nothing", "send WORK", "answer WORK --yes", "answer ASK",
		"rename WORK new-words", "rename WORK new-words --json", "tag WORK +red +blue", "tag WORK -red --json", "tag WORK", "tag WORK +", "pin WORK ASK", "unpin ASK --json",
		"undo --list", "undo --list WORK --json", "undo WORK --dry-run --json", "undo WORK", "redo WORK --json", "redo WORK",
		"rewind WORK --dry-run", "rewind WORK --dry-run --json", "rewind WORK --to #99", "rewind WORK", "show WORK --json", "undo WORK --json",
		"rewind WORK --files --dry-run --json", "rewind WORK --files --on-conflict nonsense",
		"checkpoint list WORK", "checkpoint list WORK --json", "checkpoint diff WORK 0 now", "checkpoint diff WORK --json", "checkpoint diff WORK 0 --stat", "checkpoint diff WORK c99",
		"checkpoint restore WORK 0 --dry-run", "checkpoint restore WORK 0 --dry-run --json", "checkpoint restore WORK c99", "checkpoint save WORK",
		"fork WORK --dry-run", "fork WORK --at #2 --dry-run --json", "fork WORK --title another", "condense WORK --dry-run", "condense nothing",
		"answer ASK --choice 2 --json", "run --provider script --model MODEL --yes --json again", "resume WORK more", "continue --yes more",
		"delete ASK", "trash list", "trash restore ASK --json", "delete ASK --json", "trash list --json", "trash purge ASK", "trash purge ASK --yes", "trash restore nothing", "show ASK",
	} {
		args := strings.Fields(strings.NewReplacer("WORK", work, "ASK", ask, "MODEL", model).Replace(line))
		before, _ := os.ReadFile(filepath.Join(w.dir, "ws/a.txt"))
		var here, far bytes.Buffer
		code, errs := w.command(context.Background(), hereRoot, &here, args...)
		w.write("ws/a.txt", string(before))
		farCode, farErrs := w.command(context.Background(), farRoot, &far, append([]string{"--server", w.url}, args...)...)
		if strings.HasPrefix(line, "answer ASK --choice") { // a server goes on by itself
			far.Reset()
			here.Reset()
			w.command(context.Background(), farRoot, io.Discard, "--server", w.url, "wait", ask)
		}
		if diff := cmp.Diff(w.plain(here.String()), w.plain(far.String())); diff != "" || code != farCode {
			t.Errorf("roost %s: exit %d here, %d with a server\n%s\n%s%s", line, code, farCode, diff, errs, farErrs)
		}
	}
}
