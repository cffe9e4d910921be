package picker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/view"
)

func TestListFillsWhileItIsRead(t *testing.T) {
	all := chores("paint", "tidy", "mend")
	d := &counter{held: true, parts: []Found{
		{Of: 4, Sources: []api.SourceState{{Name: "VS Code/Roo", Tasks: 3}, {Name: "Cursor/Cline", Tasks: 1}}},
		{Of: 4, Read: 1, Tasks: all[1:2], Sources: []api.SourceState{{Name: "VS Code/Roo", Tasks: 3}, {Name: "Cursor/Cline", Tasks: 1}}},
		{Of: 4, Read: 2, Tasks: all[:1], Sources: []api.SourceState{{Name: "VS Code/Roo", Tasks: 3}, {Name: "Cursor/Cline", Tasks: 1}}},
		{Of: 4, Read: 4, Tasks: all, Whole: true, Sources: []api.SourceState{{Name: "VS Code/Roo", Tasks: 3, Damaged: 2}, {Name: "Cursor/Cline", Empty: 1}}},
	}}
	on(t, d, Options{}, func(s *stage) {
		s.step()
		s.shows("Found 4 folders: VS Code/Roo 3, Cursor/Cline 1. Read 0 of 4 ...", "reading ...", "!paint")
		d.hold <- struct{}{}
		s.step()
		s.shows("tidy", "Read 1 of 4")
		s.at("tidy")
		d.hold <- struct{}{}
		s.step()
		s.at("paint") // who has not moved looks at the newest
		s.press("down")
		s.at("tidy")
		d.hold <- struct{}{}
		s.step()
		s.at("tidy")
		s.shows("Found 3 tasks: VS Code/Roo 3 (2 damaged, 1 empty). Nothing was changed.", "mend")
		s.press("q")
		if !s.quit || s.m.choice.Verb != Leave || s.m.choice.Interrupted {
			t.Errorf("q: %v, %+v", s.quit, s.m.choice)
		}
	})
}

func TestTroubleIsShown(t *testing.T) {
	d := &counter{parts: []Found{{Sources: []api.SourceState{{Name: "VS Code/Roo", Problem: "is unreachable: no \x1b[2Jpermission"}}}}, failure: errors.New("the root is gone")}
	on(t, d, Options{}, func(s *stage) {
		s.step()
		s.shows("VS Code/Roo is unreachable: no permission", "the root is gone", "the tasks cannot be listed")
	})
}

// What a reading that was broken off has found is not listed twice.
func TestReadingAgainBeforeTheEnd(t *testing.T) {
	all := chores("paint", "tidy")
	d := &counter{held: true, parts: append([]Found{{Of: 2, Read: 1, Tasks: all[:1]}}, whole(all)...)}
	on(t, d, Options{}, func(s *stage) {
		for range 3 {
			s.step()
			if len(s.m.rows) != 1 {
				t.Errorf("%d rows, want 1", len(s.m.rows))
			}
			s.press("ctrl+r")
		}
	})
}

func TestReadingAgain(t *testing.T) {
	d := &counter{parts: whole(chores("paint", "tidy")), held: true}
	on(t, d, Options{}, func(s *stage) {
		s.step()
		s.press("ctrl+r") // while it is read: that reading ends, another begins
		close(d.hold)
		s.step()
		s.shows("paint")
		d.parts = whole(chores("paint", "tidy", "mend"))
		s.press("down", "ctrl+r")
		s.step()
		s.shows("mend")
		s.at("tidy")
		if got := d.did("tasks"); len(got) != 3 {
			t.Errorf("read %d times", len(got))
		}
	})
}

func TestPreviewFollowsTheCursor(t *testing.T) {
	d := &counter{parts: whole(chores("paint", "tidy", "mend", "unreadable")), slow: 100 * time.Millisecond}
	on(t, d, Options{}, func(s *stage) {
		s.later(time.Second)
		s.shows("the end of roost:t0")
		d.did("")
		s.press("down", "down") // somebody in a hurry
		s.later(10 * time.Millisecond)
		if got := d.did("preview"); got != nil {
			t.Errorf("read on the way: %q", got)
		}
		s.later(time.Second)
		s.shows("the end of roost:t2", "!the end of roost:t1")
		if got := d.did("preview"); !cmp.Equal(got, []string{"preview roost:t2"}) {
			t.Errorf("read: %q", got)
		}
		s.press("up", "up")
		s.shows("the end of roost:t0") // it was kept
		s.later(time.Second)
		if got := d.did("preview"); got != nil {
			t.Errorf("read what was there: %q", got)
		}
		s.press("down")
		s.later(settle + 50*time.Millisecond) // its reading has begun
		s.press("up", "down")
		s.later(time.Second)
		s.shows("the end of roost:t1", "!cannot be read")
		if got := d.did("given up"); len(got) != 1 {
			t.Errorf("what nobody waited for went on: %q", got)
		}
		s.press("end")
		s.later(time.Second)
		s.shows("the task cannot be read: the disk is gone")
	})
}

// A preview that comes after the cursor has left its row does not remove the one that is shown.
func TestALatePreviewRemovesNone(t *testing.T) {
	m := New(t.Context(), &counter{}, Options{})
	defer m.Close()
	for i := range keptPreviews - 1 {
		m.look.kept[fmt.Sprint(i)] = nil
	}
	m.look.want, m.look.turn, m.look.kept["shown"] = "shown", 2, []view.Line{{Text: "the end"}}
	m.previewed(previewedMsg{turn: 1, of: "left"})
	if got := m.look.kept["shown"]; len(got) != 1 {
		t.Errorf("the shown preview has %d lines after another one came, want 1", len(got))
	}
}

func TestSearchWhileTyping(t *testing.T) {
	d := &counter{parts: whole(chores("paint the fence", "tidy the shed", "mend the roof")), slow: 50 * time.Millisecond,
		hits: map[string][]api.Hit{"spade": {{Task: api.Summary{Source: "roost", ID: "t1"}, History: "ui", Number: 7, Snippet: "the spade stands"}, {Task: api.Summary{Source: "roost", ID: "t1"}, History: "api", Number: 9}}}}
	on(t, d, Options{}, func(s *stage) {
		s.later(time.Second)
		s.press("/", "TH")
		s.later(time.Second)
		s.shows("paint", "tidy", "mend")
		s.press("e r")
		s.shows("mend", "!paint", "searching messages") // rows at once
		s.at("mend the roof")
		s.later(time.Second)
		s.press("ctrl+u")
		s.shows("paint", "tidy")
		d.did("")

		for _, r := range "spade" { // a fast typist is searched for once
			s.press(string(r))
			s.later(pause / 2)
		}
		s.later(time.Second)
		if got := d.did("search"); !cmp.Equal(got, []string{"search spade"}) {
			t.Errorf("searched: %q", got)
		}
		s.shows("tidy", "!paint", "1 task · 2 hits in 1", "2 hits, the first in #7: the spade stands", "around the hit in roost:t1")

		s.press("backspace", "ctrl+w", "roof")
		s.later(pause + 10*time.Millisecond) // the search has begun
		s.press("x")
		s.later(time.Second)
		if got := d.did("given up search"); !cmp.Equal(got, []string{"given up search roof"}) {
			t.Errorf("given up: %q", got)
		}
		s.shows("no task contains that")
		s.press("esc", "esc")
		s.shows("paint", "/ searches titles")
	})
}

// Rows that a search of messages brings do not pull the cursor away.
func TestLateRowsLeaveTheCursor(t *testing.T) {
	d := &counter{parts: whole(chores("one", "two", "three", "two again")), hits: map[string][]api.Hit{"two": {{Task: api.Summary{Source: "roost", ID: "t0"}}}}, slow: time.Second}
	on(t, d, Options{}, func(s *stage) {
		s.step()
		s.press("/", "two")
		s.at("two")
		s.later(5 * time.Second)
		s.shows("one")
		s.at("two")
		// A list that is read again is searched again.
		d.hits["two"] = nil
		s.press("esc", "ctrl+r")
		s.later(5 * time.Second)
		s.shows("!one", "two again")
	})
}

func TestSearchThatFails(t *testing.T) {
	d := &counter{parts: whole(chores("paint the fence")), failure: errors.New("no catalogue")}
	on(t, d, Options{}, func(s *stage) {
		s.step()
		s.press("/", "fence")
		s.later(time.Second)
		s.shows("paint the fence", "messages cannot be searched: no catalogue")
	})
}

func TestPasteIsOneLine(t *testing.T) {
	on(t, &counter{parts: whole(chores("paint the fence"))}, Options{}, func(s *stage) {
		s.step()
		s.send(tea.PasteMsg{Content: "q"}) // no command
		s.press("/")
		s.send(tea.PasteMsg{Content: "the\x1b[2J\r\nfence"})
		if s.m.query.text != "the fence" {
			t.Errorf("got %q, want s.m.query.text = \"the fence\"", s.m.query.text)
		}
		s.shows("paint the fence")
	})
}

func TestEnterChooses(t *testing.T) {
	for _, tt := range []struct {
		purpose, key string
		want         Verb
	}{
		{"resume", "enter", Choose}, {"show", "enter", Choose}, {"", "r", Resume}, {"show", "r", Leave},
	} {
		on(t, &counter{parts: whole(chores("paint", "tidy"))}, Options{Purpose: tt.purpose}, func(s *stage) {
			s.step()
			s.press("down", tt.key)
			if got := s.m.choice; got.Verb != tt.want || tt.want != Leave && got.Task.Key() != "roost:t1" {
				t.Errorf("%s in a picker for %q: %+v", tt.key, tt.purpose, got)
			}
			if tt.purpose != "" {
				s.shows("!· r resume", "enter "+tt.purpose)
			}
		})
	}
}

// Whatever is pressed, the cursor is on a row that is seen, and no line is too wide
// or too many.
func TestAnyKeys(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := &counter{parts: whole(chores("paint", "日本語の題名", "mend \x1b[31mred\u202e", "", strings.Repeat("long ", 50))), hits: map[string][]api.Hit{"ain": {{Task: api.Summary{Source: "roost", ID: "t3"}}}}}
		list := []string{"up", "down", "pgup", "pgdown", "home", "end", "esc", "backspace", "ctrl+u", "ctrl+w", "shift+up", "/", "?", "j", "k", "g", "G", "d", "y", "n", "u", "e", "h", "o", "ain", "語", "ctrl+r", "enter", "f", "s", " ", "A", "t", ".", "I", "r", "K"}
		m := New(t.Context(), d, Options{Colour: rapid.Bool().Draw(r, "colour")})
		defer m.Close()
		run := func(cmd tea.Cmd) { // what takes no time
			for queue := []tea.Cmd{cmd}; len(queue) > 0; queue = queue[1:] {
				if queue[0] == nil {
					continue
				}
				switch msg := queue[0]().(type) {
				case nil, searchMsg, previewMsg, tea.QuitMsg:
				case tea.BatchMsg:
					queue = append(queue, msg...)
				default:
					_, next := m.Update(msg)
					queue = append(queue, next)
				}
			}
		}
		m.look.want = "kept" // its timers are for another test
		run(m.Init())
		for range rapid.IntRange(1, 15).Draw(r, "n") {
			w, h := rapid.IntRange(0, 130).Draw(r, "w"), rapid.IntRange(0, 40).Draw(r, "h")
			m.Update(tea.WindowSizeMsg{Width: w, Height: h})
			name := rapid.SampledFrom(list).Draw(r, "key")
			if k, ok := keys[name]; ok {
				m.Update(k)
			} else {
				for _, c := range name {
					m.Update(tea.KeyPressMsg{Code: c, Text: string(c)})
				}
			}
			lines := m.screen()
			if len(lines) > max(h, 1) {
				r.Fatalf("%d lines in a window of %d", len(lines), h)
			}
			for _, line := range lines {
				if width(line) > w {
					r.Fatalf("%d columns in a window of %d: %q", width(line), w, line)
				}
				if strings.ContainsAny(strings.ReplaceAll(line, "\x1b[", ""), "\x1b\u202e\u009b\n") {
					r.Fatalf("a control character in %q", line)
				}
			}
			if len(m.rows) > 0 && (m.at < 0 || m.at >= len(m.rows) || m.at < m.top || m.at >= m.top+max(m.listHeight(), 1)) {
				r.Fatalf("the cursor is on row %d of %d, seen are %d from %d", m.at, len(m.rows), m.listHeight(), m.top)
			}
		}
	})
}
