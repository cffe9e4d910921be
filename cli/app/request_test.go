package app_test

import (
	gocmp "cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/internal/testing/clitest"
	"github.com/roost-dev/roost/internal/testing/fixture"
	"github.com/roost-dev/roost/money"
)

func TestImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	png := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 20)...)
	if got, err := app.Image(file("a", png)); err != nil || !strings.HasPrefix(got, "data:image/png;base64,iVBORw0KGgo") {
		t.Errorf("a png without its ending: %.40s, %v", got, err)
	}
	for name, path := range map[string]string{
		"a text": file("b.png", []byte("text")), "an empty file": file("c.png", nil), "a folder": dir, "nothing": filepath.Join(dir, "d.png"),
		"too large": file("e.png", append(png, make([]byte, app.ImageLimit)...)), "svg, which can run code": file("f.svg", []byte("<svg/>")),
	} {
		if got, err := app.Image(path); err == nil {
			t.Errorf("%s is taken: %.40s", name, got)
		}
	}
}

// A request to a server has one member for each flag. Without the flag of a limit the task keeps its limit; 0 removes it.
func TestRequestsAsAServerTakesThem(t *testing.T) {
	t.Parallel()
	picture := filepath.Join(t.TempDir(), "p.png")
	fixture.NoError(t, os.WriteFile(picture, []byte("\x89PNG\r\n\x1a\n"), 0o600))
	for _, tt := range []struct{ args, words, want string }{
		{"-C /ws", "do it", `{"workspace":"/ws","message":{"text":"do it"}}`},
		{"-C /ws --image " + picture, "", `{"workspace":"/ws","message":{"text":"","images":["data:image/png;base64,iVBORw0KGgo="]}}`},
		{"-C /ws", "", `{"workspace":"/ws"}`},
		{
			"-C /ws --mode ask --provider openai --model m --base-url http://127.0.0.1 --profile p --approve read --allow git --deny rm " +
				"--effort low --stale read --max-tokens 0 --condense-at never --allow-tool read --ask-tool write --deny-tool run", "x",
			`{"workspace":"/ws","mode":"ask","provider":"openai","model":"m","base_url":"http://127.0.0.1","profile":"p","effort":"low",
			"max_tokens":0,"condense_at":0,"stale":"read","approve":"read","allow":["git"],"deny":["rm"],"allow_tools":["read"],
			"ask_tools":["write"],"deny_tools":["run"],"message":{"text":"x"}}`,
		},
		{"--no-checkpoints --max-cost-day 2 --condense-at 75", "", `{"workspace":"","condense_at":75,"no_checkpoints":true,"max_cost_day":"2.00"}`},
		{"--max-cost-day 0 --yes", "", `{"workspace":"","approve":"all","max_cost_day":"0.00"}`},
		{"--max-turns 3", "", `{"workspace":"","limits":{"max_turns":3}}`},
		{"--max-turns 0 --ask-after-requests 0", "", `{"workspace":"","limits":{"max_turns":0,"ask_after_requests":0}}`},
		{"--max-cost 0.50 --idle-timeout 1m", "", `{"workspace":"","limits":{"max_cost":"0.50","idle_timeout":"1m0s"}}`},
		{"--max-cost 0 --total-timeout 0", "", `{"workspace":"","limits":{"max_cost":"0.00","total_timeout":"0s"}}`},
		{"--max-cost-task 1 --ask-after-cost 2", "", `{"workspace":"","limits":{"max_cost_task":"1.00","ask_after_cost":"2.00"}}`},
		{"--idle-timeout 1us", "", `{"workspace":"","limits":{"idle_timeout":"1\u00b5s"}}`},
	} {
		a, _, _ := clitest.New(t)
		var r app.RunFlags
		cmd := &cobra.Command{Use: "run"}
		a.AddRunFlags(cmd, &r)
		fixture.NoError(t, cmd.ParseFlags(strings.Fields(tt.args)))
		req, err := a.Options(cmd, &r, []string{tt.words})
		fixture.NoError(t, err)
		data, err := json.Marshal(req.NewTask())
		fixture.NoError(t, err)
		var got, want api.NewTask
		fixture.NoError(t, json.Unmarshal(data, &got))
		fixture.NoError(t, json.Unmarshal([]byte(tt.want), &want))
		want.Origin, want.Unattended = "cli", true
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: got %s, want diff = \"\"", tt.args, diff)
		}
		if diff := cmp.Diff(want.Settings, req.Settings); diff != "" || (req.Message == nil) != (want.Message == nil) {
			t.Errorf("%s: going on is asked for otherwise: %s", tt.args, diff)
		}
	}
}

// What the command line gives replaces what the settings have; a member that it does not give is theirs.
func TestNewTasksAreCompletedFromTheSettings(t *testing.T) {
	t.Parallel()
	a, _, _ := clitest.New(t)
	env := map[string]string{
		"ROOST_MODE": "ask", "ROOST_PROVIDER": "script", "ROOST_MAX_TURNS": "5", "ROOST_MAX_COST": "1.00", "ROOST_MAX_TOKENS": "100",
	}
	was := a.Env
	a.Env = func(name string) string { return gocmp.Or(env[name], was(name)) }
	got, err := a.AsNew(api.Settings{Model: "x.yaml", MaxTokens: new(0), Limits: &api.Limits{MaxTurns: new(0)}})
	fixture.NoError(t, err)
	want := api.Settings{
		Mode:      "ask",
		Provider:  "script",
		Model:     a.Abs("x.yaml"),
		MaxTokens: new(0),
		Limits:    &api.Limits{MaxTurns: new(0), MaxCost: new(money.USD(1_000_000))},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
