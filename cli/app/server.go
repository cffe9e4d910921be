package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/failure"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/internal/inputfile"
	"github.com/roost-dev/roost/server"
	"github.com/roost-dev/roost/server/presence"
	"github.com/roost-dev/roost/view"
)

// far returns a client of the server that the user named; nil when the user named none, so that this process does the
// work.
func (a *App) far() (*client.Client, error) {
	base, err := a.Global("server")
	if base == "" || err != nil {
		return nil, err
	}
	o := client.Options{Token: a.Env("ROOST_TOKEN"), Lost: a.Lost}
	if root, err := a.RootFolder(); Near(base) && err == nil {
		o.Token = cmp.Or(o.Token, ownToken(root))
		if p, _ := presence.Find(root); p.URL == base {
			o.Cert = p.Cert
		}
	} else if Near(base) && o.Token == "" {
		return nil, err
	}
	c, err := client.New(base, o)
	if err != nil {
		return nil, failure.Usage("use the server "+base, err.Error(), "roost --server http://127.0.0.1:7878 ...  # as roost serve prints it")
	}
	return c, nil
}

// Near reports whether a server's address leads to this machine: only such a server gets the token of this machine's
// root.
func Near(base string) bool {
	if strings.HasPrefix(base, "unix:") {
		return true
	}
	u, err := url.Parse(base)
	return err == nil && server.Loopback(u.Hostname())
}

// ownToken returns the token in this machine's root; "" when there is no readable token: the server then answers that
// it needs one.
func ownToken(root string) string {
	data, _ := inputfile.Read(server.TokenFile(root))
	return strings.TrimSpace(string(data))
}

// Lost reports a stream that broke. While a run is followed, the display prints the report between the run's events: a
// question may be on the screen.
func (a *App) Lost(err error, again time.Duration) {
	if again < time.Second || err == nil {
		return
	}
	text := fmt.Sprintf("the connection to the server is lost (%s); again in %s", err, display.Duration(again))
	if a.Screen != nil && !a.Flags.JSON && !a.Flags.Quiet {
		a.Screen.Lines([]view.Line{{Text: display.OneLine(text)}})
		return
	}
	a.Say("%s", text)
}

// WithClient runs f with a client of the server that the user named, or else of a server in this process, with its
// engine. So each command is written only once. The engine is nil when the server is another process.
func (a *App) WithClient(ctx context.Context, f func(*client.Client, *engine.Engine) error) error {
	return a.connect(ctx, true, f)
}

// Connect is WithClient for commands that need no engine. Settings that the engine refuses stop only acts that need
// the engine: reading works without it.
func (a *App) Connect(ctx context.Context, f func(*client.Client) error) error {
	return a.connect(ctx, false, func(c *client.Client, _ *engine.Engine) error { return f(c) })
}

// Connected makes a command's RunE from a function for Connect.
func (a *App) Connected(f func(ctx context.Context, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.Connect(cmd.Context(), func(c *client.Client) error { return f(cmd.Context(), c, args) })
	}
}

// ConnectedEngine makes a command's RunE from a function for WithClient.
func (a *App) ConnectedEngine(f func(ctx context.Context, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.WithClient(cmd.Context(), func(c *client.Client, _ *engine.Engine) error { return f(cmd.Context(), c, args) })
	}
}

func (a *App) connect(ctx context.Context, engineNeeded bool, f func(*client.Client, *engine.Engine) error) error {
	c, err := a.far()
	if err != nil {
		return err
	}
	if c != nil {
		defer c.Close()
		return f(c, nil)
	}
	s, err := a.Open()
	if err != nil {
		return err
	}
	settings, refused := a.EngineConfig()
	secrets := settings.KnownKeys() // export refuses to mask without them
	if refused == nil {
		a.start(s, settings)
	} else if engineNeeded {
		return refused
	}
	c, stop, err := s.Client(secrets...)
	if err == nil {
		err = f(c, s.Engine())
		stop()
	}
	if p, is := errors.AsType[*client.Problem](err); refused != nil && is && p.Code == "read_only" {
		err = refused
	}
	return errors.Join(err, s.Close(ctx))
}

// OnlyHere marks a command and its subcommands as ones that no server can run: they refuse --server. They ignore a
// server from the environment or the settings, which is for the commands that can use it.
func (a *App) OnlyHere(cmd *cobra.Command) *cobra.Command {
	cmd.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if a.Flags.Server == "" {
			return nil
		}
		return failure.Usage(cmd.CommandPath()+" --server "+a.Flags.Server, "the command is for this machine only",
			cmd.CommandPath()+" without --server")
	}
	return cmd
}

// OnServer runs f with a client of the server that the user named, or else of the running server of this root.
// Without a server, the error names the command that starts one. what describes the attempted act in an error.
func (a *App) OnServer(what string, f func(*client.Client) error) error {
	c, err := a.far()
	if err != nil {
		return err
	}
	if c == nil {
		root, err := a.RootFolder()
		if err != nil {
			return err
		}
		p, err := presence.Find(root)
		if errors.Is(err, presence.ErrAbsent) {
			f := failure.New(failure.ExitServer, "no_server", what, err.Error()+" ("+root+")",
				"roost serve  # in another terminal, or as a service; or name one with --server URL")
			f.Retryable = true
			return f
		}
		if err != nil {
			return err
		}
		if c, err = client.New(p.URL, client.Options{Token: ownToken(root), Cert: p.Cert, Lost: a.Lost}); err != nil {
			return err
		}
	}
	defer c.Close()
	return f(c)
}

// PathOf is the path of a task, or of a part of it.
var PathOf = client.TaskPath

// SetQuery puts a parameter into a query, unless it is empty.
func SetQuery(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

// DocumentOf gets a document from a server. With --json it prints the server's bytes, else it calls show.
func DocumentOf[T any](ctx context.Context, a *App, c *client.Client, path string, query url.Values, show func(T)) error {
	return Exchange(ctx, a, c, client.Request{Method: http.MethodGet, Path: path, Query: query}, show)
}

// Exchange is DocumentOf for any request.
func Exchange[T any](ctx context.Context, a *App, c *client.Client, r client.Request, show func(T)) error {
	watched, shown := a.Watched(ctx)
	v, doc, err := Asked[T](watched, c, r)
	shown()
	switch {
	case a.Flags.JSON && doc != nil: // also a document that this program cannot read
		return a.PrintRaw(doc)
	case err != nil:
		return err
	}
	show(v)
	return a.Flush()
}

// Asked sends a request and returns the answer, also in the bytes that the server sent.
func Asked[T any](ctx context.Context, c *client.Client, r client.Request) (v T, doc json.RawMessage, err error) {
	if _, err = c.Ask(ctx, r, &doc); err != nil {
		return v, doc, err
	}
	if err = json.Unmarshal(doc, &v); err != nil {
		err = fmt.Errorf("read the answer of the server %s: %w", c.Base(), err)
	}
	return v, doc, err
}

// PrintRaw prints a document unchanged.
func (a *App) PrintRaw(doc []byte) error {
	if n := len(doc); n == 0 || doc[n-1] != '\n' {
		doc = append(doc, '\n')
	}
	_, _ = a.Out.Write(doc) // Flush returns the error
	return a.Flush()
}

// PageMost returns the largest number of items that one answer may hold: a server bounds it, this process does not.
func PageMost(c *client.Client) int {
	if c.IsLocal() {
		return math.MaxInt32
	}
	return 1000
}

// Listed are the items of a list, each in the bytes that the server sent, and the other members of the answer.
type Listed struct {
	Items []json.RawMessage
	Next  string
	Names map[string]string // by SOURCE:ID
	Found api.Found
}

// Pages reads up to limit items of a list that continues at a cursor; all when limit is 0.
func (a *App) Pages(ctx context.Context, c *client.Client, path string, query url.Values, limit int) (out Listed, err error) {
	ctx, shown := a.Watched(ctx)
	defer shown()
	out.Items, out.Next = []json.RawMessage{}, query.Get("cursor")
	for {
		ask := PageMost(c)
		if limit > 0 {
			ask = min(limit-len(out.Items), ask)
		}
		query.Set("limit", strconv.Itoa(ask))
		last := out.Next
		if err := out.ReadPage(ctx, c, path, query); err != nil {
			return out, err
		}
		if out.Next == "" || out.Next == last || limit > 0 && len(out.Items) >= limit {
			return out, nil
		}
	}
}

// ReadPage adds the page at Next, of the size in the query. Found becomes that of this page, with the hits of all pages.
func (l *Listed) ReadPage(ctx context.Context, c *client.Client, path string, query url.Values) error {
	SetQuery(query, "cursor", l.Next)
	var p struct {
		api.Page[json.RawMessage]
		Names map[string]string
		Found *api.Found
	}
	if _, err := c.Ask(ctx, client.Request{Path: path, Query: query}, &p); err != nil {
		return err
	}
	if l.Names == nil {
		l.Names = map[string]string{}
	}
	l.Items = append(l.Items, p.Items...)
	maps.Copy(l.Names, p.Names)
	if p.Found != nil {
		hits := l.Found.Hits
		l.Found = *p.Found
		if hits != nil {
			maps.Copy(hits, p.Found.Hits)
			l.Found.Hits = hits
		}
	}
	if l.Next = ""; p.Next != nil {
		l.Next = *p.Next
	}
	return nil
}

// BadCursor reports whether a server refused a list because of its cursor.
func BadCursor(err error) bool {
	p, is := errors.AsType[*client.Problem](err)
	return is && p.Code == "bad_cursor"
}

// ShowList prints a list, unless reading it failed with err: with --json in the bytes that the server sent, else by show.
func ShowList[T any](a *App, list Listed, err error, show func([]T)) error {
	if err == nil && a.Flags.JSON {
		return a.PrintJSON(api.PageOf(list.Items, list.Next))
	}
	items, err := All[T](list, err)
	if err != nil {
		return err
	}
	show(items)
	return a.Flush()
}

// All decodes the items of a list that was read, such as the result of Pages.
func All[T any](list Listed, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return api.TryEach(list.Items, func(raw json.RawMessage) (one T, err error) {
		err = api.Failed(json.Unmarshal(raw, &one), "read the server's list")
		return one, err
	})
}

// Flat returns a tree as a family: each task comes after its parent.
func Flat(b api.Branch, depth int) (f api.Family) {
	f.Tasks, f.Depths = append(f.Tasks, b.Task), append(f.Depths, depth)
	for _, child := range b.Children {
		below := Flat(child, depth+1)
		f.Tasks, f.Depths = append(f.Tasks, below.Tasks...), append(f.Depths, below.Depths...)
	}
	return f
}

// NextPage returns the command line that continues where a page ended: the present one, with its flags, and the
// cursor.
func NextPage(cmd *cobra.Command, cursor string) string {
	line := []string{cmd.CommandPath()}
	words, dashed := make([]string, 0, 1), false
	for _, arg := range cmd.Flags().Args() {
		words = append(words, api.ShellWord(arg))
		dashed = dashed || strings.HasPrefix(arg, "-")
	}
	if !dashed {
		line = append(line, words...)
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case f.Name == "cursor":
		case f.NoOptDefVal == "":
			line = append(line, "--"+f.Name, api.ShellWord(f.Value.String()))
		case f.Value.String() == f.NoOptDefVal:
			line = append(line, "--"+f.Name)
		default:
			line = append(line, "--"+f.Name+"="+api.ShellWord(f.Value.String()))
		}
	})
	line = append(line, "--cursor", api.ShellWord(cursor))
	if dashed { // without "--" these words would be read as flags
		line = append(append(line, "--"), words...)
	}
	return strings.Join(line, " ")
}

// OpenBrowser opens an address with the system's own program, as one argument: no shell reads it.
func OpenBrowser(ctx context.Context, address string) error {
	words := []string{"xdg-open", address}
	switch runtime.GOOS {
	case "darwin":
		words[0] = "open"
	case "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, words[0], words[1:]...).Run() //nolint:gosec // an http address that the user asked for
}
