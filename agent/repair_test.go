package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/internal/testing/llmtest"
	"github.com/roost-dev/roost/llm"
	"github.com/roost-dev/roost/llm/anthropic"
	"github.com/roost-dev/roost/llm/cloud"
	"github.com/roost-dev/roost/llm/google"
	"github.com/roost-dev/roost/llm/openai"
	"github.com/roost-dev/roost/llm/wire"
	"github.com/roost-dev/roost/tool"
)

// pixel is a picture that every API takes.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// providers are all that ask over HTTP, and how each names a place in a request.
var providers = map[string]struct {
	open func(url string) llm.Provider
	list string // of messages
	path string // of the i-th one and its k-th part
}{
	"anthropic": {func(url string) llm.Provider {
		return anthropic.New(anthropic.Options{APIKey: "k", BaseURL: url, Backoff: wire.Backoff{Retries: -1}})
	}, "messages", "messages.%d.content.%d.image.source: the image is broken"},
	"openai": {func(url string) llm.Provider {
		return openai.New(openai.Options{APIKey: "k", BaseURL: url, Backoff: wire.Backoff{Retries: -1}})
	}, "input", "Invalid 'input[%d].content[%d].image_url'."},
	"openai-compatible": {func(url string) llm.Provider {
		return openai.New(openai.Options{Compatible: true, BaseURL: url + "/v1", APIKey: "k", Backoff: wire.Backoff{Retries: -1}})
	}, "messages", "Invalid 'messages[%d].content[%d].image_url.url'."},
	"google": {func(url string) llm.Provider {
		return google.New(google.Options{APIKey: "k", BaseURL: url, Backoff: wire.Backoff{Retries: -1}})
	}, "contents", "* GenerateContentRequest.contents[%d].parts[%d].inline_data: unable to process"},
	"bedrock": {func(url string) llm.Provider {
		o := cloud.BedrockOptions{Options: wire.Options{BaseURL: url, Backoff: wire.Backoff{Retries: -1}}, Region: "us-east-1"}
		o.Credentials = func() (cloud.AWSCredentials, error) {
			return cloud.AWSCredentials{AccessKeyID: llmtest.ExampleAWS.AccessKey, SecretAccessKey: llmtest.ExampleAWS.Secret}, nil
		}
		return opened(cloud.NewBedrock(o))
	}, "messages", "messages.%d.content.%d.image.source: the image is broken"},
	"vertex": {func(url string) llm.Provider {
		o := cloud.VertexOptions{Options: wire.Options{BaseURL: url, Backoff: wire.Backoff{Retries: -1}}, Project: "p", Location: "global"}
		o.Credentials.Token = "t"
		return opened(cloud.NewVertex(o))
	}, "contents", "* GenerateContentRequest.contents[%d].parts[%d].inline_data: unable to process"},
	"azure": {func(url string) llm.Provider {
		return opened(cloud.NewAzure(cloud.AzureOptions{Options: wire.Options{APIKey: "k", BaseURL: url, Backoff: wire.Backoff{Retries: -1}}}))
	}, "input", "Invalid 'input[%d].content[%d].image_url'."},
}

// opened is a provider whose options are known to be good.
func opened(p llm.Provider, err error) llm.Provider {
	if err != nil {
		panic(err)
	}
	return p
}

// place finds the part of a request that holds some bytes: its message and place.
func place(body []byte, list, what string) (message, part int) {
	var r map[string]json.RawMessage
	_ = json.Unmarshal(body, &r)
	var items []map[string]json.RawMessage
	_ = json.Unmarshal(r[list], &items)
	for i, item := range items {
		for _, key := range []string{"content", "parts"} {
			var parts []json.RawMessage
			_ = json.Unmarshal(item[key], &parts)
			for k, p := range parts {
				if bytes.Contains(p, []byte(what)) {
					return i, k
				}
			}
		}
	}
	return -1, -1
}

// pictured is a bench whose first call brings a picture that the provider refuses
// in words that say makes.
func pictured(t *testing.T, name string, say func(body []byte) string) (*bench, *llmtest.Server) {
	t.Helper()
	p := providers[name]
	s := llmtest.New(t)
	s.Answer(func(r llmtest.Request) llmtest.Reply {
		switch {
		case bytes.Contains(r.Body, []byte(pixel)):
			return llmtest.Fail(400, say(r.Body))
		case r.Replies() == 0:
			return llmtest.Text("I look.").AndCall("c1", "look", `{"what":"a","path":"logo.png"}`).AndCall("c2", "look", `{"what":"b"}`)
		}
		return llmtest.Call("done", "attempt_completion", `{"result":"seen"}`)
	})
	b := newBench(t)
	b.tool("look").run = func(_ context.Context, _ tool.Output, input string) (tool.Result, error) {
		r := tool.Result{Text: "looked at " + input}
		if input == "a" {
			r.Images = []json.RawMessage{[]byte(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}}`)}
		}
		return r, nil
	}
	b.agent.Model.Provider = p.open(s.URL)
	b.agent.Task.Settings.Model = map[string]string{"google": "gemini-3-pro", "openai": "gpt-5.1", "vertex": "gemini-3-pro", "azure": "gpt-5.1"}[name]
	if b.agent.Task.Settings.Model == "" {
		b.agent.Task.Settings.Model = "m"
	}
	return b, s
}

// What a provider names as the culprit is left out of what is sent, told, and in the
// log; what is stored stays, and a restart sends the same.
func TestTheNamedCulpritIsLeftOut(t *testing.T) {
	for name, p := range providers {
		t.Run(name, func(t *testing.T) {
			b, s := pictured(t, name, func(body []byte) string {
				i, k := place(body, p.list, pixel)
				if i < 0 {
					t.Errorf("no picture in %s", body)
				}
				return fmt.Sprintf(p.path, i, k)
			})
			want(t, b.start(agent.Input{Text: "go"}), "completed", "")
			state := b.disk.state
			if len(state.Withheld) != 1 || state.Withheld[0].What != "the image in the result of look for logo.png" || state.Withheld[0].Provider != name {
				t.Fatalf("withheld %+v", state.Withheld)
			}
			if !strings.Contains(history(state), pixel) {
				t.Error("the picture is gone from what is stored")
			}
			if !strings.Contains(strings.Join(b.notices, "\n"), "left out of what is sent: the image in the result of look for logo.png") {
				t.Errorf("notices %q", b.notices)
			}
			requests := s.Requests()
			last := string(requests[len(requests)-1].Body)
			if len(requests) != 3 || !strings.Contains(last, "looked at a") || !strings.Contains(last, "Left out here: the image in the result of look for logo.png") {
				t.Errorf("%d requests, the last one %s", len(requests), last)
			}
			// A restart behind the failure asks without it at once.
			b.agent.Model.Provider, b.agent.Task.Settings.Model = p.open(s.URL), "gemini-3-pro"
			if name != "google" {
				b.agent.Task.Settings.Model = "gpt-5.1"
			}
			want(t, b.start(agent.Input{Text: "and again"}), "completed", "")
			if n := len(s.Requests()); n != 4 {
				t.Errorf("%d requests after the restart", n)
			}
		})
	}
}

// A refusal without an address: what came last is left out on trial, which is in the
// log only when it helped.
func TestACulpritIsGuessed(t *testing.T) {
	for refusal, what := range map[string]string{
		"Could not process image":              "the image in the result of look for logo.png",
		"Request contains an invalid argument": "the result of look for logo.png,the result of look",
	} {
		b, s := pictured(t, "anthropic", func([]byte) string { return refusal })
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		var found []string
		for _, w := range b.disk.state.Withheld {
			found = append(found, w.What)
		}
		if got := strings.Join(found, ","); got != what || len(s.Requests()) != 3 {
			t.Errorf("%s: withheld %q after %d requests", refusal, got, len(s.Requests()))
		}
	}
}

// A guess that does not help leaves nothing behind, and the run ends with what the
// provider first said. Refusals that are not about the history cost no guess.
func TestAGuessThatDoesNotHelp(t *testing.T) {
	for refusal, requests := range map[string]int{"something is wrong": 3, "Your credit balance is too low": 2, "model: m does not exist, not found": 2} {
		n := 0
		b, s := pictured(t, "anthropic", nil)
		s.Answer(func(r llmtest.Request) llmtest.Reply {
			if n++; n == 1 {
				return llmtest.Call("c1", "look", `{"what":"a"}`)
			}
			return llmtest.Fail(400, refusal+strings.Repeat("!", n-2))
		})
		out := b.start(agent.Input{Text: "go"})
		want(t, out, "failed", "provider")
		if len(b.disk.state.Withheld) != 0 || len(s.Requests()) != requests || !strings.HasSuffix(out.Reason, refusal) {
			t.Errorf("%s: withheld %v after %d requests, %s", refusal, b.disk.state.Withheld, len(s.Requests()), out.Reason)
		}
		checkHistories(t, b.disk.state)
	}
}

// However often a provider refuses, the tries of a turn end.
func TestMendingEnds(t *testing.T) {
	s := llmtest.New(t)
	s.Answer(func(r llmtest.Request) llmtest.Reply {
		if r.Replies() == 0 {
			var reply llmtest.Reply
			for i := range 30 {
				reply = reply.AndCall(fmt.Sprint("c", i), "look", `{"what":"x"}`)
			}
			return reply
		}
		return llmtest.Fail(400, fmt.Sprintf("messages.2.content.%d: no", len(strings.Split(string(r.Body), "Left out here"))-1))
	})
	b := newBench(t)
	b.agent.Model.Provider = providers["anthropic"].open(s.URL)
	want(t, b.start(agent.Input{Text: "go"}), "failed", "provider")
	if n := len(s.Requests()); n != 14 || len(b.disk.state.Withheld) != 12 {
		t.Errorf("%d requests, %d left out", n, len(b.disk.state.Withheld))
	}
}

// A used-up quota is waited out: the task says until when, in the log before the
// wait, and goes on by itself.
func TestQuotaWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota := &llm.Error{Provider: "test", Kind: llm.RateLimited, Status: 429, Message: "the quota is used up", RetryAfterMS: 3 * 3600_000}
		done := finish("done")
		done.fails = []failure{{err: quota}, {err: quota}, {err: quota}, {err: quota}, {err: quota}, {err: overloaded(0)}}
		b := newBench(t, done)
		var until []int64
		b.hook = func(entry string) {
			if entry == "saved" && b.disk.state.WaitingUntil > 0 {
				until = append(until, b.disk.state.WaitingUntil-b.clock)
			}
		}
		begin := time.Now()
		want(t, b.start(agent.Input{Text: "go"}), "completed", "")
		if d := time.Since(begin); d < 15*time.Hour || d > 15*time.Hour+time.Minute {
			t.Errorf("it waited %s", d)
		}
		if len(until) != 5 || until[0] < 3*3600_000-100 || until[0] > 3*3600_000 || b.disk.state.WaitingUntil != 0 {
			t.Errorf("it said until %v, and in the end %d", until, b.disk.state.WaitingUntil)
		}
		text := strings.Join(b.notices, "\n")
		for _, part := range []string{"(3h0m0s)", "still waiting for test: 2h45m0s left", "1m0s left"} {
			if !strings.Contains(text, part) {
				t.Errorf("not told: %s", part)
			}
		}
	})
}

// A task that was killed or stopped while it waited says so, and asks at once when
// somebody resumes it.
func TestAQuotaWaitOutlivesTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := finish("done")
		done.fails = []failure{{err: &llm.Error{Provider: "test", Kind: llm.RateLimited, Status: 429, Message: "later", RetryAfterMS: 3600_000}}}
		b := newBench(t, done)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(10*time.Minute, cancel)
		begin := time.Now()
		want(t, b.startWith(ctx, agent.Input{Text: "go"}), "cancelled", "")
		if d := time.Since(begin); d != 10*time.Minute || b.disk.state.WaitingUntil == 0 {
			t.Errorf("stopped after %s, waiting until %d", d, b.disk.state.WaitingUntil)
		}
		for n, c := range b.disk.commits {
			if !strings.Contains(string(c.Events[0]), `"turn.failed"`) {
				continue
			}
			killed := b.after(n+1, 0)
			if killed.disk.state.WaitingUntil == 0 {
				t.Error("the killed task does not wait")
			}
			begin = time.Now()
			want(t, killed.start(agent.Input{Yes: true}), "completed", "")
			if d := time.Since(begin); d != 0 || killed.disk.state.WaitingUntil != 0 {
				t.Errorf("the resumed task took %s, waiting until %d", d, killed.disk.state.WaitingUntil)
			}
			return
		}
		t.Error("no failure is in the log")
	})
}
