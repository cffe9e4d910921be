package pagetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Filters offer the values that exist, and stand as chips that are taken away one by one.
func TestFiltersAndChips(t *testing.T) {
	t.Parallel()
	h, ids, tab := listed(t, desktop, "one", "two")
	h.ask("PATCH", "/v1/tasks/"+ids["one"], object{"tags": []string{"garden"}}, nil)
	tab.text(".rows", "garden")
	tab.press("details.more > summary")
	tab.press("[name=tag]")
	tab.sees("the tags that exist are offered", `[...document.querySelector('[name=tag]').list?.options || []].some(o => o.value === 'garden')`)
	tab.press("[name=tool]")
	tab.sees("so are the tools that were called", `[...document.querySelector('[name=tool]').list?.options || []].some(o => o.value === 'attempt_completion')`)
	tab.press("[name=workspace]")
	tab.sees("and the folders", `[...document.querySelector('[name=workspace]').list?.options || []].length === 1`)
	tab.press("[name=tag]")
	tab.types("garden")
	tab.keys(enter)
	tab.text(".chips", "garden")
	tab.sees("only one task is listed", "document.querySelectorAll('.row[data-task]').length === 1")
	tab.press(".chips a")
	tab.sees("all tasks are listed", "document.querySelectorAll('.row[data-task]').length === 2")
	tab.gone(".chips")
}

// A damaged task says what is wrong, shows what a repair keeps, and is repaired.
func TestRepair(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task(finishes, "paint the fence", nil)
	h.wait(task, "completed")
	h.kill() // it writes no more
	file := filepath.Join(h.root, "tasks", task, "journal.jsonl")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	tab := h.loggedIn(desktop, "/")
	tab.live()
	tab.press(".row [data-does=repair]")
	tab.text("dialog", "journal")
	tab.press("dialog button.primary")
	tab.text("dialog h2", "repaired")
	tab.press("dialog .acts button")
	tab.gone("dialog")
}

// A deleted task is put back from the trash; another one is removed for good after a question.
func TestTrash(t *testing.T) {
	t.Parallel()
	h, ids, tab := listed(t, phone, "stays", "goes")
	for _, title := range []string{"stays", "goes"} {
		h.ask("DELETE", "/v1/tasks/"+ids[title], nil, nil)
	}
	extra := h.task(finishes, "extra", nil)
	h.wait(extra, "completed")
	h.ask("DELETE", "/v1/tasks/"+extra, nil, nil)
	tab.visit("/trash")
	tab.live()
	tab.press(`[aria-label="Put back extra"]`)
	tab.text("#notes", "“extra” is back")
	tab.sees("the focus is at the same place", `document.activeElement.matches('[data-does=restore]')`)
	h.ask("DELETE", "/v1/tasks/"+extra, nil, nil)
	h.ask("POST", "/v1/purges", object{"names": []string{extra}}, nil)
	tab.visit("/trash")
	tab.live()
	tab.press(`[aria-label="Remove for good goes"]`)
	tab.text("dialog", "cannot be undone")
	tab.press("dialog button.danger")
	tab.text("#notes", "removed for good")
	tab.press(`[data-does=restore]`)
	tab.text("#notes", "is back")
	tab.text("main", "The trash is empty")
	var list struct{ Items []struct{ ID string } }
	h.ask("GET", "/v1/tasks", nil, &list)
	if len(list.Items) != 1 || list.Items[0].ID != ids["stays"] {
		t.Errorf("got the tasks %+v, want the one that was put back", list.Items)
	}
}

// A command is approved with all of it in view, however it is joined and quoted; what "always" would keep is named, and
// kept.
func TestApproveWholeCommand(t *testing.T) {
	t.Parallel()
	const command = `printf '%s\n' "a && b" > 'the file.txt' && printf 'second; "part"\n' >> 'the file.txt' && cat 'the file.txt'`
	h, _, tab := asked(t, phone, `
- tools: [{name: execute_command, input: {command: `+quoted(command)+`}}]
- tools: [{name: execute_command, input: {command: "ls one"}}]
- tools: [{name: execute_command, input: {command: "ls two"}}]
- tools: [{name: attempt_completion, input: {result: both are done}}]
`)
	tab.sees("the whole command is in view", `document.querySelector('article[data-question] .command').textContent === `+quoted(command))
	tab.sees("a yes for always is offered only with what it keeps",
		`!!document.querySelector('article[data-question] [data-does=always]') === !!document.querySelector('article[data-question]').textContent.match(/Always allows/)`)
	tab.press(`article[data-question] [data-does=approve]`)
	tab.text("article[data-question] .command", "ls one")
	if got := readFile(t, filepath.Join(h.work, "the file.txt")); got != "a && b\nsecond; \"part\"\n" {
		t.Errorf("the command wrote %q", got)
	}
	tab.armed()
	tab.text("article[data-question]", "Always allows")
	tab.press(`article[data-question] [data-does=always]`)
	tab.text("#messages", "both are done") // the second one was not asked about
}

// quoted is a text as JSON, which is YAML and JavaScript, too.
func quoted(text string) string {
	data, _ := json.Marshal(text) // a string
	return string(data)
}

// The number of a message is its link, and copies the address.
func TestCopyLinkToMessage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: execute_command, input: {command: seq 9}}]\n"+finishes, "paint the fence", object{"approve": "all"})
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	run[bool](tab, `Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (t) => { window.copied = t }}}), true`)
	tab.press("#ui-1 header a")
	tab.text("#notes", "The link to #1 is copied")
	tab.sees("the address of the message", `window.copied.endsWith('/tasks/`+task+`#ui-1') && location.hash === '#ui-1'`)
	tab.press("#messages .tool .item > a") // of a message that is folded
	tab.sees("its address, too", `window.copied.endsWith('`+run[string](tab, "document.querySelector('#messages .tool').id")+`')`)
}

// A task with many hits shows some, and how many more there are; they open as a find in the task.
func TestMoreHitsInATask(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.long(60, func(i int) string { return fmt.Sprintf("message %d of the painted story", i) })
	tab := h.loggedIn(phone, "/")
	tab.live()
	tab.press("#q")
	tab.types("painted")
	tab.text(".group .also", "56 more in this task")
	tab.sees("the words are marked", `document.querySelector('.hits mark').textContent === 'painted'`)
	tab.press(".group .also a")
	tab.text(".found h2", "60 messages with “painted”")
}
