package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/cli/app"
	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/cli/help"
	display "github.com/roost-dev/roost/cli/term"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/view"
	"github.com/roost-dev/roost/workspace"
)

const (
	page = 20 // messages of a preview

	// opened is the number of messages that a terminal gets by default: the last ones, or those before and after a
	// hit. With more, a person who wants to see the end of a long task would wait.
	opened = 500
)

type showFlags struct {
	ui, api, effective, journal, usage, tree, context bool
	branches, all                                     bool
	tail                                              int
	dir, find                                         string
	to                                                int // only messages before this number, 0 = all
	at                                                int // the number of a hit, 0 = none
}

func (a *commands) showCommand() *cobra.Command {
	var f showFlags
	cmd := help.Command("show", func(cmd *cobra.Command, args []string) error {
		if f.dir != "" && !f.context {
			return failure.Usage("roost show -C", "the folder is for a request, so the flag needs --context",
				"roost show "+api.ShellWord(args[0])+" --context -C DIR")
		}
		f.dir = a.GivenFolder(f.dir)
		if err := failure.OneOf(cmd, "at", "before", "tail", "all"); err != nil && (f.at > 0 || f.all) {
			return err
		}
		if err := failure.OneOf(cmd, "ui", "api", "effective", "journal", "usage", "tree", "context", "branches"); err != nil {
			return err
		}
		switch {
		case f.at > 0:
			f.to, f.tail = f.at+opened, 2*opened
		case !f.all && !cmd.Flags().Changed("tail") && a.OutTTY && !a.Flags.JSON:
			f.tail = opened
		}
		return a.Connect(cmd.Context(), func(c *client.Client) error { return a.showTask(cmd.Context(), c, args[0], f) })
	})
	fl := cmd.Flags()
	fl.BoolVar(&f.ui, "ui", false, "the history that the person sees (default)")
	fl.BoolVar(&f.api, "api", false, "the history that the model sees")
	fl.BoolVar(&f.effective, "effective", false, "the messages that would be sent now")
	fl.BoolVar(&f.journal, "journal", false, "the commits of the task's journal")
	fl.BoolVar(&f.usage, "usage", false, "tokens and cost")
	fl.BoolVar(&f.context, "context", false, "what the next request is made of, in tokens, and what is free")
	fl.BoolVar(&f.tree, "tree", false, "the task and its subtasks: states, and what all of them cost")
	fl.BoolVar(&f.branches, "branches", false, "the branches that rewinds left, as a tree")
	app.Checked(fl, "at", "open at message `N`, as #12 or 12, with those around it", messageNumber(&f.at))
	fl.StringVar(&f.find, "find", "", "mark these `words` in the pager; n goes to the next ones")
	fl.BoolVar(&f.all, "all", false, "all messages, also of a very long task")
	app.Number(fl, &f.tail, "tail", 0, 0, 0, "20", "only the last `N` messages (0 = all; on a terminal 500)")
	app.Checked(fl, "before", "only messages before message `N`, as #12 or 12", messageNumber(&f.to))
	fl.StringVarP(&f.dir, "workspace", "C", "", "with --context: the `folder` of the task, when it has moved or is not known")
	return cmd
}

// messageNumber reads the number of a message that a flag names; 0 when it was not given.
func messageNumber(to *int) func(text string) error {
	return func(text string) error {
		n, err := strconv.Atoi(strings.TrimPrefix(text, "#"))
		if text != "" && (err != nil || n < 1) {
			return &failure.ValueError{Why: "want a message's number such as #12", Example: "12"}
		}
		*to = n
		return nil
	}
}

// window returns the range of n messages that the flags select.
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

// header prints the facts about a task in a few lines.
func (a *commands) header(t api.Summary, questions []string) error {
	room := 2 * a.Columns() // the first message shows the full title
	room = cmp.Or(room, 300)
	wrapped := func(s view.Style, text string) {
		for _, line := range app.Wrap(text, a.Columns()) {
			a.Styled(s, line)
		}
	}
	wrapped(view.Head, display.Cut(cmp.Or(display.OneLine(t.Title), "(no title)"), room))
	where := app.SourceLabel(api.SourceState{Name: t.Source, Tool: t.Tool, Path: t.Path})
	facts := []string{t.ID, where, app.Status(t), a.Age(t.TS)}
	if t.Provider+t.Model != "" {
		facts = append(facts, strings.Trim(t.Provider+"/"+t.Model, "/"))
	}
	if t.Mode != "" {
		facts = append(facts, t.Mode)
	}
	if t.Usage.Cost != nil {
		facts = append(facts, a.Dollars(t.Usage.Cost))
	}
	facts = append(facts, app.MessagesText(t.Messages, 0))
	wrapped(view.Dim, display.OneLine(strings.Join(facts, " · ")))
	for _, place := range []string{t.Workspace, t.Path} {
		if place != "" {
			wrapped(view.Dim, a.Folder(place))
		}
	}
	for _, d := range t.Damaged {
		a.Styled(view.Bad, display.OneLine("damaged: "+d.Text()))
	}
	if t.Unreached != "" {
		a.Styled(view.Asked, display.OneLine("no server continues it: "+t.Unreached))
	}
	if r := t.Received; r != nil {
		for _, note := range r.Notes {
			a.Styled(view.Asked, display.OneLine(note))
		}
	}
	for _, text := range questions {
		a.Styled(view.Asked, display.OneLine("open question: "+text))
	}
	fmt.Fprintln(a.Out)
	return a.Flush()
}

// showTask shows a task, or the part that the flags name.
func (a *commands) showTask(ctx context.Context, c *client.Client, id string, f showFlags) error {
	switch {
	case f.tree:
		if a.Flags.JSON {
			return app.DocumentOf(ctx, a.App, c, app.PathOf(id, "tree"), nil, func(api.Branch) {})
		}
		return app.DocumentOf(ctx, a.App, c, app.PathOf(id, "tree"), url.Values{"with": {"names"}}, func(b struct {
			api.Branch
			Names map[string]string
		}) {
			a.drawTree(app.Flat(b.Branch, 0), b.Names)
		})
	case f.context:
		q := url.Values{}
		app.SetQuery(q, "workspace", f.dir)
		return app.DocumentOf(ctx, a.App, c, app.PathOf(id, "context"), q, func(u api.ContextUse) {
			if u.AsIf != nil && u.Unknown != nil {
				a.Warn(fmt.Sprintf("the task's profile %q is not known here; this is as if %s answered "+
					"(roost config set source_profiles.%s NAME names one)",
					u.Unknown.Name, *u.AsIf, u.Unknown.Source))
			}
			a.printContext(u)
		})
	case f.branches:
		return app.DocumentOf(ctx, a.App, c, app.PathOf(id, "branches"), nil, a.printBranches)
	case f.usage:
		return app.DocumentOf(ctx, a.App, c, app.PathOf(id, "usage"), nil, func(u api.Usage) {
			a.Println(fmt.Sprintf("tokens in     %s\ntokens out    %s\ncache writes  %s\ncache reads   %s\ncost          %s",
				app.Count(u.TokensIn), app.Count(u.TokensOut), app.Count(u.CacheWrites), app.Count(u.CacheReads), a.Dollars(u.Cost)))
		})
	case f.journal:
		return a.showJournal(ctx, c, id, f)
	case a.Flags.JSON && (f.ui || f.api || f.effective):
		return a.showElements(ctx, c, id, f)
	case a.Flags.JSON:
		return app.DocumentOf(ctx, a.App, c, app.PathOf(id), nil, func(api.Summary) {})
	}
	return a.open(ctx, c, id, f)
}

// windows requests the part of a numbered list that the flags select, from its beginning, at most `most` items at a
// time. Each request reads the whole task, and each answer has a bound in bytes: the larger most is, the better. get
// makes a request with a query, which q begins, and returns the total number of items and where the answer ended. The
// first request only serves to learn the total: get prints nothing of its answer. windows returns the bounds of the
// selected part.
func windows(f showFlags, most int, q url.Values, get func(q url.Values, first bool) (total int, after *int, err error)) (from, to int, err error) {
	q = maps.Clone(q)
	q.Set("limit", "1")
	total, _, err := get(q, true)
	if err != nil {
		return 0, 0, err
	}
	from, to = window(total, f)
	for at := from; at < to; {
		q.Set("after", strconv.Itoa(at))
		q.Set("limit", strconv.Itoa(min(to-at, most)))
		_, after, err := get(q, false)
		if err != nil {
			return from, to, err
		}
		if after == nil {
			break
		}
		if *after <= at {
			return from, to, errors.New("read the history: the server gave the same messages again")
		}
		at = *after
	}
	return from, to, nil
}

// showElements prints a history byte for byte. It warns of damage, and of messages that differ from the stored ones.
func (a *commands) showElements(ctx context.Context, c *client.Client, id string, f showFlags) error {
	t, err := c.Task(ctx, id)
	if err != nil {
		return err
	}
	a.warnOfDamage(t)
	path, q := app.PathOf(id, "messages"), url.Values{}
	if f.api || f.effective {
		path = app.PathOf(id, "history")
	}
	if f.effective {
		q.Set("view", "effective")
	}
	sep, printed := "[", map[string]bool{}
	_, _, err = windows(f, app.PageMost(c), q, func(q url.Values, first bool) (int, *int, error) {
		doc, err := client.Get[json.RawMessage](ctx, c, path, q)
		if err != nil {
			return 0, nil, err
		}
		w, err := readWindow(doc)
		if err != nil {
			return 0, nil, fmt.Errorf("read the answer of the server %s: %w", c.Base(), err)
		}
		for _, note := range w.Notes {
			if !printed[note] {
				printed[note] = true
				a.Warn(note)
			}
		}
		for raw := range esjson.Array(w.items) {
			if first {
				break
			}
			fmt.Fprint(a.Out, sep)
			_, _ = a.Out.Write(raw) // Flush returns the error
			sep = ",\n"
		}
		return w.Total, w.After, a.Flush()
	})
	if err != nil {
		return err
	}
	if sep == "[" {
		fmt.Fprint(a.Out, sep)
	}
	fmt.Fprintln(a.Out, "]")
	return a.Flush()
}

// elements is a window of a history. Its items keep their bytes: a message may be nested deeper
// than encoding/json reads.
type elements struct {
	items []byte // a JSON array
	Total int
	After *int `json:"next_after"`
	Notes []string
}

func readWindow(doc []byte) (w elements, err error) {
	var rest esjson.Object
	for key, value := range esjson.Members(doc) {
		if key == "items" {
			w.items = value
			continue
		}
		rest.Raw(key, value)
	}
	return w, json.Unmarshal(rest.Bytes(), &w)
}

// warnOfDamage warns of damage to a task whose history is shown without the lines about the task.
func (a *commands) warnOfDamage(t api.Summary) {
	if len(t.Damaged) > 0 {
		a.Warn(fmt.Sprintf("the task is damaged (details: roost doctor %s): %s", api.ShellWord(t.ID), t.Damaged[0].Text()))
	}
}

// showJournal prints the commits of a task's journal.
func (a *commands) showJournal(ctx context.Context, c *client.Client, id string, f showFlags) error {
	all := []api.Commit{}
	_, _, err := windows(f, app.PageMost(c), url.Values{}, func(q url.Values, first bool) (int, *int, error) {
		w, err := client.Get[api.Commits](ctx, c, app.PathOf(id, "journal"), q)
		if !first {
			all = append(all, w.Items...)
		}
		return w.Total, w.After, err
	})
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		return a.PrintJSON(all)
	}
	width := 200
	if a.Flags.Verbose {
		width = 0
	}
	for _, c := range all {
		if c.Damage != "" {
			fmt.Fprintf(a.Out, "%6d damaged: %s\n", c.Seq, c.Damage)
		}
		for _, raw := range c.Events {
			fmt.Fprintf(a.Out, "%6d %3d %s\n", c.Seq, c.Epoch, display.Cut(display.OneLine(string(raw)), width))
		}
	}
	return a.Flush()
}

// showHistory prints messages for people. If f.at names a message, showHistory calls reached after it has printed all
// messages before that one.
func (a *commands) showHistory(ctx context.Context, c *client.Client, id string, f showFlags, reached func()) error {
	t, err := c.Task(ctx, id)
	if err != nil {
		return err
	}
	alone := f.ui || f.api || f.effective // without the lines about the task
	if alone {
		a.warnOfDamage(t)
	}
	q, again := url.Values{}, "roost show "+api.ShellWord(id)
	for name, chosen := range map[string]bool{"api": f.api, "effective": f.effective} {
		if chosen {
			q.Set("view", name)
			again += " --" + name
		}
	}
	if a.Flags.Verbose {
		q.Set("whole", "true")
	}
	printed, total := map[string]bool{}, 0
	from, to, err := windows(f, app.PageMost(c), q, func(q url.Values, first bool) (int, *int, error) {
		w, err := client.Get[api.Lines](ctx, c, app.PathOf(id, "lines"), q)
		if err != nil {
			return 0, nil, err
		}
		if first {
			if !alone {
				err = a.header(t, w.Questions)
			}
			if w.StandIn != "" {
				a.Styled(view.Bad, w.StandIn)
			}
			total = w.Total
			if f.at > total {
				return 0, nil, failure.NotFound("message_not_found", fmt.Sprintf("show message #%d of task %s", f.at, t.ID),
					fmt.Sprintf("this history has %s", api.Plural(total, "message")), "roost show "+api.ShellWord(t.ID))
			}
			if from, _ := window(total, f); from > 0 && a.OutTTY {
				line := fmt.Sprintf("↑ %s above: %s --all, or --before %d", countOf(from, "message"), again, from+1)
				a.Styled(view.Dim, line)
				fmt.Fprintln(a.Out)
			}
			return w.Total, nil, err
		}
		for _, note := range w.Notes {
			if !printed[note] {
				printed[note] = true
				a.Say("%s", note)
			}
		}
		for _, m := range w.Items {
			if m.Number == f.at {
				if reached != nil {
					reached()
				}
				if len(m.Lines) > 0 {
					m.Lines[0].Text = "▶ " + m.Lines[0].Text
				}
			}
			a.printMessage(m.Lines)
		}
		return w.Total, w.After, a.Flush()
	})
	if err != nil {
		return err
	}
	if from == to {
		a.Say("no messages")
	}
	if to < total && a.OutTTY {
		a.Styled(view.Dim, fmt.Sprintf("↓ %s below", countOf(total-to, "message")))
	}
	if err := a.Flush(); err != nil || from == 0 || a.OutTTY && a.Pager() != "" {
		return err
	}
	again += fmt.Sprintf(" --before %d", from+1)
	if f.tail > 0 && f.at == 0 {
		again += fmt.Sprintf(" --tail %d", f.tail)
	}
	a.Say("%d earlier: %s", from, again)
	return nil
}

// countOf writes a number of things, with its thousands separated.
func countOf(n int, what string) string {
	return strings.Replace(api.Plural(n, what), strconv.Itoa(n), app.Count(int64(n)), 1)
}

// drawTree prints a family.
func (a *commands) drawTree(f api.Family, names map[string]string) {
	width, all := a.Columns(), api.CostsBelow(f.Tasks, f.Depths)
	for i, t := range f.Tasks {
		facts := []string{display.OneLine(names[t.Key()]), app.Status(t)}
		if t.Mode != "" {
			facts = append(facts, display.OneLine(t.Mode))
		}
		if t.Usage.Cost != nil {
			facts = append(facts, a.Dollars(t.Usage.Cost))
		}
		if all[i] != nil {
			facts = append(facts, a.Dollars(all[i])+" with its subtasks")
		}
		title := cmp.Or(display.Cut(display.OneLine(t.Title), 60), "(no words yet)")
		line := app.Lead(f.Depths, i) + strings.Join(facts, " · ") + "  " + title
		a.Styled(app.StyleOf(t), display.Cut(line, width))
	}
}

// printBranches draws the tree of a task's branches.
func (a *commands) printBranches(tree api.BranchTree) {
	lines := a.branchesBelow(tree.Items, "", 0)
	if f := tree.Forked; f != nil {
		origin := fmt.Sprintf("forked from %s at #%d of %s", display.OneLine(f.Source+":"+f.ID), f.At, f.Branch)
		lines = append([]string{origin}, lines...)
	}
	if len(tree.Items) > 1 {
		a.Say("go on with one: roost resume ID --branch NAME; a new task from one: roost fork ID --branch NAME")
	}
	a.Println(lines...)
}

// branchesBelow renders the branches that leave a branch and, indented, those that leave them.
func (a *commands) branchesBelow(all []api.BranchRow, parent string, depth int) (lines []string) {
	for _, b := range all {
		if b.Parent != parent {
			continue
		}
		line := strings.Repeat("  ", depth) + display.OneLine(b.Name) + "  " + app.MessagesText(b.All, 0)
		if b.Parent != "" {
			line += fmt.Sprintf("; leaves %s behind #%d, %d of its own", b.Parent, b.From, b.Apart.UI)
			if b.First != nil {
				line += ", from " + app.RowText(*b.First)
			}
			line += "; left by " + leftBy(b)
			if b.Left != nil {
				line += " " + a.When(b.Left)
			}
		} else if b.Last != nil {
			line += "; at " + app.RowText(*b.Last)
		}
		lines = append(append(lines, line), a.branchesBelow(all, b.Name, depth+1)...)
	}
	return lines
}

func leftBy(b api.BranchRow) string {
	text := cmp.Or(map[string]string{"remove": "a deleted message", "branch": "going to another branch", "edit": "an edit"}[b.Why],
		"a "+display.OneLine(b.Why))
	if b.By != "" {
		text += " in " + display.OneLine(b.By)
	}
	return text
}

var partWords = map[string]string{
	"system": "the system prompt", "tools": "the tools' descriptions", "summary": "the summary", "history": "the conversation",
	"results": "results of tools", "files": "files that were read", "images": "images",
}

func (a *commands) printContext(c api.ContextUse) {
	whole := c.Used
	if c.Window != nil {
		whole = max(*c.Window, c.Used)
	}
	how := "estimated"
	if c.Counted {
		how = "as the provider counts"
	}
	lines := []string{fmt.Sprintf("%s: the next request has about %d tokens (%s), %d messages", display.OneLine(c.Model), c.Used,
		how, c.Messages)}
	row := func(name string, tokens int64) {
		share := float64(tokens) / float64(max(whole, 1))
		lines = append(lines, fmt.Sprintf("  %-24s %9d  %5.1f %%  %s", name, tokens, share*100, strings.Repeat("#", int(share*40+0.5))))
	}
	for _, p := range c.Parts {
		if p.Tokens > 0 {
			row(partWords[p.Name], p.Tokens)
		}
	}
	if c.Window == nil {
		lines = append(lines, "  the model's window is not known")
	} else {
		row("kept for the reply", *c.Reply)
		row("free", *c.Free)
	}
	a.Println(lines...)
}

func (a *commands) filesCommand() *cobra.Command {
	var dir, path string
	var check bool
	cmd := help.Command("files", a.Connected(func(ctx context.Context, c *client.Client, args []string) error {
		return a.files(ctx, c, args[0], dir, path, check)
	}))
	fl := cmd.Flags()
	fl.BoolVar(&check, "check", false, "exit with 15 when a file is changed or missing, and name it")
	fl.StringVar(&path, "path", "", "all that this task ever recorded of one `file`, rewound or not, and the checkpoints that hold it")
	fl.StringVarP(&dir, "workspace", "C", "", "the `folder` to look in (default: the task's workspace)")
	return cmd
}

func (a *commands) files(ctx context.Context, c *client.Client, id, dir, path string, check bool) error {
	q := url.Values{}
	app.SetQuery(q, "workspace", a.GivenFolder(dir))
	app.SetQuery(q, "path", path)
	known := func() (api.KnownFiles, json.RawMessage, error) {
		return app.Asked[api.KnownFiles](ctx, c, client.Request{Path: app.PathOf(id, "files"), Query: q})
	}
	got, doc, err := known()
	if p, is := errors.AsType[*client.Problem](err); is && p.Code == "file_not_known" && !filepath.IsAbs(path) {
		q.Set("path", a.Abs(path)) // a path from the current folder, and not from the workspace
		if again, raw, failed := known(); failed == nil {
			got, doc, err = again, raw, nil
		}
	}
	if err != nil {
		return err
	}
	if a.Flags.JSON {
		a.PrintRaw(doc)
	} else {
		a.printFiles(got.Task, got.Items)
	}
	if err := a.Flush(); err != nil || !check {
		return err
	}
	return staleFailure(got.Task, got.Items)
}

// staleFailure names the files that differ from what the model knows; nil when none does.
func staleFailure(id string, items []api.KnownFile) error {
	stale := api.Some(items, func(item api.KnownFile) (string, bool) {
		return display.OneLine(item.Path) + " (" + item.State + ")", item.State != string(workspace.Unchanged)
	})
	if len(stale) == 0 {
		return nil
	}
	slices.Sort(stale)
	names := strings.Join(stale[:min(len(stale), 20)], ", ")
	if len(stale) > 20 {
		names += fmt.Sprintf(" and %d more", len(stale)-20)
	}
	return &failure.Failure{Exit: failure.ExitDamaged, Code: "stale_files", Task: id,
		What: fmt.Sprintf("%d of %d files are not as the model of task %s knows them", len(stale), len(items), id),
		Why:  names, Try: "roost resume " + api.ShellWord(id)}
}

// howKnown maps sources to names for people.
var howKnown = map[string]string{
	"read_tool":      "read",
	"file_mentioned": "mentioned",
	"roo_edited":     "edited by the agent",
	"user_edited":    "changed by others",
}

func (a *commands) printFiles(id string, items []api.KnownFile) {
	style, width, counts := a.OutStyle(), 0, map[string]int{}
	var lines []string
	for _, f := range items {
		width = max(width, display.Columns(display.OneLine(f.Path)))
	}
	width = min(width, 60)
	for _, f := range items {
		counts[f.State]++
		state := fmt.Sprintf("%-7s", f.State)
		if f.State != string(workspace.Unchanged) {
			state = style.Paint(view.Bad, state)
		}
		line := state + "  " + display.Pad(display.OneLine(f.Path), width) + "  " + a.knownText(f.Source, f.By, f.Task, f.TS)
		if len(f.Inferred) > 0 {
			line += " (judged by its time)"
		}
		lines = append(lines, line)
		for _, k := range f.History {
			size, hash := "", ""
			if k.Hash != nil {
				size, hash = fmt.Sprintf("  %d bytes", *k.Size), "  "+display.OneLine((*k.Hash)[:min(12, len(*k.Hash))])
			}
			text := a.knownText(k.Source, k.By, k.Task, 0)
			if k.Checkpoint > 0 {
				text = fmt.Sprintf("in checkpoint c%d (%s)", k.Checkpoint, display.OneLine(k.Reason))
			}
			if k.Rewound {
				text += " [rewound]"
			}
			lines = append(lines, "  "+a.When(k.At)+"  "+text+size+hash)
		}
	}
	if len(items) == 0 {
		a.Say("the model of task %s knows no files", id)
		return
	}
	a.Painted(lines)
	a.Say("%s: %d fresh, %d changed, %d missing", api.Plural(len(items), "file"), counts["fresh"], counts["changed"],
		counts["missing"])
}

func (a *commands) knownText(source string, by *string, task string, ts int64) string {
	text := cmp.Or(howKnown[source], display.OneLine(source))
	other := by != nil && (*by == "command" || *by == "subtask")
	switch {
	case source != "user_edited" || by == nil:
	case other:
		text = "changed while a " + *by + " ran"
	case *by == "restore":
		text = "put back by a restore"
	case task != "":
		text = "changed by task " + display.OneLine(task)
	}
	if ts > 0 {
		text += " " + a.Age(ts)
	}
	if source != "user_edited" && other {
		text += ", last changed while a " + *by + " ran"
	}
	return text
}
