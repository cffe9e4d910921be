package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/engine"
	"github.com/roost-dev/roost/export"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/store"
)

var exportFormats = []string{"md", "html", "json", "roo", "archive"}

type exportFlags struct {
	format, output string
	plain          bool // secrets stay
}

// exported is what came of one task, or of an archive, as --json shows it.
type exported struct {
	ID      string         `json:"id"`
	Source  string         `json:"source"`
	Path    string         `json:"path"`
	Masked  int            `json:"masked"`
	Damaged []store.Damage `json:"damaged"`
	Unread  []export.Gap   `json:"unread"`
	Skipped []string       `json:"skipped"`
	Failed  string         `json:"failed,omitempty"` // why nothing was written
}

func (e exported) whole() bool {
	return len(e.Damaged)+len(e.Unread)+len(e.Skipped) == 0 && e.Failed == ""
}

func (a *App) exportCommand() *cobra.Command {
	f := exportFlags{output: "-"}
	cmd := &cobra.Command{
		Use:   "export ID...",
		Short: "Write tasks as Markdown, HTML, JSON, a Roo folder or an archive",
		Long: "Write tasks for other programs and for people. Nothing of the tasks changes.\n\n" +
			"md, html and json are for reading: secrets in them are masked, and how many is\n" +
			"said on stderr. roo writes DIR/<id>/ with the files that Roo Code opens; archive\n" +
			"holds everything, with checksums. These two are exact.",
		Args: count(1, -1, "roost export ID --format html -o task.html"), ValidArgsFunction: a.taskIDs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.export(cmd.Context(), args, f) },
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.format, "format", "f", "md", "`form`: "+strings.Join(exportFormats, ", "))
	fl.StringVarP(&f.output, "output", "o", "-", "`file` or folder to write; - is stdout")
	fl.BoolVar(&f.plain, "no-redact", false, "leave secrets as they are")
	complete(cmd, "format", words(exportFormats...))
	return cmd
}

func (a *App) export(ctx context.Context, args []string, f exportFlags) (err error) {
	// An export makes much garbage beside a task that stays in memory as a whole. To
	// collect it sooner costs no time that can be measured, and saves a third of the memory.
	defer debug.SetGCPercent(debug.SetGCPercent(30))
	ctx, interrupted := untilSignal(ctx)
	defer func() {
		if code := interrupted(); code != 0 && errors.Is(err, context.Canceled) {
			err = &Failure{Exit: code, Code: "cancelled", What: "export " + strings.Join(args, " "), Why: "it was interrupted; what was not finished is removed", Try: "roost export " + args[0]}
		}
	}()
	if !slices.Contains(exportFormats, f.format) {
		return usage("roost export --format "+f.format, "there is no such form", "roost export "+args[0]+" --format "+strings.Join(exportFormats, "|"))
	}
	if done, err := a.remotely(func(c *client.Client) error { return a.farExport(ctx, c, args, f) }); done {
		return err
	}
	s, err := a.open()
	if err != nil {
		return err
	}
	var refs []store.Ref
	for _, arg := range args {
		ref, err := s.Find(ctx, arg)
		if err != nil {
			return err
		}
		if !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	x := exporter{App: a, store: s, known: s.Refs, flags: f, refs: refs}
	if err := x.aim(ctx); err != nil {
		return err
	}
	if !f.plain {
		c, err := a.engineConfig()
		if err != nil {
			return err
		}
		x.options.Mask = redact.New(secretsOf(c)...)
	}
	shown := func() {}
	if x.file+x.folder != "" || !a.OutTTY { // else the page itself is on the terminal
		ctx, shown = a.watched(ctx)
	}
	if f.format == "archive" {
		err = x.archive(ctx)
	} else {
		err = x.each(ctx)
	}
	shown()
	if err != nil {
		return err
	}
	return x.tell()
}

// secretsOf are the keys that exports for readers mask.
func secretsOf(c engine.Config) (known []redact.Known) {
	for name, key := range c.Keys {
		known = append(known, redact.Known{Kind: name + "-key", Value: key})
	}
	return known
}

// exporter is one invocation of export.
type exporter struct {
	*App
	store   *store.Store
	known   func(context.Context) ([]store.Ref, error) // all tasks, whose folders are not written into
	flags   exportFlags
	refs    []store.Ref
	options export.Options
	file    string // the one file to write; "" = stdout, when folder is "" too
	folder  string // the folder to write into
	done    []exported
	begun   int // tasks that were gone through
}

// masks reports whether the form is one for readers.
func (x *exporter) masks() bool { return x.flags.format != "roo" && x.flags.format != "archive" }

func (x *exporter) each(ctx context.Context) error {
	var pages []export.Page
	names := map[string]bool{}
	for _, ref := range x.refs {
		v, err := x.store.Read(ctx, ref)
		if err != nil {
			if err := x.failed(ctx, ref, err); err != nil {
				return err
			}
			continue
		}
		path := x.file
		if x.folder != "" {
			path = x.place(v.Ref.ID, v.Summary.TS, names)
		}
		if err := x.one(ctx, v, path); err != nil {
			v.Close()
			return err
		}
		if err := v.Close(); err != nil {
			return fmt.Errorf("close task %s: %w", ref.ID, err)
		}
		pages = append(pages, export.Page{File: base(path), Task: v.Summary})
	}
	if x.flags.format != "html" || len(x.refs) < 2 || len(pages) == 0 {
		return nil
	}
	path := join(x.folder, "index.html")
	return export.ToFile(path, func(w io.Writer) error {
		n, err := export.Index(w, pages, x.options)
		x.done = append(x.done, x.result(nil, path, export.Report{Masked: n}))
		return err
	}, nil)
}

// failed notes a task that cannot be read; the others are no worse for it. It gives an error when
// that is no fault of the task.
func (x *exporter) failed(ctx context.Context, ref store.Ref, err error) error {
	if ctx.Err() != nil {
		return err
	}
	e := x.result(nil, "", export.Report{})
	e.ID, e.Source, e.Failed = ref.ID, ref.Source, err.Error()
	x.done = append(x.done, e)
	x.begun++
	x.progress(ctx, 0)
	return nil
}

// one writes one task.
func (x *exporter) one(ctx context.Context, v *store.View, path string) error {
	var r export.Report
	write := func(w io.Writer) (err error) {
		w = &counting{w: w, tell: func(n int64) { x.progress(ctx, n) }}
		switch x.flags.format {
		case "html":
			r, err = export.HTML(ctx, w, v, x.options)
		case "json":
			r, err = export.JSON(ctx, w, v, x.options)
		default:
			r, err = export.Markdown(ctx, w, v, x.options)
		}
		return err
	}
	var err error
	switch {
	case x.flags.format == "roo":
		r, err = export.Folder(ctx, path, v)
	case path == "":
		err = x.toStdout(write)
	default:
		err = export.ToFile(path, write, nil)
	}
	x.done = append(x.done, x.result(v, path, r))
	x.begun++
	x.progress(ctx, 0)
	return err
}

// toStdout writes a form for readers to stdout. Nothing in it acts on a terminal; elsewhere its
// bytes are exact.
func (x *exporter) toStdout(write func(io.Writer) error) error {
	if !x.OutTTY {
		return write(x.Out)
	}
	screen := redact.TerminalText(x.Out)
	if x.flags.format == "json" {
		screen = redact.TerminalJSON(x.Out)
	}
	return errors.Join(write(screen), screen.Close())
}

// errNothing keeps an archive without a task from being written.
var errNothing = errors.New("none of the tasks can be read")

func (x *exporter) archive(ctx context.Context) error {
	var r export.Report
	var damaged []store.Damage
	written := 0
	write := func(w io.Writer) (err error) {
		w = &counting{w: w, tell: func(n int64) { x.progress(ctx, n) }}
		r, err = export.Archive(ctx, w, func(yield func(*store.View, error) bool) {
			for _, ref := range x.refs {
				v, err := x.store.Read(ctx, ref)
				if err != nil {
					if err = x.failed(ctx, ref, err); err != nil {
						yield(nil, err)
						return
					}
					continue
				}
				written++
				damaged = append(damaged, v.Summary.Damaged...)
				more := yield(v, nil)
				x.begun++
				v.Close()
				if !more {
					return
				}
			}
		})
		if err == nil && written == 0 {
			return errNothing
		}
		return err
	}
	path, err := x.file, error(nil)
	if x.folder != "" {
		path = join(x.folder, archiveName(x.refs))
	}
	if path == "" {
		err = write(x.Out)
	} else {
		err = export.ToFile(path, write, func(f *os.File) error {
			info, err := f.Stat()
			if err == nil {
				_, err = export.VerifyArchive(ctx, f, info.Size())
			}
			return err
		})
	}
	if errors.Is(err, errNothing) {
		return nil // what failed says why
	}
	one := x.result(nil, path, r)
	one.Damaged = append(one.Damaged, damaged...)
	if len(x.refs) == 1 {
		one.ID, one.Source = x.refs[0].ID, x.refs[0].Source
	}
	x.done = append(x.done, one)
	return err
}

func (x *exporter) result(v *store.View, path string, r export.Report) exported {
	e := exported{Path: path, Masked: r.Masked, Damaged: []store.Damage{}, Unread: append([]export.Gap{}, r.Unread...), Skipped: append([]string{}, r.Skipped...)}
	if v != nil {
		e.ID, e.Source, e.Damaged = v.Ref.ID, v.Ref.Source, append(e.Damaged, v.Summary.Damaged...)
	}
	return e
}

// tell says what was written and masked, and fails when something was not whole.
func (x *exporter) tell() error {
	masked, wrote, broken := 0, 0, []exported{}
	for _, e := range x.done {
		masked += e.Masked
		if e.Failed == "" {
			wrote++
		}
		if !e.whole() {
			broken = append(broken, e)
		}
		if e.Path != "" && !x.App.flags.json {
			x.say("wrote %s", e.Path)
		}
		if e.Failed != "" && len(x.refs) > 1 {
			x.warn("not exported: " + e.Failed)
		}
		for _, gap := range e.Unread {
			x.warn(fmt.Sprintf("task %s: message %d of the %s history cannot be read and is left out: %s", e.ID, gap.Number, gap.History, gap.Problem))
		}
		for _, name := range e.Skipped {
			x.warn("left out: " + name)
		}
	}
	if x.masks() && !x.flags.plain && !x.App.flags.json && wrote > 0 {
		hint := ""
		if masked > 0 {
			hint = "; --no-redact leaves them as they are"
		}
		x.say("%d secret%s masked%s", masked, plural(masked), hint)
	}
	if x.App.flags.json && x.file+x.folder != "" {
		if err := encode(x.Out, map[string]any{"items": x.done, "masked": masked}, false); err != nil {
			return err
		}
	}
	if len(broken) == 0 {
		return nil
	}
	return x.unwhole(broken)
}

// unwhole is the failure of an export of which something is not whole.
func (x *exporter) unwhole(broken []exported) error {
	first := broken[0]
	f := &Failure{Exit: ExitDamaged, Code: "damaged", Task: first.ID, What: "export " + first.ID + " as a whole", Try: "roost doctor " + first.ID,
		Why: "what is there was written; nothing was changed"}
	if f.Task == "" {
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
