package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/contextwindow"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/journal"
	"github.com/roost-dev/roost/store"
	"github.com/roost-dev/roost/task"
	"github.com/roost-dev/roost/view"
)

// page is how many messages a terminal gets when nothing else was asked for, and
// bodyLines how many lines of each tool output.
const (
	page      = 20
	bodyLines = 12
)

type showFlags struct {
	ui, api, effective, journal, usage bool
	tail                               int
	before                             string
	to                                 int // what before says, 0 = all
}

func (a *App) showCommand() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a task",
		Long: "Show a task: its messages with their numbers, tool calls and results.\n\n" +
			"With --json it is the task as in `list`; with --ui or --api and --json the\n" +
			"history, each element exactly as it is stored.",
		Args: count(1, 1, "roost show ID"), ValidArgsFunction: first(a.taskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.tail < 0 {
				return usage("roost show --tail", "a number of messages cannot be negative", "roost show "+args[0]+" --tail 20")
			}
			var err error
			if f.to, err = beforeNumber(f.before); err != nil {
				return err
			}
			if err := oneOf(cmd, "ui", "api", "effective", "journal", "usage"); err != nil {
				return err
			}
			if !cmd.Flags().Changed("tail") && a.OutTTY && !a.flags.json {
				f.tail = page
			}
			s, err := a.open()
			if err != nil {
				return err
			}
			ref, err := s.Find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			v, err := s.Read(cmd.Context(), ref)
			if err != nil {
				return err
			}
			return errors.Join(a.show(cmd.Context(), v, f), v.Close())
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.ui, "ui", false, "the history that the person sees (default)")
	fl.BoolVar(&f.api, "api", false, "the history that the model sees")
	fl.BoolVar(&f.effective, "effective", false, "the messages that would be sent now")
	fl.BoolVar(&f.journal, "journal", false, "the commits of the task's journal")
	fl.BoolVar(&f.usage, "usage", false, "tokens and cost")
	fl.IntVar(&f.tail, "tail", 0, "only the last `N` messages (0 = all; on a terminal 20)")
	fl.StringVar(&f.before, "before", "", "only what stands before message `N`, as #12 or 12")
	complete(cmd, "tail", cobra.NoFileCompletions)
	complete(cmd, "before", cobra.NoFileCompletions)
	return cmd
}

func (a *App) show(ctx context.Context, v *store.View, f showFlags) error {
	switch {
	case f.journal:
		return a.showJournal(ctx, v, f)
	case f.usage:
		return a.showUsage(v)
	case f.api:
		return a.showHistory(v, v.State.API(), f, view.API)
	case f.effective:
		sent, err := a.effective(v)
		if err != nil {
			return err
		}
		from, to := window(len(sent), f)
		return a.printHistory(v, sent[from:to], nil, from, f, view.API)
	case f.ui:
		return a.showHistory(v, v.State.UI(), f, view.UI)
	case a.flags.json:
		return encode(a.Out, v.Summary, false)
	}
	if err := a.header(v); err != nil {
		return err
	}
	return a.showHistory(v, v.State.UI(), f, view.UI)
}

// effective is what would be sent of the model's history: hidden messages left
// out and what no provider would take mended, by the code that builds requests.
// What was mended is told on stderr.
func (a *App) effective(v *store.View) ([]json.RawMessage, error) {
	stored, err := v.State.RawAPI()
	if err != nil {
		return nil, fmt.Errorf("read the history of task %s: %w", v.Ref.ID, err)
	}
	messages, notes, err := contextwindow.Build(stored, contextwindow.Options{
		DropThinking: v.State.Settings.Provider != "" && v.State.Settings.Provider != "anthropic",
	})
	if errors.Is(err, contextwindow.ErrEmpty) {
		a.say("nothing would be sent: the model's history holds no message")
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("build the request of task %s: %w", v.Ref.ID, err)
	}
	out := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		var o esjson.Object
		o.String("role", m.Role)
		o.Raw("content", m.Content)
		out[i] = o.Bytes()
	}
	for _, n := range notes {
		if n.Index < 0 {
			a.say("%s", n.Text)
			continue
		}
		a.say("stored message %d: %s", n.Index+1, n.Text)
	}
	return out, nil
}

// showHistory reads and prints a window of a history. Only what is shown is read.
func (a *App) showHistory(v *store.View, list []*task.Message, f showFlags, item func([]byte, int) view.Item) error {
	from, to := window(len(list), f)
	raws, err := v.State.Raws(list[from:to])
	if err != nil {
		return fmt.Errorf("read the history of task %s: %w", v.Ref.ID, err)
	}
	return a.printHistory(v, raws, list[from:to], from, f, item)
}

// printHistory prints messages: as JSON exactly the stored bytes, for people as
// lines. messages are those the bytes belong to, nil when they belong to none.
func (a *App) printHistory(v *store.View, raws []json.RawMessage, messages []*task.Message, from int, f showFlags, item func([]byte, int) view.Item) error {
	out := bufio.NewWriter(a.Out)
	if a.flags.json {
		writeArray(out, raws)
		return flushed(out)
	}
	style := a.outStyle()
	results := resultsByRow(v.State)
	for i, raw := range raws {
		it := item(raw, from+i+1)
		lines := view.Lines(it, a.lines(it.Class))
		if !f.api && messages != nil {
			if c := results[messages[i].ID]; c != nil {
				lines = append(lines, a.resultLines(c)...)
			}
		}
		for _, l := range lines {
			fmt.Fprintln(out, style.Paint(l.Style, display.Safe(l.Text)))
		}
	}
	if from > 0 {
		a.say("%d earlier: roost show %s --before %d", from, v.Ref.ID, from+1)
	}
	return flushed(out)
}

// lines is how many lines of a body are shown: words whole, output cut.
func (a *App) lines(c view.Class) int {
	if a.flags.verbose {
		return 0
	}
	switch c {
	case view.User, view.Model, view.Result, view.Question, view.Failure:
		return 0
	}
	return bodyLines
}

// resultsByRow finds the calls whose results belong below a row.
func resultsByRow(s *task.State) map[uint64]*task.Call {
	out := map[uint64]*task.Call{}
	for _, c := range s.Calls() {
		if c.UI != 0 && c.Finished != nil {
			out[c.UI] = c
		}
	}
	return out
}

func (a *App) resultLines(c *task.Call) []view.Line {
	result, err := c.Result()
	if err != nil {
		return []view.Line{{Style: view.Bad, Text: "  its result cannot be read: " + err.Error()}}
	}
	text, images := view.ResultText(result)
	it := view.Item{Class: view.Output, Title: c.Finished.Outcome, Body: text, Images: images}
	if c.Finished.Outcome != "ok" {
		it.Class = view.Failure
	}
	if c.Finished.Exit != nil {
		it.Title += fmt.Sprintf(", exit %d", *c.Finished.Exit)
	}
	lines := view.Lines(it, a.lines(view.Output))
	for i := range lines {
		lines[i].Text = "  " + lines[i].Text
	}
	return lines
}

// beforeNumber reads --before; 0 when it was not given.
func beforeNumber(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(strings.TrimPrefix(text, "#"))
	if err != nil || n < 1 {
		return 0, usage("roost show --before "+text, "want a message's number such as #12", "roost show ID --before 12")
	}
	return n, nil
}

// window is the part of n messages that the flags ask for.
func window(n int, f showFlags) (from, to int) {
	to = n
	if f.to > 0 {
		to = min(n, f.to-1)
	}
	if f.tail > 0 {
		from = max(0, to-f.tail)
	}
	return from, to
}

// writeArray writes elements byte for byte, one a line. They were never decoded:
// decoding would lose their spelling.
func writeArray(w io.Writer, raws []json.RawMessage) {
	fmt.Fprint(w, "[")
	for i, raw := range raws {
		if i > 0 {
			fmt.Fprint(w, ",\n")
		}
		w.Write(raw) //nolint:errcheck // a bufio.Writer keeps the error for Flush
	}
	fmt.Fprintln(w, "]")
}

func flushed(w *bufio.Writer) error {
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the task: %w", err)
	}
	return nil
}

// header is the task in a few lines.
func (a *App) header(v *store.View) error {
	t, style := v.Summary, a.outStyle()
	out := bufio.NewWriter(a.Out)
	fmt.Fprintln(out, style.Paint(view.Head, display.OneLine(t.Title)))
	facts := []string{t.ID, t.Source, status(t), a.age(t.TS)}
	if t.Provider+t.Model != "" {
		facts = append(facts, strings.Trim(t.Provider+"/"+t.Model, "/"))
	}
	if t.Mode != "" {
		facts = append(facts, t.Mode)
	}
	if t.Usage.Cost != nil {
		facts = append(facts, "$"+t.Usage.Cost.String())
	}
	facts = append(facts, fmt.Sprintf("%d messages, %d for the model", t.Messages.UI, t.Messages.API))
	fmt.Fprintln(out, style.Paint(view.Dim, display.OneLine(strings.Join(facts, " · "))))
	for _, place := range []string{t.Workspace, t.Path} {
		if place != "" {
			fmt.Fprintln(out, style.Paint(view.Dim, display.OneLine(place)))
		}
	}
	for _, d := range t.Damaged {
		fmt.Fprintln(out, style.Paint(view.Bad, display.OneLine(fmt.Sprintf("damaged: %s: %s; recovered: %s", d.File, d.Problem, d.Recovered))))
	}
	for _, q := range v.State.Questions {
		fmt.Fprintln(out, style.Paint(view.Asked, display.OneLine("open question: "+q.Text)))
	}
	fmt.Fprintln(out)
	return flushed(out)
}

// commit is a journal line as --json shows it.
type commit struct {
	Seq    uint64          `json:"seq"`
	Epoch  uint64          `json:"epoch"`
	At     int64           `json:"at"`
	By     string          `json:"by,omitempty"`
	Events []journal.Event `json:"events,omitempty"`
	Damage string          `json:"damage,omitempty"`
}

func (a *App) showJournal(ctx context.Context, v *store.View, f showFlags) error {
	if v.Log == nil {
		return &Failure{Exit: ExitNotFound, Code: "no_journal", Task: v.Ref.ID, What: "show the journal of task " + v.Ref.ID,
			Why: "it has none yet: no program with a journal has changed it", Try: "roost show " + v.Ref.ID + " --ui"}
	}
	var all []commit
	for c, err := range v.Log.Read(ctx, 1) {
		var lost *journal.DamageError
		switch {
		case errors.As(err, &lost):
			all = append(all, commit{Seq: lost.Seq, Damage: lost.Reason})
		case err != nil:
			return fmt.Errorf("read the journal of task %s: %w", v.Ref.ID, err)
		default:
			all = append(all, commit{Seq: c.Seq, Epoch: c.Epoch, At: c.At, By: c.By, Events: c.Events})
		}
	}
	from, to := window(len(all), f)
	out := bufio.NewWriter(a.Out)
	if a.flags.json {
		if err := encode(out, append([]commit{}, all[from:to]...), false); err != nil {
			return err
		}
		return flushed(out)
	}
	for _, c := range all[from:to] {
		if c.Damage != "" {
			fmt.Fprintf(out, "%6d damaged: %s\n", c.Seq, c.Damage)
		}
		for _, raw := range c.Events {
			fmt.Fprintf(out, "%6d %3d %s\n", c.Seq, c.Epoch, display.Cut(display.OneLine(string(raw)), 200))
		}
	}
	return flushed(out)
}

func (a *App) showUsage(v *store.View) error {
	u := v.Summary.Usage
	if a.flags.json {
		return encode(a.Out, u, false)
	}
	cost := "unknown"
	if u.Cost != nil {
		cost = "$" + u.Cost.String()
	}
	_, err := fmt.Fprintf(a.Out, "tokens in     %d\ntokens out    %d\ncache writes  %d\ncache reads   %d\ncost          %s\n",
		u.TokensIn, u.TokensOut, u.CacheWrites, u.CacheReads, cost)
	if err != nil {
		return fmt.Errorf("print the usage: %w", err)
	}
	return nil
}
