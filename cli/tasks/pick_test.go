package tasks

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/picker"
	"github.com/roost-dev/roost/internal/testing/clitest"
	"github.com/roost-dev/roost/money"
)

// A storage is called what people call the editor and the tool.
func TestSourceLabel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ path, tool, want string }{
		{"/home/me/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline", "roo", "VS Code/Roo"},
		{"/home/me/.config/Code - Insiders/User/globalStorage/saoudrizwan.claude-dev", "cline", "VS Code Insiders/Cline"},
		{"/Users/me/Library/Application Support/Cursor/User/globalStorage/saoudrizwan.claude-dev", "cline", "Cursor/Cline"},
		{`C:\Users\me\AppData\Roaming\Windsurf\User\globalStorage\rooveterinaryinc.roo-cline`, "roo", "Windsurf/Roo"},
		{"/home/me/.vscode-server/data/User/globalStorage/kilocode.kilo-code", "kilo", "VS Code remote/Kilo"},
		{"/home/me/.config/SomeFork/User/globalStorage/x.y", "zoo", "SomeFork/Zoo"},
		{"/backup/tasks", "", "store-1a2b3c"},
		{"/backup/tasks", "roo", "store-1a2b3c/Roo"},
		{"globalStorage/x.y", "roo", "store-1a2b3c/Roo"},
	} {
		if got := sourceLabel(api.SourceState{Name: "store-1a2b3c", Tool: tt.tool, Path: tt.path}); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.path, got, tt.want)
		}
	}
	if got := sourceLabel(api.SourceState{Name: api.OwnSource, Tool: "roost", Path: "/x"}); got != "Roost" {
		t.Errorf("our own root is called %s", got)
	}
}

// What is shown around a hit has it in it, whichever history it is in.
func TestHistoryAroundAHit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		hit      *picker.Hit
		from, to int // messages of 100, from 1
		api      bool
	}{
		{nil, 81, 100, false},
		{&picker.Hit{History: "api", Number: 50}, 48, 70, true},
		{&picker.Hit{History: "ui", Number: 1}, 1, 21, false},
		{&picker.Hit{History: "ui", Number: 100}, 79, 100, false},
	} {
		f := around(tt.hit)
		from, to := window(100, f)
		if f.api != tt.api || tt.hit != nil && f.ui == tt.api || tt.hit != nil && (from+1 > tt.hit.Number || to < tt.hit.Number) || from+1 != tt.from && tt.to != 100 || to != tt.to {
			t.Errorf("%+v: messages %d to %d, %+v", tt.hit, from+1, to, f)
		}
	}
}

func TestRowOfATask(t *testing.T) {
	t.Parallel()
	usd := money.USD(1_250_000)
	got := pickRow(api.Summary{
		ID: "a", Source: "store-1", Title: "paint", Status: "completed", TS: 5, Workspace: "/ws", Model: "m", Messages: api.MessageCounts{UI: 3, API: 2},
		Usage: api.Usage{Cost: &usd}, Copies: []string{"/elsewhere"}, Damaged: []api.Damage{{File: "/x/ui_messages.json", Problem: "cut", Recovered: "3 messages"}, {File: "/x/y", Problem: "gone"}},
	}, "VS Code/Roo")
	want := picker.Task{
		Key: "store-1:a", ID: "a", Title: "paint", Status: "completed", Source: "VS Code/Roo", TS: 5, Workspace: "/ws", Model: "m", Messages: 3, Cost: usd.String(),
		Copied: true, Foreign: true, Damaged: []string{"ui_messages.json: cut; recovered: 3 messages", "y: gone"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(picker.Task{})); diff != "" {
		t.Error(diff)
	}
	if own := pickRow(api.Summary{ID: "b", Source: api.OwnSource}, "Roost"); own.Foreign || own.Cost != "" || own.Copied {
		t.Errorf("got %+v, want not own.Foreign and own.Cost = \"\" and not own.Copied", own)
	}
}

// A source that is only damaged in part can be looked into.
func TestTrouble(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{"": "", "readable": "", "partly damaged": "", "unreachable: no such folder": "is unreachable: no such folder"} {
		if got := trouble(api.SourceState{State: state}); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}

// Clocks that stood wrong give an age all the same.
func TestAgeOfOddTimes(t *testing.T) {
	t.Parallel()
	a, _, _ := clitest.New(t)
	a.Now = func() time.Time { return time.UnixMilli(1_800_000_000_000) }
	for ts, want := range map[int64]string{0: "-", -5: "-", 1: "57y", 1_800_000_000_000: "0s", 1_900_000_000_000: "2030-03-17", 9_223_372_036_854_775_807: "292278994"} {
		if got := a.Age(ts); got != want {
			t.Errorf("%d: %s, want %s", ts, got, want)
		}
	}
}
