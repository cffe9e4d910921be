package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/roost-dev/roost/api"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/money"
)

// documents are those that come over the network and are shown, or told on as they were.
var documents = []any{
	api.Summary{}, api.Usage{}, api.Totals{}, api.Hit{}, api.DeletedTask{}, api.TaskActions{}, api.BranchTree{}, api.ForkResult{}, api.SourceState{},
	api.Page[api.Summary]{}, api.Page[api.Run]{}, api.Page[api.Hit]{}, api.Branch{}, api.KnownFile{},
	api.Run{}, api.Question{}, api.Sent{}, api.Answered{}, api.Queued{}, api.Deleted{}, api.Restored{},
	api.NewTask{}, api.NewRun{}, api.Message{}, api.Answer{}, api.NewRewind{}, api.NewUndo{}, api.NewFork{}, api.NewCondense{}, api.NewRestore{},
	api.Rewound{}, api.Undone{}, api.Condensed{}, api.SavedCheckpoint{}, api.Lines{}, api.Commits{}, api.ContextUse{}, api.Exported{}, api.Version{},
	api.Checkpoints{}, api.Diff{}, api.RestoreResult{}, api.Draft{}, api.NewDraft{}, api.Page[api.Completion]{},
}

// What was a document is one again, to the last byte: what the shell prints of a server's
// answer is what it prints of its own.
func TestDocuments(t *testing.T) {
	for _, doc := range documents {
		kind := reflect.TypeOf(doc)
		t.Run(kind.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v := reflect.New(kind)
				fill(t, v.Elem(), 0)
				first := written(t, v.Interface())
				back := reflect.New(kind)
				if err := json.Unmarshal(first, back.Interface()); err != nil {
					t.Fatalf("got %v\n%s, want no error", err, first)
				}
				if again := written(t, back.Interface()); !bytes.Equal(first, again) {
					t.Fatalf("got \n%s\n%s, want bytes.Equal(first, again)", first, again)
				}
			})
		})
	}
}

func written(t *rapid.T, v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fill puts something into every member that JSON shows, of whatever kind it is.
func fill(t *rapid.T, v reflect.Value, depth int) {
	name := fmt.Sprint(depth, v.Type())
	switch v.Interface().(type) {
	case json.RawMessage:
		v.SetBytes([]byte(rapid.SampledFrom([]string{"1", `"a<b"`, `{"a":[1.50,null]}`}).Draw(t, name)))
		return
	case money.USD:
		v.SetInt(rapid.Int64().Draw(t, name))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if depth < 4 && rapid.Bool().Draw(t, name) {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && f.Tag.Get("json") != "-" {
				fill(t, v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		n := 0
		if depth < 4 {
			n = rapid.IntRange(0, 2).Draw(t, name)
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i), depth+1)
		}
	case reflect.String:
		v.SetString(rapid.String().Draw(t, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, name))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, name))
	case reflect.Float64:
		v.SetFloat(rapid.Float64Range(-1e9, 1e9).Draw(t, name))
	case reflect.Map:
		// none of these documents has any that matters
	}
}
