package task_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/roost-dev/roost/task"
)

func original(h task.History, blob string, spans ...int64) task.Original {
	return task.Original{Name: string(h) + ".json", Blob: blob, History: h, Spans: spans}
}

// list is a file of elements and the bounds of each.
func list(elements ...string) (file string, spans []int64) {
	at := len("[")
	for _, e := range elements {
		spans = append(spans, int64(at), int64(len(e)))
		at += len(e) + len(", ")
	}
	return "[" + strings.Join(elements, ", ") + "]", spans
}

func TestAdoptionTakesTheUIFilesFirst(t *testing.T) {
	uiFile, uiSpans := list(say(1, "a"), say(2, "b"))
	apiFile, apiSpans := list(`{"role":"user","content":"x"}`, assistant("c1"))
	more, moreSpans := list(say(3, "c"))
	w := tellWith(t, blobMap{"u": uiFile, "a": apiFile, "m": more}, task.Adopted{
		Task: "t", Tool: "roo", CreatedAt: 5,
		Item: json.RawMessage(`{"number":7,"parentTaskId":"p","rootTaskId":"r","number":"x","number":8}`),
		Files: []task.Original{
			original(task.API, "a", apiSpans...), original(task.UI, "u", uiSpans...), original(task.UI, "m", moreSpans...),
			{Name: "checkpoint", Blob: "c", Leaf: true},
		},
	})
	if ids(w.UI()) != "1 2 3" || ids(w.API()) != "4 5" || w.UI()[2].Text() != "c" {
		t.Errorf("ui %s, api %s", ids(w.UI()), ids(w.API()))
	}
	if w.ID != "t" || w.Number != 8 || w.Parent != "p" || w.RootTask != "r" || w.CreatedAt != 5 || w.Origin != "extension" {
		t.Errorf(`got %s, want w.ID = "t" and w.Number = 8 and w.Parent = "p" and w.RootTask = "r" and w.CreatedAt = 5 and w.Origin = "extension"`,
			dump(w.State))
	}
	if got := openIDs(w.State); got != "c1:unknown" {
		t.Errorf("open %q", got)
	}
	if files := w.Adopted.Files; len(files) != 4 || files[0].Spans != nil || files[3].Name != "checkpoint" {
		t.Errorf("the originals are remembered as %+v", files)
	}
}

// The item is another program's file: any member may be of any type.
func TestAnOddItemIsNoError(t *testing.T) {
	for _, item := range []string{``, `null`, `[]`, `7`, `{"number":"3","parentTaskId":5,"rootTaskId":null}`, `{"number":1e400}`} {
		w := tellWith(t, nil, task.Adopted{Task: "t", Item: json.RawMessage(item)})
		if w.Number != 1 || w.Parent != "" || w.RootTask != "" {
			t.Errorf("%s: number %d, parent %q, root %q", item, w.Number, w.Parent, w.RootTask)
		}
	}
}

func TestBoundsThatDoNotFitTheOriginal(t *testing.T) {
	file, good := list(say(1, "a"), say(2, "b"), say(3, "c"))
	size := int64(len(file))
	at := func(i int) []int64 { return good[2*i : 2*i+2] }
	join := func(parts ...[]int64) (all []int64) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for _, c := range []struct {
		name  string
		spans []int64
		want  string // of each message its text, "-" for one that is missing
	}{
		{"none", nil, ""},
		{"all", good, "a b c"},
		{"an odd number", good[:3], ""},
		{"one behind the end", join(at(0), at(1), []int64{size + 9, 4}), "a b -"},
		{"one that ends behind the end", join(at(0), []int64{good[2], size}), "a -"},
		{"one that ends behind all numbers", join(at(0), []int64{good[2], math.MaxInt64}), "a -"},
		{"only that one", []int64{1, math.MaxInt64}, "-"},
		{"the largest place", join(at(0), []int64{math.MaxInt64, math.MaxInt64}), "a -"},
		{"a place before the start", join([]int64{-3, 5}, at(0)), "- a"},
		{"the smallest place", join([]int64{math.MinInt64, math.MaxInt64}, at(0)), "- a"},
		{"a negative length", join(at(0), []int64{good[2], -2}, at(2)), "a - c"},
		{"no length", join([]int64{good[0], 0}, at(1)), "- b"},
		{"one in another", join(at(0), []int64{good[0] + 6, 1}, at(1)), "a n b"},
		{"the same twice", join(at(1), at(1)), "b b"},
		{"in another order", join(at(2), at(0), at(1)), "c a b"},
		{"not where an element stands", join([]int64{good[0] + 1, good[1]}, at(1)), "- b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := tellWith(t, blobMap{"f": file})
			err := w.try(task.Adopted{Task: "t", Files: []task.Original{original(task.UI, "f", c.spans...)}})
			var got []string
			for _, m := range w.UI() {
				switch {
				case m.Missing:
					got = append(got, "-")
				case string(m.Raw()) == "1": // a number that lies in an element
					got = append(got, "n")
				default:
					got = append(got, m.Text())
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if lost := strings.Contains(c.want, "-") || len(c.spans)%2 != 0; lost != (err != nil) || lost != (len(w.Problems) > 0) {
				t.Errorf("error %v, problems %v", err, w.Problems)
			}
			lean := w.again(0)
			if ids(lean.UI()) != ids(w.UI()) {
				t.Errorf("a lean state has %s, a full one %s", ids(lean.UI()), ids(w.UI()))
			}
			for i, m := range lean.UI() {
				if string(m.Raw()) != string(w.UI()[i].Raw()) {
					t.Errorf("message %d is %s for a lean state, %s for a full one", m.ID, m.Raw(), w.UI()[i].Raw())
				}
			}
		})
	}
}

func TestAnOriginalThatIsGoneKeepsThePlacesOfItsMessages(t *testing.T) {
	file, spans := list(say(1, "a"), say(2, "b"))
	w := tellWith(t, blobMap{"u": file})
	err := w.try(task.Adopted{Task: "t", Files: []task.Original{original(task.UI, "u", spans...), original(task.API, "gone", spans...)}})
	if err == nil || !strings.Contains(err.Error(), "api.json") {
		t.Errorf("the error does not name the file: %v", err)
	}
	if ids(w.UI()) != "1 2" || ids(w.API()) != "3 4" || w.UI()[1].Missing || !w.API()[0].Missing {
		t.Errorf(`got %s, want ids(w.UI()) = "1 2" and ids(w.API()) = "3 4" and not w.UI()[1].Missing and w.API()[0].Missing`,
			dump(w.State))
	}
}

func TestBoundsLieInABlobWhenThereAreMany(t *testing.T) {
	var elements []string
	for i := range 3000 {
		elements = append(elements, say(i+1, strings.Repeat("x", i%50)))
	}
	file, spans := list(elements...)
	raw, err := json.Marshal(spans)
	if err != nil {
		t.Fatal(err)
	}
	blobs := blobMap{"u": file, "spans": string(raw), "odd": `[1,"2"]`}
	o := original(task.UI, "u")
	o.SpansBlob = "spans"
	w := tellWith(t, blobs, task.Adopted{Task: "t", Files: []task.Original{o}})
	if len(w.UI()) != 3000 || w.UI()[2999].TS() != 3000 || w.Adopted.Files[0].SpansBlob != "" {
		t.Errorf("%d messages", len(w.UI()))
	}
	for _, bad := range []string{"odd", "gone"} {
		o.SpansBlob = bad
		w := tellWith(t, blobs)
		if err := w.try(task.Adopted{Task: "t", Files: []task.Original{o}}); err == nil || w.ID != "t" {
			t.Errorf("bounds in %s: %v", bad, err)
		}
	}
}

// An original may be larger than memory: it is read a stretch at a time.
func TestALargeOriginalIsReadInStretches(t *testing.T) {
	const each, n = 100 << 10, 200
	var elements []string
	for i := range n {
		elements = append(elements, say(i+1, strings.Repeat(fmt.Sprint(i%10), each)))
	}
	file, spans := list(elements...)
	src := &measured{blobMap: blobMap{"u": file}}
	s := task.New(nil).Lean(memory{blobMap: src.blobMap}, 1<<20).With(src)
	if err := s.Apply(encode(t, 1, task.Adopted{Task: "t", Files: []task.Original{original(task.UI, "u", spans...)}})); err != nil {
		t.Fatal(err)
	}
	if src.largest > 5<<20 || src.reads > n/2 {
		t.Errorf("%d readings of up to %d bytes for %d bytes", src.reads, src.largest, len(file))
	}
	if got := s.Holding(); got > 1<<20 {
		t.Errorf("%d bytes stay in memory", got)
	}
}

// measured notes how much is read in one go.
type measured struct {
	blobMap
	reads   int
	largest int
}

func (m *measured) Range(hash string, off, n int64) ([]byte, error) {
	data, err := m.blobMap.Range(hash, off, n)
	m.reads++
	m.largest = max(m.largest, len(data))
	return data, err
}
