package web

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/service"
	"github.com/roost-dev/roost/view"
	"github.com/roost-dev/roost/view/markup"
)

// patchBytes bounds the lines of one file's difference, and allPatches those of a page.
const (
	patchBytes = 256 << 10
	allPatches = 4 << 20
	openLines  = 400 // a file with more lines is folded
	turnsMost  = 50  // turns of a page; the oldest are left out
)

// changesData is the data of the page of a task's changes.
type changesData struct {
	Task        api.Summary
	Checkpoints []api.Checkpoint
	ByTurn      bool
	From, To    string
	Parts       []changedPart // all in one, or the turns
	LeftTurns   int           // number of older turns that are left out
	Prompts     int           // number of prompts of the task: scripts compare it to notice a new message
	Message     string        // a suggestion for a commit
	Damaged     string
	Problem     *api.Problem
	room        int // bytes of differences for which the page still has room
}

// changedPart is a difference between two states: of the whole task, of one turn, or of two checkpoints.
type changedPart struct {
	ID       string
	Name     string // of a turn
	Words    string // the beginning of its prompt
	Row      int    // the number of the prompt
	From, To string
	Files    []changedFile
	Added    int
	Removed  int
	Problem  *api.Problem
}

// changedFile is a file with its difference.
type changedFile struct {
	api.FileDiff
	ID    string
	Ref   string // the path for scripts, percent-encoded; the visible path is cleaned
	Hunks []changedHunk
	Patch string // HTML instead of hunks, if there are none
	By    []changedBy
	Notes []string
	Open  bool
	Left  int64 // bytes of the difference that are left out
}

// changedHunk is a hunk with its lines.
type changedHunk struct {
	api.Hunk
	Lines string      // HTML
	By    []changedBy // if the file has several authors
	Whole bool        // the page shows the whole hunk
}

// changedBy is an author with the link to the cause of the change.
type changedBy struct{ Words, Link string }

// Self returns the address of the task.
func (d *changesData) Self() string { return TaskPath(d.Task) }

// at returns the address of a message of the conversation.
func (d *changesData) at(number int) string { return messageLink(d.Self(), api.UI, number, "") }

// Files returns the number of files on the page; a file counts once in each turn.
func (d *changesData) Files() (n int) {
	for _, p := range d.Parts {
		n += len(p.Files)
	}
	return n
}

// Steps returns the checkpoints, each with its difference from the one before.
func (d *changesData) Steps() (out []step) {
	for i, c := range d.Checkpoints {
		from := "0"
		if i > 0 {
			from = d.Checkpoints[i-1].Name()
		}
		if c.Number == 0 {
			continue
		}
		link := address(d.Self()+"/changes", url.Values{"from": {from}, "to": {c.Name()}})
		out = append(out, step{c, link, view.CheckpointReason(c.Reason), d.From == from && d.To == c.Name()})
	}
	return out
}

type step struct {
	api.Checkpoint
	Link string
	Why  string
	Here bool
}

// changes shows the changes of a task: all of them, by turn, or between two checkpoints.
func (w *Web) changes(a *asked) (*page, error) {
	t, err := w.summary(a, a.id)
	if err != nil {
		return nil, err
	}
	q := a.URL.Query()
	d := &changesData{Task: t, From: redact.Terminal(q.Get("from")), To: redact.Terminal(q.Get("to")), room: allPatches}
	d.ByTurn = q.Get("by") == "turn" && d.From == "" && d.To == ""
	p := &page{Kind: "changes", Title: "Changes of " + titleOf(d.Task), Body: changesPage(d)}
	if d.Problem = w.opt.Reader.ReadOnly(); d.Problem != nil {
		return p, nil
	}
	list, err := w.opt.Reader.Checkpoints(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	d.Checkpoints, d.Damaged = list.Checkpoints, list.Damaged
	if len(d.Checkpoints) == 0 {
		return p, nil
	}
	prompts, err := w.opt.Reader.Prompts(a.Context(), a.id)
	if err != nil {
		return nil, err
	}
	d.Prompts = prompts.Total
	if d.ByTurn {
		for _, one := range turnsOf(d, prompts) {
			if err := w.part(a, d, one); err != nil {
				return nil, err
			}
		}
		return p, nil
	}
	if err := w.part(a, d, changedPart{ID: "f", From: cmp.Or(d.From, "0"), To: cmp.Or(d.To, "now")}); err != nil {
		return nil, err
	}
	if d.Problem = d.Parts[0].Problem; d.Problem == nil && d.From == "" && d.To == "" {
		message, err := w.opt.Reader.CommitMessage(a.Context(), a.id)
		if err != nil {
			return nil, err
		}
		d.Message = message.Text
	}
	return p, nil
}

// turnsOf returns the turns that have checkpoints; each begins with a prompt. The changes after the last checkpoint
// are a part of their own.
func turnsOf(d *changesData, prompts api.Prompts) (out []changedPart) {
	row, from := 0, "0"
	for _, c := range d.Checkpoints {
		row = max(row, c.Row) // a rewound checkpoint has no row
		prompt := 0
		for i, one := range prompts.Items {
			if one.Number <= row {
				prompt = i + 1
			}
		}
		name := "Before the prompts that are listed"
		if prompt > 0 {
			name = "Turn " + itoa(prompts.Total-len(prompts.Items)+prompt)
		}
		if n := len(out); n == 0 || out[n-1].Name != name {
			one := changedPart{ID: "t" + itoa(n+1), Name: name, From: from}
			if prompt > 0 {
				one.Words, one.Row = markup.Short(redact.Marked(prompts.Items[prompt-1].Text)), prompts.Items[prompt-1].Number
			}
			out = append(out, one)
		}
		out[len(out)-1].To, from = c.Name(), c.Name()
	}
	if d.LeftTurns = len(out) - turnsMost; d.LeftTurns > 0 {
		out = out[d.LeftTurns:]
	}
	return append(out, changedPart{ID: "since", Name: "Since then", From: from, To: "now"})
}

// part reads the difference of a part and adds it to the page. It leaves out a turn without a difference.
func (w *Web) part(a *asked, d *changesData, p changedPart) error {
	diff, err := w.opt.Reader.Diff(a.Context(), a.id, service.DiffQuery{From: p.From, To: p.To, Patch: true})
	if err != nil {
		if a.Context().Err() != nil || w.opt.Reader.Elsewhere(a.Context(), err) != "" {
			return err
		}
		p.Problem = w.opt.Reader.Problem(a.Context(), err, a.id)
	}
	set := markup.New(markup.Options{Clean: redact.Marked})
	for i, f := range diff.Files {
		one := d.file(set, f, fmt.Sprintf("%s-%d", p.ID, i))
		p.Added += f.Added
		p.Removed += f.Removed
		p.Files = append(p.Files, one)
	}
	if p.From = diff.From; p.Name == "" || len(p.Files) > 0 || p.Problem != nil {
		d.Parts = append(d.Parts, p)
	}
	return nil
}

// file returns a file as the page shows it.
func (d *changesData) file(set *markup.Setter, f api.FileDiff, id string) changedFile {
	one := changedFile{
		FileDiff: f,
		ID:       id,
		Ref:      url.PathEscape(f.Path),
		By:       d.authorsOf(f.Authors),
		Notes:    fileNotes(f),
		Open:     f.Added+f.Removed <= openLines,
	}
	room := min(patchBytes, d.room)
	d.room -= room
	defer func() { d.room += room }()
	parts := strings.Split(f.Patch, "\n@@ ")
	if len(parts)-1 != len(f.Hunks) || len(f.Hunks) == 0 {
		shown := f.Patch[:min(len(f.Patch), room)]
		one.Left = int64(len(f.Patch) - len(shown))
		room -= len(shown)
		if f.Why == "" {
			one.Patch = set.Diff(strings.ToValidUTF8(shown, ""))
		}
		return one
	}
	for i, h := range f.Hunks {
		_, text, _ := strings.Cut(parts[i+1], "\n") // behind its head
		lines, left := set.HunkLines(text, h.From, h.To, &room)
		hunk := changedHunk{Hunk: h, Lines: lines, Whole: left == 0}
		if len(f.Authors) > 1 {
			hunk.By = d.authorsOf(h.Authors)
		}
		one.Left += left
		if lines != "" {
			one.Hunks = append(one.Hunks, hunk)
		}
	}
	return one
}

// authorsMost bounds the authors that a page names.
const authorsMost = 12

func (d *changesData) authorsOf(list []api.Author) (out []changedBy) {
	for _, a := range list[:min(len(list), authorsMost)] {
		one := changedBy{Words: redact.Marked(view.Author(a))}
		switch {
		case a.Row > 0:
			one.Link = messageLink(d.Self(), api.UI, a.Row, "")
		case a.Task != "" && service.ValidName(a.Task):
			one.Link = "/tasks/" + url.PathEscape(a.Task)
		}
		out = append(out, one)
	}
	if n := len(list) - len(out); n > 0 {
		out = append(out, changedBy{Words: fmt.Sprintf("and %d more", n)})
	}
	return out
}

// fileNotes returns notes on differences that lines do not show.
func fileNotes(f api.FileDiff) (out []string) {
	word := map[string]string{api.KindFile: "a file", api.KindLink: "a link", api.KindOther: "no file"}
	switch {
	case f.Why == "binary":
		out = append(out, fmt.Sprintf("Binary: %s before, %s now.", api.SizeText(f.From.Size), api.SizeText(f.To.Size)))
	case f.Why != "":
		out = append(out, "Not compared by lines: "+redact.Marked(f.Why)+".")
	}
	if f.From.Kind == api.KindFile && f.To.Kind == api.KindFile && f.From.Mode != f.To.Mode {
		out = append(out, fmt.Sprintf("Its permissions are %03o, and were %03o.", f.To.Mode, f.From.Mode))
	}
	if f.Change == api.FileChanged && f.From.Kind != f.To.Kind && word[f.From.Kind] != "" && word[f.To.Kind] != "" {
		out = append(out, fmt.Sprintf("It is %s, and was %s.", word[f.To.Kind], word[f.From.Kind]))
	}
	return out
}
