package pagetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// asksTwice asks one question after the other.
const asksTwice = `
- tools: [{name: ask_followup_question, input: {question: Which colour?, follow_up: [{text: red, mode: null}]}}]
- tools: [{name: ask_followup_question, input: {question: Which brush?, follow_up: [{text: the old one, mode: null}]}}]
- tools: [{name: attempt_completion, input: {result: It is painted.}}]
`

// away is what a page runs first whose person looks elsewhere: it counts the turns that it had to tell a question.
const away = `self.turns = 0; Document.prototype.hasFocus = () => false;
	const lock = LockManager.prototype.request;
	LockManager.prototype.request = async function (name, ...rest) { try { return await lock.call(this, name, ...rest) } finally { if (name === 'roost-call') turns++ } };
`

// mayNotify lets the pages of a browser show notifications.
func (p *profile) mayNotify() {
	p.Helper()
	if _, err := chromedp.CallBrowser(p.ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "notifications"}, Setting: browser.PermissionSettingGranted, Origin: p.base(),
		BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID,
	}); err != nil {
		p.Fatal(err)
	}
}

// elsewhere is a browser that is logged in and may show notifications, whose person looks at no page of ours.
func (h *house) elsewhere() *profile {
	h.Helper()
	p := h.browser()
	tab := p.open(desktop, h.login)
	tab.live()
	tab.served()
	p.mayNotify()
	tab.visit("/healthz")
	return p
}

// served waits until the service worker works.
func (t *tab) served() {
	t.Helper()
	t.sees("the service worker works", `navigator.serviceWorker.getRegistration('/').then(r => self.registered = r?.active?.state === 'activated'), self.registered`)
}

// used uses the page: before that a browser plays nothing.
func (t *tab) used() {
	t.Helper()
	t.press("#alerts")
	t.text("dialog", "When a task waits for you")
	t.keys(escape)
	t.gone("dialog")
}

// A question that has just come is told by one notification of a browser, however many tabs it has, without the words of
// the question; it goes away with the answer. The titles count what waits.
func TestOneNotificationOfTwoTabs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.elsewhere()
	const watch = away + `self.shown = [];
		ServiceWorkerRegistration.prototype.showNotification = async function (title, o) { shown.push(title + ': ' + o.body) };`
	tabs := []*tab{p.openAfter(watch, "/"), p.openAfter(watch, "/usage")}
	for _, tab := range tabs {
		tab.live()
	}
	h.wait(h.task(asksColour, "paint the \u202efence", nil), "waiting")
	var all []string
	for _, tab := range tabs {
		tab.sees("the page had its turn", `self.turns === 1`)
		tab.sees("the title counts", `document.title.startsWith('(1) ')`)
		all = append(all, run[[]string](tab, `shown`)...)
	}
	if got := strings.Join(all, "\n"); got != "paint the ⟦U+202E⟧fence: It asks a question." {
		t.Errorf("got the notifications %q, want one, without the words of the question", got)
	}
	tabs[0].armed()
	tabs[0].press(`article[data-question] [data-key="1"]`)
	for _, tab := range tabs {
		tab.sees("the title counts none", `!document.title.startsWith('(')`)
	}
}

// A question that has just come sounds once, however many tabs a browser has; a person can switch that off.
func TestOneSoundOfTwoTabs(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.elsewhere()
	const watch = away + `self.tones = []; const start = AudioScheduledSourceNode.prototype.start;
		AudioScheduledSourceNode.prototype.start = function (...a) { tones.push(this.frequency.value); return start.apply(this, a) };`
	tabs := []*tab{p.openAfter(watch, "/"), p.openAfter(watch, "/usage")}
	for _, tab := range tabs {
		tab.live()
		tab.used()
	}
	task := h.task(asksTwice, "paint the fence", nil)
	h.wait(task, "waiting")
	tones := func(turns int) (n int) {
		for _, tab := range tabs {
			tab.sees("the page had its turn", `self.turns === `+itoa(turns))
			n += run[int](tab, `tones.length`)
		}
		return n
	}
	if n := tones(1); n != 2 {
		t.Errorf("got %d tones in both tabs, want two of one tab", n)
	}
	tabs[0].press("#alerts")
	tabs[0].press("dialog [name=sound]")
	tabs[0].press("dialog .acts .primary")
	tabs[0].gone("dialog")
	tabs[0].armed()
	tabs[0].press(`article[data-question] [data-key="1"]`)
	if n := tones(2); n != 2 {
		t.Errorf("got %d tones after the sound was switched off, want none beside the two", n)
	}
}

// A page that a person looks at makes no sound and shows no notification.
func TestNoCallWhileLooked(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.elsewhere()
	const watch = away + `self.calls = []; Document.prototype.hasFocus = () => true;
		AudioScheduledSourceNode.prototype.start = () => calls.push('tone');
		ServiceWorkerRegistration.prototype.showNotification = async title => calls.push(title);
		self.Notification = class { static permission = 'granted'; constructor(title) { calls.push(title) } };`
	tab := p.openAfter(watch, "/")
	tab.live()
	tab.used()
	h.wait(h.task(asksColour, "paint the fence", nil), "waiting")
	tab.sees("the page had its turn", `self.turns === 1`)
	if got := run[[]string](tab, `calls`); len(got) > 0 {
		t.Errorf("got the calls %q on a page that is looked at, want none", got)
	}
}

// The title of each page and the badge of the app count the questions that wait, also on a page that comes later and one
// whose title changes.
func TestTitleAndBadgeCount(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.elsewhere()
	const watch = `self.badge = 'none'; Navigator.prototype.setAppBadge = async n => { badge = n }; Navigator.prototype.clearAppBadge = async () => { badge = 0 };`
	first := p.openAfter(watch, "/")
	first.live()
	first.sees("nothing is counted", `self.badge === 0 && !document.title.startsWith('(')`)
	task := h.task(asksColour, "paint the fence", nil)
	h.wait(task, "waiting")
	first.sees("one is counted", `self.badge === 1 && document.title.startsWith('(1) ')`)
	h.wait(h.task(asksColour, "paint the gate", nil), "waiting")
	later := p.openAfter(watch, "/tasks/"+task)
	for _, tab := range []*tab{first, later} {
		tab.sees("both are counted", `self.badge === 2 && document.title.startsWith('(2) ')`)
	}
	later.armed()
	later.press(`article[data-question] [data-key="1"]`)
	for _, tab := range []*tab{first, later} {
		tab.sees("one is left", `self.badge === 1 && document.title.startsWith('(1) ')`)
	}
	h.wait(task, "completed")
	h.ask("PATCH", "/v1/tasks/"+task, object{"title": "Another title"}, nil)
	later.sees("the count stays before a new title", `document.title === '(1) Another title · Roost'`)
	first.armed()
	first.press(`article[data-question] [data-key="1"]`)
	for _, tab := range []*tab{first, later} {
		tab.sees("none is left", `self.badge === 0 && !document.title.startsWith('(')`)
	}
	// A question goes with the end of its task that is taken back, or with the task, and comes again with them.
	other := h.task(asksColour, "paint the shed", nil)
	h.wait(other, "waiting")
	h.kill() // a question whose run works is closed before
	h.start()
	for _, c := range []struct {
		method, path, body string
		count              int
	}{{"POST", "/rewinds", `{"to": "#1"}`, 0}, {"POST", "/undo", "{}", 1}, {"DELETE", "", "", 0}, {"POST", "/undo", "{}", 1}} {
		h.until(c.method+" "+c.path, func() bool { // the server takes the run over first
			return run[bool](first, fmt.Sprintf(`fetch('/v1/tasks/%s%s', {method: '%s', headers: {'Content-Type': 'application/json'}, body: '%s' || null}).then(r => r.ok)`, other, c.path, c.method, c.body))
		})
		first.sees("the list asks them", fmt.Sprintf(`document.querySelectorAll('#questions article:not(.closed)').length === %d`, c.count))
		for _, tab := range []*tab{first, later} {
			tab.sees(fmt.Sprintf("%d counted after %s %s", c.count, c.method, c.path), fmt.Sprintf(`self.badge === %d && document.title.startsWith('(') === %t`, c.count, c.count > 0))
		}
	}
}

// A click on a notification of the service worker leads to the task: to the page of it that is open, also one that is
// older than the worker, or else to a new one at the question. The click is a test's, and so are the windows.
func TestClickOnANotification(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task(asksTwice, "paint the fence", nil)
	h.wait(task, "waiting")
	p := h.elsewhere()
	// A browser without a desktop loses a notification now and then, after it said that it shows it: then the test shows
	// the same one again.
	tab := p.openAfter(away+`const show = ServiceWorkerRegistration.prototype.showNotification;
		ServiceWorkerRegistration.prototype.showNotification = function (...a) { self.told = a; return show.apply(this, a) };`, "/")
	tab.live()
	tab.served()
	tab.armed()
	tab.press(`article[data-question] [data-key="1"]`)
	const shown = `navigator.serviceWorker.getRegistration('/').then(r => r.getNotifications()).then(all => self.all = all.length), self.all`
	tab.sees("the second question is told", `self.told?.[1].data === '/tasks/`+task+`#questions'`)
	kept := func() {
		tab.sees("the browser keeps the notification", `(async () => { const r = await navigator.serviceWorker.getRegistration('/');
			if (!(self.all = (await r.getNotifications()).length)) await r.showNotification(...told) })(), self.all === 1`)
	}
	kept()
	// Nobody has clicked, so that the browser opens no window.
	const click = `(async () => {
		const went = []; let waits;
		clients.openWindow = async path => { went.push('opens ' + path) };
		WindowClient.prototype.focus = async function () { went.push('looks at ' + new URL(this.url).pathname) };
		ExtendableEvent.prototype.waitUntil = promise => { waits = promise };
		const [one] = await registration.getNotifications();
		dispatchEvent(new NotificationEvent('notificationclick', { notification: one }));
		await waits;
		return went.join();
	})()`
	if got, want := run[string](p.worker(tab), click), "opens /tasks/"+task+"#questions"; got != want {
		t.Errorf("with no page of the task: the worker %s, want %s", got, want)
	}
	tab.sees("the notification is gone", shown+" === 0")
	tab.visit("/tasks/" + task + "#questions")
	tab.live()
	tab.sees("the question is in view", `(r => r.top >= 0 && r.bottom <= innerHeight)(document.querySelector('article[data-question]:not(.closed)').getBoundingClientRect())`)
	again := func(page string) {
		run[bool](tab, `(self.told = ['again', { data: '/tasks/`+task+`#questions', tag: 'again' }], true)`)
		kept()
		if got, want := run[string](p.worker(tab), click), "looks at "+page; got != want {
			t.Errorf("with a page of the task: the worker %s, want %s", got, want)
		}
	}
	again("/tasks/" + task)
	run[bool](tab, `navigator.serviceWorker.getRegistration('/').then(r => r.unregister())`)
	tab.visit("/tasks/roost:" + task + "?raw=1")
	tab.live()
	tab.served()
	if run[bool](tab, `navigator.serviceWorker.controller !== null`) {
		t.Error("the worker controls the page that registered it, want one that is older than the worker")
	}
	again("/tasks/roost:" + task)
}

// worker is the service worker of a browser, as what a test can evaluate in.
func (p *profile) worker(t *tab) *tab {
	p.Helper()
	var found target.ID
	p.until("the service worker runs", func() bool {
		all, err := chromedp.Targets(t.ctx)
		if err != nil {
			p.Fatal(err)
		}
		for _, one := range all {
			if one.Type == "service_worker" && strings.HasPrefix(one.URL, p.base()) {
				found = one.TargetID
			}
		}
		return found != ""
	})
	ctx, end := chromedp.NewContext(t.ctx, chromedp.WithTargetID(found))
	p.Cleanup(end)
	return &tab{profile: p, ctx: ctx}
}

// Where a browser has no service worker, a click on the notification of the page itself leads that page to the task.
func TestClickOnANotificationOfThePage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	p := h.elsewhere()
	tab := p.openAfter(away+`self.shown = []; delete Navigator.prototype.serviceWorker;
		self.Notification = class { static permission = 'granted'; constructor(title, o) { Object.assign(this, o, { title }); shown.push(this) } };`, "/usage")
	tab.live()
	task := h.task(asksColour, "paint the fence", nil)
	h.wait(task, "waiting")
	tab.sees("the question is told", `self.shown.length === 1 && shown[0].title === 'paint the fence'`)
	run[bool](tab, `shown[0].onclick(), true`)
	tab.sees("the task is open", `location.pathname === '/tasks/`+task+`' && document.body.dataset.live === 'true'`)
	tab.sees("the question is in view", `(r => r.top >= 0 && r.bottom <= innerHeight)(document.querySelector('article[data-question]').getBoundingClientRect())`)
}
