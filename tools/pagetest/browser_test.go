package pagetest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// theBrowser is one Chromium for all tests; nil when there is none.
var theBrowser context.Context

func TestMain(m *testing.M) {
	os.Exit(func() int {
		name, must := os.Getenv("ROOST_PAGE_BROWSER"), true
		if name == "" {
			name, must = "chromium", false
		}
		file, err := exec.LookPath(name)
		if err != nil {
			if must {
				fmt.Fprintln(os.Stderr, "pagetest:", err)
				return 1
			}
			return m.Run() // each test says why it is skipped
		}
		browserFile = file
		browser, end, err := launch()
		defer end()
		if err != nil {
			fmt.Fprintln(os.Stderr, "pagetest: start the browser:", err)
			return 1
		}
		theBrowser = browser
		return m.Run()
	}())
}

// browserFile is the program of the browser; "" when there is none.
var browserFile string

// launch starts a browser; end ends it.
func launch(more ...chromedp.ExecAllocatorOption) (browser context.Context, end func(), err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browserFile),
		chromedp.Flag("no-sandbox", os.Geteuid() == 0),
		chromedp.Flag("disable-dev-shm-usage", true),
		// A machine of a test has no more processors than it has tests at a time.
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("force-color-profile", "srgb"),
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), append(options, more...)...)
	browser, leave := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	return browser, func() { leave(); stop() }, chromedp.Do(browser)
}

// size is that of a window.
type size struct{ width, height int64 }

// long is the long form: what CI has no time for.
var long = os.Getenv("ROOST_PAGE_LONG") != ""

// wide and narrow are the windows of a desktop and of a phone.
var wide, narrow = size{1280, 900}, size{390, 844}

// desktop and phone are what a flow is driven at. In the long form each is the other one, so that both forms together
// drive each flow at both sizes; a test of the layout itself sets its window to wide and to narrow.
var desktop, phone = sizes()

func sizes() (desktop, phone size) {
	if long {
		return narrow, wide
	}
	return wide, narrow
}

// profile is a browser of one person: its tabs share cookies and workers.
type profile struct {
	*house
	ctx context.Context
}

// tab is one page of a browser.
type tab struct {
	*profile
	ctx context.Context

	mu    sync.Mutex
	wrong []string // what the browser reported
}

// browser makes a browser that has never been used.
func (h *house) browser() *profile {
	h.Helper()
	if theBrowser == nil {
		h.Skip("chromium is not installed")
	}
	ctx, end := chromedp.NewContext(theBrowser, chromedp.WithNewBrowserContext())
	h.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil {
		h.Fatal(err)
	}
	return &profile{house: h, ctx: ctx}
}

// open opens a tab of a size, at a path.
func (p *profile) open(s size, path string) *tab {
	p.Helper()
	ctx, end := chromedp.NewContext(p.ctx)
	p.Cleanup(end)
	return p.openIn(ctx, s, path)
}

// openIn opens a tab that the caller closes.
func (p *profile) openIn(ctx context.Context, s size, path string) *tab {
	p.Helper()
	t := &tab{profile: p, ctx: ctx}
	if err := chromedp.Listen(ctx, t.heard); err != nil {
		p.Fatal(err)
	}
	t.do("open a tab", command(log.Enable, cdp.Empty{}), command(network.Enable, network.EnableParams{}), sized(s))
	t.visit(path)
	p.Cleanup(t.check)
	return t
}

// loggedIn opens a browser with a tab that has followed the log-in link and then a path.
func (h *house) loggedIn(s size, path string) *tab {
	h.Helper()
	t := h.browser().open(s, h.login)
	if path != "/" {
		t.visit(path)
	}
	return t
}

func sized(s size) chromedp.Action[chromedp.Void] {
	if s.width >= 600 {
		return chromedp.EmulateViewport(s.width, s.height)
	}
	return chromedp.EmulateViewport(s.width, s.height, chromedp.EmulateMobile, chromedp.EmulateTouch)
}

// command is an action that sends one command of the protocol.
func command[P, R any](c cdp.Command[P, R], p P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, p)
		return err
	})
}

// heard notes what no page of ours may do.
func (t *tab) heard(event any) {
	wrong := ""
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Scheme+"://"+u.Host != t.base() && u.Scheme != "data" && u.Scheme != "blob" && u.Scheme != "about" {
			wrong = "asked " + e.Request.URL
		}
	case *page.EventJavascriptDialogOpening:
		wrong = "showed a dialog: " + e.Message
	case *runtime.EventExceptionThrown:
		wrong = fmt.Sprintf("met an error of a script: %+v", e.ExceptionDetails.Exception)
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceSecurity || strings.Contains(e.Entry.Text, "Content Security Policy") ||
			strings.Contains(e.Entry.Text, "Trusted") {
			wrong = "reported " + e.Entry.Text
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			wrong = fmt.Sprintf("wrote an error to the console: %s", e.Args[0].Value)
		}
	}
	if wrong == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong = append(t.wrong, wrong)
}

func (t *tab) check() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.wrong {
		t.Errorf("the page %s", w)
	}
	if t.Failed() && t.ctx.Err() == nil {
		ctx, stop := context.WithTimeout(t.ctx, 5*time.Second)
		defer stop()
		if text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + '\nwords: ' + document.getElementById('words')?.value + '\n' + document.body.innerText.slice(-3000)`)); err == nil {
			t.Logf("the page at the end: %s", text)
		}
	}
}

// do runs actions of the browser.
func (t *tab) do(what string, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.ctx, patience)
	defer stop()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (t *tab) visit(path string) {
	t.Helper()
	t.do("visit "+path, chromedp.Navigate(t.url(path)))
}

// run evaluates an expression in the page.
func run[T any](t *tab, expression string) T {
	t.Helper()
	ctx, stop := context.WithTimeout(t.ctx, patience)
	defer stop()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("evaluate %s: %v", expression, err)
	}
	return out
}

// sees waits until an expression is true in the page.
func (t *tab) sees(what, expression string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(25 * time.Millisecond) {
		// A page that is being left has no context for a moment.
		ctx, stop := context.WithTimeout(t.ctx, patience)
		got, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		stop()
		if err == nil && got {
			return
		}
		if err != nil && errors.Is(err, context.Canceled) || time.Now().After(end) {
			t.Fatalf("never came true: %s (%s): %v", what, expression, err)
		}
	}
}

// text waits until an element holds a text.
func (t *tab) text(selector, want string) {
	t.Helper()
	t.sees(selector+" holds "+want, fmt.Sprintf("[...document.querySelectorAll(%s)].some(e => e.checkVisibility() && e.innerText.includes(%s))",
		strconv.Quote(selector), strconv.Quote(want)))
}

// gone waits until no visible element fits a selector.
func (t *tab) gone(selector string) {
	t.Helper()
	t.sees("no "+selector, fmt.Sprintf("![...document.querySelectorAll(%s)].some(e => e.checkVisibility())", strconv.Quote(selector)))
}

// press presses the element that a selector fits, at its place: with a finger on a phone, else with a mouse.
func (t *tab) press(selector string) {
	t.Helper()
	// The scripts have bound what there is to press once they name the state of the connection.
	t.sees("the scripts ran", `document.body.dataset.live !== undefined || ['login', 'problem', 'trust'].includes(document.body.dataset.page)
		|| !document.querySelector('script[type=module]')`)
	t.sees(selector, fmt.Sprintf(`(e => e && e.checkVisibility() && !e.disabled)(document.querySelector(%s))`, strconv.Quote(selector)))
	// A person scrolls on where a note lies over what they want to press.
	place := fmt.Sprintf(`(e => { for (const block of ['nearest', 'center']) { e.scrollIntoView({block, behavior: 'instant'});
			const r = e.getBoundingClientRect(), x = r.x + r.width/2, y = r.y + r.height/2, free = e.contains(document.elementFromPoint(x, y));
			if (free || block === 'center') return [x, y, free ? 1 : 0]; } })(document.querySelector(%s))`, strconv.Quote(selector))
	t.sees("nothing lies over "+selector, place+"[2]")
	at := run[[]float64](t, place)
	t.do("press "+selector, chromedp.MouseClickXY(at[0], at[1]))
}

// keys presses keys, one after the other.
func (t *tab) keys(keys ...string) {
	t.Helper()
	for _, k := range keys {
		if k == escape {
			t.do("press "+k, chromedp.KeyEvent(k))
			continue
		}
		// One event presses the key and gives its text, so that a page that takes the key keeps the text away.
		down := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: k, Text: k, UnmodifiedText: k}
		up := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: k}
		if k == enter {
			down.Key, down.Code, down.WindowsVirtualKeyCode = "Enter", "Enter", 13
			up.Key, up.Code, up.WindowsVirtualKeyCode = "Enter", "Enter", 13
		}
		t.do("press "+k, command(input.DispatchKeyEvent, down), command(input.DispatchKeyEvent, up))
	}
}

// types puts text into what has the focus, as a person who types quickly.
func (t *tab) types(text string) {
	t.Helper()
	t.do("type", command(input.InsertText, input.InsertTextParams{Text: text}))
}

// focusShown fails unless what has the focus shows it.
func (t *tab) focusShown() {
	t.Helper()
	if got := run[string](t, `(e => { const s = getComputedStyle(e); return e === document.body ? 'body' : s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== 'none' ? '' : e.outerHTML.slice(0, 200) })(document.activeElement)`); got != "" {
		t.Errorf("nothing shows that the focus is on %s", got)
	}
}

// live waits until the page follows the events.
func (t *tab) live() {
	t.Helper()
	t.sees("the page is live", `document.body.dataset.live === 'true'`)
}

// armed waits until the open question takes an answer.
func (t *tab) armed() {
	t.Helper()
	t.sees("a question is open", `document.querySelector('article[data-question]:not(.closed) button')`)
	t.do("let the question be armed", chromedp.Sleep(600*time.Millisecond)) // what the page asks of a person, too
}

const (
	enter  = kb.Enter
	escape = kb.Escape
)

// asAnew fails unless the messages that the page shows are those of a page that is loaded now.
func (t *tab) asAnew(task string) {
	t.Helper()
	rows := `[...document.querySelectorAll('#messages > [data-index]')].map(e => { e = e.cloneNode(true); e.querySelector('#message-acts')?.remove(); return e.dataset.index + ' ' + e.textContent.replace(/\s+/g, ' ') })`
	t.sees("nothing is under way", `document.querySelectorAll('#live .streaming').length === 0 && ![...document.querySelectorAll('#messages > [data-index]')].some(e => e.hidden)`)
	anew := t.open(desktop, "/tasks/"+task)
	anew.live()
	want := run[[]string](anew, rows)
	got := run[[]string](t, rows)
	for end := time.Now().Add(patience / 4); strings.Join(got, "\n") != strings.Join(want, "\n") && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond) // the answer to what the last event said may be on the way
		got = run[[]string](t, rows)
	}
	// The page may have more of the past than a new one shows.
	for len(got) > len(want) && len(want) > 0 && got[0] != want[0] {
		got = got[1:]
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("the page shows other messages than a new one:\ngot:\n%s\nwant:\n%s", g, w)
	}
}

// path is the path of the page.
func (t *tab) path() string {
	t.Helper()
	return run[string](t, "location.pathname")
}

// openWithout opens a tab whose browser lacks a feature.
func (p *profile) openWithout(feature, path string) *tab {
	p.Helper()
	return p.openAfter("delete self."+feature, path)
}

// openCounting opens a tab that counts its timers.
func (p *profile) openCounting(path string) *tab {
	p.Helper()
	return p.openAfter(`self.counted = {timers: 0}; for (const name of ['setTimeout', 'setInterval', 'requestAnimationFrame']) {
		const real = self[name]; self[name] = (...a) => { counted.timers++; return real.apply(self, a); } }`, path)
}

func (p *profile) openAfter(script, path string) *tab {
	p.Helper()
	t := p.open(desktop, "/healthz")
	t.do("prepare the tab", command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script}))
	t.visit(path)
	return t
}

func itoa(n int) string { return strconv.Itoa(n) }

// key presses a key that types nothing.
func (t *tab) key(name string) {
	t.Helper()
	down := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: name}
	up := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: name}
	t.do("press "+name, command(input.DispatchKeyEvent, down), command(input.DispatchKeyEvent, up))
}
