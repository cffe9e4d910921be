package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/internal/testing/screen"
)

// editors puts the sandbox's storage where VS Code has it, with tasks of which one is
// damaged and one is empty, and finds storages as on a real machine.
func (s *sandbox) editors() {
	s.t.Helper()
	s.store = filepath.Join(s.dir, "home", ".config", "Code", "User", "globalStorage", "rooveterinaryinc.roo-cline")
	s.env("ROOST_SOURCES=auto")
	s.foreign("fence", "paint the fence", 1776300000000)
	s.foreign("shed", "tidy the shed", 1776200000000)
	s.foreign("broken", "mend the roof", 1776100000000)
	s.foreign("hollow", "", 1)
	must(s.t, os.Remove(filepath.Join(s.store, "tasks", "hollow", "api_conversation_history.json")))
	must(s.t, os.Remove(filepath.Join(s.store, "tasks", "hollow", "history_item.json")))
	must(s.t, os.WriteFile(filepath.Join(s.store, "tasks", "hollow", "ui_messages.json"), nil, 0o600))
	must(s.t, os.Truncate(filepath.Join(s.store, "tasks", "broken", "ui_messages.json"), 120))
}

// said adds a row to a task of an editor.
func (s *sandbox) said(id, words string, ts int64) {
	s.t.Helper()
	name := filepath.Join(s.store, "tasks", id, "ui_messages.json")
	data, err := os.ReadFile(name)
	must(s.t, err)
	row, err := json.Marshal(map[string]any{"ts": ts, "type": "say", "say": "text", "text": words})
	must(s.t, err)
	must(s.t, os.WriteFile(name, fmt.Appendf(data[:len(data)-1], ",%s]", row), 0o600))
	must(s.t, os.Chtimes(name, yesterday, yesterday))
}

// bytesIn are the files below a folder.
func (s *sandbox) bytesIn(dir string) map[string]string {
	s.t.Helper()
	out := map[string]string{}
	must(s.t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = string(data)
		return err
	}))
	return out
}

// when waits for a screen that is as wanted.
func (x *terminal) when(what string, ok func(screen string) bool) string {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), screen.Limit)
	defer cancel()
	p, err := x.Wait(ctx, func(p *screen.Picture) bool { return ok(p.Text()) })
	if err != nil {
		x.t.Fatalf("the terminal never had %s: %v\nwhat was written:\n%s", what, err, x.screen())
	}
	return p.Text()
}

// until waits for a screen that holds all the texts, and none of those after "!".
func (x *terminal) until(texts ...string) string {
	x.t.Helper()
	return x.when(fmt.Sprintf("%q", texts), func(screen string) bool {
		for _, text := range texts {
			if without, not := strings.CutPrefix(text, "!"); strings.Contains(screen, without) == not {
				return false
			}
		}
		return true
	})
}

// on waits until the cursor stands on a row.
func (x *terminal) on(title string) {
	x.t.Helper()
	x.when("the cursor on "+title, func(screen string) bool {
		for _, line := range strings.Split(screen, "\n") {
			if row, _, _ := strings.Cut(line, "│"); strings.HasPrefix(row, "> ") {
				return strings.Contains(row, title)
			}
		}
		return false
	})
}

func (x *terminal) resize(rows, cols int) {
	x.t.Helper()
	must(x.t, x.Resize(screen.Size{Columns: cols, Lines: rows}))
}

// left checks that the terminal is as a shell wants it.
func (x *terminal) left() {
	x.t.Helper()
	if p := x.Picture(); p.Alternate || p.Cursor.Hidden {
		x.t.Errorf("the terminal was left with the other screen %v, without a cursor %v", p.Alternate, p.Cursor.Hidden)
	}
	if odd := x.Odd(); len(odd) > 0 {
		x.t.Errorf("sequences that a screen does not need: %q", odd)
	}
	state, err := unix.IoctlGetTermios(int(x.Device().Fd()), unix.TCGETS)
	must(x.t, err)
	if state.Lflag&unix.ICANON == 0 || state.Lflag&unix.ECHO == 0 || state.Iflag&unix.ICRNL == 0 {
		x.t.Errorf("the terminal was left raw: %+v", state)
	}
}

const found = "Found 3 tasks: VS Code/Roo 3 (1 damaged, 1 empty). Nothing was changed."

func TestPickerShowsWhatIsThere(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.editors()
	s.said("shed", "the spade stands behind the door", 1776200000009)
	before := s.bytesIn(s.store)
	x := s.onTerminal()
	screen := x.until(found, "paint the fence", "tidy the shed", "mend the roof", "#2 question", "3 tasks (", "leaves the originals as they are", "Import copies?", "q quit")
	if strings.Index(screen, "paint the fence") > strings.Index(screen, "tidy the shed") {
		t.Errorf("not the newest first:\n%s", screen)
	}
	x.press("n")
	x.until("not imported", "!y yes")
	x.press("\x1b[B") // down
	x.on("tidy the shed")
	x.until("the spade stands behind the door")
	x.press("j")
	x.until("damaged: ui_messages.json")
	x.press("q")
	if end := x.exits(failure.ExitDone); !strings.Contains(end, found) {
		t.Error("what was found does not stay on the terminal")
	}
	x.left()
	for name, text := range s.bytesIn(s.store) {
		if before[name] != text {
			t.Errorf("%s was changed by looking", name)
		}
	}
	// It is offered once.
	x = s.onTerminal()
	x.until(found, "q quit", "!Import")
	x.press("q")
	x.exits(failure.ExitDone)
}

func TestPickerSearches(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.editors()
	s.said("shed", "the spade stands behind the Gartentür", 1776200000009)
	x := s.onTerminal("resume")
	x.until(found, "q quit")
	x.press("/ROOF")
	x.until("mend the roof", "!tidy the shed", "1 task")
	x.press("\x15spade") // ctrl+u clears
	x.until("tidy the shed", "!paint the fence", "1 task · 1 hit in 1", "#3: the spade stands")
	x.press("\x15gartentür")
	x.until("gartentür", "1 task · 1 hit in 1", "tidy the shed")
	x.press("\x15nothing of the kind")
	x.until("no task contains that")
	x.press("\x1b")
	x.until("q quit")
	x.press("\x1b")
	x.until("tidy the shed", "paint the fence", "mend the roof", "/ searches")
	x.press("q")
	x.expect("none was chosen")
	x.exits(failure.ExitCancelled)
	x.left()
}

func TestPickerOpens(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.editors()
	log := filepath.Join(s.dir, "paged")
	s.env("NO_PAGER=", fmt.Sprintf("PAGER=cat > %s; printf 'IN THE PAGER '; read line </dev/tty", log))
	x := s.onTerminal()
	x.until(found, "#2 question")
	x.press("\r")
	x.until("IN THE PAGER", "!Found")
	if data, err := os.ReadFile(log); err != nil || !strings.Contains(string(data), "paint the fence") || !strings.Contains(string(data), "question") {
		t.Errorf("the pager got %q, %v", data, err)
	}
	x.press("\x03\n") // an interrupt is for the pager
	x.until(found, "!IN THE PAGER", "y yes")
	x.press("q")
	x.exits(failure.ExitDone)
	x.left()

	s.env("NO_PAGER=1")
	x = s.onTerminal()
	x.until(found, "#2 question")
	x.press("\r")
	x.until("q back to the list", "paint the fence", "!tidy the shed")
	x.press("q")
	x.until("tidy the shed")
	x.press("q")
	x.exits(failure.ExitDone)
}

func TestPickerResumes(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"resume"}, {"-q", "resume"}} {
		s := newSandbox(t)
		s.editors()
		s.env("ROOST_PROVIDER=script", "ROOST_MODEL="+s.script(call("ask_followup_question", `{question: "Which colour?", follow_up: [{text: red, mode: null}]}`)+
			"- expect: [bright green]\n  tools: [{name: attempt_completion, input: {result: it is green}}]\n"))
		x := s.onTerminal(args...)
		x.until("paint the fence", "Nothing was changed")
		x.press("j")
		x.on("tidy the shed")
		if args == nil {
			x.press("r")
		} else {
			x.press("\r")
		}
		// The picker's reading of the terminal does not eat the answer.
		x.expect("Which colour?")
		x.left()
		x.press("bright green\n")
		x.expect("it is green")
		x.exits(failure.ExitDone)
		if got := s.task("shed"); got.Status != "completed" {
			t.Errorf("roost %v: the task that was picked is %s", args, got.Status)
		}
	}
}

func TestPickerExports(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.editors()
	x := s.onTerminal()
	x.until(found, "tidy the shed")
	for i, key := range []string{"h", "h", "m", "j", "a"} {
		x.press("e")
		x.until("Export as m Markdown")
		x.press(key)
		x.until([]string{"/ws/fence.html", "/ws/fence~2.html", "/ws/roo_task", "/ws/fence.json", "/ws/fence.zip"}[i], "wrote")
	}
	x.press("e\r")
	x.until("not exported")
	x.press("q")
	x.exits(failure.ExitDone)
	page, err := os.ReadFile(filepath.Join(s.ws, "fence.html"))
	if entries, _ := os.ReadDir(s.ws); err != nil || len(entries) != 5 || !strings.Contains(string(page), "paint the fence") {
		t.Errorf("exported: %v, %v", entries, err)
	}

	// Of a command that wants a task, Enter gives it one.
	x = s.onTerminal("export", "-f", "html", "-o", "picked.html")
	x.until(found, "enter export", "!r resume")
	x.press("\r")
	x.expect("picked.html")
	x.exits(failure.ExitDone)
	x = s.onTerminal("show", "--usage")
	x.until(found, "enter show")
	x.press("\r")
	x.expect("tokens in")
	x.exits(failure.ExitDone)
	if r := s.roost("show"); r.code != failure.ExitUsage {
		t.Errorf("show without an id and a terminal: exit %d", r.code)
	}
}

func TestPickerDeletesAndTakesBack(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.editors()
	before := s.bytesIn(s.store)
	x := s.onTerminal()
	x.until(found, "Import copies?")
	x.press("n")
	x.press("jd")
	x.until(`Delete "tidy the shed"? It is hidden here; its folder in VS Code/Roo stays where it is.`)
	x.press("\r") // Enter is never yes
	x.until("not deleted", "tidy the shed")
	x.press("dy")
	x.until("hidden: tidy the shed; its folder stays", "!damaged, 1 empty). Nothing")
	if got := s.list(); len(got) != 2 {
		t.Errorf("%d tasks are listed after deleting one", len(got))
	}
	x.press("dy")
	x.until("hidden: mend the roof")
	x.press("u")
	x.until("shown again: mend the roof")
	x.press("u")
	x.until("shown again: tidy the shed")
	x.press("u")
	x.until("nothing was deleted here")
	x.press("q")
	x.exits(failure.ExitDone)
	if got := s.list(); len(got) != 3 {
		t.Errorf("%d tasks are listed after taking all back", len(got))
	}
	for name, text := range s.bytesIn(s.store) {
		if before[name] != text {
			t.Errorf("%s was changed", name)
		}
	}
}

func TestPickerImports(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.editors()
	x := s.onTerminal()
	x.until(found, "y yes")
	x.press("y")
	x.until("3 imported and verified", "Roost 3")
	x.press("q")
	x.exits(failure.ExitDone)
	for _, task := range s.list() {
		if task.Source != "roost" || len(task.Copies) != 1 {
			t.Errorf("%s of %s has the copies %v", task.ID, task.Source, task.Copies)
		}
	}
}

// Titles and texts cannot drive the terminal, and wide characters do not tear it.
func TestPickerWithHostileTasks(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.editors()
	s.foreign("evil", "paint \x1b[2J\x1b]0;owned\x07\u009b31m\u202ethe wall\r\nand all", 1776400000000)
	s.said("evil", "see \x1b[2J\x1b]52;c;eA==\x07\u009b5m this", 1776400000009)
	s.foreign("wide", "日本語の長い題名がここにあります、とても長い 👩‍👩‍👧‍👦 family ❤️ flags 🇩🇪", 1776350000000)
	x := s.onTerminal()
	x.until("searches titles and messages") // it hears of a new size from now on
	x.resize(30, 120)                       // the preview is beside the list
	screen := x.until("paint 31mthe wall and all", "5m this", "日本語の長い題名", "│", "y yes")
	at := -1
	for _, line := range strings.Split(screen, "\n")[2:10] {
		i := strings.Index(line, "│")
		if i < 0 {
			t.Errorf("a row without its border: %q", line)
			continue
		}
		if columns := len([]rune(colourless(line[:i]))); at >= 0 && columns != at {
			t.Errorf("the border jumps from %d to %d: %q", at, columns, line)
		} else {
			at = columns
		}
	}
	x.press("j")
	x.on("日本語")
	x.until("family")
	x.press("q")
	raw := x.exits(failure.ExitDone)
	for _, hostile := range []string{"\x1b]0;", "\x1b]52", "\a", "\u009b", "\u202e", "\x1b[5m"} {
		if strings.Contains(raw, hostile) {
			t.Errorf("%q reached the terminal", hostile)
		}
	}
	x.left()
}

// colourless stands for what a row takes of columns: a wide character is two.
func colourless(text string) string {
	var out strings.Builder
	for _, r := range text {
		out.WriteRune(r)
		if r >= 0x2E80 && r < 0xA4CF || r >= 0xFF00 && r <= 0xFF60 || r >= 0x1F300 {
			out.WriteByte(' ')
		}
	}
	return out.String()
}

func TestPickerFollowsTheWindow(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.editors()
	s.env("NO_COLOR=1")
	x := s.onTerminal()
	x.until(found, "#2 question", "───", "!│", "y yes")
	x.resize(12, 40)
	x.until("paint the fence", "!│", "!───", "Found 3 tasks")
	x.resize(24, 120)
	x.until(found, " │ ", "#2 question")
	x.resize(24, 80)
	x.until(found, "!│", "───", "#2 question")
	x.resize(3, 10)
	x.until("make the")
	x.resize(24, 80)
	x.until(found)
	x.press("?")
	x.until("any key goes back", "PgUp")
	x.press("q")
	x.until(found)
	x.press("q")
	raw := x.exits(failure.ExitDone)
	if strings.Contains(raw, "\x1b[7m") || strings.Contains(raw, "\x1b[2m") || strings.Contains(raw, "\x1b[1m") {
		t.Error("colours with NO_COLOR")
	}
}

func TestPickerIsInterrupted(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	s.editors()
	x := s.onTerminal()
	x.until("paint the fence")
	x.press("\x03")
	x.exits(failure.ExitInterrupt)
	x.left()
	for sig, code := range map[syscall.Signal]int{syscall.SIGTERM: failure.ExitTerminated, syscall.SIGINT: failure.ExitInterrupt, syscall.SIGHUP: failure.ExitHangup} {
		x = s.onTerminal("resume")
		x.until("paint the fence")
		must(t, x.cmd.Process.Signal(sig))
		x.exits(code)
		x.left()
	}
}

// A list that is long shows its first rows before it is read, and scrolls.
func TestPickerOfManyTasks(t *testing.T) {
	t.Parallel()
	s := newSandbox(t)
	for i := range 300 {
		s.foreign(fmt.Sprintf("task-%03d", i), fmt.Sprintf("errand no-%03d", i), 1776100000000+int64(i)*60_000)
	}
	x := s.onTerminal("show")
	x.until("Found 300 tasks", "errand no-299", "Nothing was changed")
	x.press("G")
	x.until("errand no-000", "!errand no-299")
	x.press("g")
	x.until("errand no-299")
	x.press("\x1b[6~\x1b[6~") // two pages down
	x.until("!errand no-299")
	x.press("/no-15") // a number alone may stand in the path of the folder
	x.until("errand no-159", "errand no-150", "!errand no-299", "10 tasks · ", "in 10")
	x.press("\r")
	x.expect("errand no-159")
	x.exits(failure.ExitDone)
}
