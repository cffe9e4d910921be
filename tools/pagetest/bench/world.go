package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

// world is a server with many tasks, and a browser.
type world struct {
	options
	version string
	server  *exec.Cmd
	url     string
	token   string
	browser context.Context
	stops   []func()
	big     string // a task with many messages
	length  int    // of it
	small   []string
	work    string // a workspace
}

// newWorld writes the tasks, starts the server and lets it derive its index.
func newWorld(ctx context.Context, o options) (w *world, err error) {
	w = &world{options: o, big: "0199aaaa-0000-7000-8000-000000000001", length: 50_000, work: filepath.Join(o.dir, "work")}
	many := 10_000
	if o.quick {
		many, w.length = 200, 2000
	}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	storage := filepath.Join(o.dir, "rooveterinaryinc.roo-cline")
	for i := range many {
		id := fmt.Sprintf("%08x-0000-4000-8000-%012x", i*2654435761&0xffffffff, i)
		w.small = append(w.small, "roo:"+id)
		if err := writeTask(filepath.Join(storage, "tasks", id), 6, time.Now().Add(-90*24*time.Hour)); err != nil {
			return w, err
		}
	}
	if err := writeTask(filepath.Join(o.dir, "root", "tasks", w.big), w.length, time.Now().Add(-time.Hour)); err != nil {
		return w, err
	}
	if err := os.MkdirAll(w.work, 0o700); err != nil {
		return w, err
	}
	if err := w.serve(storage); err != nil {
		return w, err
	}
	// A change takes the folder into a journal, which has an index.
	if err := w.ask(ctx, "PATCH", "/v1/tasks/"+w.big, map[string]any{"title": "A long story"}, nil); err != nil {
		return w, err
	}
	var list struct {
		Items []struct{ ID, Source string }
	}
	if err := w.ask(ctx, "GET", "/v1/tasks?limit=1000", nil, &list); err != nil {
		return w, err
	}
	w.small = w.small[:0]
	for _, t := range list.Items {
		if t.ID != w.big {
			w.small = append(w.small, t.Source+":"+t.ID)
		}
	}
	return w, w.startBrowser()
}

func (w *world) serve(storage string) error {
	w.server = exec.Command(w.roost, "serve", "--listen", "127.0.0.1:0", "--json", "--drain-timeout", "1s", "--sources", storage)
	w.server.Env = append(os.Environ(), "ROOST_ROOT="+filepath.Join(w.dir, "root"), "ROOST_CACHE="+filepath.Join(w.dir, "cache"), "ROOST_SOURCES=none", "HOME="+w.dir)
	w.server.Dir = w.work
	var problems bytes.Buffer
	w.server.Stderr = &problems
	out, err := w.server.StdoutPipe()
	if err == nil {
		err = w.server.Start()
	}
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	w.stops = append(w.stops, func() {
		_ = w.server.Process.Signal(os.Interrupt)
		_ = w.server.Wait()
	})
	var said struct {
		URL   string `json:"url"`
		Token string `json:"token"`
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &said)
	}
	if err != nil {
		return fmt.Errorf("the server said %q: %w\n%s", line, err, problems.String())
	}
	w.url, w.token = said.URL, said.Token
	return nil
}

func (w *world) startBrowser() error {
	ctx, stop, err := w.newBrowser()
	if err != nil {
		return err
	}
	w.browser = ctx
	w.stops = append(w.stops, stop)
	return nil
}

// newBrowser starts a browser. What a tab's processes are is told by those of its browser, so that it may start none
// that no tab needs.
func (w *world) newBrowser() (context.Context, func(), error) {
	file, err := exec.LookPath(w.options.browser)
	if err != nil {
		return nil, nil, err
	}
	if out, err := exec.Command(file, "--version").Output(); err == nil {
		w.version, _, _ = strings.Cut(strings.TrimSpace(string(out)), " built")
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(file),
		chromedp.Flag("no-sandbox", os.Geteuid() == 0),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-features", "SpareRendererForSitePerProcess,site-per-process,Translate,BlinkGenPropertyTrees"),
	)...)
	ctx, end := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	if err := chromedp.Do(ctx); err != nil {
		stop()
		return nil, nil, fmt.Errorf("start the browser: %w", err)
	}
	return ctx, func() { end(); stop() }, nil
}

func (w *world) close() {
	for i := len(w.stops) - 1; i >= 0; i-- {
		w.stops[i]()
	}
}

// ask sends a request of the API, and decodes the answer.
func (w *world) ask(ctx context.Context, method, path string, body, out any) error {
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, in)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s\n%s", method, path, answer.Status, data)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(data, out)
	}
	return err
}

// loginLink is a new link that logs a browser in.
func (w *world) loginLink(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, w.roost, "open", "--print")
	cmd.Env = w.server.Env
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("roost open: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// play starts a task whose model writes so many words, each after a pause, and then ends.
func (w *world) play(ctx context.Context, words int, pause time.Duration) (id string, err error) {
	var text strings.Builder
	for i := range words {
		fmt.Fprintf(&text, "word%d ", i)
		if i%12 == 11 {
			text.WriteString("\n")
		}
	}
	script, err := json.Marshal([]map[string]any{{"text": text.String(), "delay": pause.String(),
		"tools": []map[string]any{{"name": "attempt_completion", "input": map[string]any{"result": "It is done."}}}}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(w.dir, fmt.Sprintf("model-%d-%d.yaml", words, pause))
	if err := os.WriteFile(file, script, 0o600); err != nil {
		return "", err
	}
	var made struct{ ID string }
	err = w.ask(ctx, "POST", "/v1/tasks", map[string]any{"workspace": w.work, "provider": "script", "model": file, "message": map[string]any{"text": "Write."}}, &made)
	return made.ID, err
}

// writeTask writes a task as Roo does: prompts, replies with Markdown and code, requests and tool calls.
func writeTask(dir string, n int, at time.Time) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var rows, history []map[string]any
	for i := range n {
		ts := at.UnixMilli() + int64(i)
		row := map[string]any{"ts": ts, "type": "say"}
		role, text := "assistant", ""
		switch i % 6 {
		case 0:
			row["say"], role = "user_feedback", "user"
			text = fmt.Sprintf("Step %d: mend the part of the fence that %d posts hold, and say what it took.", i, i%7+2)
		case 1:
			row["say"] = "api_req_started"
			text = fmt.Sprintf(`{"request":"step %d","tokensIn":%d,"tokensOut":90,"cost":0.01}`, i, 900+i)
		case 3:
			row["type"], row["ask"] = "ask", "tool"
			delete(row, "say")
			text = fmt.Sprintf(`{"tool":"readFile","path":"fence/part%d.go","isOutsideWorkspace":false,"content":"/home/me/fence/part%d.go"}`, i, i)
		default:
			row["say"] = "text"
			text = fmt.Sprintf("I look at **part %d** first.\n\n%s\n\n- the post `%d` is loose\n- the board is not\n\n```go\nfunc mend%d(b Board) error {\n\tif b.Loose {\n\t\treturn b.Nail(%d)\n\t}\n\treturn nil\n}\n```\n",
				i, strings.Repeat("The board leans on the post, and the post on the ground. ", i%9+1), i, i, i)
		}
		row["text"] = text
		rows = append(rows, row)
		history = append(history, map[string]any{"role": role, "content": []map[string]any{{"type": "text", "text": text}}, "ts": ts})
	}
	item := map[string]any{"id": filepath.Base(dir), "number": 1, "ts": at.UnixMilli(), "task": "Mend the fence " + filepath.Base(dir)[:8], "tokensIn": 900, "tokensOut": 90,
		"totalCost": 0.25, "workspace": "/home/me/fence"}
	for name, list := range map[string]any{"ui_messages.json": rows, "api_conversation_history.json": history, "history_item.json": item,
		"task_metadata.json": map[string]any{"files_in_context": []any{}}} {
		data, err := json.Marshal(list)
		file := filepath.Join(dir, name)
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err := errors.Join(err, os.Chtimes(file, at, at)); err != nil {
			return fmt.Errorf("write a task: %w", err)
		}
	}
	return os.Chtimes(dir, at, at)
}
