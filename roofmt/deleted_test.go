package roofmt_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/roofmt"
)

func TestTheRangeThatClineDeleted(t *testing.T) {
	rows := func(ranges ...string) string {
		var list []string
		for i, r := range ranges {
			row := fmt.Sprintf(`{"ts":%d,"type":"say","say":"text","text":"x"`, 1000+i)
			if r != "" {
				row += `,"conversationHistoryDeletedRange":` + r
			}
			list = append(list, row+"}")
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	item := func(r string) string { return `{"id":"t","task":"x","conversationHistoryDeletedRange":` + r + `}` }
	for name, c := range map[string]struct {
		item, row, ui, api string
		last               int // 0 = nothing is deleted
	}{
		"none":                     {ui: rows("", ""), api: apiList(9)},
		"in the item":              {item: item("[2,5]"), api: apiList(9), last: 5},
		"in the index":             {row: item("[2,5]"), api: apiList(9), last: 5},
		"in the last row that has": {ui: rows("[2,3]", "[2,5]", ""), api: apiList(9), last: 5},
		"the item goes first":      {item: item("[2,3]"), ui: rows("[2,5]"), api: apiList(9), last: 3},
		"all but the last":         {item: item("[2,7]"), api: apiList(9), last: 7},
		"one message":              {item: item("[2,2]"), api: apiList(9), last: 2},
		"to the end":               {item: item("[2,8]"), api: apiList(9)},
		"beyond the end":           {item: item("[2,80]"), api: apiList(9)},
		"the first reply":          {item: item("[0,1]"), api: apiList(9)},
		"a number alone":           {item: item("[2]"), api: apiList(9)},
		"no numbers":               {item: item(`[2,"5"]`), api: apiList(9)},
		"a fraction":               {item: item("[2,5.5]"), api: apiList(9)},
		"huge":                     {item: item("[2,99999999999999999999]"), api: apiList(9)},
		"no list":                  {item: item("null"), api: apiList(9)},
		"the file is cut":          {item: item("[2,5]"), api: apiList(12)[:len(apiList(9))+3], last: 5},
		"a hole in the file":       {item: item("[2,5]"), api: strings.Replace(apiList(9), `"role"`, "\x00\x00", 1)},
		"no history":               {item: item("[2,5]")},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{roofmt.ItemName: c.item, roofmt.UIName: c.ui, roofmt.APIName: c.api} {
				if text != "" {
					write(t, dir, map[string]string{file: text})
				}
			}
			f := read(t, dir)
			f.Row = []byte(c.row)
			first, last, ok := f.Deleted()
			if ok != (c.last > 0) || last != c.last || ok && first != 2 {
				t.Errorf("%d to %d, %v; want %d", first, last, ok, c.last)
			}
		})
	}
}

func TestWhatStandsForASession(t *testing.T) {
	sidecar := func(count int, key, messages string) string {
		k, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{"version":1,"updated_at":"2026-04-14T20:53:20.000Z","source_message_count":%d,"source_prefix_hash":"sha256:0","source_last_message_key":%s,"messages":%s}`, count, k, messages)
	}
	const summary = `[{"role":"user","content":"all of it in short","id":"s"}]`
	for name, c := range map[string]struct {
		sidecar  string
		replaced int
	}{
		"none":                       {},
		"of the beginning":           {sidecar(3, "id:n2", summary), 3},
		"of all":                     {sidecar(4, "id:n3", summary), 4},
		"of another session":         {sidecar(3, "id:other", summary), 0},
		"of a longer one":            {sidecar(5, "id:n4", summary), 0},
		"of nothing":                 {sidecar(0, "", summary), 0},
		"the place does not fit":     {sidecar(2, "id:n2", summary), 0},
		"no message":                 {sidecar(3, "id:n2", "[]"), 0},
		"what is no message":         {sidecar(3, "id:n2", `[{"role":"system","content":"x"}]`), 0},
		"cut":                        {sidecar(3, "id:n2", summary)[:80], 0},
		"a count that is no integer": {strings.Replace(sidecar(3, "id:n2", summary), ":3,", ":2.5,", 1), 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := session(t, transcript(4), manifest)
			if c.sidecar != "" {
				write(t, dir, map[string]string{sid + ".compaction.json": c.sidecar})
			}
			f := read(t, dir)
			messages, n := f.Compacted()
			if n != c.replaced || (n > 0) != (len(messages) == 1) || f.API.Len() != 4 {
				t.Errorf("%d messages for %d of %d", len(messages), n, f.API.Len())
			}
		})
	}
	// Messages that have no id are known by role and time.
	dir := session(t, strings.NewReplacer(`"id": "n2",`, "").Replace(transcript(4)), manifest)
	write(t, dir, map[string]string{sid + ".compaction.json": sidecar(3, "ts:user:1776200000002", summary)})
	if _, n := read(t, dir).Compacted(); n != 3 {
		t.Errorf("by time: %d", n)
	}
	// A folder that is no session has none, whatever lies in it.
	plain := t.TempDir()
	write(t, plain, map[string]string{roofmt.APIName: apiList(4), filepath.Base(plain) + ".compaction.json": sidecar(3, "ts:user:1002", summary)})
	if _, n := read(t, plain).Compacted(); n != 0 {
		t.Error("a classic task is condensed")
	}
}
