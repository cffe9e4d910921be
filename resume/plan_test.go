package resume

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/roost-dev/roost/esjson"
)

func lists(lines ...string) (out [][]byte) {
	for _, l := range lines {
		out = append(out, []byte(l))
	}
	return out
}

func TestRows(t *testing.T) {
	ui := lists(`{"ts":1,"type":"say","say":"text","text":"do"}`, `{"ts":2,"type":"say","say":"text","text":"cut","partial":true}`,
		`{"ts":3,"type":"say","say":"api_req_started","text":"{}"}`, `{"ts":4,"type":"say","say":"reasoning","text":"r","partial":true}`, `{"ts":5,"type":"ask","ask":"resume_task"}`)
	p := Rows(ui)
	got := string(bytes.Join(carriedOut(ui, p), []byte("\n")))
	want := `{"ts":1,"type":"say","say":"text","text":"do"}` + "\n" + `{"ts":2,"type":"say","say":"text","text":"cut","partial":false}`
	if got != want || fmt.Sprint(p.Hidden) != "[2 3 4]" {
		t.Errorf("%v\n got %s\nwant %s", p.Hidden, got, want)
	}
	if words := esjson.List(FirstWords(ui)); string(words) != `[{"type":"text","text":"<user_message>\ndo\n</user_message>"}]` {
		t.Errorf("got %s, want string(words) = `[{\"type\":\"text\",\"text\":\"<user_message>\\ndo\\n</user_message>\"}]`",
			words)
	}
}

func ExampleRows() {
	p := Rows(lists(
		`{"ts":1,"type":"say","say":"text","text":"list files"}`,
		`{"ts":2,"type":"say","say":"api_req_started","text":"{\"tokensIn\":5}"}`, // killed before its reply
	))
	fmt.Println(p.Ask, p.Hidden)
	// Output: resume_task [1]
}
