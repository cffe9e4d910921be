package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/agent"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// A secret that a tool comes across is nowhere: not in the log, in neither history, in
// no request, notice, piece of a stream or kept output, whichever way the tool lets it
// out.
func TestASecretThatAToolFindsIsNowhere(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "whole")
	if err := os.WriteFile(kept, []byte("whole output with "+secret), 0o600); err != nil {
		t.Fatal(err)
	}
	for way, arrange := range map[string]func(f *fake){
		"the result": func(f *fake) { f.run = says(tool.Result{Text: "found " + secret}, nil) },
		"an error":   func(f *fake) { f.run = says(tool.Result{}, errors.New("cannot use "+secret)) },
		"a result that is an error": func(f *fake) {
			f.run = says(tool.Result{Text: "no " + secret, IsError: true}, nil)
		},
		"the model's mistake": func(f *fake) {
			f.run = says(tool.Result{}, &tool.InputError{Tool: f.spec.Name, Reason: "the text is not there, but " + secret + " is"})
		},
		"output": func(f *fake) {
			f.run = func(_ context.Context, out tool.Output, _ string) (tool.Result, error) {
				_, err := out.Write([]byte("here " + secret + " it is\n"))
				return tool.Result{Text: "done"}, err
			}
		},
		"the whole output": func(f *fake) {
			f.run = says(tool.Result{Text: "see there", Full: &tool.Spool{Path: kept, Size: 40}}, nil)
		},
		"a diff that is asked about": func(f *fake) {
			f.ask = func(ask *tool.Ask) {
				ask.Text, ask.Diff = `{"tool":"appliedDiff","diff":"-`+secret+`"}`, "-key = "+secret+"\n+key = none\n"
			}
		},
	} {
		t.Run(way, func(t *testing.T) {
			b := newBench(t, turn{calls: []call{use("c1", "edit", "x")}}, turn{calls: []call{use("c2", "act", "ls")}}, finish("done"))
			b.agent.Host.Masks = redact.New(redact.Known{Kind: "test", Value: secret})
			b.agent.Task.Policy.Mode = "ask"
			b.agent.User.Asker = asks(func(_ context.Context, q api.QuestionOpened) (agent.Answer, error) {
				if strings.Contains(q.Text+q.Diff, secret) {
					t.Errorf("asked: %+v", q)
				}
				return agent.Answer{Approve: yes(), By: "terminal"}, nil
			})
			arrange(b.tool("edit"))
			if b.tool("edit").ask == nil {
				arrange(b.tool("act"))
			}
			want(t, b.start(agent.Input{Text: "go"}), "completed", "")
			where := map[string]string{"notices": strings.Join(b.notices, "\n")}
			for _, c := range b.disk.commits {
				for _, e := range c.Events {
					where["the log"] += string(e)
				}
			}
			for _, blob := range b.disk.blobs {
				where["a blob"] += string(blob)
			}
			for _, r := range b.model.requests {
				for _, m := range r.Messages {
					where["a request"] += string(m.Content)
				}
			}
			for _, d := range b.deltas {
				where["the stream"] += d.Text
			}
			masked := false
			for place, text := range where {
				if strings.Contains(text, secret) {
					t.Errorf("%s holds it", place)
				}
				masked = masked || strings.Contains(text, "[REDACTED:test]")
			}
			if !masked {
				t.Error("nothing was masked: the secret never came along")
			}
		})
	}
}

func says(r tool.Result, err error) func(context.Context, tool.Output, string) (tool.Result, error) {
	return func(context.Context, tool.Output, string) (tool.Result, error) { return r, err }
}

// A file's name is sent with the list of the workspace's files: it is masked as well.
func TestNamesOfFilesAreMasked(t *testing.T) {
	const secret = "a-known-key-18273645"
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, secret+".txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, finish("done"))
	b.agent.Host.Workspace, b.agent.Host.Masks = ws, redact.New(redact.Known{Kind: "test", Value: secret})
	want(t, b.start(agent.Input{Text: "go"}), "completed", "")
	if sent := string(b.model.requests[0].Messages[0].Content); strings.Contains(sent, secret) || !strings.Contains(sent, "[REDACTED:test].txt") {
		t.Errorf("sent: %s", sent)
	}
}

// What the model itself says is not touched, whatever it looks like: the signature of a
// thought has to come back byte for byte.
func TestSignaturesAreNotMasked(t *testing.T) {
	signature := "sk-ant-" + "api03-Abcdefgh1JKLmnopq2RSTuvwxy3z0123456789"
	b := newBench(t, turn{think: signature, text: "the signature is " + signature, calls: []call{use("c1", "look", "x")}}, finish("done"))
	b.agent.Host.Masks = redact.New()
	want(t, b.start(agent.Input{Text: "go with " + signature}), "completed", "")
	if got := history(b.disk.state); strings.Count(got, signature) < 3 || strings.Contains(got, "REDACTED") {
		t.Errorf("history: %s", got)
	}
}
