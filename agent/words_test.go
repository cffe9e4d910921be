package agent_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/tool"
)

const pixelURL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// waits puts words with pictures into a task's queue, the pictures in a blob.
func (b *bench) waits(input, text, door string, images ...string) (blob string) {
	b.t.Helper()
	raw, err := json.Marshal(images)
	b.must(err)
	blob, err = b.disk.PutBlob(context.Background(), raw)
	b.must(err)
	b.must(b.disk.Commit(context.Background(), task.InputQueued{Input: input, Text: text, ImagesBlob: blob, ImageCount: len(images), By: door}))
	return blob
}

// Pictures that waited beside the journal are shown to the model and to the person like
// those that came with the words: as a task's first words, in the turn that tools' results
// are in, and as the answer to a completed task.
func TestPicturesThatWaitedAreSent(t *testing.T) {
	for name, begin := range map[string]func(b *bench){
		"first words": func(b *bench) { b.waits("i", "look", "api", pixelURL) },
		"while tools run": func(b *bench) {
			b.tool("act").run = func(context.Context, tool.Output, string) (tool.Result, error) {
				b.waits("i", "look", "api", pixelURL)
				return tool.Result{Text: "did it"}, nil
			}
		},
		"behind a completed task": func(b *bench) {
			b.model.turns = append([]turn{finish("first")}, b.model.turns...)
			want(b.t, b.start(agent.Input{Text: "go"}), "completed", "")
			b.waits("i", "look", "api", pixelURL)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, turn{calls: []call{use("c1", "act", "x")}}, finish("done"))
			begin(b)
			in := agent.Input{Text: "go"}
			if name == "first words" {
				in = agent.Input{}
			}
			want(t, b.start(in), "completed", "")
			_, data, _ := strings.Cut(pixelURL, ",")
			s := b.disk.state
			if n := strings.Count(history(s), `"data":"`+data+`"`); n != 1 {
				t.Errorf("the model sees the picture %d times: %s", n, history(s))
			}
			shown := 0
			for _, m := range s.UI() {
				if strings.Contains(string(m.Raw()), pixelURL) && m.Text() == "look" {
					shown++
				}
			}
			if shown != 1 || len(s.Queue) != 0 {
				t.Errorf("shown %d times, %d wait", shown, len(s.Queue))
			}
			if strings.Contains(history(s), "cannot be read") {
				t.Errorf("said to be lost: %s", history(s))
			}
			checkHistories(t, s)
		})
	}
}

// Whoever reads words whose pictures are gone is told so: the model would answer as if there
// had been none.
func TestPicturesThatAreLostAreTold(t *testing.T) {
	const lost = "[2 image(s) that came with these words cannot be read any more"
	for name, c := range map[string]struct {
		text string
		in   agent.Input
	}{
		"first words":           {"look", agent.Input{}},
		"first, without words":  {"", agent.Input{}},
		"beside others":         {"look", agent.Input{Text: "go"}},
		"others, without words": {"", agent.Input{Text: "go"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, finish("done"))
			delete(b.disk.blobs, b.waits("i", c.text, "api", pixelURL, pixelURL))
			want(t, b.start(c.in), "completed", "")
			if s := sent(b.model.requests[0]); strings.Count(s, lost) != 1 || !strings.Contains(s, c.text) {
				t.Errorf("the model reads %s", s)
			}
			told := slices.ContainsFunc(b.disk.state.UI(), func(m *task.Message) bool {
				return m.Kind() == "say:error" && strings.HasPrefix(m.Text(), lost)
			})
			if !told || len(b.disk.state.Queue) != 0 {
				t.Errorf("the person is told %t, %d wait", told, len(b.disk.state.Queue))
			}
			checkHistories(t, b.disk.state)
		})
	}
}
