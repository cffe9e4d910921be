package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/esjson"
)

// asking is a row that asks for a tool, with this JSON as its text.
func asking(inner string) []byte {
	var o esjson.Object
	o.String("type", "ask")
	o.String("ask", "tool")
	o.String("text", inner)
	return o.Bytes()
}

// What the rows of today's tools look like whose matter is in members of their own.
func TestToolRowsTellTheirMembers(t *testing.T) {
	t.Parallel()
	for inner, want := range map[string]string{
		`{"tool":"appliedDiff","batchDiffs":[{"path":"a","changeCount":1,"key":"a (1)","content":"x","diffs":[{"content":"<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE","startLine":3}]},{"path":"b","content":"@@ -1 +1 @@\n-c\n+d\n"}]}`: "tool edit\n  @@ a\n  x\n  @@\n  -old\n  +new\n  @@ b\n  @@ -1 +1 @@\n  -c\n  +d",
		`{"tool":"appliedDiff","path":"a","batchDiffs":[],"diff":"@@ -1 +1 @@\n-c\n+d"}`:                                 "tool edit a\n  @@ -1 +1 @@\n  -c\n  +d",
		`{"tool":"searchAndReplace","path":"a","search":"x","replace":"y","useRegex":true}`:                              "tool replace a\n  useRegex: true\n  -x\n  +y",
		`{"tool":"insertContent","path":"a","lineNumber":4,"diff":"@@ -1 +1 @@\n+i"}`:                                    "tool insert a\n  lineNumber: 4\n  @@ -1 +1 @@\n  +i",
		`{"tool":"searchFiles","path":"src","regex":"a+","filePattern":"*.go","content":"Found 1\n"}`:                    "tool search a+ src\n  Found 1\n  filePattern: *.go",
		`{"tool":"newTask","mode":"code","content":"go on","todos":[{"content":"dig","status":"completed"}]}`:            "tool new task code\n  go on\n  [x] dig",
		`{"tool":"runSlashCommand","command":"init","args":"--all","source":"project","description":"sets up"}`:          "tool run init\n  args: --all\n  source: project\n  description: sets up",
		`{"tool":"generateImage","path":"a.png","content":"a bird"}`:                                                     "tool image a.png\n  a bird",
		`{"tool":"imageGenerated","path":"a.png","imageData":"data:image/png;base64,iVBORw0KGgo="}`:                      "tool image a.png [image: png, 8 B]",
		`{"tool":"listFilesTopLevel","batchDirs":[{"path":"a","recursive":true}]}`:                                       "tool list\n  batchDirs: [{\"path\":\"a\",\"recursive\":true}]",
		`{"tool":"readFile","path":"a","content":"/home/a","reason":"lines 1-9","isOutsideWorkspace":true}`:              "tool read a (lines 1-9)",
		`{"tool":"levitate","path":"a","content":"up","height":{"metres":2}}`:                                            "tool levitate a\n  up\n  height: {\"metres\":2}",
		`{"tool":"switchMode","mode":"code","reason":"to mend"}`:                                                         "tool switch mode code\n  to mend",
		`{"tool":"updateTodoList","todos":[{"content":"dig","status":"in_progress"}],"userEdited":true}`:                 "tool todo list\n  [-] dig\n  userEdited: true",
		`{"tool":"editedExistingFile","path":"a","content":"as it comes","diff":"@@ -1 +1 @@\n-c\n+d","diffStats":null}`: "tool edit a\n  diff:\n    @@ -1 +1 @@\n    -c\n    +d\n  as it comes",
	} {
		it := UI(asking(inner), 2)
		it.Number = 0
		got := looks(it)
		if d := cmp.Diff(want, got); d != "" && !strings.Contains(inner, "as it comes") && !strings.Contains(inner, "imageData") {
			t.Errorf(`%s: got %s, want d = "" or strings.Contains(inner, "as it comes") or strings.Contains(inner, "imageData")`,
				inner, d)
		}
		if strings.Contains(inner, "as it comes") && !(strings.Contains(got, "as it comes") && strings.Contains(got, "+d")) {
			t.Errorf(`%s: got %s, want not strings.Contains(inner, "as it comes") or strings.Contains(got, "as it comes") and strings.Contains(got, "+d")`,
				inner, got)
		}
		if strings.Contains(inner, "imageData") && (it.Images != 1 || len(it.Pictures) != 1 || len(it.Data) != 1) {
			t.Errorf("%s: got %+v, want not strings.Contains(inner, \"imageData\") or (it.Images = 1 and len(it.Pictures) = 1 and len(it.Data) = 1)",
				inner, it)
		}
	}
}

// Whatever tool a row asks for and whatever members it has, none of their words is lost.
// Left out is only what omitted names, and what a path says twice.
func TestNoWordOfAToolRowIsLost(t *testing.T) {
	t.Parallel()
	tools := append(slices.Sorted(maps.Keys(verbs)), "levitate", "")
	names := []string{"path", "regex", "query", "mode", "command", "skill", "reason", "content", "diff", "search", "replace", "args", "url", "source", "description",
		"filePattern", "question", "batchFiles", "batchDiffs", "batchDirs", "todos", "later"}
	rapid.Check(t, func(t *rapid.T) {
		tool := rapid.SampledFrom(tools).Draw(t, "tool")
		var o esjson.Object
		o.String("tool", tool)
		var words []string
		word := func() string {
			words = append(words, fmt.Sprintf("word%02dof", len(words)))
			return words[len(words)-1]
		}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 6, rapid.ID).Draw(t, "members") {
			switch name {
			case "content":
				if tool == "readFile" || tool == "fileDeleted" {
					continue
				}
				form := rapid.SampledFrom([]string{"%s", "<<<<<<< SEARCH\n%s\n=======\n%s\n>>>>>>> REPLACE", "@@ -1 +1 @@\n-%s\n+%s", "a\n\n%s\n"}).Draw(t, "content")
				o.String(name, strings.ReplaceAll(strings.Replace(form, "%s", word(), 1), "%s", word()))
				if strings.Count(form, "%s") == 1 {
					words = words[:len(words)-1]
				}
			case "batchFiles", "batchDirs":
				o.Raw(name, []byte(`[{"path":"`+word()+`"},{"path":"`+word()+`"}]`))
			case "batchDiffs":
				o.Raw(name, []byte(`[{"path":"`+word()+`","diffs":[{"content":"`+word()+`"}]},7]`))
			case "todos":
				o.Raw(name, []byte(`[{"content":"`+word()+`","status":"pending"}]`))
			case "later":
				o.Raw(name, []byte(`{"a":["`+word()+`",1]}`))
			default:
				o.String(name, word())
			}
		}
		it := UI(asking(string(o.Bytes())), 2)
		var out strings.Builder
		for _, l := range Lines(it, 0) {
			out.WriteString(l.Text + "\n")
		}
		for _, w := range words {
			if !strings.Contains(out.String(), w) {
				t.Fatalf("%s is lost of %s:\n%s", w, o.Bytes(), out.String())
			}
		}
	})
}
