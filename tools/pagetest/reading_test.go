package pagetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// long writes a task of so many messages into the root, as another program would.
func (h *house) long(n int, say func(i int) string) (id string) {
	h.Helper()
	id = "0199aaaa-0000-7000-8000-00000000" + strconv.Itoa(1000+len(say(0))%9000)
	var rows, history []object
	for i := 1; i <= n; i++ {
		ts := 1760000000000 + i*1000
		rows = append(rows, object{"ts": ts, "type": "say", "say": "text", "text": say(i)})
		role := "assistant"
		if i%2 == 1 {
			role = "user"
		}
		history = append(history, object{"role": role, "content": []object{{"type": "text", "text": say(i)}}, "ts": ts})
	}
	dir := filepath.Join(h.root, "tasks", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.Fatal(err)
	}
	for name, list := range map[string][]object{"ui_messages.json": rows, "api_conversation_history.json": history} {
		data, err := json.Marshal(list)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			h.Fatal(err)
		}
	}
	return id
}

// The log-in link opens the list, once; without it the page says how to get in.
func TestLogIn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	tab := h.loggedIn(phone, "/")
	tab.live()
	tab.sees("the list is open", `document.body.dataset.page === 'history'`)
	stranger := h.browser().open(desktop, "/tasks/none")
	stranger.text("body", "log")
	if got := run[string](stranger, "document.body.dataset.page || ''"); got == "task" || got == "history" {
		t.Errorf("a stranger sees the page %q", got)
	}
}

// The way back to a long task leads to the message that was looked at, although the page has other messages then; who looked
// at the end is at the end.
func TestWayBackToAMessage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.long(500, func(i int) string { return fmt.Sprintf("message %d %s", i, strings.Repeat("of the story ", i%30)) })
	tab := h.loggedIn(phone, "/tasks/"+id)
	tab.live()
	const (
		below = `document.documentElement.scrollHeight - scrollY - innerHeight`
		first = `+document.querySelector('#messages > [data-index]').dataset.index`
		top   = `(e => [+e.dataset.index, e.getBoundingClientRect().top])([...document.querySelectorAll('#messages > [data-index]')].find(e => e.getBoundingClientRect().bottom > 0))`
	)
	away := func() {
		tab.visit("/usage")
		tab.live()
		tab.do("go back", chromedp.NavigateBack())
		tab.live()
	}
	tab.sees("the end is in view", below+" < 3")
	away()
	tab.sees("the end is in view again", below+" < 3")
	for _, far := range []int{400, 300} { // among the messages that a new page has, and before them
		for tries := 0; run[int](tab, first) > far; tries++ {
			before := run[int](tab, first)
			run[bool](tab, `(scrollTo(0, 0), true)`)
			tab.sees("older messages come", fmt.Sprintf("%s < %d", first, before))
		}
		run[bool](tab, fmt.Sprintf(`(document.getElementById('ui-%d').scrollIntoView({block: 'start', behavior: 'instant'}), scrollBy(0, 5), true)`, far+50))
		at := run[[]float64](tab, top)
		away()
		tab.sees("the message is in view", fmt.Sprintf(`(r => r && r.bottom > 0 && r.top < innerHeight)(document.getElementById('ui-%d')?.getBoundingClientRect())`, int(at[0])))
		if now := run[[]float64](tab, top); far == 400 && (now[0] != at[0] || now[1]-at[1] > 2 || at[1]-now[1] > 2) {
			t.Errorf("got message and place %v, want %v", now, at)
		}
	}
}

// Words are found as they are typed, and the hit opens its message.
func TestSearchAndOpenAHit(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.long(300, func(i int) string { return fmt.Sprintf("message %d of the long story, with marker%d in it", i, i) })
	tab := h.loggedIn(desktop, "/")
	tab.live()
	tab.press("#q")
	tab.types("marker47")
	tab.text("main .hits", "marker47")
	tab.sees("the words are in the address", `location.search.includes('q=marker47')`)
	const orders = `[...document.querySelectorAll('[name=sort] option')].map(e => e.innerText).join()`
	tab.sees("the orders are those of a search", orders+` === 'relevance,newest'`)
	tab.keys("x")
	tab.sees("nothing fits", `document.querySelector('.empty')`)
	run[bool](tab, `(e => { e.value = ''; e.dispatchEvent(new Event('input', {bubbles: true})); return true })(document.activeElement)`)
	tab.sees("the orders are those of the list", orders+` === 'newest,oldest,cost,tokens'`)
	tab.types("marker47")
	tab.text("main .hits", "marker47")
	tab.press("main .hits a")
	tab.sees("the message is in view", `(e => e && e.getBoundingClientRect().top >= 0 && e.getBoundingClientRect().bottom <= innerHeight)(document.getElementById('ui-47'))`)
	if !strings.HasPrefix(tab.path(), "/tasks/"+id) {
		t.Errorf("got %s, want the task", tab.path())
	}
}

// A title is cut as the server cuts it, also where a script shows it: that of many a task is all of its first message.
func TestLongTitlesAreCut(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task(asksColour, "paint the fence "+strings.Repeat("and more ", 1000), nil)
	h.wait(task, "waiting")
	tab := h.loggedIn(phone, "/")
	tab.live()
	tab.armed()
	if n := run[int](tab, `document.querySelector('article[data-question] header a').innerText.length`); n > 201 {
		t.Errorf("the title of a question has %d characters, want at most 201", n)
	}
	tab.visit("/tasks/" + task)
	tab.live()
	tab.sees("the page knows its title", `document.querySelector('#composer [data-does=model]:not([hidden])')`)
	if n := run[int](tab, `document.querySelector('.taskhead h1').innerText.length`); n > 201 {
		t.Errorf("the title of the task has %d characters, want at most 201", n)
	}
	if got := run[string](tab, "document.title"); len(got) > 230 {
		t.Errorf("got the title of the page %q, want a short one", got)
	}
}

// Where large messages come a few at a time, the page comes to the end of the task from a message in its middle.
func TestPageForwardThroughLargeMessages(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.long(60, func(i int) string {
		return fmt.Sprintf("message %d\n\n%s", i, strings.Repeat("It goes on and on. ", 2000))
	})
	tab := h.loggedIn(desktop, "/tasks/"+id+"?at=5#ui-5")
	tab.live()
	tab.sees("the end comes", `(scrollTo({top: document.body.scrollHeight, behavior: 'instant'}), document.getElementById('ui-60'))`)
}

// A long task opens at its end. Older messages come when the top is near, and what is in view stays where it is.
func TestPageBack(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]size{"desktop": desktop, "phone": phone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			id := h.long(500, func(i int) string {
				return fmt.Sprintf("message %d of the story\n\n%s", i, strings.Repeat("It goes on and on. ", i%17))
			})
			tab := h.loggedIn(s, "/tasks/"+id)
			tab.live()
			tab.sees("the end is in view", `(e => e && e.getBoundingClientRect().top < innerHeight)(document.getElementById('ui-500'))`)
			first := `+document.querySelector('#messages > [data-index]').dataset.index`
			moved := run[float64](tab, `new Promise(done => {
				const list = document.getElementById('messages'), row = list.children[3];
				row.scrollIntoView({block: 'start', behavior: 'instant'});
				let before = row.getBoundingClientRect().top, most = 0, frames = 0;
				const look = () => {
					most = Math.max(most, Math.abs(row.getBoundingClientRect().top - before));
					if (list.children[3] !== row && ++frames > 10) done(most); else requestAnimationFrame(look);
				};
				look();
			})`)
			if moved > 1 {
				t.Errorf("the message in view moved by %.1f pixels, want at most 1", moved)
			}
			run[bool](tab, `(self.met = new Set(), self.note = () => document.querySelectorAll('#messages > [data-index]').forEach(e => met.add(e.dataset.index)), note(),
				new MutationObserver(note).observe(document.getElementById('messages'), {childList: true}), true)`)
			for tries := 0; run[int](tab, first) > 1; tries++ {
				if tries > 40 {
					t.Fatalf("the first message that is loaded is %d", run[int](tab, first))
				}
				before := run[int](tab, first)
				run[bool](tab, `(scrollTo(0, 0), true)`)
				tab.sees("older messages come", fmt.Sprintf("%s < %d || %s === 1", first, before, first))
			}
			if n := run[int](tab, "met.size"); n != 500 {
				t.Errorf("got %d messages on the way back, want 500", n)
			}
			rows := `document.querySelectorAll('#messages > [data-index]').length`
			if n := run[int](tab, rows); n > 400 {
				t.Errorf("the page holds %d messages, want those near the view", n)
			}
			run[bool](tab, `(met.clear(), note(), true)`)
			last := `+[...document.querySelectorAll('#messages > [data-index]')].at(-1).dataset.index`
			for tries := 0; run[int](tab, last) < 500; tries++ {
				if tries > 40 {
					t.Fatalf("the last message that is loaded is %d", run[int](tab, last))
				}
				before := run[int](tab, last)
				run[bool](tab, `(scrollTo(0, document.scrollingElement.scrollHeight), true)`)
				tab.sees("newer messages come", fmt.Sprintf("%s > %d", last, before))
			}
			if n := run[int](tab, "met.size"); n != 500 {
				t.Errorf("got %d messages on the way forth, want 500", n)
			}
			if n := run[int](tab, rows); n > 400 {
				t.Errorf("the page holds %d messages, want those near the view", n)
			}
			run[bool](tab, `(scrollTo(0, 0), true)`)
			tab.sees("older messages come again", first+" < 200")
			run[bool](tab, `(location.hash = '#ui-400', true)`)
			tab.sees("a message that is not loaded is in view", `(e => e && e.getBoundingClientRect().top >= 0 && e.getBoundingClientRect().bottom <= innerHeight)(document.getElementById('ui-400'))`)
			tab.live()
			tab.keys("G")
			tab.sees("the end is in view", `(e => e && e.getBoundingClientRect().top < innerHeight)(document.getElementById('ui-500'))`)
		})
	}
}

// hostile is text that would do harm if the page let it.
const hostile = "\u202eturned\u200b " + `<script>alert(1)</script><img src=x onerror=alert(2)><img src="https://evil.example/x.png">
<svg onload=alert(3)><a xlink:href="javascript:alert(4)">x</a></svg> [click](javascript:alert(5)) ![p](https://evil.example/y.png)
<iframe src="https://evil.example"></iframe><form action="https://evil.example"><input autofocus onfocus=alert(6)></form>
<style>@import "https://evil.example/z.css";</style><b style="background:url(https://evil.example/b)">bold</b> <base href="https://evil.example/">
</li></ol></main><h1 id=title>taken over</h1><meta http-equiv=refresh content="0;url=https://evil.example">`

// Hostile text of a model, a tool, a title and a question runs nothing, asks nobody and stays in its box.
func TestHostileTextRunsNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	script, err := json.Marshal([]object{
		{"text": hostile, "delay": "5ms", "tools": []object{{"name": "ask_followup_question", "input": object{"question": hostile, "follow_up": []object{{"text": hostile, "mode": nil}}}}}},
		{"tools": []object{{"name": "attempt_completion", "input": object{"result": hostile}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	task := h.task(string(script), hostile, object{"title": strings.Join(strings.Fields(hostile), " ")[:200]})
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.armed()
	tab.text("#questions", "alert(1)")
	for _, part := range []string{"#questions .asks", "#questions [data-key]", ".taskhead h1", "#messages"} {
		tab.text(part, "⟦U+202E⟧turned⟦U+200B⟧")
	}
	if got := run[string](tab, `[...document.body.innerText.matchAll(/[\u202e\u200b\x1b]/g)].map(m => m.input.slice(m.index - 40, m.index + 40)).join('\n')`); got != "" {
		t.Errorf("the page shows characters that hide: %q", got)
	}
	tab.press(`article[data-question] [data-key="1"]`)
	tab.text("#activity", "Completed")
	tab.text("#messages", "alert(3)")
	if got := run[string](tab, `[...document.querySelectorAll('#messages script, #messages iframe, #messages form, #messages style, #messages base, #messages meta, #messages [onload], #messages [onerror], #messages [style], #messages a[href^="javascript"], #messages img[src^="http"]')].map(e => e.outerHTML).join('\n')`); got != "" {
		t.Errorf("the page holds %s", got)
	}
	tab.visit("/?q=evil")
	tab.live()
	tab.text("main", "evil")
	tab.visit("/")
	tab.live()
	tab.text("main .rows", "alert(1)")
}

// Who reads older messages keeps their place when the end of the task is taken back and comes again.
func TestReadingStaysOverARewind(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.long(300, func(i int) string { return fmt.Sprintf("message %d %s", i, strings.Repeat("of the story ", i%30)) })
	tab := h.loggedIn(phone, "/tasks/"+id)
	tab.live()
	tab.sees("the end is in view", "document.documentElement.scrollHeight - scrollY - innerHeight < 3")
	const place = `document.getElementById('ui-235')?.getBoundingClientRect().top ?? -1e6`
	run[bool](tab, `(document.getElementById('ui-235').scrollIntoView({block: 'center', behavior: 'instant'}), true)`)
	before := run[float64](tab, place)
	for _, c := range []struct {
		act  string
		body object
		gone bool
	}{{"rewinds", object{"to": "#299"}, true}, {"undo", object{}, false}} {
		h.ask("POST", "/v1/tasks/"+id+"/"+c.act, c.body, nil)
		tab.sees("the page follows", fmt.Sprintf("!document.getElementById('ui-299') === %t", c.gone))
		if got := run[float64](tab, place); got-before > 1 || before-got > 1 {
			t.Errorf("after %s the message that was read is at %.0f pixels, want %.0f", c.act, got, before)
		}
	}
}
