package conformance

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// How a run ends, and what it prints, is what people and machines read: these tests
// start this test program again and look at both.

const childEnv = "CONFORMANCE_CHILD"

// TestChild is the program that is started: a family whose cases say themselves how
// they want to end.
func TestChild(t *testing.T) {
	switch os.Getenv(childEnv) {
	case "vectors":
		Run(t, "family", func(t *testing.T, c Case) bool {
			switch c.Input.Str("end") {
			case "fail":
				t.Error("as it wants")
			case "stop":
				t.Fatal("as it wants")
			case "skip":
				t.Skip("not today")
			case "differ":
				c.Same(t, "the value", c.Input.Get("value"), c.Want)
			}
			return c.Want.Str("by") == "choice"
		})
	case "corpus":
		list := CorpusFolders(t, func(dir string) bool { _, err := os.Stat(filepath.Join(dir, "ui.json")); return err == nil })
		CorpusTally(t, list, func(t *testing.T, dir string) {
			if strings.HasSuffix(dir, "bad") {
				t.Error("as it wants")
			}
		})
	default:
		t.Skip("started by other tests")
	}
}

// child runs TestChild. line is what it printed for machines.
func child(t *testing.T, kind, dir string, args ...string) (line string, failed bool, output string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"-test.run=^TestChild$"}, args...)...) //nolint:gosec // itself
	env := map[string]string{"vectors": VectorsEnv, "corpus": CorpusEnv}[kind]
	cmd.Env = append(os.Environ(), childEnv+"="+kind, env+"="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(out)) {
		if strings.HasPrefix(l, kind+": ") {
			line += strings.TrimSpace(l)
		}
	}
	return line, err != nil, string(out)
}

func TestHowARunOfVectorsEnds(t *testing.T) {
	const good, chosen = `{"name":"good","input":{},"want":{}}`, `{"name":"chosen","input":{},"want":{"by":"choice"}}`
	for _, c := range []struct {
		name   string
		lines  []string // nil = no file
		line   string
		failed bool
		says   string
	}{
		{"all pass", []string{good, chosen}, "vectors: family 2/2 (by choice 1)", false, ""},
		{"one fails", []string{good, `{"name":"bad","input":{"end":"fail"},"want":{}}`, chosen}, "vectors: family 2/3 (by choice 1)", true, "TestChild/bad"},
		{"one stops, the others go on", []string{`{"name":"bad","input":{"end":"stop"},"want":{}}`, good}, "vectors: family 1/2 (by choice 0)", true, "TestChild/bad"},
		{"a failure is no choice", []string{`{"name":"bad","input":{"end":"fail"},"want":{"by":"choice"}}`}, "vectors: family 0/1 (by choice 0)", true, "TestChild/bad"},
		{"a case must not be skipped", []string{good, `{"name":"lazy","input":{"end":"skip"},"want":{}}`}, "vectors: family 1/2 (by choice 0)", true, "must not be skipped"},
		{"a difference is shown", []string{`{"name":"odd","input":{"end":"differ","value":[1]},"want":[2]}`}, "vectors: family 0/1 (by choice 0)", true, "want [2]"},
		{"the same value, spelled otherwise", []string{`{"name":"even","input":{"end":"differ","value":{"a":1.0,"b":"\u0041"}},"want":{"b":"A","a":1}}`}, "vectors: family 1/1 (by choice 0)", false, ""},
		{"no file", nil, "", true, "read the vectors of family"},
		{"no cases", []string{"", " "}, "", true, "no cases"},
		{"a line that is no case", []string{good, `{"name":"half`}, "", true, "line 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{"other.jsonl": good}
			if c.lines != nil {
				files["family.jsonl"] = strings.Join(c.lines, "\n") + "\n"
			}
			line, failed, out := child(t, "vectors", at(t, files))
			if line != c.line || failed != c.failed || !strings.Contains(out, c.says) {
				t.Errorf("failed %v, line %q, want %v, %q and %q in\n%s", failed, line, c.failed, c.line, c.says, out)
			}
		})
	}
}

// One case can be run by its name, and then only it counts.
func TestOneCaseByName(t *testing.T) {
	dir := at(t, map[string]string{"family.jsonl": `{"name":"hand-a","input":{"end":"fail"},"want":{}}` + "\n" + `{"name":"hand-b","input":{},"want":{}}`})
	line, failed, out := child(t, "vectors", dir, "-test.run=^TestChild$/^hand-b$")
	if line != "vectors: family 1/1 (by choice 0)" || failed {
		t.Errorf("got %s\n%s, want line = \"vectors: family 1/1 (by choice 0)\" and not failed", line, out)
	}
}

func TestHowARunOfTheCorpusEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		files  map[string]string
		line   string
		failed bool
		says   string
	}{
		{"all pass", map[string]string{"a/1/ui.json": "", "b/tasks/2/ui.json": "", "b/tasks/3/other.json": ""}, "corpus: 2/2", false, ""},
		{"one fails", map[string]string{"a/bad/ui.json": "", "b/2/ui.json": ""}, "corpus: 1/2", true, "TestChild/a/bad"},
		{"no task", map[string]string{"a/other.json": ""}, "", true, "look for task folders: none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			line, failed, out := child(t, "corpus", at(t, c.files))
			if line != c.line || failed != c.failed || !strings.Contains(out, c.says) {
				t.Errorf("failed %v, line %q, want %v, %q and %q in\n%s", failed, line, c.failed, c.line, c.says, out)
			}
		})
	}
	if _, failed, out := child(t, "corpus", filepath.Join(t.TempDir(), "none")); !failed || !strings.Contains(out, CorpusEnv) {
		t.Errorf("a corpus that is not there: %s", out)
	}
}
