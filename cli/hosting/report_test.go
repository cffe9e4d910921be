package hosting

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/clitest"
)

func TestAReportOfHostileNamesIsHarmless(t *testing.T) {
	t.Parallel()
	const evil = "x\x1b[2J\x1b]0;owned\a\u009b31m\u202etxt"
	a, out, errs := clitest.New(t)
	report := api.Checkup{
		Tasks:    1,
		Damaged:  []api.Finding{{ID: evil, File: evil, Problem: evil, Path: evil}},
		Repaired: []api.Finding{{ID: evil, Copy: evil}},
	}
	(&commands{a}).showReport(report)
	if text := out.String() + errs.String(); strings.ContainsAny(text, "\x1b\a\u009b\u202e") {
		t.Errorf("got %q, want not strings.ContainsAny(text, \"\\x1b\\a\\u009b\\u202e\")", text)
	}
}
