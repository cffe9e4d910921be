package pagetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// The checker of accessible pages, and the digest of its package.
const (
	axePackage = "axe-core@4.10.3"
	axeDigest  = "sha512-Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg=="
)

// axe is the script of the checker. npm gets its package, from its cache or a registry; none of it is in this repository.
var axe = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pagetest-axe")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("npm", "pack", "--silent", "--prefer-offline", "--pack-destination", dir, axePackage).CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm pack %s: %w\n%s", axePackage, err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("npm pack %s left %d files: %w", axePackage, len(files), err)
	}
	packed, err := os.ReadFile(files[0])
	if err != nil {
		return "", err
	}
	sum := sha512.Sum512(packed)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != axeDigest {
		return "", fmt.Errorf("%s has the digest %s, want %s", axePackage, got, axeDigest)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return "", err
	}
	for r := tar.NewReader(unzipped); ; {
		head, err := r.Next()
		if err != nil {
			return "", fmt.Errorf("%s has no script: %w", axePackage, err)
		}
		if head.Name == "package/axe.min.js" {
			script, err := io.ReadAll(r)
			return string(script), err
		}
	}
})

// accessible fails for each thing that axe finds on the page as it is now. only names the rules; all when it is empty.
func (t *tab) accessible(state, only string) {
	t.Helper()
	script, err := axe()
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) && os.Getenv("ROOST_PAGE_BROWSER") == "" {
			t.Skip("npm is not installed")
		}
		t.Fatal(err)
	}
	if !run[bool](t, "!!self.axe") {
		run[bool](t, script+"\n;true")
	}
	rules := ""
	if only != "" {
		rules = ", runOnly: ['" + only + "']"
	}
	found := run[[]string](t, `Promise.allSettled(document.getAnimations().map(a => a.finished)).then(() => axe.run(document, {resultTypes: ['violations']`+rules+`}))
		.then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + n.html.slice(0, 200) + '\n    ' + n.failureSummary.replaceAll('\n', ' '))))`)
	for _, f := range found {
		t.Errorf("%s: %s", state, f)
	}
}

// state is a state of the page, and how a tab gets there.
type state struct {
	name string
	show func(*tab)
}

// states makes tasks, and gives the main states of the pages that show them.
func (h *house) states() []state {
	h.Helper()
	done := h.task("- tools: [{name: attempt_completion, input: {result: It is done.}}]", "Order the paint", nil)
	h.wait(done, "completed")
	gone := h.task("- tools: [{name: attempt_completion, input: {result: It is done.}}]", "Sell the brush", nil)
	h.wait(gone, "completed")
	h.ask("DELETE", "/v1/tasks/"+gone, nil, nil)
	writes := h.task(`
- {text: "I will **write** the list first, see [the shop](https://example.org):\n\n`+"```go\\nfunc paint(c string) error {\\n\\treturn brush.Use(c) // red\\n}\\n```"+`\n\n1. posts\n2. boards\n\n| part | colour |\n|---|---|\n| post | red |\n\n> quoted", reasoning: "The posts come before the boards."}
- tools: [{name: update_todo_list, input: {todos: "[x] posts\n[-] boards\n[ ] gate"}}]
- tools: [{name: write_to_file, input: {path: fence.txt, content: "posts: red\nboards: green\n"}}]
- tools: [{name: execute_command, input: {command: "echo painted; exit 3"}}]
- tools: [{name: attempt_completion, input: {result: The fence is painted.}}]
`, "Paint the fence", object{"approve": "all", "title": "Paint the fence"})
	h.wait(writes, "completed")
	asks := h.task("- tools: [{name: write_to_file, input: {path: fence.txt, content: \"posts: blue\\n\"}}]", "Paint it blue", object{"approve": "ask"})
	h.wait(asks, "waiting")
	words := h.task("- tools: [{name: ask_followup_question, input: {question: Which colour?, follow_up: [{text: red, mode: null}, {text: blue, mode: code}]}}]", "Paint the gate", nil)
	h.wait(words, "waiting")
	odd := filepath.Join(h.root, "tasks", "odd")
	if err := errors.Join(os.MkdirAll(odd, 0o700), os.WriteFile(filepath.Join(odd, "ui_messages.json"), []byte(`[{"ts":1760000000000,"type":"say","say":"text","text":"half`), 0o600)); err != nil {
		h.Fatal(err)
	}

	open := func(path string) func(*tab) {
		return func(tab *tab) {
			tab.visit(path)
			if run[bool](tab, `['task', 'history'].includes(document.body.dataset.page)`) {
				tab.live()
			}
		}
	}
	press := func(path, selector, shows string) func(*tab) {
		return func(tab *tab) {
			open(path)(tab)
			tab.press(selector)
			tab.sees(shows, "document.querySelector('"+shows+"')?.checkVisibility()")
		}
	}
	return []state{
		{"history", func(tab *tab) { open("/")(tab); tab.armed() }},
		{"history, narrowed", press("/?status=completed&since=7d", "#q", "#q")},
		{"search", open("/?q=fence")},
		{"search without hits", open("/?q=nothing-of-the-kind")},
		{"wrong search", open("/?since=never")},
		{"task", open("/tasks/" + writes)},
		{"task, all folds open", func(tab *tab) {
			open("/tasks/" + writes)(tab)
			run[int](tab, `[...document.querySelectorAll('details')].map(d => d.open = true).length`)
		}},
		{"task, a message chosen", func(tab *tab) {
			open("/tasks/" + writes)(tab)
			tab.keys("k")
			tab.sees("the acts of a message", "document.querySelector('#message-acts')?.checkVisibility()")
		}},
		{"task that is damaged", open("/tasks/odd")},
		{"found in a task", open("/tasks/" + writes + "?find=fence")},
		{"stored rows", open("/tasks/" + writes + "?raw=1")},
		{"what the model sees", open("/tasks/" + writes + "?view=effective")},
		{"task that wants approval", func(tab *tab) { open("/tasks/" + asks)(tab); tab.armed() }},
		{"task that asks", func(tab *tab) { open("/tasks/" + words)(tab); tab.armed() }},
		{"changes", open("/tasks/" + writes + "/changes")},
		{"usage", open("/usage")},
		{"sources", open("/sources")},
		{"trash", open("/trash")},
		{"problem", open("/tasks/none")},
		{"keys", func(tab *tab) { open("/")(tab); tab.keys("?"); tab.text("dialog#keys", "search") }},
		{"start a task", press("/", "#start", "dialog[open]")},
		{"rename", press("/tasks/"+done, "[data-does=rename]", "dialog[open]")},
		{"fork", press("/tasks/"+done, "[data-does=fork]", "dialog[open]")},
		{"restore files", press("/tasks/"+writes, "[data-does=restore]", "dialog[open]")},
		{"note", press("/tasks/"+done, "[data-does=pin]", "#notes .note")},
	}
}
