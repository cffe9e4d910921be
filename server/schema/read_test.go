package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/money"
)

// sample has a member of each kind that bodies have.
type sample struct {
	Name    string           `json:"name"`
	Count   int              `json:"count,omitempty"`
	Yes     *bool            `json:"yes,omitempty"`
	List    []string         `json:"list,omitempty"`
	Cost    *money.USD       `json:"cost,omitempty"`
	Any     *json.RawMessage `json:"any,omitempty"`
	Inner   *inner           `json:"inner,omitempty"`
	hidden  int              //nolint:unused // what is tested is that nobody sets it
	Ignored int              `json:"-"`
}

type inner struct {
	Deep  int               `json:"deep"`
	Words map[string]string `json:"words,omitempty"`
}

// What is wrong with a body is told by where it stands, all of it at once.
func TestBodiesAreReadStrictly(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		code string
		at   []string // pointers of what is wrong
	}{
		"all of it":             {`{"name":"a","count":-3,"yes":true,"list":["x"],"cost":"0.5","any":{"b":[1,true,null,"x"]},"inner":{"deep":1,"words":{"k":"v"}}}`, "", nil},
		"a number for money":    {`{"name":"a","cost":0.25}`, "", nil},
		"null for a pointer":    {`{"name":"a","yes":null,"inner":null,"any":null}`, "", nil},
		"blanks around":         {" \n{\"name\":\"a\"}\t ", "", nil},
		"what nobody knows":     {`{"name":"a","colour":1,"inner":{"deep":1,"x/y~z":2}}`, "validation_failed", []string{"/colour", "/inner/x~1y~0z"}},
		"letters of another":    {`{"Name":"a"}`, "validation_failed", []string{"/Name", "/name"}},
		"what is not exported":  {`{"name":"a","hidden":1,"Ignored":2}`, "validation_failed", []string{"/hidden", "/Ignored"}},
		"twice":                 {`{"name":"a","name":"b","inner":{"deep":1,"deep":2}}`, "validation_failed", []string{"/name", "/inner/deep"}},
		"twice in what is kept": {`{"name":"a","any":{"b":{"c":1,"c":2}}}`, "validation_failed", []string{"/any/b/c"}},
		"twice in a map":        {`{"name":"a","inner":{"deep":1,"words":{"k":"1","k":"2"}}}`, "validation_failed", []string{"/inner/words/k"}},
		"missing":               {`{"inner":{}}`, "validation_failed", []string{"/inner/deep", "/name"}},
		"nothing":               {``, "validation_failed", []string{"/name"}},
		"null":                  {`null`, "validation_failed", []string{""}},
		"null for a text":       {`{"name":null,"list":null}`, "validation_failed", []string{"/name", "/list"}},
		"wrong types":           {`{"name":1,"count":"2","yes":"true","list":{"a":1},"inner":[1],"cost":true}`, "validation_failed", []string{"/name", "/count", "/yes", "/list", "/inner", "/cost"}},
		"wrong in a list":       {`{"name":"a","list":["x",2,["y"]]}`, "validation_failed", []string{"/list/1", "/list/2"}},
		"no whole number":       {`{"name":"a","count":1.5}`, "validation_failed", []string{"/count"}},
		"a whole one in e":      {`{"name":"a","count":1e3}`, "validation_failed", []string{"/count"}},
		"too large a number":    {`{"name":"a","count":99999999999999999999}`, "validation_failed", []string{"/count"}},
		"too exact an amount":   {`{"name":"a","cost":"0.1234567"}`, "validation_failed", []string{"/cost"}},
		"an array":              {`[{"name":"a"}]`, "validation_failed", []string{""}},
		"a text":                {`"name"`, "validation_failed", []string{""}},
		"a second value":        {`{"name":"a"} {"name":"b"}`, "validation_failed", []string{""}},
		"something behind it":   {`{"name":"a"}]`, "validation_failed", []string{""}},
		"cut off":               {`{"name":"a"`, "malformed_json", nil},
		"no JSON":               {`name=a`, "malformed_json", nil},
		"a comma too many":      {`{"name":"a",}`, "malformed_json", nil},
		"no UTF-8":              {"{\"name\":\"a\xff\"}", "malformed_json", nil},
		"too deep":              {`{"name":"a","any":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, "malformed_json", nil},
		"deep enough to hurt":   {strings.Repeat(`{"inner":`, 20000), "malformed_json", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got sample
			err := Read([]byte(c.body), &got)
			if c.code == "" {
				if err != nil || got.Name != "a" {
					t.Fatalf("%v: got %+v, want no error and got.Name = \"a\"", err, got)
				}
				return
			}
			var p *api.Problem
			if !errors.As(err, &p) || p.Code != c.code {
				t.Fatalf("got %v, want %s", err, c.code)
			}
			var at []string
			for _, w := range p.Errors {
				at = append(at, w.Parameter)
			}
			if diff := cmp.Diff(c.at, at); diff != "" {
				t.Errorf("got %s\n%+v, want diff = \"\"", diff, p.Errors)
			}
			if len(p.Detail) > 600 {
				t.Errorf("the body's own words fill the answer: %d bytes", len(p.Detail))
			}
		})
	}
}

// However much is wrong, the answer is small.
func TestManyMistakesAreCut(t *testing.T) {
	body := "{" + strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("k", 5000)+`":1,`, 1000), ",") + "}"
	err := Read([]byte(body), &sample{})
	var p *api.Problem
	if !errors.As(err, &p) || len(p.Errors) != mostWrong {
		t.Fatalf("got %v, want errors.As(err, &p) and len(p.Errors) = mostWrong", err)
	}
	if text := fixture.Must[[]byte](t)(json.Marshal(p)); len(text) > 20_000 {
		t.Errorf("the answer has %d bytes", len(text))
	}
}

// What a client writes, the server reads as it was meant: also what it takes from a merge
// patch, where null is something else than nothing.
func TestBodiesComeThroughWhole(t *testing.T) {
	text := rapid.String()
	maybe := func(t *rapid.T) *string {
		if rapid.Bool().Draw(t, "given") {
			s := text.Draw(t, "text")
			return &s
		}
		return nil
	}
	rapid.Check(t, func(t *rapid.T) {
		task := api.NewTask{Workspace: text.Draw(t, "workspace"), Settings: api.Settings{Mode: text.Draw(t, "mode"), Allow: rapid.SliceOfN(text, 1, 3).Draw(t, "allow")}}
		if rapid.Bool().Draw(t, "words") {
			task.Message = &api.Words{Text: text.Draw(t, "words"), Images: rapid.SliceOfN(text, 1, 3).Draw(t, "images")}
			usd := money.USD(rapid.Int64().Draw(t, "cost"))
			turns := rapid.Int().Draw(t, "turns")
			task.Limits = &api.Limits{MaxCost: &usd, MaxTurns: &turns, IdleTimeout: maybe(t)}
		}
		comesThrough(t, task)
		patch := api.TaskPatch{Settings: api.Settings{Model: text.Draw(t, "model")}}
		if rapid.Bool().Draw(t, "title") {
			patch.Title = api.Maybe[string]{Given: true, Value: maybe(t)}
		}
		if rapid.Bool().Draw(t, "tags") {
			tags := rapid.SliceOf(text).Draw(t, "tags")
			patch.Tags = api.Maybe[[]string]{Given: true, Value: &tags}
		}
		comesThrough(t, patch)
	})
}

func comesThrough[T any](t *rapid.T, v T) {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back T
	if err := Read(data, &back); err != nil {
		t.Fatalf("%s: got %v, want no error", data, err)
	}
	again, err := json.Marshal(back)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, again) {
		t.Fatalf("%s\nbecame\n%s", data, again)
	}
}

// Whatever bytes come: the decoder ends, and what it takes, the plain decoder reads the
// same way.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","count":3,"yes":true,"list":["x"],"cost":"0.5","any":{"b":[1]},"inner":{"deep":1,"words":{"k":"v"}}}`,
		`{"name":"é \ud83d\ude00 \ud800","cost":1.5}`, `{"name":"a","name":"b"}`, `[]`, `{"name":{}}`, `{"any":[[[[]]]],"name":""}`, `{"inner":null}`, "{", `{"name":"a"}{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got sample
		err := Read(body, &got)
		var p *api.Problem
		if err != nil && (!errors.As(err, &p) || p.Status != 400 && p.Status != 422) {
			t.Fatalf("got %v, want no error or (errors.As(err, &p) and (p.Status = 400 or p.Status = 422))", err)
		}
		if err != nil {
			return
		}
		var want sample
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("taken, and the plain decoder says %v: %q", err, body)
		}
		a, b := fixture.Must[[]byte](t)(json.Marshal(got)), fixture.Must[[]byte](t)(json.Marshal(want))
		if !bytes.Equal(compacted(t, a), compacted(t, b)) {
			t.Fatalf("%q\nwas read as %s\ninstead of  %s", body, a, b)
		}
	})
}

// compacted writes a document so that only its meaning counts.
func compacted(t *testing.T, data []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return fixture.Must[[]byte](t)(json.Marshal(v))
}
