package editing

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

// The text of an action is short, harmless and plain.
func TestActionText(t *testing.T) {
	t.Parallel()
	a, _, _ := clitest.New(t)
	at := "2026-04-14T20:53:20.000Z"
	title := func(text string) *string { return &text }
	tags := func(list ...string) *[]string { return &list }
	yes, no := true, false
	for want, d := range map[string]api.Action{
		`rename from "a" to "b", 2026-04-14 20:53`: {At: &at, From: api.ActionLabels{Title: title("a")}, To: api.ActionLabels{Title: title("b")}},
		`rename from its own title to "b"`:         {From: api.ActionLabels{Title: title("")}, To: api.ActionLabels{Title: title("b")}},
		`rename from "b" to its own title`:         {From: api.ActionLabels{Title: title("b")}, To: api.ActionLabels{Title: title("")}},
		`tag +b +c -a`:                             {From: api.ActionLabels{Tags: tags("a", "x")}, To: api.ActionLabels{Tags: tags("x", "b", "c")}},
		`pin`:                                      {From: api.ActionLabels{Pinned: &no}, To: api.ActionLabels{Pinned: &yes}},
		`unpin`:                                    {From: api.ActionLabels{Pinned: &yes}, To: api.ActionLabels{Pinned: &no}},
		`rename from "a" to "b", tag +t, pin`: {
			From: api.ActionLabels{Title: title("a"), Tags: tags(), Pinned: &no}, To: api.ActionLabels{Title: title("b"), Tags: tags("t"), Pinned: &yes},
		},
		`delete`: {Kind: "delete", From: api.ActionLabels{Deleted: &no}, To: api.ActionLabels{Deleted: &yes}},
		`rewind`: {Kind: "rewind"}, // a kind that this version does not know
	} {
		if got := (&commands{App: a}).actionText(d, true); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	hostile := api.Action{From: api.ActionLabels{Title: title("\x1b[2J\u202e"), Tags: tags("\x07")}, To: api.ActionLabels{Title: title(strings.Repeat("long ", 900)), Tags: tags()}}
	if got := (&commands{App: a}).actionText(hostile, true); strings.ContainsAny(got, "\x1b\x07\u202e\n") || len(got) > 250 {
		t.Errorf("got %q, want not strings.ContainsAny(got, \"\\x1b\\x07\\u202e\\n\") and len(got) <= 250", got)
	}
}
