package pagetest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// words are n different words.
func words(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("word%d", i+1))
	}
	return strings.Join(out, " ")
}

// slowly is a script whose model writes so many words, each after a moment, and is done.
func slowly(n int) string {
	return fmt.Sprintf("- {text: %q, delay: 20ms}\n- tools: [{name: attempt_completion, input: {result: The end is reached.}}]\n", words(n))
}

// writing opens a task whose model begins to write so many words when the page is live.
func writing(t *testing.T, n int) (*house, string, *tab) {
	t.Helper()
	return writingAt(t, desktop, n)
}

func writingAt(t *testing.T, s size, n int) (*house, string, *tab) {
	t.Helper()
	h, task, tab := asked(t, s, "- tools: [{name: ask_followup_question, input: {question: Ready?, follow_up: [{text: go on, mode: null}]}}]\n"+slowly(n))
	tab.press(`article[data-question] [data-key="1"]`)
	tab.text("#live .streaming", "word1 word2")
	return h, task, tab
}

// A screen reader hears what the model wrote once it is whole, and not each piece of it.
func TestReplyIsSpokenOnce(t *testing.T) {
	t.Parallel()
	_, _, tab := writing(t, 150)
	run[bool](tab, `(self.heard = [], new MutationObserver(list => list.forEach(m => { const e = m.target.nodeType === 1 ? m.target : m.target.parentElement;
		if (e?.closest('[aria-live], [role=status], [role=log], [role=alert]')) heard.push(e.textContent) })).observe(document.body, {childList: true, characterData: true, subtree: true}), true)`)
	tab.text("#messages", "The end is reached.")
	tab.sees("the last message is spoken", `heard.some(t => t.includes('The end is reached.'))`)
	heard := run[[]string](tab, "heard")
	if len(heard) > 15 {
		t.Errorf("got %d things to speak, want few: %.60q", len(heard), heard)
	}
	if n := strings.Count(strings.Join(heard, "\n"), "word150"); n != 1 {
		t.Errorf("got the end of the reply spoken %d times, want once", n)
	}
}

// Text comes as the model writes it, grows, and makes room for the rendered message.
func TestTextComesLive(t *testing.T) {
	t.Parallel()
	_, task, tab := writing(t, 150)
	short := run[int](tab, `document.querySelector('#live .streaming .body').textContent.length`)
	tab.sees("it grows", fmt.Sprintf(`document.querySelector('#live .streaming .body')?.textContent.length > %d`, short))
	tab.text("#messages", "word150")
	tab.gone("#live .streaming")
	tab.text("#messages", "The end is reached.")
	tab.text("#activity", "Completed")
	tab.asAnew(task)
}

// A small phone follows what is written, although the buttons of the run and the words of the person take more room.
func TestPhoneFollows(t *testing.T) {
	t.Parallel()
	const below = `document.documentElement.scrollHeight - scrollY - innerHeight`
	h := newHouse(t)
	task := h.task("- {text: first reply}\n"+finishes+"\n"+slowly(300), "paint"+strings.Repeat(" the fence", 300), object{"approve": "all"})
	h.wait(task, "completed")
	tab := h.loggedIn(size{360, 740}, "/tasks/"+task)
	tab.live()
	tab.sees("the end is in view", "document.querySelector('#activity').textContent === 'Completed' && "+below+" < 3")
	tab.press("#words")
	tab.types("one\ntwo\nthree\nfour\nfive")
	tab.sees("the end stays in view above what is written", below+" < 3")
	h.ask("POST", "/v1/tasks/"+task+"/messages", object{"text": "go on"}, nil)
	tab.text("#live .streaming", "word30")
	if got := run[int](tab, below); got > 60 {
		t.Errorf("got %d pixels below the window, want none", got)
	}
}

// An answer about the state of the task that is older than an event does not hide what the event said.
func TestStateIsTheNewest(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: ask_followup_question, input: {question: Ready?, follow_up: [{text: go on, mode: null}]}}]\n"+slowly(300), "paint", nil)
	h.wait(task, "waiting")
	tab := h.loggedIn(desktop, "/").openAfter(`{ const real = fetch; self.fetch = async (...a) => { const answer = await real(...a);
		if (String(a[0]).endsWith('/tasks/roost%3A`+task+`') && !self.release) await new Promise(done => self.release = done); return answer; } }`, "/tasks/"+task)
	tab.live()
	tab.armed()
	tab.sees("the state waits", "self.release")
	tab.press(`article[data-question] [data-key="1"]`)
	tab.text("#live .streaming", "word1 word2")
	run[bool](tab, "(release(), true)")
	tab.do("let the page read it", chromedp.Sleep(300*time.Millisecond))
	if got := run[string](tab, "document.querySelector('#activity').textContent"); got != "Writes …" {
		t.Errorf("got %q, want that the model writes", got)
	}
	if run[bool](tab, "document.querySelector('#interrupt').hidden") {
		t.Error("nothing interrupts the run that writes")
	}
}

// A cut of the network loses nothing of what is streamed, shows nothing twice, and the page says that it is not live.
func TestNetworkIsCut(t *testing.T) {
	t.Parallel()
	h, task, tab := writing(t, 400)
	h.relay.cut()
	tab.text("#live-state", "does not answer")
	at := run[int](tab, `document.querySelector('#live .streaming .body').textContent.length`)
	h.relay.mend()
	tab.live()
	tab.sees("it says no more that it is not", `document.querySelector('#live-state').textContent === ''`)
	tab.sees("the text goes on", fmt.Sprintf(`document.querySelector('#live .streaming .body')?.textContent.length > %d`, at+100))
	if got, all := run[string](tab, `document.querySelector('#live .streaming .body').textContent`), words(400); !strings.HasPrefix(all, got) {
		t.Errorf("got %q, which %q does not begin with", got, all)
	}
	tab.text("#messages", "The end is reached.")
	tab.asAnew(task)
}

// A server that is killed and started again under a live stream: the page goes on without a gap or a repeat.
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	h, task, tab := writing(t, 150)
	h.kill()
	tab.text("#live-state", "does not answer")
	h.start()
	tab.live()
	tab.sees("it says no more that it is not", `document.querySelector('#live-state').textContent === ''`)
	tab.text("#activity", "Interrupted")
	tab.press("#retry")
	tab.text("#messages", "The end is reached.")
	tab.text("#activity", "Completed")
	if n := run[int](tab, `new Set([...document.querySelectorAll('#messages > [data-index]')].map(e => e.dataset.index)).size - document.querySelectorAll('#messages > [data-index]').length`); n != 0 {
		t.Errorf("%d messages are shown twice", -n)
	}
	tab.asAnew(task)
}

// Two tabs share one stream, and both are live; a task that a program starts appears in the list.
func TestTabsShareTheStream(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	first := h.loggedIn(desktop, "/")
	first.live()
	var tabs []*tab
	for range 7 { // a browser opens six connections to a server
		tabs = append(tabs, first.open(desktop, "/"))
	}
	h.task("- tools: [{name: attempt_completion, input: {result: done}}]", "paint the old fence", nil)
	for _, tab := range append(tabs, first) {
		tab.live()
		tab.text("main .rows", "paint the old fence")
	}
	var server struct{ Streams int }
	h.ask("GET", "/v1/server", nil, &server)
	if server.Streams != 1 {
		t.Errorf("got %d streams of %d tabs, want 1", server.Streams, len(tabs)+1)
	}
}

// Where a browser has no shared worker, one tab has the stream and passes it on; when that one is closed, another does.
func TestTabsShareTheStreamWithoutAWorker(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.browser()
	p.open(desktop, h.login)
	first := p.openWithout("SharedWorker", "/")
	first.live()
	second := p.openWithout("SharedWorker", "/")
	second.live()
	first.visit("/healthz")
	h.task("- tools: [{name: attempt_completion, input: {result: done}}]", "paint the new fence", nil)
	second.text("main .rows", "paint the new fence")
}

// An idle page wakes for nothing but what the server sends: it has no timer of its own.
func TestIdlePageSleeps(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: attempt_completion, input: {result: done}}]", "rest", nil)
	h.wait(task, "completed")
	p := h.browser()
	p.open(desktop, h.login).live()
	tab := p.openCounting("/tasks/" + task)
	tab.live()
	tab.text("#activity", "Completed")
	time.Sleep(time.Second)
	before := run[int](tab, "counted.timers")
	time.Sleep(3 * time.Second)
	if after := run[int](tab, "counted.timers"); after != before {
		t.Errorf("got %d timers in 3 seconds of an idle page, want none", after-before)
	}
}

// A running command shows what it prints.
func TestToolOutputComesLive(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: execute_command, input: {command: 'echo one; sleep 2; echo two; sleep 1'}}]\n"+
		"- tools: [{name: attempt_completion, input: {result: done}}]", "run it", object{"approve": "ask"})
	h.wait(task, "waiting")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.armed()
	tab.press(`article[data-question] [data-does=approve]`)
	tab.text("#activity", "execute_command")
	tab.text("#live", "one")
	run[bool](tab, `(self.link = document.querySelector('#messages .tool header a'), link.focus(), true)`)
	tab.text("#live", "two")
	tab.gone("#live .streaming")
	tab.text("#messages", "two")
	tab.sees("the message of the tool changed, and keeps the focus", `!link.isConnected && document.activeElement.matches('#messages .tool a')`)
	tab.asAnew(task)
}

// The draft of a message survives a reload.
func TestDraftSurvives(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: attempt_completion, input: {result: done}}]", "first", nil)
	h.wait(task, "completed")
	tab := h.loggedIn(phone, "/tasks/"+task)
	tab.press("#words")
	tab.types("words that are\nnot sent yet")
	tab.visit("/")
	tab.visit("/tasks/" + task)
	tab.sees("the draft is there", `document.querySelector('#words').value === 'words that are\nnot sent yet'`)
}

// Words that cannot be sent stay in the field, and are taken once when they are sent again.
func TestWordsSurviveACut(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: attempt_completion, input: {result: done}}]\n- tools: [{name: attempt_completion, input: {result: done again}}]", "first", nil)
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	h.relay.cut()
	tab.press("#words")
	tab.types("and now this")
	tab.keys(enter)
	tab.text("#notes", "does not answer")
	h.relay.mend()
	tab.live()
	tab.press("#words")
	tab.keys(enter)
	tab.text("#messages", "done again")
	if n := run[int](tab, `document.querySelector('#messages').innerText.split('and now this').length - 1`); n != 1 {
		t.Errorf("got the words %d times, want once", n)
	}
}

// When the connection is back, the page loads the older messages and the facts that it could not get, without another scroll.
func TestOlderMessagesComeAfterACut(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.long(500, func(i int) string { return fmt.Sprintf("message %d of the story", i) })
	tab := h.loggedIn(desktop, "/tasks/"+id)
	tab.live()
	const first = `+document.querySelector('#messages > [data-index]').dataset.index`
	tab.sees("the end is in view", `(e => e && e.getBoundingClientRect().top < innerHeight)(document.getElementById('ui-500'))`)
	h.relay.cut()
	tab.sees("the page is not live", `document.body.dataset.live === 'false'`)
	before := run[int](tab, first)
	run[bool](tab, `(scrollTo(0, 0), true)`)
	tab.do("wait for the refusal", chromedp.Sleep(time.Second))
	h.relay.mend()
	tab.live()
	tab.sees("older messages come", fmt.Sprintf("%s < %d", first, before))
	h.ask("PATCH", "/v1/tasks/"+id, object{"title": "Another story", "tags": []string{"told"}}, nil)
	tab.text(".taskhead h1", "Another story")
	h.relay.cut() // before the page asks for what stands above the messages
	tab.do("wait for the refusal", chromedp.Sleep(1500*time.Millisecond))
	h.relay.mend()
	tab.text(".taskhead .facts", "told")
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A page that the browser has frozen, as on a phone that sleeps, shows what happened meanwhile once it is looked at again.
func TestPageIsFrozen(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: attempt_completion, input: {result: The first end.}}]\n"+
		"- tools: [{name: attempt_completion, input: {result: The second end.}}]", "first", nil)
	h.wait(task, "completed")
	tab := h.loggedIn(phone, "/tasks/"+task)
	tab.live()
	tab.do("freeze the page", command(page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: page.SetWebLifecycleStateStateFrozen}))
	h.ask("POST", "/v1/tasks/"+task+"/messages", object{"text": "and then"}, nil)
	h.relay.cut()
	h.wait(task, "completed")
	h.until("the second run has ended", func() bool {
		var list struct{ Items []object }
		h.ask("GET", "/v1/tasks/"+task+"/runs", nil, &list)
		return len(list.Items) == 2 && list.Items[0]["state"] == "completed"
	})
	h.relay.mend()
	tab.do("look at the page again", command(page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: page.SetWebLifecycleStateStateActive}))
	tab.text("#messages", "The second end.")
	tab.asAnew(task)
}

// A connection that is dead without an end is noticed by its silence. The test holds the clock: the browser notes the
// timers of 25 seconds and the limits of requests, and the test lets them pass.
func TestConnectionStalls(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: attempt_completion, input: {result: The first end.}}]\n"+
		"- tools: [{name: attempt_completion, input: {result: The second end.}}]", "first", nil)
	h.wait(task, "completed")
	p := h.browser()
	p.open(desktop, h.login).live()
	tab := p.openAfter(`delete self.SharedWorker; self.waits = new Map(); self.armed = 0; const set = self.setTimeout, clear = self.clearTimeout;
		self.setTimeout = (f, ms, ...a) => { if (ms !== 25_000) return set(f, ms, ...a); armed++; const id = {}; waits.set(id, f); return id; };
		self.clearTimeout = id => waits.delete(id) || clear(id);
		AbortSignal.timeout = () => { const c = new AbortController(); waits.set({}, () => c.abort(new DOMException('', 'TimeoutError'))); return c.signal; };
		self.pass = () => { const all = [...waits.values()]; waits.clear(); for (const f of all) f(); return all.length > 0; }`, "/tasks/"+task)
	tab.live()
	tab.text("#activity", "Completed")
	before := run[int](tab, "armed")
	h.ask("PATCH", "/v1/tasks/"+task, object{"title": "Another title"}, nil)
	tab.text(".taskhead h1", "Another title")
	if run[int](tab, "armed") == before {
		t.Error("the silence is not counted anew after the server has sent something")
	}
	h.relay.stall()
	tab.press("[data-does=rename]") // asks for the title
	pass := func(what, holds string) {
		h.until(what, func() bool { // each connection of before that a request takes is dead, and there may be six
			run[bool](tab, "pass()")
			for range 20 { // for the requests that this lets the page send, on a busy machine too
				if run[bool](tab, "!!("+holds+")") {
					return true
				}
				time.Sleep(100 * time.Millisecond)
			}
			return false
		})
	}
	pass("the dialog is there", "document.querySelector('dialog[open]')")
	tab.keys(escape)
	tab.gone("dialog")
	h.relay.stall()
	h.ask("POST", "/v1/tasks/"+task+"/messages", object{"text": "and then"}, nil)
	h.until("the second run has ended", func() bool {
		var list struct{ Items []object }
		h.ask("GET", "/v1/tasks/"+task+"/runs", nil, &list)
		return len(list.Items) == 2 && list.Items[0]["state"] == "completed"
	})
	if run[bool](tab, `document.getElementById('messages').textContent.includes('The second end.')`) {
		t.Fatal("the page shows what no connection brought")
	}
	pass("the page shows the end", `document.getElementById('messages').textContent.includes('The second end.')`)
	tab.live()
	tab.asAnew(task)
}

// When the log-in ends the page says so, keeps what was typed, and goes on when there is another one.
func TestLogInEnds(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: attempt_completion, input: {result: done}}]", "first", nil)
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.press("#words")
	tab.types("not lost")
	tab.do("forget the log-in", command(network.ClearBrowserCookies, cdp.Empty{}))
	tab.keys(enter)
	tab.text("#notes", "log-in has ended")
	h.relay.cut()
	h.relay.mend()
	tab.text("#live-state", "log-in has ended")
	tab.sees("the words are there", `document.querySelector('#words').value === 'not lost'`)
	// A log-in in another tab is seen: that tab is live, and so is this one.
	var link struct {
		URL string `json:"login_url"`
	}
	h.ask("POST", "/v1/server/logins", nil, &link)
	_, path, _ := strings.Cut(link.URL, h.listen)
	tab.profile.open(desktop, path).live()
	tab.live()
	tab.keys(enter)
	tab.text("#messages", "not lost")
}

// A task that is deleted while its page is open is said to be gone.
func TestTaskIsDeletedWhileOpen(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: attempt_completion, input: {result: done}}]", "first", nil)
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	h.ask("DELETE", "/v1/tasks/"+task, nil, nil)
	tab.text("#notes", "was deleted")
	tab.press("#notes button")
	tab.sees("the list is open", `document.body.dataset.page === 'history'`)
}

// Who deletes a task on its page can take that back there.
func TestDeletedOnItsPageComesBack(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: attempt_completion, input: {result: done}}]", "first", nil)
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	h.ask("PATCH", "/v1/tasks/"+task, object{"pinned": true}, nil) // what the page asks for it a moment later has no answer
	tab.keys("#")
	tab.text("#notes", "“first” is in the trash")
	tab.do("let the events come", chromedp.Sleep(1500*time.Millisecond))
	tab.press("#notes button")
	tab.text("#notes", "is back")
	h.wait(task, "completed")
	tab.keys("#")
	tab.press("#notes a")
	tab.sees("the list is open", `document.body.dataset.page === 'history'`)
}

// The to-do list stands beside the messages, and follows them, also where its message is far above.
func TestTodoListFollows(t *testing.T) {
	t.Parallel()
	_, _, tab := asked(t, desktop, `
- tools: [{name: update_todo_list, input: {todos: "[-] posts\n[ ] boards"}}]
- tools: [{name: ask_followup_question, input: {question: Go on?, follow_up: [{text: go on, mode: null}]}}]
- tools: [{name: update_todo_list, input: {todos: "[x] posts\n[-] boards"}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`)
	tab.text("#todo", "0 of 2")
	tab.text("#todo .in_progress", "posts")
	tab.press(`article[data-question] [data-key="1"]`)
	tab.text("#todo", "1 of 2")
	tab.text("#todo .in_progress", "boards")
	h := tab.house
	rows := []object{{"type": "say", "say": "text", "text": "paint"},
		{"type": "ask", "ask": "tool", "text": `{"tool":"updateTodoList","todos":[{"id":"1","content":"posts","status":"completed"},{"id":"2","content":"","status":"pending"}]}`}}
	for i := range 120 {
		rows = append(rows, object{"type": "say", "say": "text", "text": fmt.Sprint("message ", i)})
	}
	h.write("0199aaaa-0000-7000-8000-000000000007", rows, nil)
	tab.visit("/tasks/0199aaaa-0000-7000-8000-000000000007")
	tab.text("#todo", "1 of 2") // although its message is not among those that the page shows
}
