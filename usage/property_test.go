package usage

import (
	"fmt"
	"math"
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

// Joining twice is joining once, and neither loses a row that stands for itself.
func TestJoiningIsDoneOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var messages [][]byte
		for range rapid.IntRange(0, 20).Draw(t, "rows") {
			messages = append(messages, genRow(t))
		}
		joined := JoinCommands(messages)
		kept, sound := 0, true
		for _, m := range messages {
			sound = sound && esjson.Valid(m)
			if r := parseRow(m); !r.isOutput() && r.say != "mcp_server_response" {
				kept++
			}
		}
		if len(joined) != kept {
			t.Fatalf("%d rows of %d that stand for themselves", len(joined), kept)
		}
		again := JoinCommands(joined)
		if len(again) != len(joined) {
			t.Fatalf("joined again: %d of %d", len(again), len(joined))
		}
		for i := range joined {
			if string(again[i]) != string(joined[i]) {
				t.Fatalf("joined again: %s became %s", joined[i], again[i])
			}
			if sound && !esjson.Valid(joined[i]) {
				t.Fatalf("a row became no JSON: %s", joined[i])
			}
		}
		requests := JoinRequests(joined)
		for _, m := range requests {
			if len(joined) > 1 && parseRow(m).isSay("api_req_finished") {
				t.Fatalf("a finished row is left: %s", m)
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
		all := Of(messages)
		item := all.HistoryItem(r)
		if len(messages) > 0 && !esjson.Valid(messages[0]) {
			return // its ts is passed through as it is
		}
		if !esjson.Valid(item) {
			t.Fatalf("%s", item)
		}
		sum := all.Tokens()
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

// Adding rows one by one costs the row, not the list: a long task's totals must
// not slow down its end.
func TestTotalsDoNotLookBack(t *testing.T) {
	row := []byte(started(`{"tokensIn":10,"tokensOut":1,"cost":0.001}`))
	grow := func(n int) float64 {
		var all Totals
		for range n {
			all.Add(row)
		}
		return testing.AllocsPerRun(50, func() {
			at := all.Rows()
			all.Add(row)
			if !all.Update(at, row) {
				t.Fatal("the newest request cannot be updated")
			}
		})
	}
	if short, long := grow(10), grow(20000); long > 2*short+4 {
		t.Errorf("%v allocations with 10 rows, %v with 20,000", short, long)
	}
}

// Sums keep Roo's digits: they are added in the order of the list.
func TestSumsKeepTheOrderOfTheList(t *testing.T) {
	costs := []string{"0.1", "0.2", "0.3", "1e16", "1", "-1e16"}
	want := 0.0
	var all Totals
	all.Add([]byte(talk))
	for i, c := range costs {
		all.Add([]byte(started(fmt.Sprintf(`{"cost":%s}`, c))))
		var f float64
		if _, err := fmt.Sscan(c, &f); err != nil {
			t.Fatal(err)
		}
		if want += f; all.Tokens().Cost != want {
			t.Errorf("after %d: %v, want %v", i+1, all.Tokens().Cost, want)
		}
	}
	// A late change of an early row sums up anew, in the same order.
	if !all.Update(1, []byte(started(`{"cost":0.7}`))) {
		t.Fatal("refused")
	}
	if want := 0.7 + 0.2 + 0.3 + 1e16 + 1 - 1e16; math.Abs(all.Tokens().Cost-want) > 2 {
		t.Errorf("%v", all.Tokens().Cost)
	}
	fresh := Of(rows(talk, started(`{"cost":0.7}`), started(`{"cost":0.2}`), started(`{"cost":0.3}`), started(`{"cost":1e16}`), started(`{"cost":1}`), started(`{"cost":-1e16}`)))
	if fresh.Tokens() != all.Tokens() {
		t.Errorf("%+v, from the start %+v", all.Tokens(), fresh.Tokens())
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

func ExamplePrice() {
	c := Price(Anthropic, Prices{Input: 3, Output: 15, CacheWrites: 3.75, CacheReads: 0.3}, Request{Input: 1000, Output: 500, CacheWrites: 2000, CacheReads: 3000})
	fmt.Println(c.Input, c.Output, c.Micros)
	// Output: 6000 500 18900
}

func ExampleJoinCommands() {
	for _, row := range JoinCommands([][]byte{
		[]byte(`{"ts":1,"type":"ask","ask":"command","text":"ls"}`),
		[]byte(`{"ts":2,"type":"say","say":"command_output","text":"a.txt"}`),
	}) {
		fmt.Println(string(row))
	}
	// Output: {"ts":1,"type":"ask","ask":"command","text":"ls\nOutput:a.txt"}
}
