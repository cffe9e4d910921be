package pagetest

import (
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

const ends = "- tools: [{name: attempt_completion, input: {result: It is done.}}]\n"

// dot is a picture of one point, as base64.
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// files is the beginning of a script of the page: data carries a picture of one point, and what else is named.
const files = `(() => { const data = new DataTransfer();
	const bytes = Uint8Array.from(atob('` + dot + `'), c => c.charCodeAt(0));
	const picture = new File([bytes], 'dot.png', {type: 'image/png'});
`

// device opens a page in a browser that another person, or the same one elsewhere, uses.
func (h *house) device(s size, path string) *tab {
	h.Helper()
	var made struct {
		URL string `json:"login_url"`
	}
	h.ask("POST", "/v1/server/logins", nil, &made)
	u, err := url.Parse(made.URL)
	if err != nil {
		h.Fatal(err)
	}
	t := h.browser().open(s, u.RequestURI())
	t.visit(path)
	return t
}

type draft struct {
	Text     string
	Revision string
	Images   []object
}

// draft is what the server has of a task's draft; "" is that of a new task.
func (h *house) draft(task string) (d draft) {
	h.Helper()
	path := "/v1/draft"
	if task != "" {
		path = "/v1/tasks/" + task + "/draft"
	}
	h.ask("GET", path, nil, &d)
	return d
}

// holds waits until the field holds words.
func (t *tab) holds(words string) {
	t.Helper()
	t.sees("the field holds "+words, "document.querySelector('#words').value === "+strconv.Quote(words))
}

// completed makes a task that has ended.
func completed(t *testing.T, script string) (*house, string) {
	t.Helper()
	h := newHouse(t)
	task := h.task(script, "paint the fence", nil)
	h.wait(task, "completed")
	return h, task
}

// A draft is there on another device, and after the server was killed; it goes when it was sent.
func TestDraftOnAnotherDevice(t *testing.T) {
	t.Parallel()
	h, task := completed(t, ends+ends)
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.press("#words")
	tab.types("and then the gate")
	h.until("the server has the draft", func() bool { return h.draft(task).Text == "and then the gate" })
	other := h.device(phone, "/tasks/"+task)
	other.live()
	other.holds("and then the gate")
	h.kill()
	h.start()
	third := h.device(desktop, "/tasks/"+task)
	third.live()
	third.holds("and then the gate")
	third.press("#send")
	third.text("#messages", "and then the gate")
	h.until("the draft is gone", func() bool { return h.draft(task).Revision == "" })
	other.visit("/tasks/" + task)
	other.live()
	other.holds("")
}

// Two devices write at once: the second sees both texts and chooses.
func TestDraftConflict(t *testing.T) {
	t.Parallel()
	h, task := completed(t, ends)
	tab := h.loggedIn(phone, "/tasks/"+task)
	tab.live()
	// What is written here is held until the other device has written, too.
	run[bool](tab, `(() => { const real = fetch; window.fetch = async (...a) => { if (a[1]?.method === 'PUT' && !window.free) await new Promise(r => window.release = () => { window.free = true; r(); }); return real(...a); }; return true })()`)
	tab.press("#words")
	tab.types("from here")
	tab.sees("it is on the way", "window.release")
	other := h.device(desktop, "/tasks/"+task)
	other.live()
	other.press("#words")
	other.types("from there")
	h.until("the server has the other text", func() bool { return h.draft(task).Text == "from there" })
	run[bool](tab, "window.release(), true")
	tab.text(".moved blockquote", "from there")
	tab.holds("from here")
	if got := h.draft(task).Text; got != "from there" {
		t.Errorf("the server has %q, want what came first", got)
	}
	tab.picture("composer-conflict-phone")
	tab.press(".moved [data-does=both]")
	tab.gone(".moved")
	tab.holds("from there\n\nfrom here")
	h.until("the server has both", func() bool { return h.draft(task).Text == "from there\n\nfrom here" })
}

// Images are attached, pasted and dropped, can be removed, and the model gets them.
func TestSendImages(t *testing.T) {
	t.Parallel()
	h, task := completed(t, ends+`
- expect: ["`+dot+`", "look at this"]
  tools: [{name: attempt_completion, input: {result: I see a dot.}}]
`)
	tab := h.loggedIn(phone, "/tasks/"+task)
	tab.live()
	run[bool](tab, files+`data.items.add(picture); const f = document.querySelector('#composer input[type=file]'); f.files = data.files; f.dispatchEvent(new Event('change')); return true })()`)
	tab.text("#composer .images button", "×")
	run[bool](tab, files+`data.items.add(new File([bytes, 'more'], 'other.png', {type: 'image/png'}));
		document.querySelector('#words').dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true})); return true })()`)
	tab.sees("there are two", `document.querySelectorAll('#composer .images img').length === 2`)
	run[bool](tab, files+`data.items.add(new File([bytes, 'and more'], 'third.png', {type: 'image/png'}));
		document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true})); return true })()`)
	tab.sees("there are three", `document.querySelectorAll('#composer .images img').length === 3`)
	h.until("the server has them", func() bool { return len(h.draft(task).Images) == 3 })
	tab.sees("they are shown from the server", `[...document.querySelectorAll('#composer .images img')].every(e => e.src.includes('/draft/images/') && e.complete && e.naturalWidth === 1)`)
	tab.picture("composer-images-phone")
	tab.do("set the window", sized(desktop), command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	}))
	tab.press("#words")
	tab.types("/")
	tab.text("#composer [role=listbox]", "/condense")
	tab.picture("composer-images-desktop-dark")
	run[bool](tab, `(e => { e.value = ''; e.dispatchEvent(new Event('input')); return true })(document.activeElement)`)
	tab.gone("#composer [role=listbox]")
	tab.press("#composer .images li:nth-child(3) button")
	h.until("the server has two", func() bool { return len(h.draft(task).Images) == 2 })
	tab.sees("there are two again", `document.querySelectorAll('#composer .images img').length === 2`)
	tab.press("#composer .images li:nth-child(2) button")
	tab.sees("there is one", `document.querySelectorAll('#composer .images img').length === 1`)
	tab.press("#words")
	tab.types("/rename The dot")
	tab.press("#send")
	tab.press("dialog .primary")
	tab.text(".taskhead h1", "The dot")
	tab.sees("a command of the page takes no image along", `document.querySelectorAll('#composer .images img').length === 1`)
	tab.press("#words")
	tab.types("look at this")
	tab.press("#send")
	tab.text("#messages", "I see a dot.")
	tab.gone("#composer .images")
	tab.sees("the message shows it", `document.querySelector('#messages img')`)
}

// A message that takes the place of another one shows its own image, although a browser has the other one at that address.
func TestImageOfAMessageThatWasReplaced(t *testing.T) {
	t.Parallel()
	h, task := completed(t, ends+ends+ends)
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	noise := func(width int) string { // more than 8 KB, so that the page loads it by its address
		return run[string](tab, `(() => { const c = Object.assign(document.createElement('canvas'), {width: `+itoa(width)+`, height: 80}), g = c.getContext('2d'), d = g.createImageData(c.width, 80);
			crypto.getRandomValues(d.data); for (let i = 3; i < d.data.length; i += 4) d.data[i] = 255; g.putImageData(d, 0, 0); return c.toDataURL() })()`)
	}
	for i, width := range []int{64, 96} {
		h.ask("POST", "/v1/tasks/"+task+"/messages", object{"text": "look at this", "images": []string{noise(width)}}, nil)
		h.until("it was done", func() bool {
			var list struct{ Items []object }
			h.ask("GET", "/v1/tasks/"+task+"/runs", nil, &list)
			return len(list.Items) == 2+i && list.Items[0]["state"] == "completed"
		})
		if i == 0 {
			tab.visit("/tasks/" + task)
		}
		tab.sees("the image is shown", `(e => e && (e.scrollIntoView(), e.complete && e.naturalWidth > 0 && e.closest('[data-index]').dataset.ts !== window.before))(document.querySelector('#messages img'))`)
		if got := run[int](tab, `document.querySelector('#messages img').naturalWidth`); got != width {
			t.Errorf("got an image of %d pixels, want the one of %d that was sent", got, width)
		}
		run[bool](tab, `(window.before = document.querySelector('#messages img').closest('[data-index]').dataset.ts) !== ''`)
		h.ask("POST", "/v1/tasks/"+task+"/rewinds", object{"to": "#" + run[string](tab, `document.querySelector('#messages img').closest('[data-index]').dataset.index`)}, nil)
	}
}

// A file that is no image is refused with a sentence, whatever its name is.
func TestNoImageIsRefused(t *testing.T) {
	t.Parallel()
	h, task := completed(t, ends)
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	run[bool](tab, files+`data.items.add(new File(['#!/bin/sh'], 'photo.png', {type: 'image/png'}));
		document.querySelector('#words').dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true})); return true })()`)
	tab.text("#notes .wrong", "“photo.png” is no image that models take: PNG, JPEG, GIF or WebP.")
	tab.gone("#composer .images")
	if got := h.draft(task); got.Revision != "" {
		t.Errorf("got the draft %+v, want none", got)
	}
}

// A file is completed by keys alone, by a few of its letters; what is hidden is not offered.
func TestCompleteAFile(t *testing.T) {
	t.Parallel()
	h, task := completed(t, ends+"- expect: [red posts]\n  tools: [{name: attempt_completion, input: {result: It is read.}}]\n")
	for name, text := range map[string]string{"fence/my posts.txt": "red posts", "fence/posts.key": "", ".rooignore": "*.key\n"} {
		path := filepath.Join(h.work, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.keys("i")
	tab.types("read @fpo")
	tab.text("#composer [role=listbox]", `@/fence/my\ posts.txt`)
	tab.sees("the field names the option", `(e => e.getAttribute('role') === 'combobox' && e.getAttribute('aria-expanded') === 'true' && document.getElementById(e.getAttribute('aria-activedescendant')).getAttribute('aria-selected') === 'true')(document.activeElement)`)
	if got := run[string](tab, `document.querySelector('#composer [role=listbox]').innerText`); strings.Contains(got, ".key") {
		t.Errorf("got the offers %q, want none that is hidden", got)
	}
	tab.keys(escape)
	tab.gone("#composer [role=listbox]")
	tab.sees("the field has the focus", `document.activeElement.id === 'words'`)
	tab.keys("s")
	tab.gone("#composer [role=listbox]") // not for this word again
	tab.types(" and @prob")
	tab.text("#composer [role=listbox]", "@problems")
	run[bool](tab, `(e => { e.value = ''; e.dispatchEvent(new Event('input')); return true })(document.activeElement)`)
	tab.types("read @fen")
	tab.text("#composer [role=option][aria-selected=true]", "@/fence/")
	tab.keys(enter)
	tab.holds("read @/fence/")
	tab.text("#composer [role=option][aria-selected=true]", `@/fence/my\ posts.txt`)
	tab.keys(enter)
	tab.holds(`read @/fence/my\ posts.txt `)
	tab.gone("#composer [role=listbox]")
	tab.keys(enter)
	tab.text("#messages", "It is read.")
}

// A command is completed: of the page, which runs when it is sent, and of the project, which is text and says where it is
// from.
func TestCompleteACommand(t *testing.T) {
	t.Parallel()
	h, task := completed(t, ends+"- expect: [ship the fence]\n  tools: [{name: attempt_completion, input: {result: It is shipped.}}]\n")
	path := filepath.Join(h.work, ".roo", "commands", "deploy.md")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("---\ndescription: ship it <b>now</b>\n---\nship the fence"), 0o600); err != nil {
		t.Fatal(err)
	}
	tab := h.loggedIn(phone, "/tasks/"+task)
	tab.live()
	tab.press("#words")
	tab.types("/")
	tab.text("#composer [role=listbox]", "/condense")
	tab.text("#composer [role=listbox]", "from the project")
	tab.picture("composer-commands-phone")
	tab.types("ren")
	tab.sees("one is left", `document.querySelectorAll('#composer [role=option]').length === 1`)
	tab.press("#composer [role=option]")
	tab.holds("/rename ")
	tab.gone("dialog")
	tab.types("The new fence")
	tab.keys(enter)
	tab.sees("the dialog has the words", `document.querySelector('dialog [name=title]').value === 'The new fence'`)
	tab.press("dialog .primary")
	tab.text(".taskhead h1", "The new fence")
	tab.holds("")
	tab.press("#words")
	tab.types("/depl")
	tab.text("#composer [role=option]", "ship it <b>now</b> · from the project")
	tab.press("#composer [role=option]")
	tab.holds("/deploy ")
	var runs struct{ Items []object }
	h.ask("GET", "/v1/tasks/"+task+"/runs", nil, &runs)
	if len(runs.Items) != 1 {
		t.Errorf("got %d runs after a command was taken, want the first alone", len(runs.Items))
	}
	tab.press("#send")
	tab.text("#messages", "It is shipped.")
}

// The model of the next message is chosen from what the server knows, with its prices, or named.
func TestSwitchModel(t *testing.T) {
	t.Parallel()
	h, task := completed(t, ends)
	other := h.script(ends + "- tools: [{name: attempt_completion, input: {result: Another model did it.}}]\n")["model"].(string)
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.press("#composer [data-does=model]")
	tab.press("dialog [name=model]")
	run[bool](tab, `document.querySelector('dialog [name=model]').select(), true`)
	tab.types("claude-sonnet")
	tab.text("dialog [role=option] .about", "anthropic, ")
	tab.text("dialog [role=option] .about", "context, $")
	tab.picture("composer-model-desktop")
	tab.keys(escape)
	tab.gone("dialog [role=listbox]")
	tab.sees("the dialog stays", `document.querySelector('dialog[open]')`)
	run[bool](tab, `document.querySelector('dialog [name=model]').select(), true`)
	tab.types(other)
	tab.gone("dialog [role=listbox]")
	tab.press("dialog .primary")
	tab.text("#notes", "The next run goes with")
	tab.text("#composer [data-does=model]", filepath.Base(other))
	tab.press("#words")
	tab.types("once more")
	tab.keys(enter)
	tab.text("#messages", "Another model did it.")
}

// What the task uses of its model's window is shown as a share once a model is chosen whose window is known.
func TestContextShare(t *testing.T) {
	t.Parallel()
	h := newHouseIn(t, around{env: []string{"ANTHROPIC_API_KEY=none"}})
	task := h.task("- {usage: {input: 49000, output: 1000}, tools: [{name: attempt_completion, input: {result: It is done.}}]}\n", "paint the fence", nil)
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.text("#spent", "50,000 in context")
	if got := run[string](tab, `document.querySelector('#spent').innerText + document.querySelector('.facts').innerText`); strings.Contains(got, "%") {
		t.Errorf("got %q for a model whose window is not known, want no share", got)
	}
	h.ask("PATCH", "/v1/tasks/"+task, object{"provider": "anthropic", "model": "claude-opus-4-5"}, nil)
	tab.text("#spent", "50,000 in context (25%)")
	tab.visit("/tasks/" + task)
	tab.text(".facts", "context (25%)")
}

// A message is edited and sent again: the task goes back to before it, with a preview, and its words are the draft.
func TestEditAndSendAgain(t *testing.T) {
	t.Parallel()
	h, task := completed(t, ends+ends)
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.press("#words")
	tab.types("make it green")
	tab.keys(enter)
	h.until("it was done", func() bool {
		return run[int](tab, `document.querySelector('#messages').innerText.split('It is done.').length`) > 2
	})
	tab.text("#activity", "Completed")
	run[bool](tab, `document.activeElement.blur(), true`)
	tab.keys("E")
	tab.text("dialog", "will be hidden")
	tab.press("dialog .danger")
	tab.holds("make it green")
	tab.sees("the field has the focus", `document.activeElement.id === 'words'`)
	tab.sees("the message went", `![...document.querySelectorAll('#messages > .user')].some(e => e.innerText.includes('make it green'))`)
	tab.types(" and blue")
	tab.keys(enter)
	tab.text("#messages", "make it green and blue")
	tab.asAnew(task)
}

// The words for a new task are a draft, too, also on another device.
func TestDraftOfANewTask(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	what := h.script(ends)
	tab := h.loggedIn(phone, "/")
	tab.live()
	tab.press("#start")
	tab.press("dialog [name=text]")
	tab.types("build a shed")
	h.until("the server has the draft", func() bool { return h.draft("").Text == "build a shed" })
	other := h.device(desktop, "/")
	other.live()
	other.press("#start")
	other.sees("the words are there", `document.querySelector('dialog [name=text]').value === 'build a shed'`)
	run[bool](other, `(document.querySelector('dialog details').open = true)`)
	for name, value := range map[string]string{"workspace": h.work, "provider": what["provider"].(string), "model": what["model"].(string), "max_turns": "5"} {
		run[bool](other, "(e => { e.value = "+strconv.Quote(value)+"; return true })(document.querySelector('dialog [name="+name+"]'))")
	}
	other.press("dialog [name=mode]")
	other.types("arch")
	other.text("dialog [role=option]", "architect")
	other.press("dialog [role=option]")
	other.picture("composer-start-desktop")
	other.press("dialog .primary")
	other.text("#messages", "build a shed")
	other.text("#messages", "It is done.")
	other.text("#composer [data-does=mode]", "architect")
	if got := h.draft(""); got.Revision != "" {
		t.Errorf("got the draft %+v of a new task, want none", got)
	}
}

// What a person writes in one tab while another tab waits for the answer to its message stays, and is sent.
func TestWordsInAnotherTabStay(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: attempt_completion, input: {result: first}}]\n"+
		"- tools: [{name: execute_command, input: {command: 'while [ ! -e dry ]; do sleep 0.1; done'}}]\n"+
		"- tools: [{name: attempt_completion, input: {result: second}}]", "paint", object{"approve": "all"})
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	other := tab.profile.open(desktop, tab.path())
	other.live()
	run[bool](tab, `(() => { const ask = self.fetch; self.fetch = async (path, o) => { const a = await ask(path, o);
		if (o?.method === 'POST') while (!self.goes) await new Promise(done => setTimeout(done, 20)); return a } })(), true`)
	tab.keys("i")
	tab.types("go on")
	tab.keys(enter)
	other.text("#activity", "…")
	other.keys("i")
	run[bool](other, `(document.querySelector('#words').select(), true)`) // it shows the draft that is on its way
	other.types("and the gate")
	run[bool](tab, `self.goes = true`)
	tab.sees("the message is sent", `!document.querySelector('#words').readOnly`)
	other.sees("the words are there", `document.querySelector('#words').value === 'and the gate'`)
	other.keys(enter)
	other.text("#queue", "and the gate")
	tab.sees("both tabs have sent them", `document.querySelector('#words').value === ''`)
	if err := os.WriteFile(filepath.Join(h.work, "dry"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tab.text("#messages", "second")
}

// A tab that has sent its words removes the browser's copy of the draft. It may not know yet that another tab has begun
// other words, and then removes those: they stay in that tab, unless the server does not have them either.
func TestWordsOutliveTheRemovalOfTheirCopy(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: attempt_completion, input: {result: first}}]\n- tools: [{name: attempt_completion, input: {result: second}}]", "paint", nil)
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.keys("i")
	remove := func() {
		t.Helper()
		if !run[bool](tab, `(() => { const key = Object.keys(localStorage).find(k => k.startsWith('roost-draft-') && localStorage[k]?.includes('gate')); if (!key) return false;
			const oldValue = localStorage[key]; localStorage.removeItem(key); dispatchEvent(new StorageEvent('storage', { key, oldValue, newValue: null })); return true })()`) {
			t.Fatal("the browser has no copy of the draft")
		}
	}
	tab.types("and the gate")
	h.until("the server has the words", func() bool { return h.draft(task).Text == "and the gate" })
	tab.sees("the tab knows that", `Object.values(localStorage).some(v => v.includes('and the gate') && v.includes('"dirty":false'))`)
	remove()
	tab.holds("and the gate")
	tab.sees("the copy is there again", `Object.values(localStorage).some(v => v.includes('and the gate'))`)
	h.ask("DELETE", "/v1/tasks/"+task+"/draft", nil, nil)
	remove()
	tab.sees("the words are gone", `document.querySelector('#words').value === ''`)
	tab.types("and the gate")
	tab.keys(enter)
	tab.text("#messages", "second")
}

// Two tabs show the same words, which both have to give to the server, and one of them sends them. The other one learns
// that before its own request has an answer, or after that.
func TestWordsThatAnotherTabSentDoNotComeBack(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"hears", "saves"}, {"saves", "hears"}} {
		h := newHouse(t)
		task := h.task("- tools: [{name: attempt_completion, input: {result: first}}]\n"+
			"- tools: [{name: execute_command, input: {command: 'while [ ! -e dry ]; do sleep 0.1; done'}}]\n"+
			"- tools: [{name: attempt_completion, input: {result: second}}]", "paint", object{"approve": "all"})
		h.wait(task, "completed")
		tab := h.loggedIn(desktop, "/tasks/"+task)
		tab.live()
		other := tab.profile.open(desktop, tab.path())
		other.live()
		// The script holds three things of the tab, each until the test sets a flag: the answer to its message (self.sent), its
		// later saves (self.saves), and the events of the other tab (self.hears).
		run[bool](tab, `(() => {
			const ask = self.fetch, until = async (name) => { while (!self[name]) await new Promise(done => setTimeout(done, 20)) };
			self.fetch = async (path, o) => {
				if (o?.method === 'PUT' && self.sent) { self.waits = true; await until('saves') }
				const answer = await ask(path, o);
				if (o?.method === 'POST') await until('sent');
				if (self.waits) setTimeout(() => { self.saved = true }, 100);
				return answer };
			self.addEventListener('storage', async (e) => {
				if (!self.waits || e.held) return;
				e.stopImmediatePropagation();
				await until('hears');
				self.dispatchEvent(Object.assign(new StorageEvent('storage', { key: e.key, newValue: e.newValue, oldValue: e.oldValue }), { held: true }));
				self.heard = true;
			}, true);
			return true })()`)
		tab.keys("i")
		tab.types("go on")
		tab.keys(enter)
		other.text("#activity", "…")
		other.keys("i")
		run[bool](other, `(document.querySelector('#words').select(), true)`)
		other.types("and the gate")
		tab.sees("the other tab's words", `document.querySelector('#words').value === 'and the gate'`)
		run[bool](tab, `self.sent = true`)
		tab.sees("the tab is about to save the other tab's words", `self.waits`)
		other.keys(enter)
		other.text("#queue", "and the gate")
		other.holds("")
		for _, may := range order {
			run[bool](tab, "self."+may+" = true")
			tab.sees("it has done that", "self."+map[string]string{"hears": "heard", "saves": "saved"}[may])
		}
		h.until("no draft is left", func() bool { return h.draft(task).Revision == "" })
		tab.holds("")
		other.holds("")
		if err := os.WriteFile(filepath.Join(h.work, "dry"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		tab.text("#messages", "second")
		tab.visit(tab.path())
		tab.live()
		tab.holds("")
	}
}
