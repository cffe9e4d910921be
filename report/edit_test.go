package report

import (
	"encoding/json"
	"testing"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/store/actions"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/money"
)

// What cannot be known is null, and what there is nothing of is not there.
func TestEditsAsDocuments(t *testing.T) {
	deed := api.Action{ID: "journal-7", Kind: "rewind"}
	for name, c := range map[string]struct {
		doc  any
		want map[string]any // null = the member is there, and null; a string "-" = it is not there
	}{
		"condensed, free":    {api.Condensed{Task: "t", Condense: "c", Messages: 3, Cost: new(money.USD(0))}, map[string]any{"cost": "0.00", "condense_id": "c", "tokens_after": "-", "dry_run": false}},
		"condensed, unknown": {api.Condensed{Task: "t", DryRun: true}, map[string]any{"cost": nil, "condense_id": "-", "dry_run": true}},
		"undone":             {UndoneOf(deed, api.TaskActions{}, nil, actions.Options{}), map[string]any{"redone": nil, "restore": "-"}},
		"redone":             {UndoneOf(deed, api.TaskActions{}, nil, actions.Options{Redo: true}), map[string]any{"undone": nil}},
		"rewound":            {api.Rewound{}, map[string]any{"restore": "-", "to": nil}},
		"nothing saved":      {api.SavedCheckpoint{Task: "t"}, map[string]any{"checkpoint": nil, "saved": false}},
		"an older failure":   {api.OlderFailure{}, map[string]any{"taskId": nil}},
		"older usage":        {api.OlderUsage{}, map[string]any{"totalCost": nil}},
	} {
		data, err := json.Marshal(c.doc)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		for member, want := range c.want {
			value, there := got[member]
			if want == "-" {
				if there {
					t.Errorf("%s: %s is there: %s", name, member, data)
				}
				continue
			}
			if diff := cmp.Diff(want, value); diff != "" || !there {
				t.Errorf("%s: got %s: %s, want diff = \"\" and there", name, member, data)
			}
		}
	}
}
