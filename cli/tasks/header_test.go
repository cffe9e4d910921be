package tasks

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

func TestAHeaderOfHostileNamesIsHarmless(t *testing.T) {
	t.Parallel()
	const evil = "x\x1b[2J\x1b]0;owned\a\u009b31m\u202etxt"
	a, out, errs := clitest.New(t)
	task := api.Summary{
		ID:        evil,
		Source:    "s",
		Path:      "/p",
		Title:     evil,
		Workspace: "/" + evil,
		Status:    "idle",
		TS:        1,
		Damaged:   []api.Damage{{File: evil, Problem: evil, Recovered: evil}},
		Provider:  evil,
		Mode:      evil,
	}
	if err := (&commands{a}).header(task, []string{evil}); err != nil {
		t.Fatal(err)
	}
	if text := out.String() + errs.String(); strings.ContainsAny(text, "\x1b\a\u009b\u202e") {
		t.Errorf("got %q, want not strings.ContainsAny(text, \"\\x1b\\a\\u009b\\u202e\")", text)
	}
}
