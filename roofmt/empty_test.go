package roofmt_test

import (
	"strings"
	"testing"

	"github.com/roost-dev/roost/roofmt"
)

// Roo makes a folder for each id that it is asked for: those hold nothing. Where a
// history lost its bytes there was a task, and a list must not hide it.
func TestOnlyNothingIsEmpty(t *testing.T) {
	nuls := strings.Repeat("\x00", 4096)
	ui, api, old := roofmt.UIName, roofmt.APIName, roofmt.LegacyName
	for name, c := range map[string]struct {
		files          map[string]string
		empty, damaged bool
	}{
		"no file":                  {nil, true, false},
		"only a row":               {map[string]string{roofmt.ItemName: `{"id":"a"}`}, true, false},
		"empty lists":              {map[string]string{ui: "[]", api: "[ ]\n"}, true, false},
		"no byte":                  {map[string]string{ui: "", api: ""}, true, true},
		"NULs":                     {map[string]string{ui: nuls}, false, true},
		"NULs beside an empty one": {map[string]string{ui: "[]", api: nuls}, false, true},
		"one line break":           {map[string]string{ui: "\n"}, false, true},
		"a byte order mark":        {map[string]string{ui: "\xEF\xBB\xBF"}, false, true},
		"an object":                {map[string]string{ui: "{}"}, false, true},
		"text":                     {map[string]string{api: "Not Found"}, false, true},
		"a list that is cut":       {map[string]string{ui: "["}, false, true},
		"NULs of an old Roo":       {map[string]string{old: nuls}, false, true},
		"no byte of an old Roo":    {map[string]string{old: ""}, true, true},
		"an empty list, then NULs": {map[string]string{ui: "[]" + nuls}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, c.files)
			if f := read(t, dir); f.Empty() != c.empty || damaged(f) != c.damaged {
				t.Errorf("empty %v, damaged %v: %+v", f.Empty(), damaged(f), f.Losses)
			}
		})
	}
}
