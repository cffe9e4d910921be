package setup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// moded is the engine with profiles, some of which are for modes.
func moded() Resolver {
	e := withProfiles()
	e.Config.ModeProfiles = map[string]string{"architect": "work", "code": "my-local", "ask": "gone", "debug": "half"}
	return e
}

// Who answers in a mode: its profile, where nobody said whom to ask; and of the profile
// nothing but that.
func TestWhoAnswersInAMode(t *testing.T) {
	mine := task.Settings{Workspace: "/w", Provider: "openai", Model: "m", Approve: "ask", Allow: []string{"ls"}, Limits: api.RunLimits{MaxTurns: 2}}
	local := func(s *task.Settings) {
		s.Profile, s.Provider, s.Model, s.BaseURL, s.ByMode = "my local", "openai-compatible", "qwen", "http://box/v1", true
	}
	work := func(s *task.Settings) {
		s.Profile, s.Provider, s.Model, s.Account, s.Effort, s.MaxTokens, s.ByMode = "work", "anthropic", "claude-opus-5-5", "work", "high", 9000, true
	}
	follows := func(s *task.Settings) { s.ByMode = true }
	for _, c := range []struct {
		name      string
		was, mode string // of the task before and now; "" before = a new task
		byMode    bool   // the task follows its modes
		give      Choice
		want      func(*task.Settings)
		note      string
	}{
		{"a new task", "", "code", false, Choice{}, local, "from now on openai-compatible qwen answers (profile my-local)"},
		{"one that the settings preset", "", "architect", false, Choice{Preset: true, Provider: "openai", Model: "m", Profile: "plain"}, work, "claude-opus-5-5"},
		{"one that was told a provider", "", "code", false, Choice{Provider: "openai"}, func(*task.Settings) {}, ""},
		{"one that was told a model", "", "code", false, Choice{Model: "m"}, func(*task.Settings) {}, ""},
		{"one that was told a profile", "", "code", false, Choice{Profile: "plain"}, func(*task.Settings) {}, ""},
		{"one that was told an address", "", "code", false, Choice{BaseURL: "http://x"}, func(*task.Settings) {}, ""},
		{"a mode without a profile", "", "orchestrator", false, Choice{}, follows, ""},
		{"a profile that is gone", "", "ask", false, Choice{}, follows, "mode_profiles.ask names the profile gone"},
		{"a profile without a provider", "", "debug", false, Choice{}, follows, "mode_profiles.debug names the profile half"},
		{"effort and length are the person's", "", "architect", false, Choice{Effort: "low", MaxTokens: 7}, func(s *task.Settings) { work(s); s.Effort, s.MaxTokens = "low", 7 }, "answers"},
		{"no length at all", "", "architect", false, Choice{MaxTokens: -1}, func(s *task.Settings) { work(s); s.MaxTokens = 0 }, "answers"},
		{"a task that follows", "ask", "code", true, Choice{}, local, "answers"},
		{"in the same mode it keeps its own", "code", "code", true, Choice{}, follows, ""},
		{"a task that does not follow", "ask", "code", false, Choice{}, func(*task.Settings) {}, ""},
		{"told on the way", "ask", "code", true, Choice{Model: "m"}, func(*task.Settings) {}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			was, s, want := task.Settings{}, mine, mine
			if c.was != "" {
				was = mine
				was.Mode = c.was
			}
			s.Mode, s.ByMode = c.mode, c.byMode
			want.Mode = c.mode
			c.want(&want)
			got, notes := moded().EnterMode(was, s, c.give, c.was == "")
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if note := strings.Join(notes, "\n"); !strings.Contains(note, c.note) || c.note == "" && note != "" {
				t.Errorf("told %q", note)
			}
		})
	}
	// Without profiles for modes nothing is new.
	if got, notes := withProfiles().EnterMode(task.Settings{}, mine, Choice{}, true); got.ByMode || notes != nil {
		t.Errorf("got %+v %q, want not got.ByMode and notes = nil", got, notes)
	}
}

// A run that goes on: only a task that follows, only another model, and no key is
// replaced by another one.
func TestServeWhileARunGoesOn(t *testing.T) {
	e := moded()
	serve := ModeSetup{Resolver: e}.ModelFor
	if _, other, err := serve(task.Settings{Mode: "code"}); other || err != nil {
		t.Errorf("a task that does not follow: %v %v", other, err)
	}
	for _, slug := range []string{"orchestrator", "ask"} {
		s, other, err := serve(task.Settings{Mode: slug, ByMode: true, Provider: "openai", Model: "m"})
		if other || err != nil || (s.Note != "") != (slug == "ask") {
			t.Errorf(`%s: got %+v %v %v, want not other and no error and (s.Note != "") = (slug == "ask")`,
				slug, s, other, err)
		}
	}
	s, other, err := serve(task.Settings{Mode: "architect", ByMode: true, Provider: "openai", Model: "m", Limits: api.RunLimits{MaxCostMicros: 1}})
	if err != nil || !other || s.Model.Provider == nil || s.Model.Provider.Name() != "anthropic" || len(s.Model.Entry.IDs) == 0 || s.Settings.Account != "work" || s.Settings.Mode != "architect" {
		t.Errorf("%+v %v %v", s, other, err)
	}
	if _, other, err = serve(s.Settings); other || err != nil {
		t.Errorf("the one that answers already is taken for another: %v", err)
	}
	local, _, err := serve(task.Settings{Mode: "code", ByMode: true, Limits: api.RunLimits{MaxCostMicros: 1}})
	if err != nil || !strings.Contains(local.Note, "the price of qwen is not known") {
		t.Errorf("got %+v %v, want no error and strings.Contains(local.Note, \"the price of qwen is not known\")",
			local, err)
	}
	p := e.Config.Profiles["plain"]
	e.Config.Profiles["work"] = p
	if _, other, err := serve(task.Settings{Mode: "architect", ByMode: true}); err == nil || other {
		t.Error("a provider without a key answers")
	}
}

// A subtask follows as its parent does.
func TestASubtaskFollowsItsMode(t *testing.T) {
	e := moded()
	for _, byMode := range []bool{true, false} {
		s := task.Settings{Mode: "code", ByMode: byMode, Provider: "openai", Model: "m"}
		if notes := e.EnterSubtaskMode(&s); (s.Model == "qwen") != byMode || (len(notes) == 1) != byMode || s.ByMode != byMode {
			t.Errorf("got %+v %q, want (s.Model == \"qwen\") = byMode and (len(notes) == 1) = byMode and s.ByMode = byMode",
				s, notes)
		}
	}
}
