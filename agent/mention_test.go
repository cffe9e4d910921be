package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/mention"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/slash"
)

// globe is a World in which everything is there, and counts what it is asked.
type globe struct{ asked map[string]int }

func (g globe) File(_ context.Context, path string) mention.Block {
	g.asked[path]++
	b := mention.Block{Text: fmt.Sprintf("[read_file for '%s']\nFile: %s\n1 | text %d ghp_abcdefghijklmnopqrstuvwxyz0123456789", path, path, g.asked[path])}
	b.Files = []tool.FileTouch{{FileState: workspace.FileState{Path: path, Hash: "h"}, Source: "file_mentioned"}}
	return b
}

func (globe) Changes(context.Context) (string, bool) {
	return "CHANGES ghp_abcdefghijklmnopqrstuvwxyz0123456789", true
}
func (globe) Commit(context.Context, string) (string, bool) { return "COMMIT", true }
func (globe) Problems(context.Context) (string, bool)       { return "no linter", false }

func (globe) Command(_ context.Context, name string) (slash.Command, bool, string) {
	return slash.Command{Name: name, Content: "DO", Mode: "ask"}, name == "go", ""
}

// texts are the blocks of the newest user message of a request, the environment
// aside, those of results as one list.
func texts(t *testing.T, r llm.Request) []string {
	t.Helper()
	var out []string
	var add func(raw []byte)
	add = func(raw []byte) {
		typ, _ := esjson.GetString(raw, "type")
		text, _ := esjson.GetString(raw, "text")
		content, _ := esjson.Get(raw, "content")
		switch {
		case typ == "tool_result" && content[0] == '"':
			text, _ = esjson.Unquote(content)
			out = append(out, "result "+text)
		case typ == "tool_result":
			for b := range esjson.Array(content) {
				add(b)
			}
		case !strings.HasPrefix(text, "<environment_details>"):
			out = append(out, text)
		}
	}
	for raw := range esjson.Array(r.Messages[len(r.Messages)-1].Content) {
		add(raw)
	}
	return out
}

const shownA = "[read_file for 'a.go']\nFile: a.go\n1 | text 1 ghp_abcdefghijklmnopqrstuvwxyz0123456789"

func worldly(t *testing.T, turns ...turn) (*bench, globe) {
	b, g := newBench(t, turns...), globe{map[string]int{}}
	b.agent.Host.Mentions = g
	return b, g
}

// What a person mentions stands behind the words, in what is sent and stored; the
// person's own row keeps the words, and the file is known from then on.
func TestMentionsOfTheFirstWords(t *testing.T) {
	b, _ := worldly(t, finish("done"))
	want(t, b.start(agent.Input{Text: "explain @/a.go with @git-changes"}), "completed", "")
	got := texts(t, b.model.requests[0])
	wanted := []string{
		"<user_message>\nexplain 'a.go' with Working directory changes (see below for details)\n</user_message>\n\n<git_working_state>\nCHANGES ghp_abcdefghijklmnopqrstuvwxyz0123456789\n</git_working_state>",
		shownA,
	}
	if d := cmp.Diff(wanted, got); d != "" {
		t.Error(d)
	}
	if ui := b.disk.state.UI()[0].Text(); ui != "explain @/a.go with @git-changes" {
		t.Errorf("the person sees %q", ui)
	}
	if files := b.disk.state.Files; len(files) != 1 || files[0].Path != "a.go" || files[0].Source != "file_mentioned" {
		t.Errorf("files %+v", files)
	}
}

// A restart sends what was looked up when the words came.
func TestMentionsAreLookedUpOnce(t *testing.T) {
	b, g := worldly(t, turn{fails: []failure{{err: &llm.Error{Kind: llm.Auth, Message: "no"}}}}, finish("done"))
	b.start(agent.Input{Text: "@/a.go"})
	b.agent.Host.Mentions = g
	b.model.turns = []turn{finish("done")}
	want(t, b.start(agent.Input{}), "completed", "")
	last := b.model.requests[len(b.model.requests)-1]
	if g.asked["a.go"] != 1 || !strings.Contains(string(last.Messages[0].Content), "text 1") {
		t.Errorf("asked %v\n%s", g.asked, last.Messages[0].Content)
	}
}

func TestMentionsInAnAnswer(t *testing.T) {
	b, _ := worldly(t, turn{calls: []call{{"q", "ask_followup_question", `{"question":"Which?","follow_up":[]}`}}}, finish("done"))
	b.agent.User.Asker = b.person(agent.Answer{Text: "this one: @/a.go"}, nil)
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	wanted := []string{"<user_message>\nthis one: 'a.go'\n</user_message>", shownA}
	if d := cmp.Diff(wanted, texts(t, b.model.requests[1])); d != "" {
		t.Error(d)
	}
	checkHistories(t, b.disk.state)
}

// Words that come with a resume of a finished task are the reply to its result.
func TestMentionsInAReplyToTheResult(t *testing.T) {
	b, g := worldly(t, finish("done"), finish("more"))
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	b.agent.Host.Mentions = g
	want(t, b.start(agent.Input{Text: "and @/a.go"}), "completed", "")
	wanted := []string{"<user_message>\nand 'a.go'\n</user_message>", shownA}
	if d := cmp.Diff(wanted, texts(t, b.model.requests[1])); d != "" {
		t.Error(d)
	}
	checkHistories(t, b.disk.state)
}

// Words that came while a call ran go with its results, and its outcome does not wait
// for what they mention.
func TestMentionsOfWordsThatCameMeanwhile(t *testing.T) {
	b, g := worldly(t, turn{calls: []call{use("c1", "act", "x")}}, finish("done"))
	b.tool("act").run = func(context.Context, tool.Output, string) (tool.Result, error) {
		b.must(b.disk.Commit(context.Background(), task.InputQueued{Input: "i", Text: "and @/a.go"}))
		return tool.Result{Text: "did"}, nil
	}
	b.hook = func(entry string) {
		if strings.Contains(entry, "ok:c1") && g.asked["a.go"] > 0 {
			t.Error("the outcome waited")
		}
	}
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	wanted := []string{"result did", "<user_message>\nand 'a.go'\n</user_message>", shownA}
	if d := cmp.Diff(wanted, texts(t, b.model.requests[1])); d != "" {
		t.Error(d)
	}
}

// Secrets are hidden in what was looked up, not in what the person typed.
func TestMentionedSecretsAreHidden(t *testing.T) {
	b, _ := worldly(t, finish("done"))
	b.agent.Host.Masks = redact.New()
	want(t, b.start(agent.Input{Text: "mine is ghp_abcdefghijklmnopqrstuvwxyz0123456789, see @/a.go and @git-changes"}), "completed", "")
	got := strings.Join(texts(t, b.model.requests[0]), "\n")
	if strings.Count(got, "ghp_abcdefghijklmnopqrstuvwxyz0123456789") != 1 || !strings.Contains(got, "mine is ghp_") {
		t.Errorf(`got %s, want strings.Count(got, "ghp_abcdefghijklmnopqrstuvwxyz0123456789") = 1 and strings.Contains(got, "mine is ghp_")`,
			got)
	}
}

func TestWhatCannotBeLookedUpIsTold(t *testing.T) {
	b, _ := worldly(t, finish("done"))
	want(t, b.start(agent.Input{Text: "mend @problems"}), "completed", "")
	if len(b.notices) == 0 || b.notices[0] != "@problems: no linter" {
		t.Errorf("got %q, want len(b.notices) != 0 and b.notices[0] = \"@problems: no linter\"", b.notices)
	}
}

func TestASlashCommandMayChangeTheMode(t *testing.T) {
	b, _ := worldly(t, finish("done"))
	set := mode.Merge(nil, nil)
	b.agent.User.Modes = &set
	want(t, b.start(agent.Input{Text: "/go now"}), "completed", "")
	got := texts(t, b.model.requests[0])
	if len(got) != 2 || got[1] != "<command name=\"go\">\nDO\n</command>" || got[0] != "<user_message>\nCommand 'go' (see below for command content) now\n</user_message>" {
		t.Errorf("%q", got)
	}
	if b.disk.state.Settings.Mode != "ask" || !strings.Contains(string(b.model.requests[0].Messages[0].Content), "<slug>ask</slug>") {
		t.Errorf("mode %q", b.disk.state.Settings.Mode)
	}
}

// Without a world the words are the words.
func TestWordsWithoutAWorld(t *testing.T) {
	b := newBench(t, finish("done"))
	want(t, b.start(agent.Input{Text: "@/a.go /go"}), "completed", "")
	if d := cmp.Diff([]string{"<user_message>\n@/a.go /go\n</user_message>"}, texts(t, b.model.requests[0])); d != "" {
		t.Error(d)
	}
}

// The model reads again what a command printed, by the name that its result told.
func TestKeptOutputReachesTheTools(t *testing.T) {
	b := newBench(t, turn{calls: []call{use("c1", "act", "print")}}, turn{calls: []call{use("c2", "look", "back")}}, finish("done"))
	spool := filepath.Join(t.TempDir(), "out")
	b.must(os.WriteFile(spool, []byte("the whole output"), 0o600))
	b.tool("act").run = func(context.Context, tool.Output, string) (tool.Result, error) {
		return tool.Result{Text: "part", Full: &tool.Spool{Path: spool}}, nil
	}
	seen := ""
	b.tools[0] = peek{b.tool("look"), func(env tool.Env) {
		name := b.disk.state.Calls()[0].Finished.Artifact
		k, size, ok := env.Kept(name)
		if !ok {
			t.Fatalf("nothing is kept as %q", name)
		}
		data := make([]byte, size)
		if _, err := k.ReadAt(data, 0); err != nil {
			t.Error(err)
		}
		seen = string(data)
		if _, _, ok := env.Kept("cmd-1.txt"); ok {
			t.Error("an output that is not there is found")
		}
	}}
	b.agent.Tools.List = b.tools
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if seen != "the whole output" {
		t.Errorf("got %q, want seen = \"the whole output\"", seen)
	}
}

// peek is a tool that looks at what it is given.
type peek struct {
	*fake
	at func(env tool.Env)
}

func (p peek) Plan(ctx context.Context, env tool.Env, input json.RawMessage) (tool.Plan, error) {
	p.at(env)
	return p.fake.Plan(ctx, env, input)
}
