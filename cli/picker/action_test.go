package picker

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
)

func TestDeleteAsksAndCanBeTakenBack(t *testing.T) {
	d := &counter{parts: whole(chores("paint", "tidy", "mend"))}
	on(t, d, Options{}, func(s *stage) {
		s.step()
		d.did("")
		s.press("down", "d")
		s.shows(`Delete "tidy"?`)
		for _, no := range []string{"enter", "n", "esc", "d"} {
			s.press(no)
			s.shows("not deleted", "tidy")
			s.press("d")
		}
		if got := d.did("delete"); got != nil {
			t.Fatalf("deleted without a yes: %q", got)
		}
		s.press("y")
		s.step()
		s.shows("deleted: tidy · u takes it back", "paint", "mend")
		s.at("mend")
		s.press("d", "y")
		s.step()
		s.at("paint")
		s.press("u")
		s.step()
		s.shows("put back: mend")
		s.at("mend")
		// What was deleted stays away when the list is read again, until it is put back.
		s.press("ctrl+r")
		s.later(time.Second)
		s.shows("!  tidy", "mend")
		s.press("u")
		s.step()
		s.shows("put back: tidy")
		s.press("u")
		s.shows("nothing was deleted here")
		if got := d.did("restore"); !cmp.Equal(got, []string{"restore trash:roost:t2", "restore trash:roost:t1"}) {
			t.Errorf("%q", got)
		}
	})
}

// A task that was read away while it lay in the trash comes back all the same.
func TestUndoAfterReadingAgain(t *testing.T) {
	d := &counter{parts: whole(chores("paint", "tidy"))}
	on(t, d, Options{}, func(s *stage) {
		s.step()
		s.press("d", "y")
		s.step()
		d.parts = whole(chores("paint", "tidy")[1:])
		s.press("ctrl+r")
		s.later(time.Second)
		s.press("u")
		s.step()
		s.shows("paint", "tidy")
		s.at("paint")
		s.shows("Found 1 task: VS Code/Roo 1.", "!Nothing was changed") // something was
	})
}

func TestDeleteThatFails(t *testing.T) {
	d := &counter{parts: whole(chores("paint")), deleting: errors.New("another program owns it")}
	on(t, d, Options{}, func(s *stage) {
		s.step()
		s.press("d", "y")
		s.step()
		s.shows("another program owns it", "paint", "Nothing was changed")
		s.press("u")
		s.shows("nothing was deleted here")
	})
}

func TestExportAsksForTheForm(t *testing.T) {
	d := &counter{parts: whole(chores("paint"))}
	on(t, d, Options{}, func(s *stage) {
		s.step()
		d.did("")
		for _, f := range Forms {
			s.press("e")
			s.shows("m Markdown · h HTML")
			s.press(f.Key)
			s.step()
			s.shows("wrote t0." + f.Form)
		}
		s.press("e", "x")
		s.shows("not exported")
		if got := d.did("export"); len(got) != len(Forms) {
			t.Errorf("got %q, want len(got) = len(Forms)", got)
		}
	})
}

func TestImportIsOfferedOnce(t *testing.T) {
	foreign := chores("paint", "tidy")
	foreign[0].Size = 1000
	foreign[0].Source, foreign[1].Source = "store-1", "store-1"
	for _, tt := range []struct {
		name, purpose string
		tasks         []Task
		want          bool
	}{
		{"tasks of other tools", "", foreign, true},
		{"a picker that only wants a task", "resume", foreign, false},
		{"tasks of our own", "", chores("paint"), false},
	} {
		on(t, &counter{parts: whole(tt.tasks)}, Options{Purpose: tt.purpose}, func(s *stage) {
			s.step()
			if got := s.m.act.ask == askImport; got != tt.want {
				t.Errorf("%s: offered is %v", tt.name, got)
			}
			s.press("ctrl+r")
			s.later(time.Second)
			if tt.want {
				s.press("down") // it does not stand in the way
				s.at("tidy")
				s.shows("2 tasks (1.0 KB) of other tools", "leaves the originals as they are", "Import copies?", "enter open")
				s.press("n")
				s.shows("not imported; I offers it again", "!Import copies?")
				s.press("up")
				s.shows("!Import")
				s.press("I") // it can be answered later
				s.shows("Import copies?")
				s.press("/", "y") // who types answers nothing
				s.shows("Import copies?")
			}
		})
	}
}

func TestImport(t *testing.T) {
	tasks := chores("paint")
	tasks[0].Source = "store-1"
	d := &counter{parts: whole(tasks), slow: time.Second}
	on(t, d, Options{}, func(s *stage) {
		s.step()
		s.press("y")
		s.later(tickEvery * 2)
		s.shows("importing: 1 of 3 tasks ...")
		s.press("d") // one thing at a time
		s.shows("!Delete")
		s.press("j", "esc")
		s.step()
		s.shows("stopped")
		if got := d.did("import"); got != nil {
			t.Errorf("it went on: %q", got)
		}
		s.m.act.ask = askImport
		s.press("x", "y")
		d.parts = whole(chores("paint", "paint"))
		s.later(5 * time.Second)
		s.shows("3 imported and verified", "Found 2 tasks")
	})
}

func TestOpenWithoutAPager(t *testing.T) {
	d := &counter{parts: whole(chores("paint", "tidy"))}
	on(t, d, Options{}, func(s *stage) {
		s.later(time.Second)
		s.press("o") // Enter opens it: o is for a screen where Enter chooses
		s.shows("tidy")
		s.press("enter")
		s.shows("the end of roost:t0", "q back to the list", "!tidy")
		s.press("home", "pgdown", "k", "q")
		s.shows("tidy")
		if s.quit {
			t.Error("q left the picker")
		}
		// Where the window has no room for a preview, it is read now.
		s.m.width = 50
		s.press("down", "enter")
		s.later(time.Second)
		s.shows("the end of roost:t1", "!paint")
	})
}

// What goes on ends with the screen, and is waited for.
func TestClosingEndsEverything(t *testing.T) {
	d := &counter{parts: whole(chores("paint", "tidy")), held: true, slow: time.Hour}
	on(t, d, Options{}, func(s *stage) {
		s.step()
		s.press("/", "paint")
		s.later(time.Second)
		s.press("ctrl+c")
		if !s.quit || !s.m.choice.Interrupted {
			t.Error("Ctrl-C does not end it")
		}
		began := time.Now()
		s.m.Close()
		if time.Since(began) > 30*time.Second {
			t.Error("closing waited for what nobody wants")
		}
		if msg := s.m.crew.Do(func() tea.Msg { return tickMsg{} })(); msg != nil {
			t.Error("something began after the end")
		}
	})
}

// However narrow the terminal is, a question shows the keys that answer it.
func TestAQuestionFits(t *testing.T) {
	foreign := chores("a title that is longer than the terminal is wide, by far")
	foreign[0].Source = "store-1"
	d := &counter{parts: whole(foreign)}
	on(t, d, Options{}, func(s *stage) {
		s.step()
		for _, columns := range []int{300, 80, 60, 40, 30, 20} {
			s.send(tea.WindowSizeMsg{Width: columns, Height: 5})
			for ask, keys := range map[string][]string{"": {"y", "n"}, "d": {"y", "n"}, "e": {"m", "h", "j", "r", "a", "esc"}} {
				if s.m.act.ask, s.m.act.note = askImport, ""; ask != "" {
					s.press(ask)
				}
				foot := lastLine(s.screen())
				if ask == "" { // the offer is above the keys
					foot = lastLine(strings.TrimSuffix(s.screen(), foot))
				}
				words := strings.FieldsFunc(foot, func(r rune) bool { return strings.ContainsRune(" ·?", r) })
				for _, key := range keys {
					if !slices.Contains(words, key) {
						t.Errorf("%d columns: %q does not name %q", columns, foot, key)
					}
				}
			}
		}
	})
}

func lastLine(screen string) string {
	lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
	return lines[len(lines)-1]
}
