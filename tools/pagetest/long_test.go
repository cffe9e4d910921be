package pagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// onlyLong skips a test in the short form. One that needs the whole machine is not parallel: it runs before the others.
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
	h, task, tab := writing(t, 400)
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
	last := h.loggedIn(desktop, "/")
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
		tab := last.openIn(ctx, desktop, path)
		tabs = append(tabs, tab)
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
	tab := h.loggedIn(desktop, "/")
	tab.live()
	const rows = `[...document.querySelectorAll('main .row[data-task] .c-title a:first-child')].map(e => e.textContent)`
	seen := map[string]bool{}
	page := func(first string) {
		t.Helper()
		tab.sees("the page begins with "+first, rows+`[0] === `+fmt.Sprintf("%q", first))
		for _, title := range run[[]string](tab, rows) {
			if seen[title] {
				t.Errorf("%s is listed twice", title)
			}
			seen[title] = true
		}
	}
	page("mend post 9999")
	for i := range 4 {
		tab.press("nav.pages [rel=next]")
		page(fmt.Sprintf("mend post %d", 9999-50*(i+1)))
	}
	if len(seen) != 250 {
		t.Errorf("got %d tasks on five pages, want 250", len(seen))
	}
	tab.visit("/?sort=oldest")
	tab.sees("the oldest is on top", rows+`[0] === 'mend post 0'`)
	tab.visit("/")
	tab.live()
	tab.press("#q")
	tab.types("periwinkle")
	tab.text("main .groups .sum", "1 hit in 1 task")
	tab.press("main .hits a")
	tab.text("#messages", "periwinkle board")
	tab.visit("/?q=mend")
	const groups = `[...document.querySelectorAll('main .group h2')].map(e => e.innerText)`
	before := run[[]string](tab, groups)
	if len(before) == 0 {
		t.Fatal("got no task for a word of all, want a page of them")
	}
	tab.press("nav.pages [rel=next]")
	tab.sees("the next page has other hits", fmt.Sprintf(`(all => all.length > 0 && !all.includes(%q))(%s)`, before[0], groups))
	tab.visit("/")
	tab.live()
	h.task(finishes, "paint the gate", nil)
	tab.sees("the new task is on top", rows+`[0] === 'paint the gate'`)
	tab.keys("j", "x", "j", "j", "j", "j", "X")
	tab.text("#selected", "5 selected")
	tab.keys("t")
	tab.text("dialog", "Tag 5 tasks")
	tab.types("garden")
	tab.keys(enter)
	tab.text("#notes", "5 tasks tagged")
	tab.visit("/?tag=garden")
	tab.sees("those with the tag are listed", rows+`.join() === 'paint the gate,mend post 9999,mend post 9998,mend post 9997,mend post 9996'`)
}
