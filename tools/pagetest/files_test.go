package pagetest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The files that the model knows stand beside the messages, and follow; a checkpoint stands at its message, shows what
// changed since, and puts the files back.
func TestFilesAndCheckpoints(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task(`
- tools: [{name: write_to_file, input: {path: fence.txt, content: "red paint\n"}}]
- tools: [{name: ask_followup_question, input: {question: Which colour?, follow_up: [{text: green, mode: null}]}}]
- tools: [{name: write_to_file, input: {path: gate.txt, content: "green paint\n"}}]
- tools: [{name: attempt_completion, input: {result: painted}}]
`, "paint", object{"approve": "all"})
	h.wait(task, "waiting")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.text(".side .known", "fence.txt")
	tab.armed()
	tab.press(`article[data-question] [data-key="1"]`)
	tab.text("#messages", "painted")
	tab.text(".side .known", "gate.txt")
	const all = "document.querySelectorAll('#messages .checkpoint [data-restore]')"
	tab.sees("checkpoints stand at their messages", all+".length >= 2")
	tab.asAnew(task)
	if err := os.WriteFile(filepath.Join(h.work, "gate.txt"), []byte("somebody else's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tab.visit("/tasks/" + task)
	tab.live()
	tab.text(".side .known .s-waiting", "changed")
	first := run[string](tab, all+"[0].dataset.restore")
	since := run[string](tab, "document.querySelector('#messages .checkpoint a').getAttribute('href')")
	tab.press(fmt.Sprintf("#messages [data-restore=%s]", first))
	tab.text("dialog", "would change")
	tab.press("dialog button.danger")
	tab.text("#notes", "files are back")
	h.until("the file is as it was before the task", func() bool {
		_, err := os.Stat(filepath.Join(h.work, "fence.txt"))
		return os.IsNotExist(err)
	})
	tab.press("#notes button")
	h.until("undo puts it back", func() bool {
		data, _ := os.ReadFile(filepath.Join(h.work, "fence.txt"))
		return string(data) == "red paint\n"
	})
	tab.visit(since)
	tab.text("#changes", "fence.txt")
}

// The states of subtasks follow beside the messages of the task above them, and its own above them.
func TestSubtasksFollow(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task(`
- {text: `+words(10)+`, delay: 30ms, tools: [{name: new_task, input: {mode: code, message: "do part ONE", todos: null}}]}
`+finishes+`
- task: part ONE
- tools: [{name: ask_followup_question, input: {question: Which part?, follow_up: [{text: this one, mode: null}]}}]
`+finishes, "the whole", object{"approve": "all"})
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.text(".side .subtasks", "waiting")
	tab.text(".taskhead .facts", "delegated")
	tab.text("#activity", "Waits for a subtask")
	h.ask("POST", "/v1/tasks/"+task+"/cancel", object{}, nil)
	h.ask("POST", "/v1/tasks/"+task+"/runs", object{}, nil)
	tab.sees("the run went on", `document.querySelector('#messages').textContent.includes('resumed')`)
	tab.text("#activity", "Waits for a subtask")
	tab.gone("#interrupt")
	var list struct{ Items []struct{ ID string } }
	h.ask("GET", "/v1/questions", nil, &list)
	h.ask("POST", "/v1/questions/"+list.Items[0].ID+"/answer", object{"choice": 1}, nil)
	tab.text(".side .subtasks", "completed")
	tab.text("#activity", "Completed")
	tab.text(".taskhead .facts", "completed")
}

// A live page shows the same state, prompts, branches and details as a fresh one, and says when a task has no messages.
func TestSideFollows(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task(finishes+"\n- {text: "+words(100)+", delay: 20ms, tools: [{name: ask_followup_question, "+
		"input: {question: Which gate?, follow_up: [{text: the old one, mode: null}]}}]}\n"+finishes, "paint the fence", nil)
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.gone("main .empty")
	tab.press(".side .about summary")
	h.ask("POST", "/v1/tasks/"+task+"/messages", object{"text": "and the gate"}, nil)
	tab.text(".side .prompts", "and the gate")
	tab.text("#questions", "Which gate?")
	tab.text(".taskhead .facts", "waiting")
	tab.armed()
	tab.press(`article[data-question] [data-key="1"]`)
	tab.text(".taskhead .facts", "completed")
	tab.text(".side .prompts", "the old one")
	tab.text(".side .about", fmt.Sprint(run[int](tab, "+document.querySelector('#messages > :last-child').dataset.index"), " shown"))
	h.ask("POST", "/v1/tasks/"+task+"/rewinds", object{"to": "#1"}, nil)
	tab.text(".side .branches", "Compare")
	tab.text("main .empty", "No messages.")
	tab.gone(".side .prompts")
	h.ask("POST", "/v1/tasks/"+task+"/undo", object{}, nil)
	tab.text(".side .prompts", "and the gate")
	tab.gone("main .empty")
	if got := run[string](tab, "[...document.querySelectorAll('.side > details')].map(e => e.className).join()"); got != "prompts,about,export" {
		t.Errorf("got the parts %s beside the messages, want them in the order of a new page", got)
	}
}

// What the model sees stands beside the conversation, with what is condensed; on a phone below each other.
func TestAlignedView(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task("- {text: first reply}\n"+finishes+"\n- text: It is about paint.", "paint the fence", object{"approve": "all"})
	h.wait(task, "completed")
	h.ask("POST", "/v1/tasks/"+task+"/condense", h.condenses(), nil)
	tab := h.loggedIn(desktop, "/tasks/"+task+"?view=effective")
	tab.press(".switch a")
	tab.text(".p-condensed .saw", "paint the fence")
	tab.text(".p-condensed .fate", "condensed")
	tab.text(".p-summary .sees", "Conversation Summary")
	const places = `(p => { const a = p.querySelector('.saw').getBoundingClientRect(), b = p.querySelector('.sees').getBoundingClientRect(); return [a.right <= b.left, a.bottom <= b.top] })(document.querySelector('.pair'))`
	tab.do("a desktop", sized(wide))
	tab.sees("they stand side by side", places+"[0]")
	tab.do("a phone", sized(narrow))
	tab.sees("they stand below each other", places+"[1]")
}

// condenses is a request for a summary by a model that plays a script.
func (h *house) condenses() object {
	body := h.script("- text: A short summary.")
	delete(body, "workspace")
	return body
}
