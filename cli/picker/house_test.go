package picker

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/money"
)

// estate are tasks of several tools, folders, tags and models.
func estate() []Task {
	list := chores("paint the fence", "tidy the shed", "mend the roof", "sweep")
	for i, t := range []struct {
		source, where, folder, status, model string
		cost                                 int64
		in                                   int64
		tags                                 []string
	}{
		{"roost", "Roost", "/home/me/garden", "completed", "big", 420_000, 10, []string{"spring"}},
		{"code", "VS Code/Roo", `C:\work\garden`, "interrupted", "small", 1_500_000, 5_000_000, nil},
		{"roost", "Roost", "/home/me/garden/house", "waiting", "big", 0, 40, []string{"spring", "dry"}},
		{"code", "VS Code/Roo", "", "completed", "", 100, 7, nil},
	} {
		u := &list[i]
		u.Source, u.Where, u.Workspace, u.Status, u.Model, u.Tags = t.source, t.where, t.folder, t.status, t.model, t.tags
		u.Usage.Cost, u.Usage.TokensIn = new(money.USD(t.cost)), t.in
	}
	return list
}

// titles are the rows of the list.
func (s *stage) titles() string {
	var out []string
	for _, t := range s.m.rows {
		out = append(out, t.Title)
	}
	return strings.Join(out, ", ")
}

func (s *stage) lists(want string) {
	s.t.Helper()
	if got := s.titles(); got != want {
		s.t.Errorf("listed are %q, want %q", got, want)
	}
}

const newest = "paint the fence, tidy the shed, mend the roof, sweep"

func TestWithoutATaskTheScreenTellsWhatCanBeDone(t *testing.T) {
	on(t, &counter{parts: whole(nil)}, Options{Dir: "/home/me/garden"}, func(s *stage) {
		s.step()
		s.shows("Roost runs the tasks of coding agents and keeps them", "n   a new task in /home/me/garden", "?   all keys", "There is no task yet",
			"roost sources add FOLDER", "n new · ? keys · q quit")
		s.press("enter", "r", "d", "e", "t", " ", "o")
		if s.quit {
			t.Error("a key for a task ended the screen")
		}
		s.press("n", "water the roses ")
		s.shows("A new task in /home/me/garden: what is to be done?", "> water the roses")
		s.press("esc", "n", "x", "ctrl+u", "water the trees", "ctrl+w", "tulips")
		s.send(tea.PasteMsg{Content: "\r\nand\x1b[2J more"})
		s.press("enter")
		if want := (Choice{Verb: Begin, Words: "water the tulips\nand more"}); !s.quit || !cmp.Equal(s.m.choice, want, cmp.AllowUnexported(Task{})) {
			t.Errorf("left %v with %+v, want %+v", s.quit, s.m.choice, want)
		}
	})
	on(t, &counter{parts: whole(chores("paint"))}, Options{Purpose: "show"}, func(s *stage) {
		s.step()
		s.press("n")
		s.shows("!A new task")
	})
}

func TestRowsNameToolAndFolder(t *testing.T) {
	list := estate()
	list[0].Also = []Copy{{"code:t0", "VS Code/Roo"}}
	on(t, &counter{parts: whole(list)}, Options{}, func(s *stage) {
		for columns, want := range map[int][]string{
			120: {"paint the fence", "Roost+VS Code…", "garden", "VS Code/Roo"},
			100: {"paint the fence", "Roost+VS Code/Roo", "garden"},
			50:  {"paint the fence", "VS Code/R…", "!garden"},
			40:  {"paint the fence", "!Roost+"},
		} {
			s.send(tea.WindowSizeMsg{Width: columns, Height: 14})
			s.step()
			row := ""
			for _, line := range strings.Split(s.screen(), "\n") {
				if strings.Contains(line, "tidy") || strings.Contains(line, "paint") {
					row += line
				}
			}
			for _, text := range want {
				if without, not := strings.CutPrefix(text, "!"); strings.Contains(row, without) == not {
					t.Errorf("%d columns: the rows are %q, want %q", columns, row, text)
				}
			}
		}
	})
}

func TestQuestionsThatWaitComeFirst(t *testing.T) {
	list := estate()
	list[2].OpenQuestions = 1
	list[3].Pinned = true
	on(t, &counter{parts: whole(list)}, Options{}, func(s *stage) {
		s.step()
		s.lists("mend the roof, sweep, paint the fence, tidy the shed")
		s.shows("waits for your answer: r asks it again")
		s.press("s", "down", "enter") // whatever the order is
		s.lists("mend the roof, sweep, tidy the shed, paint the fence")
	})
}

func TestSorting(t *testing.T) {
	on(t, &counter{parts: whole(estate())}, Options{}, func(s *stage) {
		s.step()
		s.lists(newest)
		for i, want := range []string{
			"sweep, mend the roof, tidy the shed, paint the fence",
			"tidy the shed, paint the fence, sweep, mend the roof",
			"tidy the shed, mend the roof, paint the fence, sweep",
			"mend the roof, paint the fence, sweep, tidy the shed",
		} {
			s.press("s")
			s.shows("Sort the list", "● "+"        "+orders[i].name)
			s.press("j", "enter")
			s.lists(want)
			s.shows(orders[i+1].name)
			switch i + 1 {
			case byCost:
				s.shows("$1.50", "$0.42")
			case byTokens:
				s.shows("5.0M")
			}
		}
		s.press("s", "home", "enter")
		s.lists(newest)
	})
}

func TestFilters(t *testing.T) {
	on(t, &counter{parts: whole(estate())}, Options{Dir: "/home/me/garden"}, func(s *stage) {
		s.step()
		s.press("n", ".") // n: no import now
		s.lists("paint the fence, mend the roof")
		s.shows("this folder · 2 tasks")
		s.press(".")
		s.lists(newest)
		choose := func(text string, keys ...string) {
			t.Helper()
			s.press("f")
			for i, item := range s.m.menu.items {
				if item.text == text {
					s.m.menu.at = i
				}
			}
			s.press(keys...)
		}
		choose("VS Code/Roo", "enter")
		s.lists("tidy the shed, sweep")
		choose("interrupted", " ")
		s.shows("● status  interrupted", "● tool    VS Code/Roo", "space switches")
		s.press("esc")
		s.lists("tidy the shed")
		choose("Roost", "enter") // one of a kind is enough, of each kind one is needed
		choose("waiting", "enter")
		s.lists("tidy the shed, mend the roof")
		choose("all tasks", "enter")
		s.lists(newest)
		choose("dry", "enter")
		choose("small", "enter")
		s.lists("")
		s.shows("no task passes the filters; esc shows all")
		s.press("esc")
		s.lists(newest)
	})
}

func TestSeveralTasks(t *testing.T) {
	d := &counter{parts: whole(estate())}
	on(t, d, Options{}, func(s *stage) {
		s.step()
		s.press("n", " ", " ", "d")
		s.shows("2 selected", "+", "Delete 2 tasks? 1 of Roost: into the trash; 1 of other tools: hidden here, their folders stay where")
		s.press("y")
		s.step()
		s.lists("mend the roof, sweep")
		s.shows("1 in the trash, 1 hidden (their folders stay) · u takes it back", "!selected")
		s.press("u")
		s.step()
		s.shows("back again: 1 from the trash, 1 that were hidden")
		s.lists(newest)
		d.did("")
		s.press("A", "e", "h")
		s.step()
		s.shows("4 tasks exported", "!selected")
		if got := d.did("export"); len(got) != 4 {
			t.Errorf("exported: %q", got)
		}
		s.press("home", " ", " ", "t")
		s.shows("Tags for 2 tasks")
		s.press("autumn -dry", "enter")
		s.step()
		s.shows("tagged: 2 tasks")
		if got, want := d.did("tag"), []string{"tag roost:t0 +autumn -dry", "tag code:t1 +autumn -dry"}; !cmp.Equal(got, want) {
			t.Errorf("tagged: %q, want %q", got, want)
		}
		s.press("/", "autumn", "esc")
		s.lists("paint the fence, tidy the shed")
		s.press("A", "esc")
		s.shows("!selected", "/ autumn")
	})
}

func TestDeletingOneOfTwoCopies(t *testing.T) {
	list := estate()[:2]
	list[0].Also = []Copy{{"code:t0", "VS Code/Roo"}}
	d := &counter{parts: whole(list)}
	d.parts[1].Sources = []api.SourceState{{Name: "VS Code/Roo", Tasks: 2}, {Name: "Roost", Tasks: 1}}
	on(t, d, Options{}, func(s *stage) {
		s.step()
		s.shows("Found 2 tasks: VS Code/Roo 2, Roost 1 (1 in two places).")
		s.press("n", "d")
		s.shows("The one in Roost goes to the trash; the copy in VS Code/Roo stays and is", "y only what is shown · a all copies")
		d.did("")
		other := list[0]
		other.Source, other.Where, other.Also = "code", "VS Code/Roo", nil
		d.parts = whole([]Task{other, list[1]})
		s.press("y")
		s.step()
		s.shows("deleted in Roost: paint the fence; it stays in VS Code/Roo · u takes it back")
		s.lists("paint the fence, tidy the shed")
		d.parts = whole(list)
		s.press("u")
		s.step()
		s.shows("put back: paint the fence")
		s.press("home", "d", "a")
		s.step()
		s.lists("tidy the shed")
		s.press("u")
		s.step()
		s.shows("back again: 1 from the trash, 1 that were hidden")
		if got, want := d.did("delete"), []string{"delete roost:t0", "delete roost:t0", "delete code:t0"}; !cmp.Equal(got, want) {
			t.Errorf("deleted: %q, want %q", got, want)
		}
	})
}

func TestResumeAsksForAFolderThatIsNotCertain(t *testing.T) {
	for _, tt := range []struct {
		name, folder string
		inferred     bool
		asks, guess  string
	}{
		{"recorded", "/here", false, "", ""},
		{"recorded and gone", "/gone", false, "Its folder /gone is not here.", "."},
		{"inferred", "/here", true, "It seems to have been in this folder", "/here"},
		{"inferred and gone", `c:\dev\roo`, true, `It seems to have been c:\dev\roo, which is not here.`, "."},
		{"unknown", "", false, "The task does not record its folder.", "."},
	} {
		list := chores("paint")
		list[0].Workspace = tt.folder
		if tt.inferred {
			list[0].Inferred = []string{"workspace"}
		}
		for purpose, key := range map[string]string{"": "r", "resume": "enter"} {
			on(t, &counter{parts: whole(list)}, Options{Purpose: purpose}, func(s *stage) {
				s.step()
				s.press(key)
				if s.quit != (tt.asks == "") {
					t.Fatalf("%s: left at once: %v", tt.name, s.quit)
				}
				if tt.asks == "" {
					return
				}
				s.shows(tt.asks, "Folder to use", "> "+tt.guess)
				s.press("ctrl+u", "/nowhere", "enter")
				s.shows("there is no folder /nowhere")
				s.press("ctrl+u", "/here", "enter")
				if !s.quit || s.m.choice.Folder != "/here" || s.m.choice.Task.Title != "paint" {
					t.Errorf("%s: left %v with %+v", tt.name, s.quit, s.m.choice)
				}
			})
		}
	}
}

func TestHitsAreMarked(t *testing.T) {
	d := &counter{parts: whole(chores("Paint the fence", "tidy")), hits: map[string][]api.Hit{"paint": {{Task: api.Summary{Source: "roost", ID: "t1"}, Number: 3, Snippet: "more paint"}}}}
	on(t, d, Options{Colour: true}, func(s *stage) {
		s.step()
		s.press("/", "paint")
		s.later(pause * 2)
		s.press("down")
		s.later(pause)
		content := s.m.View().Content
		for _, want := range []string{"\x1b[32mPaint\x1b[0m the fence", "more \x1b[0m\x1b[32mpaint\x1b[0m"} {
			if !strings.Contains(content, want) {
				t.Errorf("%q is not on the screen:\n%q", want, content)
			}
		}
	})
}
