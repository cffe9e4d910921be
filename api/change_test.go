package api

import (
	"encoding/json"
	"testing"
)

// Absent, null and a value are three things in a merge patch, both ways.
func TestMaybe(t *testing.T) {
	for _, text := range []string{`{}`, `{"title":null}`, `{"title":""}`, `{"title":"x","tags":[],"pinned":false}`, `{"tags":null,"mode":"ask"}`} {
		var p TaskPatch
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		back, err := json.Marshal(p)
		if err != nil || string(back) != text {
			t.Errorf("%s became %s, %v", text, back, err)
		}
	}
	var p TaskPatch
	if err := json.Unmarshal([]byte(`{"pinned":"yes"}`), &p); err == nil {
		t.Error("a text is no pin")
	}
}
