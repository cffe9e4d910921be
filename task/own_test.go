package task_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/task"
)

// What the owner folds from its events and what a reader folds from their lines
// must be one state, whatever bytes the events hold.
func TestTheOwnersStateIsTheReaders(t *testing.T) {
	strange := rapid.SampledFrom([]string{"plain", "bad \xff byte", "half \xed\xa0\xbd character", "\ufffd", `\ufffd`, "\u2028<&>", ""})
	rapid.Check(t, func(t *rapid.T) {
		src := memory{blobMap: blobMap{"b": "{}{}"}}
		owner, reader := task.New(src), task.New(src)
		var next uint64
		for i := range rapid.IntRange(1, 25).Draw(t, "commits") {
			var events []task.Event
			for range rapid.IntRange(1, 3).Draw(t, "events") {
				e := anyEvent(t, &next)
				if rapid.Bool().Draw(t, "strange") {
					e = estrange(e, strange.Draw(t, "text"))
				}
				events = append(events, e)
			}
			c := encode(t, uint64(i+1), events...)
			a, b := owner.ApplyOwn(c, events), reader.Apply(c)
			if (a == nil) != (b == nil) {
				t.Fatalf("commit %d: %v and %v", c.Seq, a, b)
			}
		}
		if d := cmp.Diff(dump(reader), dump(owner)); d != "" {
			t.Fatal(d)
		}
	})
}

// estrange puts a text into every string of an event that is no name of something.
func estrange(e task.Event, text string) task.Event {
	v := reflect.New(reflect.TypeOf(e)).Elem()
	v.Set(reflect.ValueOf(e))
	for i := range v.NumField() {
		switch name := v.Type().Field(i).Name; {
		case v.Field(i).Kind() != reflect.String, name == "History", name == "Blob", strings.HasSuffix(name, "Blob"):
		default:
			v.Field(i).SetString(v.Field(i).String() + text)
		}
	}
	return v.Interface().(task.Event)
}

func TestSpacesAroundAMessageAreNotPartOfIt(t *testing.T) {
	events := []task.Event{task.MessageAdded{History: task.UI, Message: 1, Body: task.Body{Raw: []byte(" {\"ts\":1} ")}}}
	c := encode(t, 1, events...)
	owner, reader := task.New(nil), task.New(nil)
	if err := owner.ApplyOwn(c, events); err != nil {
		t.Fatal(err)
	}
	if err := reader.Apply(c); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(reader.UI()[0].Raw()), string(owner.UI()[0].Raw())); d != "" {
		t.Error(d)
	}
	// A caller that gives fewer events than the commit has is not believed.
	both := encode(t, 2, ui(2, `{"ts":2}`), ui(3, `{"ts":3}`))
	if err := owner.ApplyOwn(both, []task.Event{ui(2, `{"ts":2}`)}); err != nil || len(owner.UI()) != 3 {
		t.Errorf("%v, %d rows", err, len(owner.UI()))
	}
}
