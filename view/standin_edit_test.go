package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/esjson"
)

// A call that changes files is the row that Roo shows for it, with what it changes.
func TestRowsOfEditCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, input, want string }{
		{"edit", `{"file_path":"a","old_string":"one\ntwo","new_string":"one\nTWO"}`, "#1 tool edit a\n  @@ @@\n   one\n  -two\n  +TWO"},
		{"edit", `{"file_path":"a","old_string":"gone","new_string":""}`, "#1 tool edit a\n  @@ @@\n  -gone"},
		{"edit", `{"path":"a","operations":[{"search":"x","replace":"y"},7,{"search":"z","replace":"w"}]}`, "#1 tool edit a\n  @@ @@\n  -x\n  +y\n  @@ @@\n  -z\n  +w"},
		{"edit_file", `{"file_path":"a","old_string":"x","new_string":"y","expected_replacements":2}`, "#1 tool edit a\n  @@ @@\n  -x\n  +y"},
		{"edit_file", `{"file_path":"new","old_string":"","new_string":"y\nz\n"}`, "#1 tool create new\n  +y\n  +z"},
		{"search_replace", `{"file_path":"a","old_string":"x","new_string":"y"}`, "#1 tool edit a\n  @@ @@\n  -x\n  +y"},
		{"search_and_replace", `{"path":"a","search":"x","replace":"y"}`, "#1 tool replace a\n  @@ @@\n  -x\n  +y"},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** Delete File: b c\n*** End Patch"}`, "#1 tool edit a, b c\n  *** Begin Patch\n  *** Update File: a\n  @@\n  -x\n  +y\n  *** Delete File: b c\n  *** End Patch"},
		{"apply_patch", `{"input":"*** Begin Patch\r\n*** Add File: n\r\n+y\r\n*** End Patch"}`, "#1 tool create n\n  *** Begin Patch\n  *** Add File: n\n  +y\n  *** End Patch"},
		{"apply_patch", `{}`, "#1 tool edit"},
		{"edit", `{"file_path":7,"old_string":[]}`, "#1 tool edit"},
	} {
		rows := UIFromAPI(raws(`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"` + c.name + `","input":` + c.input + `}],"ts":1}`))
		if d := cmp.Diff(c.want, readAll(rows, UI)); d != "" {
			t.Errorf("got %s %s: %s, want d = \"\"", c.name, c.input, d)
		}
		text, _ := esjson.GetString(rows[0], "text")
		if len(rows) != 1 || !esjson.Valid([]byte(text)) {
			t.Errorf("got %s, want len(rows) = 1 and esjson.Valid([]byte(text))", rows)
		}
	}
}
