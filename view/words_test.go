package view

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
)

// said is a message as it is read, thinking and additions folded, one line a line.
func said(role string, texts ...string) string {
	blocks := "["
	for i, text := range texts {
		if i > 0 {
			blocks += ","
		}
		blocks += `{"type":"text","text":` + string(esjson.Quote(nil, text)) + `}`
	}
	raw := []byte(`{"role":"` + role + `","content":` + blocks + `]}`)
	var out []string
	for _, l := range Fold(API(raw, 1), func(c Class) int {
		if c == Appended || c == Reasoning {
			return -1
		}
		return 0
	}) {
		out = append(out, l.Text)
	}
	return strings.Join(out, "\n")
}

// Calls that were made by tags within the model's words are shown like any other.
func TestCallsByTags(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"words and a call":     {"I look.\n\n<read_file>\n<path>a.go</path>\n</read_file>", "#1 model\n  I look.\n  tool read_file a.go"},
		"words behind it":      {"<list_files>\n<path>.</path>\n<recursive>false</recursive>\n</list_files>\nSo.", "#1 model\n  tool list_files .\n    recursive: false\n  So."},
		"several files":        {"<read_file>\n<args>\n<file><path>a</path></file>\n<file><path>b</path></file>\n</args>\n</read_file>", "#1 model\n  tool read_file a b"},
		"thinking":             {"<thinking>\none\ntwo\n</thinking>\nDone.", "#1 model\n  thinking (2 lines folded)\n  Done."},
		"a file with tags":     {"<write_to_file>\n<path>a.html</path>\n<content>\n<p>\n</content>\n</p>\n</content>\n</write_to_file>", "#1 model\n  tool write_to_file a.html\n    +<p>\n    +</content>\n    +</p>"},
		"a file twice":         {"<write_to_file><path>a</path><content>x</content></write_to_file>\n<write_to_file><content><p></content><content>word", "#1 model\n  tool write_to_file a\n    +x\n  tool write_to_file (interrupted)\n    content: word\n    +<p>"},
		"a question":           {"<ask_followup_question>\n<question>which?</question>\n<follow_up>\n<suggest>A</suggest>\n<suggest>B</suggest>\n</follow_up>\n</ask_followup_question>", "#1 model\n  question ask_followup_question\n    which?\n    1. A\n    2. B"},
		"a result":             {"<attempt_completion>\n<result>\nDone.\n</result>\n</attempt_completion>", "#1 model\n  result attempt_completion\n    Done."},
		"cut in the middle":    {"<execute_command>\n<command>make te", "#1 model\n  tool execute_command make te (interrupted)"},
		"a tag nobody knows":   {"<hologram>\n<path>a</path>\n</hologram>", "#1 model\n  <hologram>\n  <path>a</path>\n  </hologram>"},
		"a tag in a line":      {"use <read_file> for it", "#1 model\n  use <read_file> for it"},
		"nothing":              {"", "#1 model\n"},
		"a call without a end": {"<read_file><path>a</path>", "#1 model\n  tool read_file a (interrupted)"},
		"one call in another":  {"<new_task>\n<mode>code</mode>\n<message>say <read_file> </message>\n</new_task>", "#1 model\n  tool new_task code\n    say <read_file>"},
	} {
		if d := cmp.Diff(strings.TrimSuffix(tt.want, "\n"), said("assistant", tt.text)); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", name, d)
		}
	}
}

// What the program wrapped around a person's words is folded or left out; the words stay.
func TestWordsAmongTags(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		texts []string
		want  string
	}{
		"the task":            {[]string{"<task>\ndo it\n</task>", "<environment_details>\n# A\n# B\n</environment_details>"}, "#1 you\n  do it\n  · environment details (2 lines folded)"},
		"in one text":         {[]string{"<user_message>\ndo it\n</user_message>\n\n<environment_details>\n# A\n</environment_details>"}, "#1 you\n  do it\n  · environment details (1 line folded)"},
		"details first":       {[]string{"<environment_details>\n# A\n</environment_details>\ndo it"}, "#1 you\n  do it\n  · environment details (1 line folded)"},
		"cut details":         {[]string{"do it\n<environment_details>\n# A"}, "#1 you\n  do it\n  · environment details (1 line folded)"},
		"the words name it":   {[]string{"what is <environment_details>?"}, "#1 you\n  what is <environment_details>?"},
		"a result":            {[]string{"[read_file for 'a'] Result:", "line 1\nline 2", "<environment_details>\nx\n</environment_details>"}, "#1 output\n  output read_file for 'a'\n    line 1\n    line 2\n  · environment details (1 line folded)"},
		"a result at once":    {[]string{"[list_files for '.'] Result:\na\nb"}, "#1 output\n  output list_files for '.'\n    a\n    b"},
		"a failure":           {[]string{"[read_file for 'a'] Result:", "<error>\nno such file\n</error>"}, "#1 output\n  failed read_file for 'a'\n    no such file"},
		"feedback with it":    {[]string{"[apply_diff for 'a'] Result:", "The user denied it.", "<feedback>\nnot like that\n</feedback>"}, "#1 you\n  output apply_diff for 'a'\n    The user denied it.\n  not like that"},
		"a note":              {[]string{"[ERROR] You did not use a tool\nin your reply"}, "#1 output\n  · a note to the model (2 lines folded)"},
		"words among words":   {[]string{"New instructions:\n<user_message>\ngo on\n</user_message>"}, "#1 you\n  New instructions:\n  go on"},
		"a file and a folder": {[]string{"<task>\nsee 'a.go'\n</task>\n\n<file_content path=\"a.go\">\n1 | x\n</file_content>\n\n<folder_content path=\"d/\">\nx\ny\n</folder_content>\n"}, "#1 you\n  see 'a.go'\n  · file a.go (1 line folded)\n  · folder d/ (2 lines folded)"},
		"not a result":        {[]string{"[x] is done", "go on"}, "#1 you\n  [x] is done\n  go on"},
	} {
		if d := cmp.Diff(tt.want, said("user", tt.texts...)); d != "" {
			t.Errorf("%s: got %s, want d = \"\"", name, d)
		}
	}
}

func TestResultsWithoutTheirTags(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"<file><path>a.go</path>\n<content lines=\"1-2\">\n1 | x\n2 | <content>\n</content>\n</file>": "a.go:\nlines 1-2\n1 | x\n2 | <content>",
		"<files>\n<file><path>a</path><error>gone</error></file>\n</files>":                           "a:\ngone",
		"<files><file><path>a</path>\n<notice>cut</notice>\n</file></files>":                          "a:\ncut",
		"<file_write_result>\n<path>a</path>\n<operation>modified</operation>\n</file_write_result>":  "a:\noperation: modified",
		"<html>\n<body>x</body>\n</html>":                                                             "<html>\n<body>x</body>\n</html>",
		"no tag at all":                                                                               "no tag at all",
		"<":                                                                                           "<",
		"<>\n</>\n< >":                                                                                "<>\n</>\n< >",
	} {
		if d := cmp.Diff(want, untagged(text)); d != "" {
			t.Errorf("%q: got %s, want d = \"\"", text, d)
		}
	}
}

// Nothing that a model or a person wrote gets lost between the tags, however they stand:
// each word is shown, or folded.
func TestNoWordIsLost(t *testing.T) {
	t.Parallel()
	pieces := []string{
		"<read_file>", "</read_file>", "<path>", "</path>", "<content>", "</content>", "<thinking>", "</thinking>", "<write_to_file>", "</write_to_file>",
		"<environment_details>", "</environment_details>", "<task>", "</task>", "[read_file for 'x'] Result:", "<feedback>", "</feedback>", "\n", "\n\n", " ", "<", ">", "<file>",
	}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		words := 0
		for range rapid.IntRange(1, 12).Draw(t, "n") {
			text.WriteString(rapid.SampledFrom(pieces).Draw(t, "tag"))
			if rapid.Bool().Draw(t, "a word") {
				words++
				text.WriteString("word")
			}
		}
		for _, role := range []string{"user", "assistant"} {
			raw := []byte(`{"role":"` + role + `","content":` + string(esjson.Quote(nil, text.String())) + `}`)
			var shown strings.Builder
			for _, l := range Lines(API(raw, 1), 0) {
				shown.WriteString(l.Text + "\n")
			}
			if got := strings.Count(shown.String(), "word"); got < words {
				t.Fatalf("%d of %d words of the %s's %q are shown:\n%s", got, words, role, text.String(), &shown)
			}
		}
	})
}

// Text that is made to cost more than its size must not.
func TestWordsMadeToHurt(t *testing.T) {
	t.Parallel()
	n := 1 << 19
	if testing.Short() {
		n = 1 << 16 // with the race detector, on a busy machine
	}
	const most = time.Minute // quadratic time is many of them
	for _, piece := range []string{"<", "<\n", "<file>", "</file>\n", "<path>", "<read_file>\n", "<thinking>", "<file_content ", "<file_content x\n", "<content>", "</content>", "<<<<<<< SEARCH\n", "=======\n", "50%\n", "<a><b>", "@@\n"} {
		text := strings.Repeat(piece, n/len(piece))
		begun := time.Now()
		for _, whole := range []string{text, "<read_file>\n" + text, "[x] Result:\n<file>" + text} {
			quoted := string(esjson.Quote(nil, whole))
			for _, raw := range []string{
				`{"role":"user","content":` + quoted + `}`, `{"role":"assistant","content":` + quoted + `}`,
				`{"role":"assistant","content":[{"type":"tool_use","name":"apply_diff","input":{"diff":` + quoted + `,"args":` + quoted + `}}]}`,
			} {
				Lines(API([]byte(raw), 1), 5)
			}
		}
		if d := time.Since(begun); d > most {
			t.Errorf("%q took %v", piece, d)
		}
	}
	blocks := `{"type":"text","text":"[x] Result:"}` + strings.Repeat(`,{"type":"text","text":"some words of a result"}`, 50_000)
	begun := time.Now()
	it := API([]byte(`{"role":"user","content":[`+blocks+`]}`), 1)
	if d := time.Since(begun); d > most || len(it.Parts) != 1 {
		t.Errorf("many blocks took %v and gave %d parts", d, len(it.Parts))
	}
}

// The pieces are the text, and those that are marked are the longest terms, in any case and beside any letters.
func TestMarked(t *testing.T) {
	for _, c := range []struct{ text, query, want string }{
		{"a deploy of Deployments", "deploy deployment", "a [deploy] of [Deployment]s"},
		{"İzmir ẞ Ⱥ red\xff Fence", `red "fence"`, "İzmir ẞ Ⱥ [red]\xff [Fence]"},
		{"登录错误", "录错", "登[录错]误"},
		{"", "red", ""}, {"nothing", "red", "nothing"},
	} {
		got := ""
		for _, p := range Marked(c.text, append(api.QueryTerms(c.query), "")) {
			if p.Hit {
				p.Text = "[" + p.Text + "]"
			}
			got += p.Text
		}
		if got != c.want {
			t.Errorf("%s in %q: got %q, want %q", c.query, c.text, got, c.want)
		}
	}
}
