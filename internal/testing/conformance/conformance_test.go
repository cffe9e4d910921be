package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// at writes files into a fresh folder.
func at(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestARunThatLooksAtNothingFails(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"absent":        {"", "no such file"},
		"empty":         {"\n", "no cases"},
		"not JSON":      {`{"name":"a","input":{},"want":{}` + "\n", "line 1"},
		"cut":           {`{"name":"a","input":{},"want":{}}` + "\n" + `{"name":"b","inp`, "line 2"},
		"without input": {`{"name":"a","want":{}}`, "line 1"},
		"without want":  {`{"name":"a","input":{}}`, "line 1"},
		"nameless":      {`{"input":{},"want":{}}`, "line 1"},
	} {
		files := map[string]string{"other.jsonl": "{}"}
		if c.text != "" {
			files["family.jsonl"] = c.text
		}
		_, err := read(at(t, files), "family")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			if name != "absent" || err == nil { // systems word that one differently
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
	}
	isTask := func(dir string) bool { _, err := os.Stat(filepath.Join(dir, "ui.json")); return err == nil }
	if _, err := folders(at(t, map[string]string{"a/b.json": ""}), isTask); err == nil {
		t.Error("a corpus without a task passed")
	}
	if _, err := folders(filepath.Join(t.TempDir(), "none"), isTask); err == nil {
		t.Error("a corpus that is not there passed")
	}
}

func TestRunCountsCases(t *testing.T) {
	dir := at(t, map[string]string{"f.jsonl": `{"name":"one","input":{"n":1},"want":[1]}
{"name":"two","input":{"n":2},"want":[2],"roo_bug":"off by one"}

{"name":"two","input":{"n":3},"want":[3]}`})
	t.Setenv(VectorsEnv, dir)
	var seen []string
	Run(t, "f", func(t *testing.T, c Case) bool {
		seen = append(seen, c.Name+" "+c.Bug)
		c.Same(t, "n", Array([][]byte{c.Input.Get("n")}), c.Want)
		return c.Bug != ""
	})
	if diff := cmp.Diff([]string{"one ", "two off by one", "two "}, seen); diff != "" {
		t.Error(diff)
	}
}

// A family's further cases run with the others and count with them.
func TestFurtherCasesRun(t *testing.T) {
	one := `{"name":"one","input":{},"want":[]}`
	dir := at(t, map[string]string{"f.jsonl": one, "more/f.jsonl": `{"name":"more-one","input":{},"want":[]}`, "alone.jsonl": one, "broken.jsonl": one, "more/broken.jsonl": "{"})
	t.Setenv(VectorsEnv, dir)
	for family, want := range map[string][]string{"f": {"one", "more-one"}, "alone": {"one"}} {
		var seen []string
		Run(t, family, func(_ *testing.T, c Case) bool { seen = append(seen, c.Name); return false })
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", family, diff)
		}
	}
	if _, err := load(dir, "broken"); err == nil {
		t.Error("further cases that cannot be read passed")
	}
}

func TestUnsetSkips(t *testing.T) {
	t.Setenv(VectorsEnv, "")
	t.Setenv(CorpusEnv, "")
	for name, run := range map[string]func(t *testing.T){
		"vectors": func(t *testing.T) { Run(t, "f", func(*testing.T, Case) bool { t.Error("ran"); return false }) },
		"corpus":  func(t *testing.T) { CorpusFolders(t, func(string) bool { t.Error("ran"); return true }) },
	} {
		var inner *testing.T
		t.Run(name, func(t *testing.T) { inner = t; run(t) })
		if !inner.Skipped() {
			t.Errorf("%s: not skipped", name)
		}
	}
}

func TestCorpusFoldersComeInOrder(t *testing.T) {
	root := at(t, map[string]string{"b/tasks/2/ui.json": "[]", "b/tasks/1/ui.json": "[]", "a/x/ui.json": "[]", "a/y/notes": ""})
	t.Setenv(CorpusEnv, root)
	var got []string
	list := CorpusFolders(t, func(dir string) bool { _, err := os.Stat(filepath.Join(dir, "ui.json")); return err == nil })
	CorpusTally(t, list, func(t *testing.T, dir string) {
		rel, err := filepath.Rel(root, dir)
		if err != nil {
			t.Error(err)
		}
		got = append(got, filepath.ToSlash(rel))
	})
	if diff := cmp.Diff([]string{"a/x", "b/tasks/1", "b/tasks/2"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestValuesKeepLoneSurrogates(t *testing.T) {
	v := Value(`{"s":"a\ud800","list":["x","\udc00"],"n":1e3,"f":0.5,"b":true,"z":null}`)
	got := []any{v.Str("s"), v.Get("list").Strings(), v.Int("n", 7), v.Int("f", 7), v.Float("f"), v.Bool("b", false),
		v.Bool("n", true), v.Has("z"), v.Has("y"), v.Get("y") == nil, len(v.Get("list").List()), v.Str("n")}
	want := []any{"a\xed\xa0\x80", []string{"x", "\xed\xb0\x80"}, int64(1000), int64(7), 0.5, true, true, true, false, true, 2, ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReplaceHalves(t *testing.T) {
	for in, want := range map[string]string{
		"a\xed\xa0\xbdb🚀": "a.b🚀", "\xed\xb0\x80\xed\xa0\xbd": "..", "a\xff\xed\xa0": "a\xff\xed\xa0", "한\uFFFD": "한\uFFFD",
	} {
		if got := ReplaceHalves(in, "."); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestArrayAndListAreInverse(t *testing.T) {
	for _, src := range []string{`[]`, `[1]`, `[{"a":[1,2]},"x,]",null]`} {
		if got := string(Array(Value(src).List())); got != src {
			t.Errorf("%s became %s", src, got)
		}
	}
	if Value(`{"a":1}`).List() != nil || Value(nil).Strings() != nil {
		t.Error("elements of what is no array")
	}
}
