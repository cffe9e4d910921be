package hosting

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/filelock"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/server/presence"
	"github.com/roost-dev/roost/web"
)

func (a *commands) openCommand() *cobra.Command {
	var only bool
	cmd := help.Command("open", func(cmd *cobra.Command, args []string) error {
		show := func(c *client.Client) error { return a.openPage(cmd.Context(), c, strings.Join(args, ""), only) }
		err := a.OnServer("open the page", show)
		var f *failure.Failure
		if !errors.As(err, &f) || f.Code != "no_server" {
			return err
		}
		if len(args) > 0 { // no server starts for a task that does not exist
			err = a.Connect(cmd.Context(), func(c *client.Client) error { _, err := c.Task(cmd.Context(), args[0]); return err })
			if err != nil {
				return err
			}
		}
		if err := a.startServer(cmd.Context()); err != nil {
			return err
		}
		return a.OnServer("open the page", show)
	})
	cmd.Flags().BoolVar(&only, "print", false, "print the link, and open no browser")
	return cmd
}

// openPage prints a log-in link that leads to a task, or to the tasks of the current folder, and opens it.
func (a *commands) openPage(ctx context.Context, c *client.Client, id string, only bool) error {
	page, err := a.pageFor(ctx, c, id)
	if err != nil {
		return err
	}
	login, err := client.Post[api.Login](ctx, c, "/v1/server/logins", nil)
	if err != nil {
		return err
	}
	to, err := url.Parse(login.URL)
	if err != nil {
		return fmt.Errorf("read the server's log-in link: %w", err)
	}
	if base, err := url.Parse(c.Base()); err == nil && base.Host != "" { // as this machine reaches the server
		to.Scheme, to.Host = base.Scheme, base.Host
		to.Path = strings.TrimSuffix(base.Path, "/") + to.Path
	}
	q := to.Query()
	q.Set("to", page)
	to.RawQuery = q.Encode()
	if err := a.Outcome(api.Login{URL: to.String()}, to.String()); err != nil || only {
		return err
	}
	if runtime.GOOS == "linux" && cmp.Or(a.Env("DISPLAY"), a.Env("WAYLAND_DISPLAY"), a.Env("WSL_DISTRO_NAME")) == "" {
		a.Say("there is no display here: open the link in a browser; it works once")
		return nil
	}
	if err := app.OpenBrowser(ctx, to.String()); err != nil {
		a.Warn("no browser could be opened (" + err.Error() + "): open the link yourself; it works once")
	}
	return nil
}

// pageFor returns the address of a task's page. Without a task, it is that of the history, narrowed to the current
// folder when the folder has tasks.
func (a *commands) pageFor(ctx context.Context, c *client.Client, id string) (string, error) {
	if id != "" {
		t, err := c.Task(ctx, id)
		return web.TaskPath(t), err
	}
	q := api.TaskFilter{Workspace: a.Dir}.Query()
	q.Set("limit", "1")
	here, err := c.Tasks(ctx, q)
	if err != nil || len(here.Items) == 0 {
		return "/", err
	}
	return "/?" + url.Values{"workspace": {a.Dir}}.Encode(), nil
}

// startPatience limits how long a server may take to start.
const startPatience = 30 * time.Second

// startServer starts a server of this root that outlives the command, at the usual address, or at any free port when
// another program listens there. If several commands call it at once, the first starts the server, and the others
// wait.
func (a *commands) startServer(ctx context.Context) (err error) {
	root, err := a.RootFolder()
	if err != nil {
		return err
	}
	logFile := filepath.Join(root, "server", "open.log")
	if err := os.MkdirAll(filepath.Dir(logFile), 0o700); err != nil {
		return fmt.Errorf("start a server: %w", err)
	}
	turn, err := os.OpenFile(logFile, os.O_CREATE|os.O_RDWR, 0o600) // a file of its own: the server would inherit the lock
	if err != nil {
		return fmt.Errorf("start a server: %w", err)
	}
	defer func() { err = errors.Join(err, filelock.Release(turn)) }()
	ctx, done := context.WithTimeout(ctx, 2*startPatience)
	defer done()
	if err := filelock.Wait(ctx, turn, filelock.Exclusive, 20*time.Millisecond); err != nil {
		return fmt.Errorf("start a server: wait for another roost open: %w", err)
	}
	if _, err := presence.Find(root); err == nil {
		return nil
	}
	err = a.startAt("127.0.0.1:7878", logFile)
	var f *failure.Failure
	if errors.As(err, &f) && f.Code == "address_in_use" {
		return a.startAt("127.0.0.1:0", logFile)
	}
	return err
}

// startAt starts a server, and waits until it has printed its address: from then on it answers.
func (a *commands) startAt(address, logFile string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start a server: %w", err)
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start a server: %w", err)
	}
	defer log.Close()
	in, out, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start a server: %w", err)
	}
	defer in.Close()
	words := []string{"serve", "--json", "--quiet", "--listen", address}
	for flag, value := range a.Place().Flags { // none names a server: there is none yet
		if value != "" {
			words = append(words, "--"+flag, value)
		}
	}
	cmd := exec.Command(program, words...) //nolint:gosec,noctx // this program; it outlives the command
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.SysProcAttr = out, log, a.Dir, detached()
	err = cmd.Start()
	_ = out.Close() // the server has its own
	if err != nil {
		return fmt.Errorf("start a server: %w", err)
	}
	_ = in.SetReadDeadline(time.Now().Add(startPatience)) // where pipes have none, the server's end ends the wait
	line, err := bufio.NewReader(in).ReadBytes('\n')
	var greeting struct{ URL string }
	if err == nil {
		err = json.Unmarshal(line, &greeting)
	}
	if err != nil {
		return notStarted(logFile)
	}
	a.Say("started a server in the background (process %d); roost server stop ends it", cmd.Process.Pid)
	_ = cmd.Process.Release() // this command does not wait for the server
	return nil
}

// notStarted returns the failure of a server that ended before it answered, with the reason from its log.
func notStarted(logFile string) error {
	code, why := "no_server", "the server ended, or did not answer in time"
	if text, err := inputfile.Read(logFile); err == nil {
		var p api.Problem
		if json.Unmarshal(text, &p) == nil && p.Detail != "" {
			code, why = p.Code, p.Title+": "+p.Detail
		}
	}
	return failure.New(failure.ExitServer, code, "start a server in the background", why+"; its log is "+logFile,
		"roost serve  # in another terminal")
}
