package pagetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

const asksColour = `
- tools: [{name: ask_followup_question, input: {question: Which colour?, follow_up: [{text: red, mode: null}, {text: green, mode: null}]}}]
- tools: [{name: attempt_completion, input: {result: It is painted.}}]
`

const writesFile = `
- tools: [{name: write_to_file, input: {path: fence.txt, content: "red paint\n"}}]
- tools: [{name: attempt_completion, input: {result: It is written.}}]
`

// asked starts a task that asks, and opens it.
func asked(t *testing.T, s size, script string) (*house, string, *tab) {
	t.Helper()
	h := newHouse(t)
	task := h.task(script, "paint the fence", object{"approve": "ask"})
	h.wait(task, "waiting")
	tab := h.loggedIn(s, "/tasks/"+task)
	tab.live()
	tab.armed()
	return h, task, tab
}

// A question is answered by a suggestion: on a phone that is one tap.
func TestAnswerBySuggestion(t *testing.T) {
	t.Parallel()
	_, task, tab := asked(t, phone, asksColour)
	tab.text("#questions", "Which colour?")
	tab.press(`article[data-question] [data-key="2"]`)
	tab.text("#messages", "It is painted.")
	tab.text("#messages", "green")
	tab.asAnew(task)
}

// A question is answered in own words.
func TestAnswerByWords(t *testing.T) {
	t.Parallel()
	_, _, tab := asked(t, desktop, asksColour)
	tab.press("article[data-question] textarea")
	tab.types("a warm blue")
	tab.keys(enter)
	tab.text("#messages", "a warm blue")
	tab.text("#messages", "It is painted.")
	if got := run[string](tab, "document.querySelector('#words').value + localStorage.getItem('roost-answers')"); got != "{}" {
		t.Errorf("got %q left of the answer, want nothing", got)
	}
}

// An answer reaches the server, and the confirmation is lost: who presses again hears of no other person who was faster.
func TestAnswerWhoseConfirmationIsLost(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task(asksColour, "paint the fence", object{"approve": "ask"})
	h.wait(task, "waiting")
	// No event comes before the second press.
	tab := h.loggedIn(desktop, "/").openAfter(`delete self.SharedWorker; delete self.BroadcastChannel; { const real = fetch; self.fetch = async (path, o) => {
		const lost = String(path).endsWith('/answer') && !self.lost && (self.lost = true), answer = await real(path, o);
		if (String(path).endsWith('/answer')) self.answers = (self.answers || 0) + 1;
		if (lost) throw new TypeError('Failed to fetch');
		if (path !== '/v1/events') return answer;
		const held = new TransformStream({ async transform(piece, to) { if (self.lost && !self.free) await new Promise(done => self.release = done); to.enqueue(piece); } });
		return new Response(answer.body.pipeThrough(held), { status: answer.status }); } }`, "/tasks/"+task)
	tab.live()
	tab.armed()
	tab.press(`article[data-question] [data-key="1"]`)
	tab.text("#notes", "does not answer")
	h.wait(task, "completed")
	run[bool](tab, "(document.querySelector('#notes .note').remove(), true)")
	tab.press(`article[data-question] [data-key="1"]`)
	tab.sees("the second answer is there, and an event waits", "self.answers === 2 && self.release")
	tab.do("let the page read it", chromedp.Sleep(300*time.Millisecond))
	run[bool](tab, "(self.free = true, self.release(), true)")
	tab.text("#questions .closed", "Answered by web: red")
	if got := run[string](tab, `document.querySelector('#questions').innerText`); strings.Contains(got, "faster") {
		t.Errorf("got %q, want no other person", got)
	}
}

// Words for a question survive a reload; once somebody else has answered it, the next message has them.
func TestWordsForAQuestionStay(t *testing.T) {
	t.Parallel()
	h, _, tab := asked(t, phone, asksColour)
	const words = "a warm blue, as the old gate had it"
	tab.press("article[data-question] textarea")
	tab.types(words)
	tab.visit(tab.path())
	tab.live()
	tab.sees("the words are there again", `document.querySelector('article[data-question] textarea')?.value === '`+words+`'`)
	var list struct{ Items []struct{ ID string } }
	h.ask("GET", "/v1/questions", nil, &list)
	h.ask("POST", "/v1/questions/"+list.Items[0].ID+"/answer", object{"choice": 1}, nil)
	tab.text("#notes", "in the message field")
	tab.sees("the message has the words", `document.querySelector('#words').value === '`+words+`'`)
	tab.text("#messages", "It is painted.")
}

// A change of a file is approved with the whole difference in view.
func TestApproveWithDiff(t *testing.T) {
	t.Parallel()
	h, _, tab := asked(t, phone, writesFile)
	tab.text("article[data-question] .diff", "+red paint")
	tab.press(`article[data-question] [data-does=approve]`)
	tab.text("#messages", "It is written.")
	if got := readFile(t, filepath.Join(h.work, "fence.txt")); got != "red paint\n" {
		t.Errorf("the file holds %q", got)
	}
}

// A line that begins with two dashes or pluses is a change as every other one, and no name of a file.
func TestDiffOfDashes(t *testing.T) {
	t.Parallel()
	_, _, tab := asked(t, desktop, `- tools: [{name: write_to_file, input: {path: a.sql, content: "-- all\n++i\n"}}]`)
	const added = `[...document.querySelectorAll('article[data-question] .diff .add')].map(e => e.textContent).join('')`
	if got, want := run[string](tab, added), "+-- all\n+++i\n"; got != want {
		t.Errorf("got the added lines %q, want %q", got, want)
	}
}

// A command is refused with a reason, which the model gets.
func TestDenyWithReason(t *testing.T) {
	t.Parallel()
	_, _, tab := asked(t, desktop, `
- tools: [{name: execute_command, input: {command: "echo paint >fence.txt"}}]
- expect: ["not in winter"]
  tools: [{name: attempt_completion, input: {result: It waits for spring.}}]
`)
	tab.text("article[data-question] .command", "echo paint >fence.txt")
	tab.press("article[data-question] textarea")
	tab.types("not in winter")
	tab.press(`article[data-question] [data-does=deny]`)
	tab.text("#messages", "It waits for spring.")
}

// A question that has just come takes no answer: the key or the click was meant for something else.
func TestQuestionIsArmed(t *testing.T) {
	t.Parallel()
	h, _, tab := asked(t, desktop, "- tools: [{name: ask_followup_question, input: {question: Ready?, follow_up: [{text: go on, mode: null}]}}]\n"+
		"- {text: "+words(10)+", delay: 30ms, tools: [{name: write_to_file, input: {path: fence.txt, content: red}}]}\n")
	run[bool](tab, `new MutationObserver(() => { const b = document.querySelector('article[data-question] [data-does=approve]'); if (b && !window.pressed) { window.pressed = true; b.click(); } }).observe(document.body, {childList: true, subtree: true}), true`)
	tab.press(`article[data-question] [data-key="1"]`)
	tab.sees("it was pressed at once", "window.pressed")
	tab.text("#notes", "just come")
	var list struct{ Items []object }
	h.ask("GET", "/v1/questions", nil, &list)
	if len(list.Items) != 1 {
		t.Errorf("got %d open questions, want the one that was pressed too early", len(list.Items))
	}
}

// Who answers with the focus on a button goes on from there: the focus is on what became of the question, and then on the
// next one.
func TestFocusStaysAtTheQuestions(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: write_to_file, input: {path: a.txt, content: a}}]\n- tools: [{name: execute_command, input: {command: 'until [ -e go ]; do sleep 0.1; done'}}]"+
		asksColour, "paint", object{"approve": "ask"})
	h.wait(task, "waiting")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	for _, what := range []string{"a.txt", "until"} {
		tab.text("#questions article:not(.closed)", what)
		tab.armed()
		run[bool](tab, "(document.querySelector('#questions article:not(.closed) [data-does=approve]').focus(), true)")
		tab.keys(enter)
		tab.sees("the focus is where "+what+" was asked, or on what is asked next", "document.activeElement.matches('#questions article')")
	}
	if err := os.WriteFile(filepath.Join(h.work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tab.sees("the focus is on the next question", "document.activeElement.matches('#questions article:not(.closed)') && document.activeElement.innerText.includes('colour')")
}

// A key answers the question that has the focus, of several that are open.
func TestKeysAnswerTheQuestionInFocus(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, name := range []string{"fence", "gate"} {
		h.wait(h.task("- tools: [{name: write_to_file, input: {path: "+name+".txt, content: red}}]\n"+finishes, "paint the "+name, object{"approve": "ask"}), "waiting")
	}
	tab := h.loggedIn(desktop, "/")
	tab.live()
	tab.armed()
	run[bool](tab, `([...document.querySelectorAll('article[data-question]')].find(e => e.innerText.includes('gate')).querySelector('.diff').focus(), true)`)
	tab.focusShown()
	tab.keys("y")
	h.until("one question is answered", func() bool {
		var list struct{ Items []object }
		h.ask("GET", "/v1/questions", nil, &list)
		return len(list.Items) == 1
	})
	if _, err := os.Stat(filepath.Join(h.work, "fence.txt")); err == nil {
		t.Error("the key approved the fence, want the gate, which had the focus")
	}
}

// A key that is held answers one question: the next one wants a press of its own.
func TestAHeldKeyAnswersOnce(t *testing.T) {
	t.Parallel()
	h, _, tab := asked(t, desktop, `
- tools: [{name: write_to_file, input: {path: fence.txt, content: "red paint\n"}}]
- tools: [{name: write_to_file, input: {path: gate.txt, content: "red paint\n"}}]
- tools: [{name: attempt_completion, input: {result: It is painted.}}]
`)
	hold := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: "y", Text: "y", UnmodifiedText: "y"}
	tab.do("press y", command(input.DispatchKeyEvent, hold))
	tab.text("article[data-question] .asks", "gate.txt")
	hold.AutoRepeat = new(true)
	for range 20 {
		tab.do("hold y", command(input.DispatchKeyEvent, hold), chromedp.Sleep(50*time.Millisecond))
	}
	if _, err := os.Stat(filepath.Join(h.work, "gate.txt")); err == nil {
		t.Error("the second change was approved by the key that approved the first")
	}
	tab.do("let go", command(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: "y"}))
	tab.keys("y")
	tab.text("#messages", "It is painted.")
}

// Words that were sent to the queue are no answer to a question that was asked meanwhile.
func TestQueuedWordsAnswerNoQuestion(t *testing.T) {
	t.Parallel()
	h, _, tab := asked(t, desktop, "- tools: [{name: ask_followup_question, input: {question: Ready?, follow_up: [{text: go on, mode: null}]}}]\n"+
		"- {text: "+words(60)+", delay: 30ms, tools: [{name: write_to_file, input: {path: fence.txt, content: red}}]}\n"+
		"- tools: [{name: write_to_file, input: {path: shed.txt, content: red}}]\n"+finishes)
	tab.press(`article[data-question] [data-key="1"]`)
	tab.text("#live .streaming", "word1 word2")
	run[bool](tab, `(() => { const real = fetch; window.fetch = async (...a) => { if (String(a[0]).endsWith('/messages') && !window.free) await new Promise(r => window.release = r); return real(...a); }; return true })()`)
	tab.press("#words")
	tab.types("then the gate")
	tab.text("#send", "Queue")
	tab.keys(enter)
	tab.sees("the words are on the way", "window.release")
	tab.armed()
	run[bool](tab, "window.free = true, window.release(), true")
	tab.text("#queue", "then the gate")
	// Nor do words that are sent at the moment when a question comes.
	tab.press("#words")
	tab.types("and the door")
	run[bool](tab, `new MutationObserver(() => { const e = document.querySelector('article[data-question]:not(.closed)'); if (e?.innerText.includes('shed.txt') && !window.pressed) { window.pressed = true; document.querySelector('#send').click(); } }).observe(document.body, {childList: true, subtree: true}), true`)
	run[bool](tab, `document.querySelector('article[data-question] [data-does=approve]').click(), true`)
	tab.sees("they were sent at once", "window.pressed")
	tab.text("#queue", "and the door")
	tab.press("article[data-question] [data-does=approve]")
	tab.text("#messages", "then the gate")
	if got := readFile(t, filepath.Join(h.work, "fence.txt")); got != "red" {
		t.Errorf("the file holds %q", got)
	}
}

// Of two clients that answer, the second sees who was first.
func TestTwoAnswer(t *testing.T) {
	t.Parallel()
	h, _, tab := asked(t, desktop, asksColour)
	other := tab.profile.open(phone, tab.path())
	other.live()
	other.armed()
	// The event of the first answer must not come before the second answer is sent.
	run[bool](other, `(() => { const real = fetch; window.fetch = async (...a) => { if (String(a[0]).endsWith('/answer')) await new Promise(r => window.release = r); return real(...a); }; return true })()`)
	other.press(`article[data-question] [data-key="2"]`)
	other.sees("its answer is on the way", "window.release")
	tab.press(`article[data-question] [data-key="1"]`)
	tab.text("#messages", "It is painted.")
	run[bool](other, "window.release(), true")
	other.text("#questions .closed", "by web")
	other.text("#questions .closed", "red")
	var list struct{ Items []object }
	h.ask("GET", "/v1/questions", nil, &list)
	if len(list.Items) != 0 {
		t.Errorf("got %d open questions, want none", len(list.Items))
	}
}

// Words that are sent while the task works wait in the queue, can be taken back, and are used.
func TestSendQueueCancel(t *testing.T) {
	t.Parallel()
	_, task, tab := writing(t, 400)
	tab.press("#words")
	tab.types("then the gate")
	tab.text("#send", "Queue")
	tab.keys(enter)
	tab.text("#queue", "then the gate")
	tab.press("#queue button")
	tab.gone("#queue")
	tab.sees("the words are back", `document.querySelector('#words').value === 'then the gate'`)
	tab.press("#cancel")
	tab.text("#activity", "Cancelled")
	tab.gone("#cancel")
	tab.press("#words")
	tab.text("#send", "Send")
	tab.keys(enter)
	tab.text("#messages", "then the gate")
	tab.text("#messages", "The end is reached.")
	tab.asAnew(task)
}

// Words can interrupt a run.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	_, _, tab := writing(t, 200)
	tab.press("#words")
	tab.types("stop that, do this")
	tab.press("#interrupt")
	tab.text("#messages", "stop that, do this")
	tab.text("#messages", "The end is reached.")
}

// A task is started from the page.
func TestStartATask(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	what := h.script("- tools: [{name: attempt_completion, input: {result: The shed stands.}}]")
	tab := h.loggedIn(phone, "/")
	tab.live()
	tab.press("#start")
	tab.press("dialog [name=text]")
	tab.types("build a shed")
	for name, value := range map[string]any{"workspace": h.work, "provider": what["provider"], "model": what["model"]} {
		if name != "workspace" {
			run[bool](tab, `(document.querySelector('dialog details').open = true)`)
		}
		tab.press("dialog [name=" + name + "]")
		tab.types(value.(string))
	}
	tab.press("dialog .primary")
	tab.text("#messages", "The shed stands.")
	tab.text("#messages", "build a shed")
}

// A task is renamed, pinned, deleted, and comes back.
func TestRenamePinDeleteUndo(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	words := "paint the fence\nwith care " + strings.Repeat("and more ", 1000)
	task := h.task("- tools: [{name: attempt_completion, input: {result: done}}]", words, nil)
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.press("[data-does=rename]") // the field has one line, and does not join those of the title that stays
	tab.sees("the title is there as it is shown", `document.querySelector('dialog [name=title]')?.value.startsWith('paint the fence with care and')`)
	tab.press("dialog .primary")
	tab.text("#notes", "Nothing changed.")
	tab.press("[data-does=rename]")
	tab.press("dialog [name=title]")
	run[bool](tab, `document.querySelector('dialog [name=title]').select(), true`)
	tab.types("<b>The garden</b>")
	tab.keys(enter)
	tab.text("#notes", "new title")
	tab.text(".taskhead h1", "<b>The garden</b>")
	tab.press("[data-does=pin]")
	tab.text("#notes", "is pinned")
	var got struct {
		Title  string
		Pinned bool
	}
	h.ask("GET", "/v1/tasks/"+task, nil, &got)
	if got.Title != "<b>The garden</b>" || !got.Pinned {
		t.Errorf("got %+v, want the title and a pin", got)
	}
	tab.press("[data-does=rename]") // what changes nothing offers no undo: that would take back what was done before
	tab.press("dialog .primary")
	tab.text("#notes", "Nothing changed.")
	tab.gone("#notes button:not([aria-label])")
	tab.visit("/")
	tab.live()
	tab.text("main .rows", "The garden")
	tab.keys("j")
	tab.focusShown()
	tab.keys("#")
	tab.text("#notes", "in the trash")
	tab.gone(`main [data-task="` + task + `"]`)
	tab.press("#notes button")
	tab.text("main .rows", "The garden")
	tab.text("#notes", "is back")
}

// A rewind shows what it would take away, does it, and is taken back.
func TestRewindWithPreview(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- {text: first reply}\n- tools: [{name: attempt_completion, input: {result: done}}]", "paint", nil)
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.text("#messages", "done")
	n := run[int](tab, `document.querySelectorAll('#messages > [data-index]').length`)
	tab.keys("k", "k", "z")
	tab.text("dialog", "will be hidden")
	tab.press("dialog .danger")
	tab.text("#notes", "back at before")
	tab.sees("messages went", `document.querySelectorAll('#messages > [data-index]').length < `+itoa(n))
	tab.press("#notes button")
	tab.sees("messages are back", `document.querySelectorAll('#messages > [data-index]').length === `+itoa(n))
	tab.asAnew(task)
	// Undo takes back the rewind alone, and nothing that somebody did since.
	tab.keys("k", "k", "z")
	tab.press("dialog .danger")
	tab.text("#notes", "back at before")
	h.ask("PATCH", "/v1/tasks/"+task, object{"pinned": true}, nil)
	tab.press("#notes button")
	tab.text("#notes", "was meant, but the next action is")
	var got struct{ Pinned bool }
	if h.ask("GET", "/v1/tasks/"+task, nil, &got); !got.Pinned {
		t.Error("undo of the rewind took back the pin that came after it")
	}
}

// The model's messages have numbers of their own: where those are shown, no act takes one for that of the conversation.
func TestNoActByTheModelsNumbers(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- {text: first reply}\n- tools: [{name: attempt_completion, input: {result: done}}]", "paint", nil)
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	for _, view := range []string{"effective", "api", "aligned"} {
		for _, key := range []string{"z", "f", "E"} {
			tab.visit("/tasks/" + task + "?view=" + view)
			tab.live()
			tab.keys("k", "k", key)
			tab.text("#notes", "Open the conversation for that")
			tab.gone("#message-acts, dialog")
		}
	}
}

// A message that is selected stays so when it changes: keys go on from it, and acts are about it.
func TestSelectionStaysAtItsMessage(t *testing.T) {
	t.Parallel()
	_, _, tab := asked(t, desktop, writesFile)
	tab.keys("k")
	const selected = `+document.querySelector('#messages [aria-current]')?.dataset.index`
	n := run[int](tab, selected)
	run[bool](tab, `(document.querySelector('#message-acts [data-does=link]').focus(), true)`)
	tab.keys("y")
	tab.text("#messages", "It is written.")
	tab.text("#activity", "Completed")
	tab.sees("the focus stays, too", `document.activeElement.matches('#ui-`+itoa(n)+` [data-does=link]')`)
	if got := run[int](tab, selected+" || 0"); got != n {
		t.Errorf("got the message %d, want #%d as before", got, n)
	}
	tab.keys("f")
	tab.text("dialog", "up to #"+itoa(n)+".")
	tab.keys(escape)
	tab.gone("dialog")
	tab.keys("k")
	tab.sees("the message before is selected", selected+" === "+itoa(n-1))
}

// A double click acts once: it takes back one action, deletes with the way to undo that, and opens one dialog.
func TestDoubleClickActsOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task(finishes, "paint", nil)
	h.wait(task, "completed")
	for _, title := range []string{"one", "two", "three"} {
		h.ask("PATCH", "/v1/tasks/"+task, object{"title": title}, nil)
	}
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	double := func(selector string) {
		at := run[[]float64](tab, `(r => [r.x + r.width/2, r.y + r.height/2])(document.querySelector('`+selector+`').getBoundingClientRect())`)
		for n := range int64(2) {
			for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
				tab.do("click", command(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1], Button: "left", ClickCount: n + 1}))
			}
		}
		tab.do("let both clicks act", chromedp.Sleep(500*time.Millisecond))
	}
	double("#task-acts [data-does=undo]")
	tab.text("#notes", "Taken back")
	var got struct{ Title string }
	h.ask("GET", "/v1/tasks/"+task, nil, &got)
	if got.Title != "two" {
		t.Errorf("got the title %q, want %q: one action is taken back", got.Title, "two")
	}
	run[bool](tab, `(document.getElementById('ui-1').click(), true)`)
	for _, does := range []string{"rename", "rewind"} {
		double("[data-does=" + does + "]")
		tab.text("dialog", "Cancel")
		if n := run[int](tab, "document.querySelectorAll('dialog').length"); n != 1 {
			t.Errorf("%s: got %d dialogs, want 1", does, n)
		}
		tab.keys(escape)
		tab.gone("dialog")
	}
	double("#task-acts [data-does=delete]")
	tab.text("#notes", "Undo")
}

// A task is forked at a message.
func TestFork(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: attempt_completion, input: {result: done}}]", "paint", nil)
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.text("#messages", "done")
	tab.keys("f")
	tab.press("dialog [name=title]")
	tab.types("another way")
	tab.keys(enter)
	tab.text(".taskhead h1", "another way")
	if tab.path() == "/tasks/"+task {
		t.Error("the page is still the old task's")
	}
}

// The main flow without a mouse: search, open, answer, write, read the keys. The focus is visible at each step.
func TestByKeyboardAlone(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]size{"desktop": desktop, "phone": phone} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			byKeyboardAlone(t, s)
		})
	}
}

func byKeyboardAlone(t *testing.T, s size) {
	h := newHouse(t)
	task := h.task(asksColour, "paint the wide gate", nil)
	h.wait(task, "waiting")
	tab := h.loggedIn(s, "/")
	tab.live()
	tab.keys("?")
	tab.text("dialog#keys", "search")
	tab.keys(escape)
	tab.gone("dialog#keys")
	tab.keys("/")
	tab.focusShown()
	tab.types("gate")
	tab.sees("the search is in the address", `location.search.includes('q=gate')`)
	tab.keys(escape, "j")
	tab.focusShown()
	tab.keys(enter)
	tab.sees("the task is open", `document.body.dataset.page === 'task'`)
	tab.live()
	tab.armed()
	tab.keys("a")
	tab.focusShown()
	tab.keys("1")
	tab.text("#messages", "It is painted.")
	tab.keys("i")
	tab.focusShown()
	tab.types("thank you")
	tab.keys(enter)
	tab.text("#messages", "thank you")
	tab.keys(escape, "k")
	tab.focusShown()
	tab.keys("k")
	tab.focusShown()
	tab.keys("h")
	tab.sees("the list is open", `document.body.dataset.page === 'history'`)
}

// Files go back to a checkpoint, after the page has shown which.
func TestRestoreFiles(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task(writesFile, "paint", object{"approve": "all"})
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.press("[data-does=restore]")
	tab.sees("the checkpoints are listed", `document.querySelector('dialog option')`)
	run[bool](tab, `(document.querySelector('dialog select').selectedIndex = 0) === 0`)
	tab.press("dialog .primary")
	tab.text("dialog", "fence.txt: deleted")
	tab.press("dialog .danger")
	tab.text("#notes", "files are back")
	if _, err := os.Stat(filepath.Join(h.work, "fence.txt")); err == nil {
		t.Error("the file is still there")
	}
	tab.press("#notes button")
	tab.text("#notes", "Taken back")
	if got := readFile(t, filepath.Join(h.work, "fence.txt")); got != "red paint\n" {
		t.Errorf("the file holds %q", got)
	}
}

// Older messages are condensed to a summary, which is shown, and taken back.
func TestCondense(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var turns strings.Builder
	turns.WriteString("- {summary: All posts are painted.}\n")
	for _, name := range []string{"posts", "boards", "nails", "hinges", "gate", "latch"} {
		turns.WriteString("- tools: [{name: write_to_file, input: {path: " + name + ".txt, content: " + name + "}}]\n")
	}
	task := h.task(turns.String()+"- tools: [{name: attempt_completion, input: {result: done}}]", "paint", object{"approve": "all"})
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.press("[data-does=condense]")
	tab.text("dialog", "A summary will stand for")
	tab.press("dialog .primary")
	tab.text("#notes", "stands for")
	tab.sees("the summary is there, folded", `document.querySelector('#messages').textContent.includes('All posts are painted.')`)
	tab.asAnew(task)
	tab.press("#notes button")
	tab.sees("undo takes the summary away", `!document.querySelector('#messages').textContent.includes('All posts are painted.')`)
	tab.asAnew(task)
	tab.press("#notes button")
	tab.sees("and redo brings it back", `document.querySelector('#messages').textContent.includes('All posts are painted.')`)
	tab.asAnew(task)
}
