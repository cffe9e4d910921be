package pagetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write writes a task as another program would: its stored rows, the model's messages and what its list shows.
func (h *house) write(id string, rows []object, item object) {
	h.Helper()
	var history []object
	for i, r := range rows {
		r["ts"] = 1760000000000 + i
		role := "assistant"
		if i == 0 {
			role = "user"
		}
		if text, ok := r["text"].(string); ok && i < 200 {
			history = append(history, object{"role": role, "content": []object{{"type": "text", "text": text}}, "ts": r["ts"]})
		}
	}
	if item == nil {
		item = object{}
	}
	item["id"], item["ts"] = id, 1760000000000
	dir := filepath.Join(h.root, "tasks", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.Fatal(err)
	}
	for name, v := range map[string]any{"ui_messages.json": rows, "api_conversation_history.json": history, "history_item.json": item} {
		data, err := json.Marshal(v)
		if err == nil {
			data = []byte(strings.ReplaceAll(string(data), "BROKEN", "half \xff\xc3\x28 \xed\xa0\x80 \xf5"))
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			h.Fatal(err)
		}
	}
}

// answers fails unless the page answers a key within 100 ms. A machine that is busy with other tests may need more than
// one try; a page that is busy is busy each time.
func (t *tab) answers(what string) {
	t.Helper()
	best := 1e9
	for range 5 {
		run[bool](t, `(self.answered = new Promise(done => addEventListener('keydown', e => requestAnimationFrame(function look(now) {
			if (document.querySelector('dialog#keys')) done(now - e.timeStamp); else requestAnimationFrame(look);
		}), {capture: true, once: true})), true)`)
		t.keys("?")
		best = min(best, run[float64](t, "answered"))
		t.keys(escape)
		t.gone("dialog#keys")
		if best <= 100 {
			return
		}
	}
	t.Errorf("%s answers a key after %.0f ms, want at most 100", what, best)
}

// inert fails for each element that text of a task became.
func (t *tab) inert(what string) {
	t.Helper()
	if got := run[string](t, `[...document.querySelectorAll('main script, main iframe, main object, main embed, main style, main link, main base, main meta, #messages form, #messages input, #messages svg, #messages [style], main a[href^="javascript" i], main img:not([src^="/v1/"])')]
		.concat([...document.querySelectorAll('main *')].filter(e => e.getAttributeNames().some(n => n.startsWith('on')))).map(e => e.outerHTML.slice(0, 200)).join('\n')`); got != "" {
		t.Errorf("%s holds %s", what, got)
	}
	if run[bool](t, "self.harm === true") {
		t.Errorf("%s ran a script of a task", what)
	}
}

// Whatever a task holds, its pages run nothing of it, ask nobody, answer a key at once, and name what they leave out.
// The corpus is made here; web/hostile_test.go has more texts, without a browser.
func TestHostileCorpus(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	say := func(text string) object { return object{"type": "say", "say": "text", "text": text} }
	var rows []object
	for _, text := range []string{
		hostile, `<script>self.harm = true</script>`, `<img src=x onerror="harm=true">`, "[x](javascript:harm=true)", "![x](javascript:harm=true)",
		"<svg><script>harm=true</script><use href=\"data:image/svg+xml,<svg onload=harm=true>#x\"/></svg>", "<a href=\"JaVaScRiPt:harm=true\">x</a>",
		"```html\n<script>harm=true</script>\n```", "<details open ontoggle=harm=true>", "<math><mtext></mtext><mglyph><style><img src=x onerror=harm=true>",
	} {
		rows = append(rows, say(text), object{"type": "ask", "ask": "command", "text": text}, object{"type": "say", "say": "command_output", "text": text},
			object{"type": "ask", "ask": "tool", "text": fmt.Sprintf(`{"tool":"appliedDiff","path":%q,"diff":%q}`, text, text)}, object{"type": text, "say": text, "text": text})
	}
	h.write("markup", rows, object{"task": hostile, "workspace": `"><img src=x onerror=harm=true>`, "mode": hostile})
	h.write("controls", []object{say("\x1b[31mred\x1b]8;;https://evil.example\x07link\x1b]8;;\x07 \u202ereversed\u202c \u2066isolate\u2069 zero\u200bwidth\ufeff \u2028 end"), say("bell\x07 nul\x00")},
		object{"task": "\u202egnp.exe \u200btitle"})
	h.write("broken", []object{say("BROKEN text"), say("BROKEN again")}, nil)
	h.write("block", []object{say("first"), say("```go\n" + strings.Repeat("func f() { return }\n", 20<<20/20) + "```\n")}, nil)
	h.write("line", []object{say("first"), say(strings.Repeat("x", 13<<20)), {"type": "say", "say": "command_output", "text": strings.Repeat("word ", 13<<20/5)}}, nil)
	rows = []object{say("Look into each.")}
	for i := range 10_000 {
		rows = append(rows, object{"type": "ask", "ask": "tool", "text": fmt.Sprintf(`{"tool":"readFile","path":"f%d.go","content":"f%d.go"}`, i, i)})
	}
	h.write("calls", rows, nil)
	pictures := say("look")
	pictures["images"] = []string{"data:image/png;base64,bm8gcGljdHVyZQ==", "data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+", "javascript:harm=true", "https://evil.example/x.png", "data:text/html,<script>harm=true</script>"}
	h.write("pictures", []object{pictures}, nil)

	tab := h.loggedIn(desktop, "/")
	tab.live()
	tab.inert("the history")
	tab.answers("the history")
	left := map[string][]string{ // what a page says of what it leaves out
		"controls": {"U+202E", "U+200B", "U+0007"}, "broken": {"\ufffd"}, "block": {"left out"}, "line": {"left out"}, "pictures": {"picture"},
	}
	for _, id := range []string{"markup", "controls", "broken", "block", "line", "calls", "pictures"} {
		for _, view := range []string{"", "?raw=1", "?view=effective", "?find=harm"} {
			path := "/tasks/" + id + view
			tab.visit(path)
			tab.live()
			run[int](tab, `[...document.querySelectorAll('#messages details')].slice(-200).map(d => d.open = true).length`)
			tab.inert(path)
			tab.answers(path)
			if view == "" {
				for _, words := range left[id] {
					tab.sees(path+" names "+words, fmt.Sprintf("document.getElementById('messages').textContent.toLowerCase().includes(%q.toLowerCase())", words))
				}
			}
		}
	}
	tab.visit("/tasks/calls")
	tab.live()
	before := run[int](tab, `+document.querySelector('#messages > [data-index]').dataset.index`)
	for range 5 {
		run[bool](tab, `(scrollTo(0, 0), true)`)
		tab.sees("older calls come", fmt.Sprintf(`+document.querySelector('#messages > [data-index]').dataset.index < %d`, before))
		before = run[int](tab, `+document.querySelector('#messages > [data-index]').dataset.index`)
	}
	tab.answers("a page of 10,000 calls")
}
