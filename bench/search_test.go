package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt"
)

// What is made is what an editor writes: two valid histories of as many messages as
// were asked for, in which files are read again.
func TestTalkIsLikeATask(t *testing.T) {
	made := newTalk()
	ui, api := made.task(baseTS, 300)
	n := 0
	for _, raw := range [][]byte{ui, api} {
		if !esjson.Valid(raw) {
			t.Fatalf("a history is no JSON: %.100s", raw)
		}
		for range esjson.Array(raw) {
			n++
		}
	}
	if n < 300 || n > 304 {
		t.Errorf("%d messages", n)
	}
	if made.bytes < 300*100 || int64(len(ui)+len(api)) < made.bytes {
		t.Errorf("%d bytes of text in %d", made.bytes, len(ui)+len(api))
	}
	for _, want := range []string{`"tool_result"`, `<environment_details>`, `"execute_command"`, `"readFile`} {
		if !bytes.Contains(append(ui, api...), []byte(want)) && !bytes.Contains(ui, []byte(strings.Trim(want, `"`))) {
			t.Errorf("there is no %s", want)
		}
	}
	all := append(ui, api...)
	for range 30 {
		u, a := made.task(baseTS, 300)
		all = append(append(all, u...), a...)
	}
	for _, kind := range []string{"identifier", "phrase", "path"} {
		if len(made.seen[kind]) == 0 || !bytes.Contains(all, []byte(made.again(kind))) {
			t.Errorf("no %s is remembered as it was said", kind)
		}
	}
	again, _ := newTalk().task(baseTS, 300)
	if !bytes.Equal(again, ui) {
		t.Error("two runs measure different texts")
	}
	if roofmt.UIName != "ui_messages.json" || roofmt.APIName != "api_conversation_history.json" {
		t.Error("the files have other names by now")
	}
}

func TestSearchPart(t *testing.T) {
	rows, err := searches(context.Background(), options{dir: t.TempDir(), quick: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 13 || !strings.Contains(rows[0].got, "MB of text/s") || !strings.HasPrefix(rows[11].got, "p95") || !strings.HasPrefix(rows[12].got, "p95") {
		t.Errorf(`got %+v, want len(rows) = 13 and strings.Contains(rows[0].got, "MB of text/s") and strings.HasPrefix(rows[11].got, "p95") and strings.HasPrefix(rows[12].got, "p95")`,
			rows)
	}
}
