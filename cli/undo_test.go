package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
)

// What is said of a deed is short, harmless and plain.
func TestDeedText(t *testing.T) {
	t.Parallel()
	a, _, _ := app(t)
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
		if got := a.actionText(d, true); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	hostile := api.Action{From: api.ActionLabels{Title: title("\x1b[2J\u202e"), Tags: tags("\x07")}, To: api.ActionLabels{Title: title(strings.Repeat("long ", 900)), Tags: tags()}}
	if got := a.actionText(hostile, true); strings.ContainsAny(got, "\x1b\x07\u202e\n") || len(got) > 250 {
		t.Errorf("%q", got)
	}
}

// Undo and redo complete tasks that are listed and those in the trash.
func TestUndoCompletions(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	storage := base + "/store"
	many(t, storage, 2)
	run := func(args ...string) (string, int) {
		a, out, _ := app(t, "ROOST_ROOT="+base+"/root", "ROOST_CACHE="+base+"/cache", "ROOST_SOURCES="+storage)
		code := a.Run(context.Background(), args)
		return out.String(), code
	}
	if out, code := run("delete", "1776200000000"); code != ExitDone {
		t.Fatal(out)
	}
	for _, command := range []string{"undo", "redo"} {
		out, _ := run("__complete", command, "")
		if !strings.Contains(out, "1776200001000\ttask 1 of many") || !strings.Contains(out, ":1776200000000\ttask 0 of many") {
			t.Errorf("%s: %s", command, out)
		}
		if out, _ := run("__complete", command, "1776200001000", ""); strings.Contains(out, "many") {
			t.Errorf("a second task: %s", out)
		}
	}
}
