package roofmt_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
)

// tricky are texts that look like the file's own structure.
var tricky = []string{
	`plain`, `{\"ts\":1,\"type\":\"say\",\"say\":\"text\"}`, `}]`, `,{`, `\\\\`, `\"`, `\u0000\ud83d\ude00\ud800`, `<read_file>\n<path>a</path>\n</read_file>`, `é漢😀`, ``,
}

// era is how one program of one time spelled a task.
type era struct {
	name     string
	ui, api  string // file names
	uiRows   []string
	apiRows  []string
	open     string // before the first element, between two, after the last
	between  string
	closing  string
	wantTool roofmt.Tool
}

func eras() []era {
	rows := func(form string, more ...string) []string {
		var out []string
		for i, text := range tricky {
			out = append(out, fmt.Sprintf(form, 1700000000000+i, text))
		}
		return append(out, more...)
	}
	return []era{
		{
			name: "2024", ui: roofmt.LegacyName, api: roofmt.APIName, open: "[", between: ",", closing: "]",
			uiRows: rows(`{"ts":%d,"type":"say","say":"text","text":"%s"}`), apiRows: rows(`{"role":"assistant","ts":%d,"content":"%s"}`),
		},
		{
			name: "tools as text", ui: roofmt.UIName, api: roofmt.APIName, open: "[", between: ",", closing: "]",
			uiRows:  rows(`{"ts":%d,"type":"ask","ask":"tool","text":"%s","partial":false}`),
			apiRows: rows(`{"role":"assistant","ts":%d,"content":[{"type":"text","text":"</x>%s"}]}`),
		},
		{
			name: "native tools", ui: roofmt.UIName, api: roofmt.APIName, open: "[", between: ",", closing: "]", wantTool: roofmt.Roo,
			uiRows: rows(`{"ts":%d,"type":"say","say":"text","text":"%s","images":[],"isProtected":false}`),
			apiRows: rows(`{"role":"user","ts":%d,"content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"%s"}]}]}`,
				`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"a":[[],{}],"b":{"c":{"d":[1e-7,null]}}}}],"ts":1.5}`),
		},
		{
			name: "classic Cline, pretty", ui: roofmt.UIName, api: roofmt.APIName, open: "[\n  ", between: ",\n  ", closing: "\n]\n", wantTool: roofmt.Cline,
			uiRows:  rows("{\n    \"ts\": %d,\n    \"type\": \"say\",\n    \"say\": \"task\",\n    \"text\": \"%s\"\n  }"),
			apiRows: rows("{\n    \"role\": \"user\",\n    \"ts\": %d,\n    \"content\": \"%s\"\n  }"),
		},
	}
}

func (e era) text(rows []string) string { return e.open + strings.Join(rows, e.between) + e.closing }

// fits counts the rows that stand wholly within the first n bytes.
func (e era) fits(rows []string, n int) int {
	at := len(e.open)
	for i, r := range rows {
		if at += len(r); at > n {
			return i
		}
		at += len(e.between)
	}
	return len(rows)
}

func elements(t fataler, d *roofmt.Document) []string {
	var out []string
	for raw, err := range d.All() {
		if err != nil {
			t.Fatalf("%s: got %v, want no error", d.Name, err)
		}
		out = append(out, string(raw))
	}
	return out
}

type fataler interface{ Fatalf(string, ...any) }

func TestErasAreTold(t *testing.T) {
	for _, e := range eras() {
		dir := t.TempDir()
		write(t, dir, map[string]string{e.ui: e.text(e.uiRows), e.api: e.text(e.apiRows)})
		f := read(t, dir)
		if f.Tool != e.wantTool {
			t.Errorf("%s: got %q, want f.Tool = %q", e.name, f.Tool, e.wantTool)
		}
		if damaged(f) || f.UI.Source != e.ui || f.API.Source != e.api {
			t.Errorf("%s: got %q, %q, %+v, want no losses and f.UI.Source = e.ui and f.API.Source = e.api",
				e.name, f.UI.Source, f.API.Source, f.Losses)
		}
		for _, d := range []struct {
			doc  *roofmt.Document
			rows []string
		}{{f.UI, e.uiRows}, {f.API, e.apiRows}} {
			if got := elements(t, d.doc); strings.Join(got, "\n") != strings.Join(d.rows, "\n") {
				t.Errorf(`%s: got %q, want strings.Join(got, "\n") = strings.Join(d.rows, "\n")`, e.name, got)
			}
		}
	}
}

// Whatever program wrote it: of a file that is cut anywhere, all that is whole
// comes back, byte for byte, and the loss is told.
func TestEveryEraCutAtEveryByte(t *testing.T) {
	for _, e := range eras() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, file := range []struct {
				name string
				rows []string
			}{{e.ui, e.uiRows}, {e.api, e.apiRows}} {
				full := e.text(file.rows)
				last := len(strings.TrimRight(full, "\n")) // a newline at the end is no loss
				for cut := 1; cut < last; cut++ {
					write(t, dir, map[string]string{e.ui: e.text(e.uiRows), e.api: e.text(e.apiRows), file.name: full[:cut]})
					f, err := roofmt.Read(context.Background(), dir)
					if err != nil {
						t.Fatal(err)
					}
					d := f.UI
					if file.name == e.api {
						d = f.API
					}
					want := e.fits(file.rows, cut)
					got := elements(t, d)
					if d.Source == "" && want == 0 { // a legacy file without a whole message has no shape
						got = nil
					}
					if len(got) != want || want > 0 && got[want-1] != file.rows[want-1] || !damaged(f) {
						t.Fatalf("%s cut at %d: %d of %d, losses %+v", file.name, cut, len(got), want, f.Losses)
					}
					if err := f.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// Damage of any kind costs only what it hit: everything before comes back, what
// comes back is whole, and nothing is made up.
func TestDamageCostsWhatItHit(t *testing.T) {
	dir := t.TempDir()
	list := eras()
	rapid.Check(t, func(r *rapid.T) {
		e := list[rapid.IntRange(1, len(list)-1).Draw(r, "era")]
		rows := e.uiRows
		full := []byte(e.text(rows))
		at := rapid.IntRange(0, len(full)-1).Draw(r, "at")
		n := min(rapid.IntRange(1, 300).Draw(r, "bytes"), len(full)-at)
		switch rapid.SampledFrom([]string{"hole", "flip", "gone", "twice", "other"}).Draw(r, "damage") {
		case "hole":
			copy(full[at:at+n], bytes.Repeat([]byte{0}, n))
		case "flip":
			full[at] ^= 1 << rapid.IntRange(0, 7).Draw(r, "bit")
		case "gone":
			full = append(full[:at:at], full[at+n:]...)
		case "twice":
			full = append(full[:at:at], full[max(0, at-n):]...)
		case "other":
			copy(full[at:at+n], strings.Repeat(`"}]{,`, n))
		}
		if err := os.WriteFile(filepath.Join(dir, e.ui), full, 0o600); err != nil {
			r.Fatal(err)
		}
		f, err := roofmt.Read(context.Background(), dir)
		if err != nil {
			r.Fatal(err)
		}
		defer f.Close()
		got := elements(r, f.UI)
		before := e.fits(rows, at)
		if at < len(e.open) {
			before = 0
		}
		if len(got) < before {
			r.Fatalf("%d rows of the %d before the damage: %q", len(got), before, full)
		}
		for i, raw := range got {
			if i < before && raw != rows[i] {
				r.Fatalf("row %d before the damage is %s", i, raw)
			}
			if !esjson.Valid([]byte(raw)) {
				r.Fatalf("row %d is no JSON: %s", i, raw)
			}
			if !bytes.Contains(full, []byte(raw)) {
				r.Fatalf("row %d stands nowhere in the file: %s", i, raw)
			}
		}
		if f.UI.State == roofmt.Present && len(f.Losses) > 0 {
			r.Fatalf("a file that JSON.parse takes has losses: %+v", f.Losses)
		}
	})
}

// What interrupted writes left is only used when the file itself is of no use,
// and then never costs a message that stands somewhere whole.
func TestLeftoversNeverCostAMessage(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp("", "roofmt-leftovers-")
		if err != nil {
			r.Fatal(err)
		}
		defer os.RemoveAll(dir)
		put := func(name, text string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				r.Fatal(err)
			}
		}
		own, state := 0, rapid.SampledFrom([]string{"whole", "missing", "empty", "torn"}).Draw(r, "own")
		n := rapid.IntRange(1, 6).Draw(r, "rows")
		switch state {
		case "whole":
			own = n
			put(roofmt.UIName, uiList(n))
		case "empty":
			put(roofmt.UIName, "")
		case "torn":
			own = n - 1
			text := uiList(n)
			put(roofmt.UIName, text[:len(text)-5])
		}
		type left struct {
			name     string
			ms, rows int
			whole    bool
		}
		var list []left
		for i := range rapid.IntRange(0, 3).Draw(r, "leftovers") {
			kind := rapid.SampledFrom([]string{"bak", "new"}).Draw(r, "kind")
			l := left{ms: 1000 * rapid.IntRange(1, 5).Draw(r, "ms"), rows: rapid.IntRange(1, 8).Draw(r, "left"), whole: rapid.IntRange(0, 3).Draw(r, "whole") > 0}
			l.name = fmt.Sprintf(".%s.%s_%d_%d.tmp", roofmt.UIName, kind, l.ms, i)
			text := uiList(l.rows)
			if !l.whole {
				text, l.rows = text[:len(text)-5], l.rows-1
			}
			put(l.name, text)
			list = append(list, l)
		}
		f, err := roofmt.Read(context.Background(), dir)
		if err != nil {
			r.Fatal(err)
		}
		defer f.Close()
		if state == "whole" {
			if f.UI.Source != roofmt.UIName || f.UI.Len() != own || damaged(f) {
				r.Fatalf("a sound file was not used: %q, %d", f.UI.Source, f.UI.Len())
			}
			return
		}
		newest, found := left{}, false
		for _, l := range list {
			if l.whole && l.rows >= own && (!found || l.ms > newest.ms) {
				newest, found = l, true
			}
		}
		if f.UI.Len() < own || found && f.UI.Len() < newest.rows {
			r.Fatalf("%d rows from %q; the file has %d, %+v", f.UI.Len(), f.UI.Source, own, list)
		}
		for _, l := range list {
			if l.name == f.UI.Source && !l.whole && found {
				r.Fatalf("a torn leftover was preferred to a whole one: %+v", list)
			}
		}
		if got := elements(r, f.UI); len(got) > 0 && f.UI.Source == "" {
			r.Fatalf("rows from nowhere: %q", got)
		}
	})
}

// The old name holds either list. It is told by its messages, and never stands in
// the way of a file with the right name.
func TestLegacyNameByShape(t *testing.T) {
	ui, api := uiList(2), `[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]`
	for _, c := range []struct {
		name    string
		files   map[string]string
		ui, api int
		uiFrom  string
		lost    bool
	}{
		{"rows, and turns beside", map[string]string{roofmt.LegacyName: ui, roofmt.APIName: api}, 2, 2, roofmt.LegacyName, false},
		{"turns, and rows beside", map[string]string{roofmt.LegacyName: api, roofmt.UIName: ui}, 2, 2, roofmt.UIName, false},
		{"rows, but there are newer ones", map[string]string{roofmt.LegacyName: uiList(9), roofmt.UIName: ui}, 2, 0, roofmt.UIName, false},
		{"rows, and the newer file is broken", map[string]string{roofmt.LegacyName: ui, roofmt.UIName: ui[:80]}, 2, 0, roofmt.LegacyName, true},
		{"rows, and the newer file is broken but has more", map[string]string{roofmt.LegacyName: uiList(1), roofmt.UIName: uiList(4)[:250]}, 3, 0, roofmt.UIName, true},
		{"cut", map[string]string{roofmt.LegacyName: uiList(4)[:250]}, 3, 0, roofmt.LegacyName, true},
		{"strange messages first", map[string]string{roofmt.LegacyName: `[{},7,{"role":"user","content":"x"}]`}, 0, 3, "", false},
		{"nothing that is a message", map[string]string{roofmt.LegacyName: `[{},{"a":1}]`}, 0, 0, "", false},
		{"not even a list", map[string]string{roofmt.LegacyName: `{"messages":[]}`}, 0, 0, "", true},
	} {
		dir := t.TempDir()
		write(t, dir, c.files)
		f := read(t, dir)
		if f.UI.Len() != c.ui || f.API.Len() != c.api || f.UI.Source != c.uiFrom || damaged(f) != c.lost {
			t.Errorf("%s: %d rows from %q, %d turns, %+v", c.name, f.UI.Len(), f.UI.Source, f.API.Len(), f.Losses)
		}
		if _, err := os.Stat(filepath.Join(dir, roofmt.LegacyName)); err != nil {
			t.Errorf("%s: reading removed it", c.name)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, e := range eras() {
		f.Add([]byte(e.text(e.uiRows)), []byte(e.text(e.apiRows)), []byte(`{"id":"x","ts":1}`))
	}
	f.Add([]byte("\ufeff[{}]"), []byte("[[[[[["), []byte("\x00"))
	f.Fuzz(func(t *testing.T, ui, api, item []byte) {
		dir := t.TempDir()
		write(t, dir, map[string]string{roofmt.UIName: string(ui), roofmt.APIName: string(api), roofmt.ItemName: string(item), ".ui_messages.json.bak_1_a.tmp": string(api)})
		folder, err := roofmt.Read(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		for _, d := range []*roofmt.Document{folder.UI, folder.API} {
			for _, raw := range elements(t, d) {
				if !esjson.Valid([]byte(raw)) {
					t.Errorf("an element is no JSON: %q", raw)
				}
			}
		}
		if folder.Item != nil && !esjson.Valid(folder.Item) {
			t.Errorf("item %q", folder.Item)
		}
		noted := looking(t, dir, nil)
		defer noted.Close()
		for _, d := range []*roofmt.Document{noted.UI, noted.API} {
			if checkNotes(t, d); d.Source != "" && d.Notes == nil {
				t.Errorf("%s from %s has no notes", d.Name, d.Source)
			}
		}
	})
}
