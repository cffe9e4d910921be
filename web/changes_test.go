package web_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// The changes of a task by turn: each with its prompt, and with what differs since.
func TestChangesByTurn(t *testing.T) {
	t.Parallel()
	g := newBench(t)
	id := g.run(`
- tools: [{name: write_to_file, input: {path: "a.txt", content: "one\n"}}]
- tools: [{name: attempt_completion, input: {result: "first"}}]
`, "paint the fence")
	if err := os.WriteFile(filepath.Join(g.dir, "ws", "a.txt"), []byte("one\nown\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	whole := g.page("/tasks/" + id + "/changes")
	if got := text(one(whole, "changes")); !strings.Contains(got, "by agent: write_to_file #") || !strings.Contains(got, "you, or another program") {
		t.Errorf("got %s, want who made the changes", got)
	}
	if got := text(one(whole, "commit-message")); !strings.HasPrefix(got, "Paint the fence\n") || !strings.Contains(got, "Add a.txt (+2 -0)") {
		t.Errorf("got the message %q", got)
	}
	page := g.page("/tasks/" + id + "/changes?by=turn")
	var heads []string
	for _, h := range all(page, func(n *html.Node) bool { return n.Data == "header" && attr(n, "class") == "turn" }) {
		heads = append(heads, strings.Join(strings.Fields(text(h)), " "))
	}
	if got := strings.Join(heads, "|"); !strings.HasPrefix(got, "Turn 1 #1 paint the fence|Since then") {
		t.Errorf("got the turns %q, want the one with its prompt, and what differs since", got)
	}
	if got := text(one(page, "t1")); !strings.Contains(got, "+one") || strings.Contains(got, "+own") {
		t.Errorf("got %s, want what the turn changed", got)
	}
	if got := text(one(page, "since")); !strings.Contains(got, "+own") {
		t.Errorf("got %s, want the own change", got)
	}
}

// Whatever names and contents files have, the page of the changes stays small and holds no markup of them.
func TestHostileChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes one request after another, and the race detector takes ten times as long")
	}
	t.Parallel()
	g := newBench(t)
	command := `printf '<script>alert(1)</script>\n\033[31mred\033[0m \342\200\256turned\n{{.}}\r+fake' > "$(printf '\033[2J<img src=x onerror=alert(1)>\342\200\256.txt')"; ` +
		`head -c 1500000 /dev/zero | tr '\0' x > long.txt; printf 'a\0b' > binary; head -c 13000000 /dev/zero | tr '\0' y > large.txt; ` +
		`seq 1 60000 > many.txt; ln -s /etc/passwd link`
	id := g.run(fmt.Sprintf(`
- tools: [{name: write_to_file, input: {path: "a.txt", content: "one\n"}}]
- tools: [{name: execute_command, input: {command: %q}}]
- tools: [{name: attempt_completion, input: {result: "done"}}]
`, command), "<b>paint</b>")
	for _, path := range []string{"", "?by=turn", "?from=c1", "?from=%3Cscript%3E", "?to=%22%3E%3Cscript%3E"} {
		path = "/tasks/" + id + "/changes" + path
		_, body := g.ask(path)
		inert(t, path, body)
		if len(body) > 6<<20 {
			t.Errorf("%s: got %d bytes, want at most 6 MiB", path, len(body))
		}
	}
	got := text(g.page("/tasks/" + id + "/changes"))
	for _, want := range []string{"Binary: ", "more are left out here", "⟦U+202E⟧", "⏎+fake", "large.txt", "link", "… 1.5 MB more"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
