package tasks

import (
	"archive/tar"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/internal/progress"
	"github.com/roost-dev/roost/redact"
)

// ExportFormats are the forms that export writes.
var ExportFormats = []string{"md", "html", "json", "roo", "archive"}

// formatOf names the form that the ending of a file means.
var formatOf = map[string]string{".html": "html", ".htm": "html", ".json": "json", ".zip": "archive"}

type exportFlags struct {
	format, output string
	plain          bool // secrets stay
	all            bool // every task
}

// exported is the result for one task, or for an archive, as --json shows it.
type exported struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	Path   string `json:"path"`
	api.Exported
	Failed string `json:"failed,omitempty"` // why nothing was written
}

func (e exported) whole() bool {
	return len(e.Damaged)+len(e.Unread)+len(e.Skipped) == 0 && e.Failed == ""
}

func (a *commands) exportCommand() *cobra.Command {
	f := exportFlags{output: "-"}
	cmd := help.Command("export", func(cmd *cobra.Command, args []string) error {
		if f.all && len(args) > 0 {
			return failure.Usage("roost export --all "+strings.Join(args, " "), "--all is every task, and a task is named as well",
				"roost export --all --format archive -o tasks.zip")
		}
		if named := formatOf[strings.ToLower(filepath.Ext(f.output))]; named != "" && !cmd.Flags().Changed("format") {
			f.format = named
		}
		return a.export(cmd.Context(), args, f)
	})
	fl := cmd.Flags()
	app.OneOf(cmd, &f.format, "format,f", "md", "`form`: "+strings.Join(ExportFormats, ", ")+"; that of --output, if its ending names one",
		ExportFormats...)
	fl.StringVarP(&f.output, "output", "o", "-", "`file` or folder to write; - is stdout")
	fl.BoolVar(&f.all, "all", false, "every task of every tool, as roost list has them")
	fl.BoolVar(&f.plain, "no-redact", false, "leave secrets as they are")
	return cmd
}

func (a *commands) export(ctx context.Context, args []string, f exportFlags) (err error) {
	// An export keeps a whole task in memory and makes much garbage. Collecting the garbage sooner costs no measurable time
	// and saves a third of the memory.
	defer debug.SetGCPercent(debug.SetGCPercent(30))
	said := append(slices.Clone(args), "--all")[0]
	stop := a.StopperWith(ctx, func() {})
	ctx = stop.Ctx
	defer func() {
		stop.Undo()
		if stop.Exit() != 0 && errors.Is(err, context.Canceled) {
			err = failure.New(stop.Exit(), "cancelled", "export "+strings.Join(args, " "),
				"it was interrupted; what was not finished is removed", "roost export "+api.ShellWord(said))
		}
	}()
	x := exporter{commands: a, ctx: ctx, flags: f}
	if !f.plain {
		c, err := a.EngineConfig()
		if err != nil {
			return err
		}
		x.options.Mask = redact.New(c.KnownKeys()...)
	}
	return a.Connect(ctx, func(c *client.Client) error {
		if err := x.find(ctx, c, args); err != nil {
			return err
		}
		shown := func() {}
		if ctx := ctx; x.file+x.folder != "" || !a.OutTTY { // else the page itself is on the terminal
			x.ctx, shown = a.Watched(ctx)
		}
		if f.format == "archive" {
			err = x.archive(ctx, c)
		} else {
			err = x.each(ctx, c)
		}
		shown()
		if err != nil {
			return err
		}
		return x.report()
	})
}

// exporter is one invocation of roost export.
type exporter struct {
	*commands
	ctx     context.Context // which shows progress
	flags   exportFlags
	refs    []chosen
	known   []api.Name     // all tasks; the export writes nothing into their folders
	options export.Options // of the index page
	file    string         // the one file to write; "" = stdout, when folder is "" too
	folder  string         // the folder to write into
	done    []exported
	begun   int // tasks handled so far
}

// chosen is a task to export, and the name that the user gave: an id need not be valid text, but the document's id
// is.
type chosen struct {
	api.Summary
	name string
}

// find finds the tasks, each once, and decides where to write.
func (x *exporter) find(ctx context.Context, c *client.Client, ids []string) error {
	all, err := client.Get[api.Names](ctx, c, "/v1/names", nil)
	if err != nil {
		return err
	}
	if x.flags.all {
		tasks, err := app.All[api.Summary](x.Pages(ctx, c, "/v1/tasks", url.Values{}, 0))
		if err == nil && len(tasks) == 0 {
			err = failure.NotFound("task_not_found", "export all tasks", "there is none", "roost list")
		}
		if err != nil {
			return err
		}
		x.refs = append(x.refs, api.Each(tasks, func(t api.Summary) chosen { return chosen{t, t.Key()} })...)
	}
	for _, id := range ids {
		t, err := c.Task(ctx, id)
		if _, is := errors.AsType[*client.Problem](err); is {
			for _, one := range all.Items { // a task that is listed and cannot be read stops no other
				if one.ID == id || one.Source+":"+one.ID == id {
					t.ID, t.Source, err = one.ID, one.Source, nil
				}
			}
		}
		if err != nil {
			return err
		}
		x.refs = append(x.refs, chosen{t, id})
	}
	x.refs = api.Distinct(x.refs, func(t chosen) string { return t.Summary.Key() })
	x.known = all.Items
	return x.aim()
}

func (x *exporter) each(ctx context.Context, c *client.Client) error {
	var pages []export.Page
	names := map[string]bool{}
	for _, t := range x.refs {
		path := x.file
		if x.folder != "" {
			path = x.place(t.Summary, names)
		}
		report, err := x.fetch(ctx, c, t, nil, func(body io.Reader) error {
			if x.flags.format == "roo" {
				return untar(body, path)
			}
			write := func(w io.Writer) error { return x.copy(w, body) }
			if path == "" {
				return x.toStdout(write)
			}
			return export.ToFile(path, write, nil)
		})
		x.begun++
		x.progress(0)
		if p, is := errors.AsType[*client.Problem](err); is && ctx.Err() == nil { // the other tasks are no worse for it
			x.failed(t.ID, t.Source, cmp.Or(p.Detail, p.Title))
			continue
		}
		if err != nil {
			return err
		}
		x.done = append(x.done, x.result(t.ID, t.Source, path, report))
		pages = append(pages, export.Page{File: filepath.Base(path), Task: t.Summary})
	}
	if x.flags.format != "html" || len(x.refs) < 2 || len(pages) == 0 {
		return nil
	}
	path := filepath.Join(x.folder, "index.html")
	return export.ToFile(path, func(w io.Writer) error {
		n, err := export.Index(w, pages, x.options)
		x.done = append(x.done, x.result("", "", path, api.Exported{Masked: n}))
		return err
	}, nil)
}

// copy writes what a server sends, and shows progress.
func (x *exporter) copy(w io.Writer, body io.Reader) error {
	_, err := io.Copy(&app.Counting{W: w, Tell: x.progress}, body)
	return err
}

// fetch reads a task in a form, and the server's report that follows it.
func (x *exporter) fetch(ctx context.Context, c *client.Client, t chosen, also []string,
	into func(io.Reader) error) (report api.Exported, err error) {
	q := url.Values{"format": {x.flags.format}}
	if x.flags.plain {
		q.Set("redact", "false")
	}
	app.SetQuery(q, "also", strings.Join(also, ","))
	resp, err := c.Open(ctx, client.Request{Path: app.PathOf(t.name, "export"), Query: q})
	if err != nil {
		return report, err
	}
	defer resp.Body.Close()
	err = into(resp.Body)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body) // the report comes behind the last byte
	}
	if err != nil {
		return report, fmt.Errorf("export %s: %w", t.ID, err)
	}
	text, err := url.QueryUnescape(resp.Trailer.Get("Roost-Export"))
	if err != nil || json.Unmarshal([]byte(text), &report) != nil {
		return report, &client.Unreachable{Base: c.Base(), Err: errors.New("the export ended early")}
	}
	return report, nil
}

// failed records a task that cannot be read.
func (x *exporter) failed(id, source, why string) {
	e := x.result(id, source, "", api.Exported{})
	e.Failed = why
	x.done = append(x.done, e)
}

// toStdout writes a form for readers to stdout: made safe for a terminal, unchanged for other readers.
func (x *exporter) toStdout(write func(io.Writer) error) error {
	if !x.OutTTY {
		return errors.Join(write(x.Out), x.Flush())
	}
	screen := redact.TerminalText(x.Out)
	if x.flags.format == "json" {
		screen = redact.TerminalJSON(x.Out)
	}
	return errors.Join(write(screen), screen.Close(), x.Flush())
}

func (x *exporter) archive(ctx context.Context, c *client.Client) error {
	path := x.file
	if x.folder != "" {
		path = filepath.Join(x.folder, "roost-tasks.zip")
		if len(x.refs) == 1 {
			path = filepath.Join(x.folder, export.FileName(x.refs[0].ID)+".zip")
		}
	}
	also := api.Each(x.refs[1:], func(t chosen) string { return t.name })
	if x.flags.all {
		also = []string{"*"} // their ids may be too long for a request
	}
	report, err := x.fetch(ctx, c, x.refs[0], also, func(body io.Reader) error {
		write := func(w io.Writer) error { return x.copy(w, body) }
		if path == "" {
			return x.toStdout(write)
		}
		return export.ToFile(path, write, func(f *os.File) error {
			info, err := f.Stat()
			if err == nil {
				_, err = export.VerifyArchive(ctx, f, info.Size())
			}
			return err
		})
	})
	if p, is := errors.AsType[*client.Problem](err); is && len(p.Errors) > 0 && p.Code != "validation_failed" { // nothing was written
		for _, e := range p.Errors {
			source, id, _ := strings.Cut(e.Parameter, ":")
			x.failed(id, source, e.Detail)
		}
		return nil
	}
	if err != nil {
		return err
	}
	for _, f := range report.Failed {
		x.failed(f.ID, f.Source, f.Problem)
	}
	id, source := x.refs[0].ID, x.refs[0].Source
	if len(x.refs) > 1 {
		id, source = "", ""
	}
	x.done = append(x.done, x.result(id, source, path, report))
	return nil
}

func (x *exporter) result(id, source, path string, report api.Exported) exported {
	return exported{ID: id, Source: source, Path: path, Exported: report.Filled()}
}

// report prints the numbers of written files and masked values. It fails if a task was not exported completely.
func (x *exporter) report() error {
	masked, wrote, broken := 0, 0, []exported{}
	for _, e := range x.done {
		masked += e.Masked
		if e.Failed == "" {
			wrote++
		}
		if !e.whole() {
			broken = append(broken, e)
		}
		if e.Path != "" && !x.App.Flags.JSON {
			x.Say("wrote %s", e.Path)
		}
		if e.Failed != "" && len(x.refs) > 1 {
			x.Warn("not exported: " + e.ID + ": " + e.Failed)
		}
		for _, gap := range e.Unread {
			x.Warn(fmt.Sprintf("task %s: message %d of the %s history cannot be read and is left out: %s", e.ID, gap.Number,
				gap.History, gap.Problem))
		}
		for _, name := range e.Skipped {
			x.Warn("left out: " + name)
		}
	}
	readers := x.flags.format != "roo" && x.flags.format != "archive"
	if readers && !x.flags.plain && !x.App.Flags.JSON && wrote > 0 {
		hint := ""
		if masked > 0 {
			hint = "; --no-redact leaves them as they are"
		}
		x.Say("%s masked%s", api.Plural(masked, "secret"), hint)
	}
	if x.App.Flags.JSON && x.file+x.folder != "" {
		if err := x.PrintJSON(map[string]any{"items": x.done, "masked": masked}); err != nil {
			return err
		}
	}
	if len(broken) == 0 {
		return nil
	}
	return x.unwhole(broken)
}

// unwhole returns the failure of an export with incomplete tasks.
func (x *exporter) unwhole(broken []exported) error {
	first := broken[0]
	f := failure.New(failure.ExitDamaged, "damaged", "export "+first.ID+" as a whole",
		"the readable part was written; the task is unchanged", "roost doctor "+api.ShellWord(first.ID))
	if f.Task = first.ID; f.Task == "" {
		f.What, f.Try = "export the tasks as a whole", "roost doctor"
	}
	if len(broken) > 1 {
		f.What = fmt.Sprintf("%d of %d tasks could not be exported as a whole", len(broken), len(x.refs))
	}
	switch {
	case first.Failed != "" && len(x.refs) == 1:
		f.What, f.Why = "export "+first.ID, first.Failed
	case first.Failed != "":
		f.Why = first.ID + ": " + first.Failed + "; " + f.Why
	case len(first.Damaged) > 0:
		f.Why = first.Damaged[0].File + ": " + first.Damaged[0].Problem + "; " + f.Why
	}
	return f
}

// untar writes the files of a folder that a server sent. It takes plain names only: a
// server must not write elsewhere.
func untar(in io.Reader, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	t := tar.NewReader(in)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		if h.Typeflag != tar.TypeReg || h.Name != filepath.Base(h.Name) || !filepath.IsLocal(h.Name) || strings.HasPrefix(h.Name, ".") {
			return fmt.Errorf("the server sent a file that no task has: %q", h.Name)
		}
		if err := export.ToFile(filepath.Join(dir, h.Name), func(w io.Writer) error { //nolint:gosec // the name was checked above
			_, err := io.Copy(w, t) //nolint:gosec // a task is as large as it is
			return err
		}, nil); err != nil {
			return err
		}
	}
}

// aim decides, before it reads anything, where to write: to one file, into a folder, or to stdout.
func (x *exporter) aim() error {
	f, many := x.flags, len(x.refs) > 1
	name, first := "roost export --format "+f.format, api.ShellWord(x.refs[0].ID)
	switch {
	case f.output == "":
		return failure.Usage(name+" -o", "the file name is empty", name+" -o FILE "+first)
	case f.output != "-":
	case f.format == "roo":
		return failure.Usage(name, "it writes a folder", name+" -o DIR "+first)
	case f.format == "archive" && x.OutTTY:
		return failure.Usage(name, "an archive cannot be printed on a terminal", name+" -o tasks.zip "+first)
	case f.format != "archive" && many:
		return failure.Usage(name, "several tasks make several files", name+" -o DIR ID...")
	default:
		return nil
	}
	path := x.Abs(f.output)
	info, err := os.Stat(path)
	isDir := err == nil && info.IsDir()
	wantsDir := f.format == "roo" || many && f.format != "archive" ||
		strings.HasSuffix(f.output, string(filepath.Separator)) || strings.HasSuffix(f.output, "/")
	if err == nil && !isDir && wantsDir {
		return failure.Usage(name+" -o "+f.output, "it is a file, and a folder is needed", name+" -o DIR ID...")
	}
	if err := x.outside(path); err != nil {
		return err
	}
	if !wantsDir && !isDir {
		x.file = path
		return nil
	}
	x.folder = path
	if f.format == "roo" {
		for _, ref := range x.refs {
			if err := x.outside(filepath.Join(path, export.FileName(ref.ID))); err != nil {
				return err
			}
		}
	}
	return os.MkdirAll(path, 0o700)
}

// place chooses the path of a task's file or folder. Two sources may have the same id.
func (x *exporter) place(t api.Summary, taken map[string]bool) string {
	ext := "." + x.flags.format
	if x.flags.format == "roo" {
		ext = ""
	}
	name := nameOf(t, ext, len(x.refs) == 1, func(name string) bool {
		return taken[strings.ToLower(name)] || x.flags.format == "html" && name == "index.html"
	})
	taken[strings.ToLower(name)] = true
	return filepath.Join(x.folder, name)
}

// nameOf returns a name for the file or the folder of an exported task that is not taken. Markdown has the name that
// Roo gives it if the task is exported alone.
func nameOf(t api.Summary, ext string, alone bool, taken func(name string) bool) string {
	name := export.FileName(t.ID)
	if alone && ext == ".md" {
		name = strings.TrimSuffix(export.MarkdownName(t.TS, time.Local), ext)
	}
	full := name + ext
	for n := 2; taken(full); n++ {
		full = name + "~" + strconv.Itoa(n) + ext
	}
	return full
}

// outside refuses a path in the folder of a task: an export must not write to a task.
func (x *exporter) outside(path string) error {
	dir := path
	real, err := filepath.EvalSymlinks(dir)
	for err != nil && dir != filepath.Dir(dir) { // the nearest folder above that exists
		dir = filepath.Dir(dir)
		real, err = filepath.EvalSymlinks(dir)
	}
	above := map[string][]os.FileInfo{}
	for at := real; err == nil; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil {
			above[filepath.Base(at)] = append(above[filepath.Base(at)], info)
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	for _, task := range x.known {
		for _, dir := range []string{task.Path, task.Journal} { // most have their journal in the same folder: "" then
			for _, info := range above[filepath.Base(dir)] {
				if own, err := os.Stat(dir); err == nil && os.SameFile(own, info) {
					return failure.Usage("export to "+path, "it is in the folder of task "+task.ID+", which exporting must not change",
						"roost export ID -o another place")
				}
			}
		}
	}
	return nil
}

// progress shows the progress of an export; bytes are those written.
func (x *exporter) progress(bytes int64) {
	progress.Report(x.ctx, progress.State{What: "exporting", Done: x.begun, Of: len(x.refs), Bytes: bytes})
}
