package pagetest

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

const finishes = "- tools: [{name: attempt_completion, input: {result: done}}]"

// listed makes some tasks that are completed, and opens the list of them.
func listed(t *testing.T, s size, titles ...string) (*house, map[string]string, *tab) {
	t.Helper()
	h := newHouse(t)
	ids := map[string]string{}
	for _, title := range titles {
		ids[title] = h.task(finishes, title, nil)
		h.wait(ids[title], "completed")
	}
	tab := h.loggedIn(s, "/")
	tab.live()
	tab.sees("all tasks are listed", fmt.Sprintf("document.querySelectorAll('.row[data-task] .pick').length === %d", len(titles)))
	return h, ids, tab
}

// goTo moves to a task of the list by keys.
func (t *tab) goTo(task string) {
	t.Helper()
	here := fmt.Sprintf(`document.activeElement.closest('.row[data-task]')?.dataset.task === %s`, strconv.Quote(task))
	for range 30 {
		t.keys("j")
		if run[bool](t, here) {
			return
		}
	}
	for range 30 {
		t.keys("k")
		if run[bool](t, here) {
			return
		}
	}
	t.Fatalf("keys do not reach the task %s", task)
}

type labels struct {
	Pinned bool
	Tags   []string
}

func (h *house) labels(task string) (out labels) {
	h.Helper()
	h.ask("GET", "/v1/tasks/"+task, nil, &out)
	return out
}

// Several tasks are selected by keys, tagged and pinned, and that is taken back as one act each.
func TestSeveralByKeys(t *testing.T) {
	t.Parallel()
	h, ids, tab := listed(t, desktop, "one", "two", "three", "four")
	tab.goTo(ids["four"])
	tab.keys("x")
	tab.text("#selected", "1 selected")
	tab.focusShown()
	tab.goTo(ids["two"])
	tab.keys("X")
	tab.text("#selected", "3 selected")
	tab.keys("t")
	tab.text("dialog", "Tag 3 tasks")
	tab.types("urgent, garden")
	tab.keys(enter)
	tab.text("#notes", "3 tasks tagged")
	for title, want := range map[string]string{"one": "", "two": "garden urgent", "three": "garden urgent", "four": "garden urgent"} {
		got := h.labels(ids[title]).Tags
		if len(got) == 2 && got[0] > got[1] {
			got[0], got[1] = got[1], got[0]
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the task %s has the tags %v, want %q", title, got, want)
		}
	}
	tab.text("#selected", "3 selected")                                  // the same act may follow another
	h.ask("PATCH", "/v1/tasks/"+ids["two"], object{"pinned": true}, nil) // which this act does not change
	tab.keys("p")
	tab.text("#notes", "3 tasks pinned")
	tab.keys("u")
	tab.text("#notes", "3 tasks are as they were")
	for _, title := range []string{"two", "three", "four"} {
		if got, pinned := h.labels(ids[title]), title == "two"; got.Pinned != pinned || len(got.Tags) != 2 {
			t.Errorf("the task %s has %+v, want its tags and pinned %v", title, got, pinned)
		}
	}
	tab.keys(escape)
	tab.gone("#selected")
}

// Several tasks are deleted with their subtasks, whose number the question names; undo brings all of them back.
func TestDeleteSeveral(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	child := "- task: part ONE\n- tools: [{name: attempt_completion, input: {result: part}}]\n"
	parent := h.task("- tools: [{name: new_task, input: {mode: code, message: \"do part ONE\", todos: null}}]\n"+finishes+"\n"+child, "the whole", object{"approve": "all"})
	h.wait(parent, "completed")
	other := h.task(finishes, "another", nil)
	h.wait(other, "completed")
	tab := h.loggedIn(desktop, "/")
	tab.live()
	tab.sees("all tasks are listed", "document.querySelectorAll('.row[data-task] .pick').length === 3")
	tab.press(".row button.fold")
	tab.sees("the subtask is folded", "[...document.querySelectorAll('.row[data-task]')].filter(e => e.checkVisibility()).length === 2")
	tab.press(`.row[data-task="` + parent + `"] .pick`)
	tab.press(`.row[data-task="` + other + `"] .pick`)
	tab.text("#selected", "2 selected")
	tab.press("#selected [data-does=delete]")
	tab.text("dialog", "1 subtask that is not selected")
	run[bool](tab, `(() => { const real = fetch; window.fetch = (path, o) => real(o?.method === 'DELETE' && String(path).includes('`+parent+`') && !window.free ? '/v1/tasks/gone-away' : path, o); return true })()`)
	tab.press("dialog button.danger")
	tab.text("#notes", "1 task in the trash") // the other one stays, with its subtask
	tab.press("dialog .acts button")
	tab.press("#notes button")
	tab.text("#notes", "as it was")
	run[bool](tab, "window.free = true")
	tab.sees("the tasks are back", "document.querySelectorAll('.row[data-task] .pick').length === 3")
	for _, id := range []string{parent, other} {
		if pick := `.row[data-task="` + id + `"] .pick`; !run[bool](tab, "document.querySelector('"+pick+"').checked") {
			tab.press(pick)
		}
	}
	tab.press("#selected [data-does=delete]")
	tab.press("dialog button.danger")
	tab.text("#notes", "3 tasks in the trash")
	tab.gone(".row[data-task]")
	tab.press("#notes button")
	tab.text("#notes", "as they were")
	tab.sees("all are back", "document.querySelectorAll('.row[data-task]').length === 3")
}

// What happens in tasks brings the list up to date, and the focus stays where it is: in its row, among the hits of its task,
// at what narrows the list, or at the way to another page of it.
func TestFocusStaysInItsRow(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for i := range 51 {
		h.long(2, func(int) string { return "garden" + strings.Repeat(" and more", i) })
	}
	one, two := h.task(finishes, "one garden", nil), h.task(finishes, "two", nil)
	h.wait(one, "completed")
	h.wait(two, "completed")
	tab := h.loggedIn(desktop, "/")
	for i, c := range []struct{ path, what string }{
		{"/", ".row .pick"}, {"/", ".row .c-title > a"}, {"/", ".row .c-folder a"}, {"/", ".row .c-tool a"}, {"/", ".pages a[rel=next]"},
		{"/?q=garden", ".group .pick"}, {"/?q=garden", ".group h2 a"}, {"/?q=garden", ".hits a"},
		{"/?source=roost", ".chips a"}, {"/?source=roost", ".chips .all"},
	} {
		tab.visit(c.path)
		tab.live()
		what := strings.NewReplacer(".row ", `.row[data-task="`+one+`"] `, ".group ", `.group[data-task="`+one+`"] `).Replace(c.what)
		run[bool](tab, fmt.Sprintf(`(self.old = document.querySelector(%q), old.focus(), true)`, what))
		h.ask("PATCH", "/v1/tasks/"+two, object{"title": fmt.Sprint("garden ", i)}, nil)
		tab.sees("the list is read anew", "!old.isConnected")
		tab.sees("the focus stays on "+c.what+" of "+c.path, fmt.Sprintf(`document.activeElement.matches(%q)`, what))
	}
}

// A task that cannot be changed is named; the others are changed.
func TestSeveralNamesWhatFails(t *testing.T) {
	t.Parallel()
	h, ids, tab := listed(t, desktop, "stays", "goes")
	tab.press(`.row[data-task="` + ids["stays"] + `"] .pick`)
	tab.press(`.row[data-task="` + ids["goes"] + `"] .pick`)
	// The page does not learn that the first one has gone.
	run[bool](tab, `(() => { const real = fetch; window.fetch = (path, o) => real(o?.method === 'PATCH' && String(path).includes('`+ids["goes"]+`') ? '/v1/tasks/gone-away' : path, o); return true })()`)
	tab.keys("p")
	tab.text("#notes", "1 task pinned")
	tab.text("dialog .failures", "goes")
	if !h.labels(ids["stays"]).Pinned || h.labels(ids["goes"]).Pinned {
		t.Errorf("got %+v and %+v, want only the first pinned", h.labels(ids["stays"]), h.labels(ids["goes"]))
	}
}

// Several tasks are exported as one archive, on a phone.
func TestExportSeveral(t *testing.T) {
	t.Parallel()
	h, ids, tab := listed(t, phone, "one", "two", "three")
	run[bool](tab, `HTMLAnchorElement.prototype.click = function () { window.loaded = this.getAttribute('href') }, true`)
	tab.press(`.row[data-task="` + ids["one"] + `"] .pick`)
	tab.press(`.row[data-task="` + ids["three"] + `"] .pick`)
	tab.press("#selected [data-does=export]")
	tab.text("#notes", "2 tasks as one archive")
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+h.listen+run[string](tab, "window.loaded"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+h.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	files, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatalf("%s: %v", answer.Status, err)
	}
	found := map[string]bool{}
	for _, f := range files.File {
		for title, id := range ids {
			if strings.Contains(f.Name, id) {
				found[title] = true
			}
		}
	}
	if !found["one"] || !found["three"] || found["two"] {
		t.Errorf("the archive holds %v, want one and three", found)
	}
}

// A bar of the usage leads to its tasks, and the table below has the same for those who do not see bars.
func TestUsageBars(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- {usage: {input: 1200, output: 30}, tools: [{name: attempt_completion, input: {result: done}}]}", "count the posts", nil)
	h.wait(task, "completed")
	tab := h.loggedIn(phone, "/usage?days=7")
	tab.sees("there is a column for each day", "document.querySelectorAll('svg.columns .room').length === 7")
	tab.sees("the chart is named", `document.querySelector('svg.columns title').textContent === 'Tokens by day, the last 7 days'`)
	tab.sees("the same is in the table", "document.querySelectorAll('table tbody tr').length === 1")
	tab.sees("a bar leads to its tasks", "document.querySelector('svg .bar').parentNode.getAttribute('href') === document.querySelector('table tbody a').getAttribute('href')")
	tab.visit("/usage?by=model")
	tab.sees("the bar has its width", "document.querySelector('svg.bars .bar').getBoundingClientRect().width > 300")
	tab.visit(run[string](tab, "document.querySelector('svg.bars a').getAttribute('href')"))
	tab.text(".rows", "count the posts")
}
