package pagetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// thirtyLines are the lines of a file, some of them with other words.
func thirtyLines(other map[int]string) string {
	var out strings.Builder
	for i := 1; i <= 30; i++ {
		word, is := other[i]
		if !is {
			word = fmt.Sprintf("line %d", i)
		}
		out.WriteString(word + "\n")
	}
	return out.String()
}

// reviewed is a task that changed line 2 of a file by a tool, and line 15 by a command.
func reviewed(t *testing.T) (h *house, task, file string) {
	h = newHouse(t)
	file = filepath.Join(h.work, "list.txt")
	h.writeLines(file, nil)
	task = h.task(`
- tools: [{name: read_file, input: {path: list.txt}}]
- tools: [{name: write_to_file, input: {path: list.txt, content: `+fmt.Sprintf("%q", thirtyLines(map[int]string{2: "agent"}))+`}}]
- tools: [{name: execute_command, input: {command: "sed -i 's/line 15/command/' list.txt"}}]
- tools: [{name: attempt_completion, input: {result: The list is mended.}}]
- expect: ["list.txt:2", "use the old word"]
  tools: [{name: attempt_completion, input: {result: I read the comment.}}]
`, "mend the list", object{"approve": "all"})
	h.wait(task, "completed")
	return h, task, file
}

func (h *house) writeLines(file string, other map[int]string) {
	h.Helper()
	if err := os.WriteFile(file, []byte(thirtyLines(other)), 0o600); err != nil {
		h.Fatal(err)
	}
}

func (h *house) holds(file string, other map[int]string) {
	h.Helper()
	if got, want := readFile(h.T, file), thirtyLines(other); got != want {
		h.Errorf("the file holds %q, want %q", got, want)
	}
}

// A file goes back after a preview, and comes again.
func TestReviewRestoresAFile(t *testing.T) {
	t.Parallel()
	h, task, file := reviewed(t)
	tab := h.loggedIn(phone, "/tasks/"+task+"/changes")
	tab.live()
	tab.press("[data-does=restore-file]")
	tab.text("dialog", "+line 15")
	tab.press("dialog .danger")
	tab.text("#notes", "list.txt is written")
	h.holds(file, nil)
	tab.press("#notes button")
	tab.text("#notes", "Taken back")
	h.holds(file, map[int]string{2: "agent", 15: "command"})
	tab.text("#newer", "changed since")
}

// A hunk goes back alone, and comes again. The page that shows it from before is refused.
func TestReviewRestoresAHunk(t *testing.T) {
	t.Parallel()
	h, task, file := reviewed(t)
	tab := h.loggedIn(desktop, "/tasks/"+task+"/changes")
	tab.live()
	tab.press("[data-hunk='2'] [data-does=restore-hunk]")
	tab.text("dialog .diff", "-command")
	tab.press("dialog .danger")
	tab.text("#notes", "list.txt is written")
	h.holds(file, map[int]string{2: "agent"})
	tab.press("#notes button")
	tab.text("#notes", "Taken back")
	h.holds(file, map[int]string{2: "agent", 15: "command"})
}

// A page that shows a hunk as it was before a change restores nothing.
func TestReviewRefusesAStaleHunk(t *testing.T) {
	t.Parallel()
	h, task, file := reviewed(t)
	tab := h.loggedIn(desktop, "/tasks/"+task+"/changes")
	tab.live()
	own := map[int]string{2: "agent", 15: "command", 3: "own"}
	h.writeLines(file, own)
	tab.press("[data-hunk='1'] [data-does=restore-hunk]")
	tab.text("#notes", "not the one that was shown")
	tab.text("#newer", "changed since")
	h.holds(file, own)
	tab.press("#newer button")
	tab.text(".hunk", "own")
}

// A file with a person's own change is a conflict: it stays, or loses only the changes of the task.
func TestReviewShowsAConflict(t *testing.T) {
	t.Parallel()
	h, task, file := reviewed(t)
	own := map[int]string{2: "agent", 15: "command", 28: "own"}
	h.writeLines(file, own)
	tab := h.loggedIn(desktop, "/tasks/"+task+"/changes")
	tab.live()
	tab.press("[data-does=restore-file]")
	tab.text("dialog", "In conflict, and left as it is")
	tab.gone("dialog .danger")
	h.holds(file, own)
	tab.press("dialog [value=merge]")
	tab.text("dialog .diff", "+line 15")
	tab.press("dialog .danger")
	tab.text("#notes", "list.txt is written")
	h.holds(file, map[int]string{28: "own"})
}

// Each change names who made it: a call of the agent, with the link to its message, a command, and the person.
func TestReviewNamesWhoMadeIt(t *testing.T) {
	t.Parallel()
	h, task, file := reviewed(t)
	h.writeLines(file, map[int]string{2: "agent", 15: "command", 28: "own"})
	tab := h.loggedIn(desktop, "/tasks/"+task+"/changes")
	tab.text("[data-hunk='1'] .by", "agent: write_to_file #")
	tab.text("[data-hunk='2'] .by", "command: execute_command #")
	tab.text("[data-hunk='3'] .by", "you, or another program")
	tab.press("[data-hunk='1'] .by a")
	tab.sees("the link leads to the message", `location.pathname === '/tasks/`+task+`' && document.querySelector(location.hash)?.textContent.includes('list.txt')`)
}

// A comment on a line waits in the draft, marked at its line, and reaches the model with the next message.
func TestReviewCommentReachesTheModel(t *testing.T) {
	t.Parallel()
	h, task, _ := reviewed(t)
	tab := h.loggedIn(phone, "/tasks/"+task+"/changes")
	tab.live()
	tab.press(".lines > [data-new='2'] .ln")
	tab.types("use the old word")
	tab.press("form.comment .primary")
	tab.text("#waiting", "1 comment waits in the next message")
	tab.sees("the line is marked", `document.querySelector(".lines > .commented[data-new='2']")`)
	tab.press("#waiting a")
	tab.live()
	tab.sees("the draft has the comment", `document.querySelector('#words').value === 'list.txt:2\n> agent\nuse the old word'`)
	tab.press("#send")
	tab.text("#messages", "I read the comment.")
	tab.visit("/tasks/" + task + "/changes")
	tab.live()
	tab.gone("#waiting")
	tab.gone(".commented")
}

// A comment that is being written stays when another line is chosen.
func TestReviewKeepsACommentThatIsWritten(t *testing.T) {
	t.Parallel()
	h, task, _ := reviewed(t)
	tab := h.loggedIn(desktop, "/tasks/"+task+"/changes")
	tab.live()
	tab.press(".lines > [data-new='2'] .ln")
	tab.types("use the old word")
	tab.press(".lines > [data-new='3'] .ln")
	const there = `[...document.querySelectorAll('form.comment textarea')].some(e => e.value === 'use the old word' && e === document.activeElement)`
	tab.sees("its words are there", there)
	run[bool](tab, "(document.querySelector('#newer').hidden = false, true)") // as after a change of a file
	tab.press("#newer button")
	tab.sees("its words are there still", there)
	tab.press("form.comment .primary")
	tab.text("#waiting", "1 comment waits")
	tab.press(".lines > [data-new='3'] .ln")
	tab.sees("the next one is empty", `document.querySelector('form.comment textarea').value === ''`)
}

// The review by keyboard alone: hunks, lines, a comment, with the focus in view.
func TestReviewByKeyboard(t *testing.T) {
	t.Parallel()
	h, task, _ := reviewed(t)
	tab := h.loggedIn(desktop, "/tasks/"+task+"/changes")
	tab.live()
	tab.keys("j", "j", "k")
	tab.sees("the first hunk has the focus", `document.activeElement.closest('[data-hunk="1"]')`)
	tab.focusShown()
	for range 2 {
		tab.key("ArrowDown")
	}
	tab.sees("the changed line has the focus", `document.activeElement.textContent === '+agent'`)
	tab.focusShown()
	tab.keys("c")
	tab.types("why?")
	tab.press("form.comment .primary")
	tab.text("#waiting", "1 comment waits")
	tab.sees("the line has the focus again", `document.activeElement.matches('.commented')`)
	tab.keys("x")
	tab.text("dialog .diff", "-agent")
	tab.keys(escape)
	tab.gone("dialog")
}

// By turn: each prompt with what came of it, and what differs since.
func TestReviewByTurn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task(`
- tools: [{name: write_to_file, input: {path: a.txt, content: "one\n"}}]
- tools: [{name: attempt_completion, input: {result: The first.}}]
- tools: [{name: write_to_file, input: {path: a.txt, content: "two\n"}}]
- tools: [{name: write_to_file, input: {path: b.txt, content: "two\n"}}]
- tools: [{name: attempt_completion, input: {result: The second.}}]
`, "write the first list", object{"approve": "all"})
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.press("#words")
	tab.types("now the second")
	tab.press("#send")
	tab.text("#messages", "The second.")
	tab.visit("/tasks/" + task + "/changes")
	tab.press(".switch a[href$='by=turn']")
	tab.text("#t1", "write the first list")
	tab.text("#t1 .file", "a.txt")
	tab.text("#t2", "now the second")
	tab.text("#t2 .file", "b.txt")
	tab.sees("each turn has its files", `document.querySelectorAll('#t1 .file').length === 1 && document.querySelectorAll('#t2 .file').length === 2`)
	tab.live()
	tab.press("#t1 [data-new='1'] .ln")
	tab.types("why one?")
	tab.press("form.comment .primary")
	tab.text("#waiting", "1 comment waits")
	if got := run[string](tab, `[...document.querySelectorAll('.commented')].map(e => e.closest('.part').id + e.textContent).join()`); got != "t1+one" {
		t.Errorf("got the mark of the comment at %s, want t1+one", got)
	}
}

// A message for a commit is proposed, and nothing is committed.
func TestReviewProposesACommitMessage(t *testing.T) {
	t.Parallel()
	h, task, _ := reviewed(t)
	tab := h.loggedIn(desktop, "/tasks/"+task+"/changes")
	tab.live()
	tab.text("#commit-message", "Mend the list")
	tab.text("#commit-message", "Change list.txt (+2 -2)")
	tab.sees("it can be copied", `document.querySelector('[data-does=copy-message]')`)
	tab.press("[data-does=ask-message]")
	tab.press("#notes a")
	tab.live()
	tab.sees("the draft asks for one", `document.querySelector('#words').value.startsWith('Suggest a message for a commit')`)
}

// Names and contents of files run nothing, and such a file goes back like any other.
func TestReviewOfHostileFiles(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	name := "<img src=x onerror=alert(1)>\u202e&%41.txt"
	command := `printf '<script>alert(1)</script>\n\033[31mred \342\200\256turned\n' > "$(printf '<img src=x onerror=alert(1)>\342\200\256&%%41.txt')"; printf 'a\0b' > binary`
	task := h.task(fmt.Sprintf(`
- tools: [{name: write_to_file, input: {path: a.txt, content: "one\n"}}]
- tools: [{name: execute_command, input: {command: %q}}]
- tools: [{name: attempt_completion, input: {result: done}}]
`, command), "<b>write</b>", object{"approve": "all"})
	h.wait(task, "completed")
	if _, err := os.Stat(filepath.Join(h.work, name)); err != nil {
		t.Fatal(err)
	}
	tab := h.loggedIn(phone, "/tasks/"+task+"/changes")
	tab.live()
	tab.text("#f-0 summary h2", "⟦U+202E⟧")
	tab.press("#f-0 .lines > [data-new='2'] .ln")
	tab.types("what is this?")
	tab.press("form.comment .primary")
	tab.text("#waiting", "1 comment waits")
	tab.press("#f-0 [data-does=restore-hunk]")
	tab.text("dialog .diff", "⟦U+202E⟧")
	tab.press("dialog .danger")
	tab.text("#notes", "is written")
	if _, err := os.Stat(filepath.Join(h.work, name)); err == nil {
		t.Error("the file is still there")
	}
	tab.text("main", "Binary: ")
	tab.picture("page-review-hostile")
}

// After a rewind the task is compared with the branch that was left: the messages of each, and their files.
func TestCompareBranches(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	task := h.task(`
- tools: [{name: write_to_file, input: {path: a.txt, content: "one\n"}}]
- tools: [{name: attempt_completion, input: {result: The first way.}}]
`, "find a way", object{"approve": "all"})
	h.wait(task, "completed")
	tab := h.loggedIn(desktop, "/tasks/"+task)
	tab.live()
	tab.sees("the call is there", `document.querySelector('#messages > [data-index]:nth-of-type(3)')`)
	tab.press("#words")
	tab.types("and another one")
	tab.press("#send")
	tab.text("#messages", "The script has ended.")
	h.wait(task, "completed")
	var prompts struct {
		Items []struct{ Number int }
	}
	h.ask("GET", "/v1/tasks/"+task+"/prompts", nil, &prompts)
	if len(prompts.Items) != 2 {
		t.Fatalf("got the prompts %+v, want two", prompts.Items)
	}
	number := itoa(prompts.Items[1].Number)
	tab.press("#ui-" + number + " header a")
	tab.sees("the message is chosen", `document.querySelector('#ui-`+number+`[aria-current]')`)
	tab.keys("z")
	tab.text("dialog", "Go back to before #"+number)
	tab.press("dialog .danger")
	tab.text("#notes", "back at before")
	tab.press("#notes a")
	tab.text("#side-0", "The task as it is")
	tab.text("#side-1", "Branch b")
	tab.text(".column:last-child .since", "and another one")
	tab.do("a desktop", sized(wide))
	tab.sees("the columns stand side by side", `(([a, b]) => a.getBoundingClientRect().right <= b.getBoundingClientRect().left)(document.querySelectorAll('.column'))`)
	tab.picture("page-compare")
	tab.do("a phone", sized(narrow))
	tab.sees("the columns stand one below the other", `(([a, b]) => a.getBoundingClientRect().bottom <= b.getBoundingClientRect().top)(document.querySelectorAll('.column'))`)
	tab.picture("page-compare-phone")
	tab.visit("/tasks/" + task)
	tab.sees("the branch is listed", `document.querySelector('.branches a[href*="/compare?with=b"]')`)
}
