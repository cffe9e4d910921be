package tasks

import (
	"testing"
	"time"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/internal/testing/clitest"
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
		if got := app.SourceLabel(api.SourceState{Name: "store-1a2b3c", Tool: tt.tool, Path: tt.path}); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.path, got, tt.want)
		}
	}
	if got := app.SourceLabel(api.SourceState{Name: api.OwnSource, Tool: "roost", Path: "/x"}); got != "Roost" {
		t.Errorf("our own root is called %s", got)
	}
}

// What is shown around a hit has it in it, whichever history it is in.
func TestHistoryAroundAHit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		hit      *api.Hit
		from, to int // messages of 2000, from 1
		api      bool
	}{
		{nil, 1501, 2000, false},
		{&api.Hit{History: "api", Number: 1000}, 500, 1499, true},
		{&api.Hit{History: "ui", Number: 1}, 1, 500, false},
		{&api.Hit{History: "ui", Number: 2000}, 1001, 2000, false},
	} {
		f := around(tt.hit, "")
		from, to := window(2000, f)
		if f.api != tt.api || tt.hit != nil && f.ui == tt.api || tt.hit != nil && (from+1 > tt.hit.Number || to < tt.hit.Number) || from+1 != tt.from && tt.to != 2000 || to != tt.to {
			t.Errorf("%+v: messages %d to %d, %+v", tt.hit, from+1, to, f)
		}
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
	for ts, want := range map[int64]string{0: "-", -5: "-", 1: "-", 946_684_800_000: "27y", 1_800_000_000_000: "0s", 1_900_000_000_000: "2030-03-17", 9_223_372_036_854_775_807: "292278994"} {
		if got := a.Age(ts); got != want {
			t.Errorf("%d: %s, want %s", ts, got, want)
		}
	}
}
