package pagetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// foreign writes a task of Roo Code into a storage, and gives the storage. Its folder is not there any more.
func foreign(t *testing.T, id, words string) (storage string) {
	t.Helper()
	storage = t.TempDir()
	writeForeign(t, storage, id, words, 1776100000000)
	return storage
}

// writeForeign writes a task of Roo Code, which ended at a time in Unix milliseconds.
func writeForeign(t *testing.T, storage, id, words string, ts int64) {
	t.Helper()
	dir := filepath.Join(storage, "tasks", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	about := "<environment_details>\n# Current Mode\n<slug>code</slug>\n<model>gpt-5</model>\n</environment_details>"
	for name, v := range map[string]any{
		"ui_messages.json": []object{{"ts": ts, "type": "say", "say": "text", "text": words}, {"ts": ts + 1, "type": "say", "say": "text", "text": "I begin."}},
		"api_conversation_history.json": []object{
			{"role": "user", "content": []object{{"type": "text", "text": words}, {"type": "text", "text": about}}, "ts": ts},
			{"role": "assistant", "content": []object{{"type": "text", "text": "I begin."}}, "ts": ts + 1},
		},
		"history_item.json": object{"id": id, "number": 1, "ts": ts, "task": words, "tokensIn": 1, "tokensOut": 1, "totalCost": 0, "workspace": filepath.Join(storage, "no/such/folder")},
	} {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		past := time.Now().Add(-24 * time.Hour)
		if err := os.Chtimes(file, past, past); err != nil {
			t.Fatal(err)
		}
	}
}

// A task of another tool continues from the page: where it continues is said before, its folder is asked for, and so is
// the model.
func TestContinueAnotherToolsTask(t *testing.T) {
	t.Parallel()
	h := newHouseIn(t, around{other: foreign(t, "0199bbbb-0000-7000-8000-000000000001", "paint the fence")})
	var list struct{ Items []struct{ ID, Source string } }
	h.ask("GET", "/v1/tasks", nil, &list)
	if len(list.Items) != 1 {
		t.Fatalf("got %+v, want the task of the other tool", list)
	}
	name := list.Items[0].Source + ":" + list.Items[0].ID
	model := h.script(finishes + "\n" + finishes)["model"].(string)
	tab := h.loggedIn(phone, "/tasks/"+name)
	tab.live()
	tab.press("#words")
	tab.types("and the gate")
	tab.keys(enter)
	tab.text("dialog", "It continues in place: in the storage of roo")
	tab.gone("#messages [data-index='3']")
	tab.press("dialog .acts button:last-child") // not now: nothing happens, and the words stay
	tab.gone("dialog")
	if got := run[string](tab, "document.getElementById('words').value"); got != "and the gate" {
		t.Errorf("the field holds %q, want the words", got)
	}
	tab.press("#send")
	tab.text("dialog [role=alert]", "no/such/folder")
	tab.press("dialog [name=workspace]")
	run[bool](tab, "document.activeElement.select(), true")
	tab.types(h.work)
	tab.keys(enter)
	tab.text("dialog [role=alert]", "no provider is configured")
	for _, one := range [][2]string{{"provider", "script"}, {"model", model}} {
		tab.press("dialog [name=" + one[0] + "]")
		tab.types(one[1])
	}
	tab.press("dialog .acts button.primary")
	tab.text("dialog .some", "model: gpt-5 -> ") // another one than it was made with
	tab.press("dialog .acts button.primary")
	tab.text("#messages", "and the gate")
	tab.text("#messages", "done")
	tab.gone("dialog")
	var got struct{ Workspace, Status, Source string }
	h.wait(name, "completed")
	h.ask("GET", "/v1/tasks/"+name, nil, &got)
	if got.Workspace != h.work || strings.HasPrefix(got.Source, "roost") {
		t.Errorf("got %+v, want it to have gone on in its place and in the folder that was named", got)
	}
}

// A commit that the repository is on since the last run is shown before the next one; a run that works is joined.
func TestContinueShowsWhatChanged(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- tools: [{name: attempt_completion, input: {result: first}}]\n"+
		"- tools: [{name: execute_command, input: {command: 'while [ ! -e dry ]; do sleep 0.1; done'}}]\n"+
		"- tools: [{name: attempt_completion, input: {result: second}}]", "paint", object{"approve": "all"})
	h.wait(task, "completed")
	if err := os.Mkdir(filepath.Join(h.work, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.work, ".git", "HEAD"), []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	other := tab.profile.open(desktop, tab.path())
	other.live()
	tab.keys("i")
	tab.types("go on")
	tab.keys(enter)
	tab.text("dialog", "none -> 0123456789abcdef")
	tab.focusShown()
	tab.keys(enter)
	tab.gone("dialog")
	other.text("#activity", "…")
	other.keys("i")
	other.types("and the gate")
	other.keys(enter)
	other.text("#queue", "and the gate")
	if err := os.WriteFile(filepath.Join(h.work, "dry"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tab.text("#messages", "second")
}

// A task that does not say which tool made it, in which mode and by which model: the page names what is to be chosen.
func TestContinueAnUnknownToolsTask(t *testing.T) {
	t.Parallel()
	storage := t.TempDir()
	dir := filepath.Join(storage, "tasks", "0199bbbb-0000-7000-8000-000000000002")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, rows := range map[string]string{"ui_messages.json": `[{"ts":1776100000000,"type":"say","say":"text","text":"paint"}]`,
		"api_conversation_history.json": `[{"role":"user","content":"paint","ts":1776100000000}]`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(rows), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := newHouseIn(t, around{other: storage})
	var list struct{ Items []struct{ ID, Source string } }
	h.ask("GET", "/v1/tasks", nil, &list)
	tab := h.loggedIn(phone, "/tasks/"+list.Items[0].Source+":"+list.Items[0].ID)
	tab.live()
	tab.text("[data-does=mode]", "Choose mode")
	tab.text("[data-does=model]", "Choose model")
	tab.press("#retry")
	tab.text("dialog", "in the storage of another tool.")
}

// Roost does not write the files of Cline: what changes such a task changes a fork. The note says so and leads there, and
// words to edit are in the draft of the fork.
func TestChangeATaskThatIsNotWritten(t *testing.T) {
	t.Parallel()
	storage := filepath.Join(t.TempDir(), "saoudrizwan.claude-dev")
	writeForeign(t, storage, "1776100000000", "paint the fence", 1776100000000)
	if err := os.MkdirAll(filepath.Join(storage, "no/such/folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	h := newHouseIn(t, around{other: storage, env: []string{"ANTHROPIC_API_KEY=sk-ant-none"}})
	var list struct{ Items []struct{ ID, Source string } }
	h.ask("GET", "/v1/tasks", nil, &list)
	own := "/tasks/" + list.Items[0].Source + ":" + list.Items[0].ID
	tab := h.loggedIn(desktop, own)
	for _, c := range []struct{ what, keys, field, said, shows string }{
		{"go back", "kz", "", "The task is back at before #2.", `document.querySelectorAll('#messages > [data-index]').length === 1`},
		{"another mode", "", "mode", "The next run is in the mode ask.", `document.querySelector('[data-does=mode]').textContent === 'ask'`},
		{"edit and send again", "E", "", "", `document.getElementById('words').value === 'paint the fence'`},
	} {
		tab.visit(own)
		tab.live()
		if c.field != "" {
			tab.press("[data-does=" + c.field + "]")
			tab.press("dialog [name=" + c.field + "]")
			run[bool](tab, "document.activeElement.select(), true")
			tab.types("ask")
			tab.press("dialog h2") // the list of what may be meant lies over the buttons
		}
		tab.keys(strings.Split(c.keys, "")...)
		if c.keys == "E" { // the fork is there since the first act
			tab.text("dialog", "This task goes on in a fork")
		}
		tab.press("dialog .acts button")
		if c.said != "" {
			tab.text("#notes", c.said+" It was done in a fork")
			tab.press("#notes a")
		}
		tab.sees(c.what+": the page of the fork is open", "!location.pathname.includes(':') && document.body.dataset.live === 'true'")
		tab.sees(c.what, c.shows)
	}
}
