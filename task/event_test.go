package task_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/task"
)

// zeroEvents is one of each plain event type.
var zeroEvents = []task.Event{
	task.Created{}, task.Adopted{}, task.ForeignImported{}, task.ForeignRefused{}, task.Changed{},
	task.RunStarted{}, task.RunWaiting{}, task.RunEnded{}, task.TurnStarted{}, task.TurnFailed{}, task.TurnEnded{},
	task.ToolStarted{}, task.ToolProcess{}, task.ToolFinished{}, api.QuestionOpened{}, api.QuestionClosed{},
	task.InputQueued{}, task.InputTaken{}, task.UsageChanged{}, task.FileChanged{},
	task.SubtaskStarted{}, task.SubtaskEnded{}, task.EpochOpened{}, task.CheckpointSaved{}, task.RestoreBegun{}, task.RestoreEnded{},
	task.MessageAdded{}, task.MessageChanged{}, task.MessageTextSaved{}, task.MessageHidden{},
}

var rawMessages = []string{
	`{"a":"<>&"}`, "{\"ls\":\"\u2028\u2029\"}", `{"lone":"\ud83d x \udc00"}`, `{"n":1e21,"m":1.0,"z":-0}`,
	`{"b":"\u003c","a":"\/"}`, `[]`, `{ "spaced" : 1 }`,
}

// fill draws a value for every field, so that a member that is lost shows.
func fill(t *rapid.T, v reflect.Value) {
	text := rapid.StringMatching("[a-z<>&\u2028\"\\\\ é]{1,6}")
	switch v.Kind() {
	case reflect.String:
		v.SetString(text.Draw(t, "s"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64Range(1, 1<<50).Draw(t, "i"))
	case reflect.Uint32:
		v.SetUint(rapid.Uint64Range(1, 0o777).Draw(t, "u32"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64Range(1, 1<<53).Draw(t, "u"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "b"))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(rapid.SampledFrom(rawMessages).Draw(t, "raw")))
			return
		}
		n := rapid.IntRange(1, 3).Draw(t, "n")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{text.Draw(t, "key"): text.Draw(t, "value")}))
	case reflect.Struct:
		switch v.Type() {
		case reflect.TypeFor[task.Body]():
			switch rapid.IntRange(0, 2).Draw(t, "body") {
			case 0:
				fill(t, v.FieldByName("Raw"))
			case 1:
				fill(t, v.FieldByName("Blob"))
			default:
				fill(t, v.FieldByName("Compose"))
			}
			return
		case reflect.TypeFor[task.Piece]():
			fill(t, v.Field(rapid.IntRange(0, 2).Draw(t, "piece")))
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("no value for %s", v.Type())
	}
}

func TestEventsComeBackAsTheyWere(t *testing.T) {
	for _, zero := range zeroEvents {
		t.Run(zero.EventType(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := reflect.New(reflect.TypeOf(zero))
				fill(t, p.Elem())
				want := p.Elem().Interface().(task.Event)
				line, err := task.Encode(want)
				if err != nil {
					t.Fatal(err)
				}
				if !json.Valid(line) || !strings.HasPrefix(string(line), `{"type":"`+zero.EventType()+`"`) {
					t.Fatalf("line %s", line)
				}
				got, err := task.Decode(line)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, got, cmp.Comparer(sameRaw)); d != "" {
					t.Fatal(d)
				}
			})
		})
	}
}

// sameRaw compares what lies in plain members by value: only messages and
// results promise their bytes, and TestBytesAreExact holds them to it.
func sameRaw(a, b json.RawMessage) bool {
	var x, y any
	_ = json.Unmarshal(a, &x)
	_ = json.Unmarshal(b, &y)
	return reflect.DeepEqual(x, y)
}

func TestBytesAreExact(t *testing.T) {
	for _, raw := range rawMessages {
		for _, e := range []task.Event{
			task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Raw: []byte(raw)}},
			task.MessageChanged{Message: 1, Body: task.Body{Raw: []byte(raw)}},
			task.ToolFinished{Call: "c", Result: []byte(raw)},
		} {
			line, err := task.Encode(e)
			if err != nil {
				t.Fatal(err)
			}
			got, err := task.Decode(line)
			if err != nil {
				t.Fatal(err)
			}
			var back json.RawMessage
			switch g := got.(type) {
			case task.MessageAdded:
				back = g.Raw
			case task.MessageChanged:
				back = g.Raw
			case task.ToolFinished:
				back = g.Result
			}
			if string(back) != raw {
				t.Errorf("%s: %s came back as %s", e.EventType(), raw, back)
			}
		}
	}
}

func TestSavedTextKeepsHalfCharacters(t *testing.T) {
	want := "a\xed\xa0\xbdb\u2028<>&" // a lone surrogate, as the stream gave it
	line, err := task.Encode(task.MessageTextSaved{Message: 1, Text: want})
	if err != nil {
		t.Fatal(err)
	}
	got, err := task.Decode(line)
	if err != nil || got.(task.MessageTextSaved).Text != want {
		t.Fatalf("got %q, %v, want no error and got.(task.MessageTextSaved).Text = %v", got, err, want)
	}
}

func TestUnknownEventsSurvive(t *testing.T) {
	raw := `{"type":"checkpoint.imagined","x":{"y":[1.0,"\ud800"]}}`
	e, err := task.Decode([]byte(raw))
	if err != nil || e.EventType() != "checkpoint.imagined" {
		t.Fatal(e, err)
	}
	back, err := task.Encode(e)
	if err != nil || string(back) != raw {
		t.Fatalf("got %s, %v, want no error and string(back) = raw", back, err)
	}
}

func TestAMessageNeedsContent(t *testing.T) {
	if _, err := task.Encode(task.MessageAdded{History: task.UI, Message: 1}); err == nil {
		t.Fatal("an empty message was encoded")
	}
}

func FuzzDecode(f *testing.F) {
	for _, e := range zeroEvents {
		f.Add([]byte(`{"type":"` + e.EventType() + `","history":"api","message":3,"raw":{"role":"assistant","content":[{"type":"tool_use"}]}}`))
	}
	f.Add([]byte(`{"type":"task.adopted","files":[{"history":"ui","spans":[1]}]}`))
	f.Add([]byte(`{"type":"message.added","history":"ui","message":9007199254740993,"raw":1}`))
	f.Add([]byte(`{"type":"foreign.imported","history":"api","blob":"b","first":9,"rows":[{"message":1},{"off":2,"len":2}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		s := task.New(blobMap{"b": "{}{}"})
		_ = s.Apply(commit(1, json.RawMessage(line)))
		_ = s.Apply(commit(2, json.RawMessage(line)))
		checkValid(t, s)
	})
}
