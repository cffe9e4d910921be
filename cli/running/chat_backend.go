package running

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/chat"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/llm/catalogue"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/shell"
	"github.com/roost-dev/roost/workspace/skill"
	"github.com/roost-dev/roost/workspace/slash"
)

// chatBackend is what a chat needs: a client of a server, of another process or of this
// one, and the commands of roost, so that a chat does what the shell does.
type chatBackend struct {
	*client.Client
	a  *commands
	mu sync.Mutex // what is read of the settings is not for two at once
}

func (d *chatBackend) EditQueued(ctx context.Context, id, input string, text *string) error {
	at := "/v1/tasks/" + url.PathEscape(id) + "/queue/" + url.PathEscape(input)
	if text == nil {
		_, err := d.Do(ctx, http.MethodDelete, at, nil, nil, nil)
		return err
	}
	_, err := d.Do(ctx, http.MethodPatch, at, nil, struct {
		Text string `json:"text"`
	}{*text}, nil)
	return err
}

// Command runs a command of roost as the shell would, on the same tasks, without asking the user.
func (d *chatBackend) Command(ctx context.Context, args ...string) chat.Said {
	var out, errs, whole bytes.Buffer
	a := d.a
	sub := &app.App{
		In:    strings.NewReader(""),
		Out:   io.MultiWriter(&out, &whole),
		Err:   io.MultiWriter(&errs, &whole),
		Env:   a.Env,
		Dir:   a.Dir,
		Now:   a.Now,
		Width: a.Width,
	}
	global := []string{"--no-input", "--no-color"}
	for flag, value := range map[string]string{
		"root":    a.Flags.Root,
		"cache":   a.Flags.Cache,
		"sources": a.Flags.Sources,
		"server":  a.Flags.Server,
	} {
		if value != "" {
			global = append(global, "--"+flag+"="+value)
		}
	}
	code := a.parts.Run(ctx, sub, append(global, args...))
	return chat.Said{Out: out.String(), Err: errs.String(), Whole: whole.String(), Code: code}
}

// Shell runs a command line of the person's own as an agent's command is run: its
// output is no terminal's, it can ask nothing, and nothing of it stays behind. The
// workspace of a server on another machine is not here.
func (d *chatBackend) Shell(ctx context.Context, dir, line string, out io.Writer) (chat.Ran, error) {
	if base, err := d.a.Global(d.a.Flags.Server, "server"); err != nil {
		return chat.Ran{}, err
	} else if base != "" && !app.Near(base) {
		return chat.Ran{}, fmt.Errorf("run a command in %s: the folder is at the server %s, and your commands run on this machine", dir, base)
	}
	r, err := shell.Run(ctx, shell.Command{Line: line, Dir: dir, Output: out})
	return chat.Ran{Exit: r.Exit, Cancelled: r.Cancelled, Ended: len(r.Ended), Took: r.Duration}, err
}

// Mask hides the keys of the settings, and what reads as a secret.
func (d *chatBackend) Mask(text string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var known []redact.Known
	if c, err := d.a.EngineConfig(); err == nil {
		known = app.SecretsOf(c)
	}
	masked, _ := redact.New(known...).String(text)
	return masked
}

// wordsShown bounds the completions offered at a time.
const wordsShown = 200

func (d *chatBackend) Words(ctx context.Context, kind chat.Kind, dir, begun string) []chat.Word {
	switch kind {
	case chat.Files:
		return filesBelow(dir, begun)
	case chat.Tasks:
		page, err := d.Tasks(ctx, url.Values{"limit": {"100"}})
		if err != nil {
			return nil // completion prints no error
		}
		var out []chat.Word
		for _, t := range page.Items {
			out = append(out, chat.Word{Text: t.ID, About: t.Title})
		}
		return out
	case chat.Modes:
		d.mu.Lock()
		defer d.mu.Unlock()
		c, err := d.a.EngineConfig()
		if err != nil || dir == "" {
			return nil
		}
		set, _ := c.Modes(dir)
		var out []chat.Word
		for _, m := range set.All() {
			out = append(out, chat.Word{Text: m.Slug, About: m.Name})
		}
		return out
	case chat.Models:
		var out []chat.Word
		for _, m := range catalogue.Models() {
			for _, id := range m.IDs {
				out = append(out, chat.Word{Text: id, About: m.Provider})
			}
		}
		return out
	case chat.Policies:
		var out []chat.Word
		for _, p := range app.Policies {
			out = append(out, chat.Word{Text: p})
		}
		return out
	case chat.Prompts:
		return d.prompts(ctx, dir)
	}
	return nil
}

// prompts are the slash commands that a person wrote down, and the skills.
func (d *chatBackend) prompts(ctx context.Context, dir string) []chat.Word {
	commands, skills := d.sets(dir)
	var out []chat.Word
	for _, name := range commands.Names() {
		about := ""
		if c, err := commands.Find(ctx, name); err == nil {
			about = c.Description
		}
		out = append(out, chat.Word{Text: name, About: about})
	}
	list, _ := skills.In("")
	for _, k := range list {
		out = append(out, chat.Word{Text: k.Name, About: k.Description})
	}
	return out
}

func (d *chatBackend) sets(dir string) (slash.Set, skill.Set) {
	home := d.a.Env("HOME")
	commands, skills := slash.Set{Home: home}, skill.Set{Home: home}
	if dir != "" {
		if w, err := workspace.Open(dir); err == nil {
			commands.Workspace = w
			skills.Workspace = dir
		}
	}
	return commands, skills
}

func (d *chatBackend) Passes(ctx context.Context, dir, mode, name string) bool {
	commands, skills := d.sets(dir)
	if _, err := commands.Find(ctx, name); err == nil {
		return true
	}
	_, _, err := skills.Find(mode, name)
	return err == nil
}

// filesBelow are the files of one folder of a workspace whose names begin as typed, and
// folders with a "/" at the end. Hidden ones are listed only when the user typed the dot.
func filesBelow(dir, begun string) (out []chat.Word) {
	folder, head := path.Split(begun)
	if dir == "" || !filepath.IsLocal(filepath.FromSlash("./"+folder)) {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(folder)))
	if err != nil {
		return nil // there is nothing to offer
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, head) || strings.HasPrefix(name, ".") && head == "" || display.Safe(name) != name {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		if out = append(out, chat.Word{Text: folder + name}); len(out) == wordsShown {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b chat.Word) int { return strings.Compare(a.Text, b.Text) })
	return out
}
