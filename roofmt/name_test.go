package roofmt_test

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
)

// The form of an id is the contract's regular expression.
func TestValidIDIsTheContractsForm(t *testing.T) {
	form := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(
			rapid.StringMatching(`[A-Za-z0-9._/\x00 é-]{0,130}`),
			rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{120,130}`),
			rapid.String(),
		).Draw(t, "id")
		if got, want := api.ValidTaskID(id), form.MatchString(id); got != want {
			t.Fatalf("ValidID(%q) = %t, want %t", id, got, want)
		}
	})
}
