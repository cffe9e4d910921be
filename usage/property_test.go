package usage

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
)

// A checklist that is written from todos is read as those todos.
func TestTodosRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		var want []Todo
		for range rapid.IntRange(0, 8).Draw(t, "todos") {
			if rapid.IntRange(0, 4).Draw(t, "noise") == 0 {
				text.WriteString(rapid.SampledFrom([]string{"", "# Plan", "- no box", "[?] what", "text [x] inside"}).Draw(t, "line") + "\n")
			}
			content := rapid.SampledFrom([]string{"a", "two words", "[x] nested", "- dash", "日本 😀", "a\\b \"q\"", "x]"}).Draw(t, "content")
			status := rapid.SampledFrom([]string{Pending, InProgress, Completed}).Draw(t, "status")
			mark := map[string][]string{Pending: {" "}, InProgress: {"-", "~"}, Completed: {"x", "X"}}[status]
			text.WriteString(rapid.SampledFrom([]string{"", "- ", "-", "  "}).Draw(t, "lead"))
			text.WriteString("[" + rapid.SampledFrom(mark).Draw(t, "mark") + "] " + content + rapid.SampledFrom([]string{"\n", "\r\n", " \n"}).Draw(t, "end"))
			want = append(want, NewTodo(content, status))
		}
		got := ParseTodos(text.String())
		if len(got) != len(want) {
			t.Fatalf("%q gives %+v", text.String(), got)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%q: %+v, want %+v", text.String(), got[i], want[i])
			}
		}
	})
}

// The history row is JSON that says what the messages say, whatever they are.
func TestHistoryItemSaysTheSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var messages [][]byte
		for range rapid.IntRange(0, 15).Draw(t, "rows") {
			messages = append(messages, genRow(t))
		}
		r := Row{ID: "id", Number: rapid.Int64Range(-1, 5).Draw(t, "number"), Size: 12, Workspace: rapid.SampledFrom([]string{"", "/w", `C:\w "x"`}).Draw(t, "workspace"), Now: 99}
		item := HistoryItem(messages, r)
		if len(messages) > 0 && !esjson.Valid(messages[0]) {
			return // its ts is passed through as it is
		}
		if !esjson.Valid(item) {
			t.Fatalf("got %s, want esjson.Valid(item)", item)
		}
		sum := joinedSum(messages)
		for key, want := range map[string]float64{"tokensIn": sum.In, "tokensOut": sum.Out, "totalCost": sum.Cost, "number": float64(r.Number)} {
			if got, ok := esjson.GetFloat(item, key); !ok || got != want {
				t.Fatalf("%s is %v, want %v: %s", key, got, want, item)
			}
		}
		if ws, _ := esjson.GetString(item, "workspace"); ws != r.Workspace {
			t.Fatalf("workspace %q", ws)
		}
		if _, has := esjson.Get(item, "cacheReads"); len(messages) > 0 && has != sum.HasCacheReads {
			t.Fatalf("cacheReads %v: %s", has, item)
		}
	})
}

// joinedSum does it the long way: each request's two rows become one, as objects, and
// the list that is left is added up.
func joinedSum(messages [][]byte) (sum Tokens) {
	type request struct {
		text     map[string]json.RawMessage
		condense *Tokens
		finished bool
	}
	var list []*request
	object := func(r row) map[string]json.RawMessage {
		m := map[string]json.RawMessage{}
		if json.Unmarshal([]byte(esjson.Text(r.text)), &m) != nil || m == nil { // null is no object
			return map[string]json.RawMessage{}
		}
		return m
	}
	for i, m := range messages {
		r := parseRow(m)
		switch {
		case i == 0 || r.isOutput():
		case r.isSay("api_req_started"):
			list = append(list, &request{text: object(r)})
		case r.isSay("condense_context"):
			s, _ := SpentOf(r.say, r.text, r.condens)
			list = append(list, &request{condense: &s})
		case r.isSay("api_req_finished"):
			for _, q := range slices.Backward(list) {
				if q.text != nil && !q.finished {
					q.finished = true
					maps.Copy(q.text, object(r))
					break
				}
			}
		}
	}
	for _, q := range list {
		if q.condense != nil {
			q.condense.AddTo(&sum)
			continue
		}
		text, _ := json.Marshal(q.text)
		s, _ := SpentOf("api_req_started", esjson.Quote(nil, string(text)), nil)
		s.AddTo(&sum)
	}
	return sum
}

// Sums keep Roo's digits: they are added in the order of the list, and what comes late
// of an early request is added in that request's place.
func TestSumsKeepTheOrderOfTheList(t *testing.T) {
	costs := []string{"0.1", "0.2", "0.3", "1e16", "1", "-1e16"}
	list := rows(talk)
	want := 0.0
	cost := func() float64 { f, _ := esjson.GetFloat(HistoryItem(list, Row{}), "totalCost"); return f }
	for i, c := range costs {
		list = append(list, []byte(started(fmt.Sprintf(`{"cost":%s}`, c))))
		f, err := strconv.ParseFloat(c, 64)
		if err != nil {
			t.Fatal(err)
		}
		if want += f; cost() != want {
			t.Errorf("after %d: %v, want %v", i+1, cost(), want)
		}
	}
	list = rows(talk, started(`{"cost":0.1}`), started(`{"cost":1e16}`), started(`{}`), finished(`{"cost":-1e16}`), finished(`{}`), finished(`{"cost":0.7}`))
	a, b, c := 0.7, 1e16, -1e16
	if got, want := cost(), a+b+c; got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

func FuzzTodos(f *testing.F) {
	f.Add("[x] a\n- [ ] b")
	f.Add("[\u2028] \xed\xa0\x80\r[ ] ")
	f.Fuzz(func(t *testing.T, text string) {
		for _, todo := range ParseTodos(text) {
			if todo.Content == "" || strings.Contains(todo.Content, "\n") || todo != NewTodo(todo.Content, todo.Status) {
				t.Errorf("%q gives %+v", text, todo)
			}
		}
	})
}

func ExampleParseTodos() {
	for _, todo := range ParseTodos("[x] look\n[-] write\n[ ] test") {
		fmt.Println(todo.Status, todo.Content)
	}
	// Output:
	// completed look
	// in_progress write
	// pending test
}

func ExampleHistoryItem() {
	fmt.Printf("%s\n", HistoryItem([][]byte{
		[]byte(`{"ts":1,"type":"say","say":"text","text":"list files"}`),
		[]byte(`{"ts":2,"type":"say","say":"api_req_started","text":"{\"tokensIn\":10,\"tokensOut\":2,\"cost\":0.5}"}`),
	}, Row{ID: "a", Number: 1, Size: 4096}))
	// Output: {"id":"a","number":1,"ts":2,"task":"list files","tokensIn":10,"tokensOut":2,"totalCost":0.5,"size":4096}
}
