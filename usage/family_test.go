package usage

import (
	"strings"
	"testing"
)

// The members of a family stand behind the status, in Roo's order, and none is there
// without something to say.
func TestFamilyInAHistoryRow(t *testing.T) {
	for want, f := range map[string]Family{
		`"status":"active"}`: {},
		`"status":"active","delegatedToId":"C","awaitingChildId":"C","childIds":["C"]}`:                                              {Delegated: "C", Awaiting: "C", Children: []string{"C"}},
		`"status":"active","delegatedToId":"C","childIds":["C"],"completedByChildId":"C","completionResultSummary":"Did \"it\"\n."}`: {Delegated: "C", Children: []string{"C"}, Completed: "C", Result: "Did \"it\"\n."},
		`"status":"active","childIds":["a\"b","c"]}`:                                                                                 {Children: []string{`a"b`, "c"}},
	} {
		if got := string(HistoryItem(nil, Row{ID: "p", Status: "active", Family: f})); !strings.HasSuffix(got, want) {
			t.Errorf("%s does not end in %s", got, want)
		}
	}
}
