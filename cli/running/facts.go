package running

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/chat"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/engine/setup"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/money"
)

// Facts describe what the next request of a chat uses: provider, model, mode, folder. They come from this user's
// settings; with a server, the server's settings supply what is missing there.
func (d *chatBackend) Facts(ctx context.Context, task string, n api.NewTask, again api.NewRun) chat.Facts {
	f := chat.Facts{
		Provider: n.Provider, Model: n.Model, Profile: n.Profile, Mode: n.Mode, Approve: n.Approve, Folder: n.Workspace,
	}
	address := n.BaseURL
	if task != "" {
		t, err := d.Task(ctx, task)
		if err != nil {
			return f
		}
		f = chat.Facts{
			Provider: cmp.Or(again.Provider, t.Provider), Model: again.Model, Profile: again.Profile,
			Mode: cmp.Or(again.Mode, t.Mode), Approve: again.Approve, Folder: cmp.Or(again.Workspace, t.Workspace), Context: t.ContextTokens,
		}
		if address = again.BaseURL; f.Model == "" && again.Provider == "" && again.Profile == "" {
			f.Model, f.Window = t.Model, t.ContextWindow
		}
		f.Cost = money.USD(t.Usage.Micros())
	}
	f.Branch = branchOf(f.Folder)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.resolve(&f, address, task == "")
	return f
}

// resolve finds the provider and the key that the settings choose. fresh: the task is new, so the settings supply
// what its request leaves open.
func (d *chatBackend) resolve(f *chat.Facts, address string, fresh bool) {
	c, err := d.a.EngineConfig()
	if err != nil {
		f.Problem = err.Error()
		return
	}
	account := ""
	if p, ok := c.Profiles[f.Profile]; ok && f.Profile != "" {
		f.Provider, f.Model, address = cmp.Or(p.Provider, f.Provider), cmp.Or(f.Model, p.Model), cmp.Or(address, p.BaseURL)
		if p.Key != "" {
			account = "the profile " + f.Profile
		}
	}
	far, err := d.a.Global("server")
	if far = strings.TrimSpace(far); err == nil && far != "" { // the server chooses what is open, and has keys of its own
		if f.Key = "the server's settings"; f.Provider == "" {
			f.Key = ""
		}
		return
	}
	if fresh && f.Provider == "" && f.Profile == "" {
		f.Provider, f.Model = c.Provider, cmp.Or(f.Model, c.Model)
	}
	f.Model = cmp.Or(f.Model, setup.DefaultModel(f.Provider))
	f.Address = cmp.Or(address, c.BaseURLs[f.Provider], setup.Address(f.Provider))
	if u, err := url.Parse(f.Address); err == nil && u.Host != "" {
		f.Address = u.Host
	}
	if m, ok := catalogue.Find(f.Provider, f.Model); ok {
		f.Window = int64(m.Context)
	}
	if f.Key = account; f.Key == "" && f.Provider != "" && f.Provider != "script" {
		_, f.Key = d.a.providerOf(f.Provider, "")
	}
	switch {
	case f.Provider == "":
		f.Problem = "no provider is named and no key was found (roost auth set PROVIDER)"
	case f.Key == "" && f.Provider != "openai-compatible" && f.Provider != "script":
		f.Problem = "there is no key (roost auth set " + f.Provider + ")"
	}
}

// branchOf reads the git branch of a folder from the file HEAD; "" without a repository.
func branchOf(dir string) string {
	for at := dir; at != ""; at = filepath.Dir(at) {
		git := filepath.Join(at, ".git")
		if data, err := inputfile.Read(git); err == nil { // a work tree: the file names the folder
			git = strings.TrimSpace(strings.TrimPrefix(string(data), "gitdir: "))
			if !filepath.IsAbs(git) {
				git = filepath.Join(at, git)
			}
		}
		if data, err := inputfile.Read(filepath.Join(git, "HEAD")); err == nil {
			head := strings.TrimSpace(string(data))
			if name, named := strings.CutPrefix(head, "ref: refs/heads/"); named {
				return display.OneLine(name)
			}
			return display.OneLine(head[:min(len(head), 8)])
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	return ""
}

// setUp lets a person without a key choose a provider and save a key, and offers to try the key. The answer q skips
// this.
func (a *commands) setUp(ctx context.Context, o chat.Options) error {
	if f := (&chatBackend{a: a}).Facts(ctx, "", o.New, o.Again); f.Problem == "" || f.Provider != "" {
		return nil
	}
	all := setup.Providers()
	a.Say("No model is set up yet. Which provider is to answer?\nIts key stays on this machine.")
	for i, p := range all {
		line := fmt.Sprintf("  %d. %s", i+1, p)
		if model := setup.DefaultModel(p); model != "" {
			line += " (" + model + ")"
		}
		if at := setup.KeyPage(p); at != "" {
			line += ": keys at " + strings.TrimPrefix(at, "https://")
		}
		a.Say("%s", line)
	}
	provider, err := a.Choose(ctx, "  a number (q goes on without) > ", all)
	if provider == "" || err != nil {
		return err
	}
	return a.keep(ctx, provider)
}

// keep saves a provider's key as roost auth set does, and offers one request that shows whether the key works.
func (a *commands) keep(ctx context.Context, provider string) error {
	if provider == "openai-compatible" {
		address, err := a.Prompter().Read(ctx, "  address, as http://127.0.0.1:11434/v1 for Ollama > ")
		for _, set := range [][2]string{{"providers." + provider + ".base_url", strings.TrimSpace(address)}, {"provider", provider}} {
			if err == nil {
				err = a.Place().Set(ctx, set[0], []string{set[1]})
			}
		}
		a.Loaded = nil
		if err == nil {
			a.Say("a model server of your own needs no key (if yours does: roost auth set %s); choose its model with /model NAME", provider)
		}
		return err
	}
	if code := a.aside(ctx, "auth", "set", provider); code != 0 {
		return failure.New(code, "no_key", "set up a model", "no key was kept", "roost auth set "+provider)
	}
	a.Loaded = nil
	agreed, err := a.Agree(ctx, "  send one short request now to try the key? it costs less than a cent")
	if !agreed {
		return err
	}
	return a.WithClient(ctx, func(c *client.Client, _ *engine.Engine) error {
		done, err := c.TestProvider(ctx, provider, api.NewTest{})
		if err != nil { // the key stays saved, and the chat continues
			f := failure.Of(err)
			a.Say("the key is saved, but the test request failed: %s: %s", f.What, f.Why)
			return nil
		}
		cost := "a price that is not known"
		if done.Cost != nil {
			cost = "$" + done.Cost.String()
		}
		a.Say("the key works: %s answered, for %s", done.Model, cost)
		return nil
	})
}

// aside runs a command line of roost that has the terminal to itself.
func (a *commands) aside(ctx context.Context, args ...string) (exit int) {
	sub := *a.App
	sub.Loaded, sub.Screen, sub.Asker = nil, nil, nil
	if err := a.Prompter().Aside(func() error {
		exit = a.parts.Run(ctx, &sub, args)
		return nil
	}); err != nil {
		return failure.ExitFailed
	}
	return exit
}
