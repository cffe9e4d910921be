package failure

import (
	"encoding/json"
	"testing"
)

// A failure that no HTTP status corresponds to has none in its document either.
func TestTheDocumentOfAFailure(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]*Failure{
		`{"type":"about:blank#usage","title":"do x","code":"usage","detail":"y","suggestions":["z"],"retryable":false}`: Usage("do x", "y", "z"),
		`{"type":"about:blank#gone","title":"find x","code":"gone","detail":"y","task_id":"t","suggestions":["a"],"retryable":false,"status":404}`: {
			Exit: ExitNotFound, Code: "gone", Status: 404, What: "find x", Why: "y", Task: "t", Suggestions: []string{"a"},
		},
	} {
		if got, err := json.Marshal(f.Document()); string(got) != want || err != nil {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}
