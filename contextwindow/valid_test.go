package contextwindow

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	pixels "image"
	"image/color"
	giffile "image/gif"
	jpegfile "image/jpeg"
	pngfile "image/png"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/testing/apirules"
	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
	"github.com/roost-dev/roost/llm/cloud"
	"github.com/roost-dev/roost/llm/google"
	"github.com/roost-dev/roost/llm/openai"
	"github.com/roost-dev/roost/llm/wire"
)

// wires are the ways in which a request really goes out, and the rules of whoever
// gets it.
var wires = []struct {
	provider, model string
	body            func(llm.Request) ([]byte, error)
	check           func(http.Header, []byte) string
}{
	{"anthropic", "claude-x", anthropic.New(anthropic.Options{APIKey: "k"}).Body, llmtest.Check},
	{"anthropic", "claude-x", anthropic.New(anthropic.Options{APIKey: "k", Effort: "medium"}).Body, llmtest.Check},
	{"openai", "gpt-5", openai.New(openai.Options{APIKey: "k"}).Body, llmtest.CheckResponses},
	{"openai", "gpt-4.1", openai.New(openai.Options{APIKey: "k"}).Body, llmtest.CheckResponses},
	{"openai-compatible", "m", openai.New(openai.Options{Compatible: true, BaseURL: "http://x"}).Body, llmtest.CheckChat},
	{"google", "gemini-3-pro", google.New(google.Options{APIKey: "k"}).Body, llmtest.CheckGoogle},
	{"bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", clouds("bedrock", ""), llmtest.CheckBedrock},
	{"vertex", "claude-sonnet-4-5@20250929", clouds("vertex", "claude-sonnet-4-5@20250929"), llmtest.CheckVertexClaude},
	{"vertex", "gemini-3-pro", clouds("vertex", "gemini-3-pro"), llmtest.CheckVertexGemini},
	{"azure", "gpt-5", clouds("azure", ""), llmtest.CheckResponses},
	{"azure", "mine", clouds("azure", "2024-10-21"), llmtest.CheckAzureChat},
}

// clouds are the bodies of a provider of a cloud, for a model or a version of its API.
func clouds(provider, which string) func(llm.Request) ([]byte, error) {
	var p llm.Provider
	err := errors.New("there is no such cloud")
	switch provider {
	case "bedrock":
		p, err = cloud.NewBedrock(cloud.BedrockOptions{Region: "us-east-1"})
	case "vertex":
		p, err = cloud.NewVertex(cloud.VertexOptions{Options: wire.Options{Model: which}, Project: "p", Location: "global"})
	case "azure":
		p, err = cloud.NewAzure(cloud.AzureOptions{Options: wire.Options{BaseURL: "http://x"}, APIVersion: which})
	}
	if err != nil {
		panic(err)
	}
	return p.(interface {
		Body(llm.Request) ([]byte, error)
	}).Body
}

// drawn gives an image of a size, in a form, as base64.
func drawn(width, height int, form string) string {
	var b bytes.Buffer
	img := pixels.NewPaletted(pixels.Rect(0, 0, width, height), color.Palette{color.Black, color.White})
	var err error
	switch form {
	case "png":
		err = pngfile.Encode(&b, img)
	case "jpeg":
		err = jpegfile.Encode(&b, img, nil)
	case "gif":
		err = giffile.Encode(&b, img, nil)
	}
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

var (
	dot, wide, huge = drawn(1, 1, "png"), drawn(2001, 1, "png"), drawn(1, 8001, "png")
	photo, moving   = drawn(2, 2, "jpeg"), drawn(2, 2, "gif")

	genPicture = rapid.SampledFrom([]string{dot, dot, dot, wide, huge, photo, moving, "AAAA", "iVBORw0KGgo="})
	genLongID  = rapid.SampledFrom([]string{"a", "b", strings.Repeat("x", 64), strings.Repeat("x", 70), strings.Repeat("x", 90), "1.2", "-"})
	genTool    = rapid.SampledFrom([]string{"read_file", "1st", "-x", strings.Repeat("mcp--server--", 9), strings.Repeat("n", 65), "ж"})
)

// genWork draws histories that look like work, with whatever goes wrong in them.
func genWork(t *rapid.T) (h [][]byte) {
	picture := func() string {
		media := rapid.SampledFrom([]string{"image/png", "image/png", "image/jpeg", "image/gif", "image/webp"}).Draw(t, "media")
		return `{"type":"image","source":{"type":"base64","media_type":"` + media + `","data":"` + genPicture.Draw(t, "picture") + `"}}`
	}
	for range rapid.IntRange(1, 6).Draw(t, "turns") {
		user := []string{`{"type":"text","text":"words"}`}
		for range rapid.IntRange(0, 12).Draw(t, "pictures") {
			user = append(user, picture())
		}
		h = append(h, []byte(`{"role":"user","content":[`+strings.Join(user, ",")+`]}`))
		var reply, results []string
		if rapid.Bool().Draw(t, "thought") {
			reply = append(reply, rapid.SampledFrom([]string{`{"type":"thinking","thinking":"x","signature":"s"}`, `{"type":"reasoning","encrypted_content":"e","summary":[]}`}).Draw(t, "kind"))
		}
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			id, _ := json.Marshal(genLongID.Draw(t, "id"))
			name, _ := json.Marshal(genTool.Draw(t, "name"))
			reply = append(reply, fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":{}}`, id, name))
			content := `"ok"`
			if rapid.Bool().Draw(t, "seen") {
				content = `[{"type":"text","text":"see"},` + picture() + `]`
			}
			if rapid.IntRange(0, 5).Draw(t, "lost") > 0 {
				results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%s,"content":%s}`, id, content))
			}
		}
		if rapid.Bool().Draw(t, "signed") {
			reply = append(reply, `{"type":"thoughtSignature","thoughtSignature":"s"}`)
		}
		h = append(h, []byte(`{"role":"assistant","content":[`+strings.Join(reply, ",")+`],"reasoning_details":[{"type":"reasoning.text","text":"x"}]}`),
			[]byte(`{"role":"user","content":[`+strings.Join(results, ",")+`]}`))
	}
	return h
}

func takes(t *rapid.T, h [][]byte) {
	header := http.Header{"Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}}
	for _, w := range wires {
		messages, _, err := Build(h, ForModel(w.provider, w.model))
		if errors.Is(err, ErrEmpty) {
			continue
		}
		if err := apirules.Validate(anthropics(messages)); err != nil {
			t.Fatalf("%s: got %v, want no error", w.provider, err)
		}
		body, err := w.body(llm.Request{Model: w.model, System: "s", Messages: messages, Tools: []llm.ToolSpec{{Name: "f", Schema: []byte(`{"type":"object"}`)}}})
		if err != nil {
			t.Fatalf("%s: got %v, want no error", w.provider, err)
		}
		if problem := w.check(header, body); problem != "" {
			t.Fatalf("%s refuses: %s\nhistory %s\nbody %s", w.provider, problem, bytes.Join(h, []byte("\n")), body)
		}
	}
}

// anthropics is what the messages are without the blocks of other providers.
func anthropics(messages []llm.Message) []llm.Message {
	var raws [][]byte
	for _, m := range messages {
		raws = append(raws, []byte(`{"role":"`+m.Role+`","content":`+string(m.Content)+`}`))
	}
	out, _, _ := Build(raws, Options{DropThinking: true})
	return out
}

// Whatever is stored, wherever it is cut, and whoever is asked: the body that goes
// out keeps that provider's documented rules.
func TestEveryProviderTakesEveryHistory(t *testing.T) {
	for name, gen := range map[string]func(*rapid.T) [][]byte{"junk": genHistory, "work": genWork} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				h := gen(t)
				takes(t, h[:rapid.IntRange(0, len(h)).Draw(t, "cut")])
			})
		})
	}
}
