package picker

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/money"
	"github.com/roost-dev/roost/view"
)

// still is a model that stands still: what it knows is given.
func still(o Options, tasks ...Task) *Model {
	if o.Now == nil {
		o.Now = func() time.Time { return time.UnixMilli(10_000_000) }
	}
	m := &Model{o: o, width: 100, height: 30, all: tasks, gone: map[string]bool{}}
	m.look.kept = map[string][]view.Line{}
	m.arrange()
	return m
}

func TestSentence(t *testing.T) {
	roo, cline, own := api.SourceState{Name: "VS Code/Roo", Tasks: 640, Damaged: 4}, api.SourceState{Name: "Cursor/Cline", Tasks: 172, Empty: 31}, api.SourceState{Name: "Roost", Tasks: 1}
	for _, tt := range []struct {
		sources  []api.SourceState
		read, of int
		whole    bool
		changed  bool
		want     string
	}{
		{nil, 0, 0, false, false, "Looking for tasks ..."},
		{[]api.SourceState{cline, roo}, 812, 812, true, false, "Found 812 tasks: VS Code/Roo 640, Cursor/Cline 172 (4 damaged, 31 empty). Nothing was changed."},
		{[]api.SourceState{cline, roo}, 50, 843, false, false, "Found 812 folders: VS Code/Roo 640, Cursor/Cline 172 (4 damaged, 31 empty). Read 50 of 843 ..."},
		{[]api.SourceState{own}, 1, 1, true, true, "Found 1 task: Roost 1."},
		{[]api.SourceState{own, own}, 2, 2, true, false, "Found 2 tasks: Roost 2. Nothing was changed."}, // two storages of one name
		{[]api.SourceState{{Name: "VS Code/Roo"}}, 0, 0, true, false, "Found 0 tasks. Nothing was changed."},
	} {
		m := still(Options{})
		m.load.sources, m.load.read, m.load.of, m.load.whole, m.act.changed = tt.sources, tt.read, tt.of, tt.whole, tt.changed
		if got := m.Sentence(); got != tt.want {
			t.Errorf("%q\nwant %q", got, tt.want)
		}
	}
}

// However narrow it is, the way out is named.
func TestKeyLine(t *testing.T) {
	for _, tt := range []struct {
		width   int
		purpose string
		typing  bool
		want    string
	}{
		{150, "", false, "enter open · r resume · n new · / search · f filter · s sort · space select · d delete · u undo · e export · t tag · . this folder · ? keys · q quit"},
		{80, "", false, "enter open · r resume · n new · / search · f filter · s sort · ? keys · q quit"},
		{40, "", false, "enter open · r resume · ? keys · q quit"},
		{20, "", false, "? keys · q quit"},
		{60, "show", false, "enter show · o open · / search · e export · ? keys · q quit"},
		{60, "resume", true, "enter resume · ↑↓ move · ctrl+u clear · esc list"},
		{20, "", true, "esc list"},
	} {
		m := still(Options{Purpose: tt.purpose})
		m.width, m.query.typing = tt.width, tt.typing
		got := m.keyLine()
		if !strings.HasPrefix(tt.want, got[:len(got)/3]) || width(got) > tt.width || !strings.HasSuffix(got, tt.want[strings.LastIndex(tt.want, "·")+1:]) {
			t.Errorf("%d columns, %q, typing %v: %q, want %q", tt.width, tt.purpose, tt.typing, got, tt.want)
		}
	}
}

func TestRow(t *testing.T) {
	for _, tt := range []struct {
		name string
		task Task
		here bool
		want string
	}{
		{"completed", Task{Summary: api.Summary{Title: "paint", Status: "completed", TS: 10_000_000 - 7_200_000}}, false, "    2h ✓  paint         "},
		{"under the cursor", Task{Summary: api.Summary{Title: "paint", Status: "waiting", TS: 10_000_000 - 60_000}}, true, ">   1m ?  paint         "},
		{"damaged and pinned", Task{Summary: api.Summary{Title: "paint", Status: "failed", Pinned: true, Damaged: []api.Damage{{File: "x", Problem: ""}}}}, false, "     - ✗! paint         "},
		{"pinned", Task{Summary: api.Summary{Title: "paint", Status: "running", Pinned: true}}, false, "     - ▶* paint         "},
		{"no title", Task{Summary: api.Summary{ID: "17\x1b[2J4", Status: "idle"}}, false, "     -    (no title) 174"},
		{"wide", Task{Summary: api.Summary{Title: "日本語の長い題名", Status: "cancelled"}}, false, "     - -  日本語の長い… "},
		{"of the future", Task{Summary: api.Summary{Title: "a\tb\nc", Status: "interrupted", TS: 1 << 60}}, false, "  >10k …  a b c         "},
		{"of a day to come", Task{Summary: api.Summary{Title: "abc", Status: "interrupted", TS: 1_900_000_000_000}}, false, "  2030 …  abc           "},
	} {
		if got := still(Options{}).row(tt.task, tt.here, 24); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Without colours nothing is lost: the cursor and damage have signs of their own.
func TestColours(t *testing.T) {
	task := Task{Summary: api.Summary{Source: "s", ID: "1", Title: "paint", Damaged: []api.Damage{{File: "ui_messages.json", Problem: "cut"}}, Status: "failed"}}
	for _, on := range []bool{true, false} {
		m := still(Options{Colour: on}, task, Task{Summary: api.Summary{Source: "s", ID: "2", Title: "tidy"}})
		m.look.want, m.look.kept = m.previewOf(task), map[string][]view.Line{m.previewOf(task): {{Text: "text"}}}
		if got := strings.Contains(m.View().Content, "\x1b["); got != on {
			t.Errorf("colours %v, wanted %v", got, on)
		}
	}
}

func TestFacts(t *testing.T) {
	task := Task{Where: "VS Code/Roo", Summary: api.Summary{Source: "s", ID: "1700", Title: "paint the\x07 fence", Status: "completed", Workspace: "/home/me/garden", Model: "model-4", Usage: api.Usage{Cost: new(money.USD(420_000))}, Messages: api.MessageCounts{UI: 12}, TS: 10_000_000 - 60_000, Tags: []string{"garden", "spring"}, Damaged: []api.Damage{{File: "ui_messages.json", Problem: "cut at 5 of 9"}, {File: "api", Problem: "\x1b[31mgone"}, {File: "third", Problem: ""}}}}
	m := still(Options{}, task)
	m.query.hits = map[string]api.Hit{"s:1700": {Task: api.Summary{Source: "s", ID: "1700"}, History: "api", Number: 7, Snippet: "a brush\nand paint"}}
	want := []string{
		"paint the fence", "completed · 1m · 12 messages · $0.42 · model-4 · VS Code/Roo", "/home/me/garden", "1700 #garden #spring",
		"damaged: ui_messages.json: cut at 5 of 9", "damaged: api: gone", "and 1 more", "#7: a brush and paint",
	}
	if got := m.facts(task, 60); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q\nwant %q", got, want)
	}
	for columns := 1; columns < 60; columns++ {
		for _, line := range m.facts(task, columns) {
			if width(line) > columns {
				t.Errorf("%d columns, want %d: %q", width(line), columns, line)
			}
		}
	}
}

// A preview is read from its end, and can be scrolled to its beginning and not beyond.
func TestPreviewScrolls(t *testing.T) {
	task := Task{Summary: api.Summary{Source: "s", ID: "1", Title: "paint"}}
	m := still(Options{}, task)
	var text []view.Line
	for i := range 100 {
		text = append(text, view.Line{Text: fmt.Sprintf("line %02d", i)})
	}
	m.look.want = m.previewOf(task)
	m.look.kept[m.look.want] = text
	shows := func(first, last string) {
		t.Helper()
		lines := m.previewLines(40, 20)
		if len(lines) > 20 || lines[len(lines)-1] != last || lines[len(m.facts(task, 40))+1] != first {
			t.Errorf("%d lines: %q", len(lines), lines)
		}
	}
	shows("line 84", "line 99")
	m.key(keys["shift+up"])
	shows("line 79", "line 94")
	for range 50 {
		m.key(keys["shift+up"])
		m.previewLines(40, 20)
	}
	shows("line 00", "line 15")
	m.key(tea.KeyPressMsg{Code: 'f', Mod: tea.ModCtrl})
	shows("line 05", "line 20")
}

func TestHelpNamesWhatThereIs(t *testing.T) {
	m := still(Options{})
	m.help = true
	if text := strings.Join(m.screen(), "\n"); !strings.Contains(text, "r             resume it") || !strings.Contains(text, "enter         open the task") {
		t.Error(text)
	}
	m = still(Options{Purpose: "export"})
	m.help = true
	if text := strings.Join(m.screen(), "\n"); strings.Contains(text, "resume it") || !strings.Contains(text, "enter         export the task") {
		t.Error(text)
	}
}

// All of the help can be read on a terminal of any height, and any other key leaves it.
func TestHelpOnALowTerminal(t *testing.T) {
	for _, purpose := range []string{"", "show"} {
		for height := leastLines; height <= 50; height++ {
			m := still(Options{Purpose: purpose})
			m.width, m.height = 80, height
			press := func(key string) { m.Update(keys[key]) }
			m.Update(tea.KeyPressMsg{Code: '?', Text: "?"})
			all := m.helpLines()
			seen := map[string]bool{}
			for range all {
				screen := m.screen()
				if len(screen) > height || !strings.Contains(screen[len(screen)-1], "back") {
					t.Fatalf("%d lines, %q: the screen is\n%s", height, purpose, strings.Join(screen, "\n"))
				}
				for _, line := range screen {
					seen[line] = true
				}
				if m.helpOver() == 0 {
					if last := screen[len(screen)-1]; last != "any key goes back" {
						t.Errorf("%d lines, %q: nothing can scroll, and the last line is %q", height, purpose, last)
					}
					break
				}
				press("down")
			}
			for _, line := range all {
				if !seen[line] {
					t.Errorf("%d lines, %q: nobody ever sees %q", height, purpose, line)
				}
			}
			if m.helpOver() > 0 {
				bottom := strings.Join(m.screen(), "\n")
				if press("down"); strings.Join(m.screen(), "\n") != bottom || !strings.Contains(bottom, "pinned") {
					t.Errorf("%d lines, %q: it scrolls past its end", height, purpose)
				}
				if press("home"); !strings.Contains(m.screen()[0], "Keys") {
					t.Errorf("%d lines, %q: it does not go back to its start", height, purpose)
				}
				top := strings.Join(m.screen(), "\n")
				if press("pgdown"); m.helpAt != min(max(height-2, 1), m.helpOver()) {
					t.Errorf("%d lines, %q: a page is %d lines", height, purpose, m.helpAt)
				}
				if press("pgup"); strings.Join(m.screen(), "\n") != top {
					t.Errorf("%d lines, %q: a page up is not a page down taken back", height, purpose)
				}
			}
			if press("esc"); m.help {
				t.Errorf("%d lines, %q: it stays", height, purpose)
			}
		}
	}
}

// The page of the docs shows the table of keys as the screen does.
func TestTheDocsShowTheKeys(t *testing.T) {
	page, err := os.ReadFile("../../docs/picker.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(Keys(), "\n\n")
	if text := strings.ReplaceAll(string(page), "\r", ""); !strings.Contains(text, "```text\n"+table+"\n```") {
		t.Errorf("docs/picker.md does not hold the table of keys.txt:\n%s", table)
	}
}
