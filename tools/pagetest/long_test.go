package pagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// onlyLong skips a test in the short form. Such a test has the windows of a desktop and of a phone. One that needs the whole machine is not parallel: it runs before the others.
func onlyLong(t *testing.T) {
	t.Helper()
	if !long {
		t.Skip("it takes long: set ROOST_PAGE_LONG=1")
	}
}

// The network is away for a minute, in which the run ends: nothing is missing afterwards.
func TestCutOfAMinute(t *testing.T) {
	t.Parallel()
	onlyLong(t)
	for name, s := range map[string]size{"desktop": wide, "phone": narrow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, task, tab := writingAt(t, s, 400)
			back := time.After(time.Minute)
			h.relay.cut()
			tab.text("#live-state", "does not answer")
			h.wait(task, "completed")
			<-back
			tab.text("#live-state", "Not live since")
			h.relay.mend()
			tab.live()
			tab.text("#messages", "The end is reached.")
			tab.asAnew(task)
		})
	}
}

// Of 50 tabs of a browser each is live, over one stream, before and after the network was away, and the last one goes on
// when all others are closed.
func TestFiftyTabs(t *testing.T) {
	onlyLong(t)
	h := newHouse(t)
	var tasks []string
	for i := range 5 {
		tasks = append(tasks, h.task(finishes+"\n"+finishes, fmt.Sprintf("paint fence %d", i), nil))
		h.wait(tasks[i], "completed")
	}
	last := h.loggedIn(wide, "/")
	last.live()
	tabs := []*tab{last}
	var ends []func()
	for i := range 49 {
		path := "/"
		if i >= 5 {
			path = "/tasks/" + tasks[i%5]
		}
		ctx, end := chromedp.NewContext(last.profile.ctx)
		ends = append(ends, end)
		tabs = append(tabs, last.openIn(ctx, []size{wide, narrow}[i%2], path))
	}
	streams := func() {
		t.Helper()
		var server struct{ Streams int }
		h.until("the tabs share a stream", func() bool {
			h.ask("GET", "/v1/server", nil, &server)
			return server.Streams == 1
		})
	}
	for _, tab := range tabs {
		tab.live()
	}
	streams()
	h.relay.cut()
	for _, tab := range tabs {
		tab.text("#live-state", "does not answer")
	}
	added := h.task(finishes, "paint the new gate", nil)
	for _, task := range tasks {
		h.ask("POST", "/v1/tasks/"+task+"/messages", object{"text": "and once more"}, nil)
	}
	h.wait(added, "completed")
	h.relay.mend()
	for i, tab := range tabs {
		tab.live()
		if i <= 5 {
			tab.text("main .rows", "paint the new gate")
		} else {
			tab.text("#messages", "and once more")
		}
	}
	streams()
	for _, end := range ends {
		end()
	}
	h.task(finishes, "paint the last post", nil)
	last.text("main .rows", "paint the last post")
	streams()
}

// Among 10,000 tasks the list is paged, sorted, searched and changed as among few, and a new task comes to its top.
func TestTenThousandTasks(t *testing.T) {
	onlyLong(t)
	const many = 10_000
	storage := t.TempDir()
	for i := range many {
		words := fmt.Sprintf("mend post %d", i)
		if i == 4711 {
			words += " with the periwinkle board"
		}
		writeForeign(t, storage, fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(i)*2654435761, i), words, 1776100000000+int64(i)*1000)
	}
	h := newHouseIn(t, around{other: storage})
	h.ask("GET", "/v1/tasks?limit=1", nil, nil) // the first list reads all of them, which takes longer than a test waits
	tab := h.loggedIn(wide, "/")
	tab.tenThousand("gate")
	tab.profile.open(narrow, "/").tenThousand("shed")
}

// tenThousand does in a list of 10,000 tasks what one does in a list, with a task of its own about a thing.
func (t *tab) tenThousand(thing string) {
	t.Helper()
	added := "paint the " + thing
	const rows = `[...document.querySelectorAll('main .row[data-task] .c-title a:first-child')].map(e => e.textContent)`
	list := func(path string) {
		t.Helper()
		t.visit(path)
		t.live()
	}
	list("/?status=interrupted") // those of the storage
	seen := map[string]bool{}
	page := func(first string) {
		t.Helper()
		t.sees("the page begins with "+first, fmt.Sprintf("%s[0] === %q", rows, first))
		for _, title := range run[[]string](t, rows) {
			if seen[title] {
				t.Errorf("%s is listed twice", title)
			}
			seen[title] = true
		}
	}
	page("mend post 9999")
	for i := range 4 {
		t.press("nav.pages [rel=next]")
		page(fmt.Sprintf("mend post %d", 9999-50*(i+1)))
	}
	if len(seen) != 250 {
		t.Errorf("got %d tasks on five pages, want 250", len(seen))
	}
	list("/?sort=oldest")
	t.sees("the oldest is on top", rows+`[0] === 'mend post 0'`)
	list("/")
	t.press("#q")
	t.types("periwinkle")
	t.text("main .groups .sum", "1 hit in 1 task")
	t.press("main .hits a")
	t.text("#messages", "periwinkle board")
	list("/?q=mend")
	const groups = `[...document.querySelectorAll('main .group h2')].map(e => e.innerText)`
	before := run[[]string](t, groups)
	if len(before) == 0 {
		t.Fatal("got no task for a word of all, want a page of them")
	}
	t.press("nav.pages [rel=next]")
	t.sees("the next page has other hits", fmt.Sprintf(`(all => all.length > 0 && !all.includes(%q))(%s)`, before[0], groups))
	list("/")
	id := t.task(finishes, added, nil)
	t.sees("the new task is on top, and has ended", fmt.Sprintf("%s[0] === %q && document.querySelector('main .row[data-task] .c-status').innerText.includes('completed')", rows, added))
	t.goTo(id)
	t.keys("x")
	t.text("#selected", "1 selected")
	t.goTo(run[string](t, `document.querySelectorAll('main .row[data-task]')[2].dataset.task`))
	t.keys("X")
	t.text("#selected", "3 selected")
	t.keys("t")
	t.text("dialog", "Tag 3 tasks")
	t.types(thing)
	t.keys(enter)
	t.text("#notes", "3 tasks tagged")
	list("/?tag=" + thing)
	t.sees("those with the tag are listed", fmt.Sprintf("%s.length === 3 && %[1]s[0] === %q", rows, added))
}
