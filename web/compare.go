package web

import (
	"net/url"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/redact"
	"github.com/roost-dev/roost/view/markup"
)

// compareData is the data of the page that compares two tasks, or two branches of one task.
type compareData struct {
	Task    api.Summary
	With    string
	Found   api.Comparison
	Sides   []comparedSide
	Files   []changedFile
	Added   int
	Removed int
	Problem *api.Problem
}

// comparedSide is one side with the words and links of its page.
type comparedSide struct {
	api.ComparedSide
	Name string
	Link string // of the task
	Here bool   // the task's page shows this branch
}

// Self returns the address of the task.
func (d *compareData) Self() string { return TaskPath(d.Task) }

// compare shows what a task and another one, or a branch of its own, did after the last message that both have.
func (w *Web) compare(a *asked) (*page, error) {
	t, err := w.summary(a, a.id)
	if err != nil {
		return nil, err
	}
	d := &compareData{Task: t, With: redact.Terminal(a.URL.Query().Get("with"))}
	p := &page{Kind: "compare", Title: "Compare " + titleOf(d.Task), Body: w.comparePage(d)}
	if d.Problem = w.opt.Reader.ReadOnly(); d.Problem != nil {
		return p, nil
	}
	if d.Found, err = w.opt.Reader.Compare(a.Context(), a.id, d.With); err != nil {
		return nil, err
	}
	for _, one := range d.Found.Sides {
		side := comparedSide{ComparedSide: one, Name: titleOf(one.Task), Link: TaskPath(one.Task), Here: one.Branch == headBranch}
		if d.Found.Sides[0].Task.ID == d.Found.Sides[1].Task.ID {
			side.Name = "The task as it is"
			if !side.Here {
				side.Name = "Branch " + redact.Marked(one.Branch)
			}
		}
		d.Sides = append(d.Sides, side)
	}
	set := markup.New(markup.Options{Clean: redact.Marked})
	room := &changesData{Task: d.Task, room: allPatches}
	for i, f := range d.Found.Files {
		d.Files = append(d.Files, room.file(set, f, "f-"+itoa(i)))
		d.Added, d.Removed = d.Added+f.Added, d.Removed+f.Removed
	}
	return p, nil
}

// headBranch is the name of the branch that a task continues from.
const headBranch = "head"

// branchOf is a branch, or the task that this one was forked from, with the link that compares them.
type branchOf struct {
	Words string
	When  int64 // Unix milliseconds; 0 = not known
	Count int   // messages of the branch that the head lacks; 0 = not known
	Link  string
}

// branchesMost bounds the branches that the page of a task lists.
const branchesMost = 20

// branches adds the branches that rewinds left, and the task that this one was forked from.
func (d *taskData) branches(tree api.BranchTree) {
	compare := func(with string) string { return address(d.Self()+"/compare", url.Values{"with": {with}}) }
	if f := tree.Forked; f != nil {
		with := refOf(api.Summary{Source: f.Source, ID: f.ID})
		d.Branches = append(d.Branches, branchOf{Words: "Fork of another task, from #" + itoa(f.At) + " on", Link: compare(with)})
	}
	for i, b := range tree.Items {
		if b.Name == headBranch || i > branchesMost {
			continue
		}
		one := branchOf{Words: b.Name, When: api.Millis(b.Left), Count: b.Apart.UI, Link: compare(b.Name)}
		if b.First != nil && b.First.Text != "" {
			one.Words += ": " + markup.Short(redact.Marked(b.First.Text))
		}
		d.Branches = append(d.Branches, one)
	}
}
