package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-dev/roost/agent/rows"
	"github.com/roost-dev/roost/agent/stale"
	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/mode"
	"github.com/roost-dev/roost/task"
)

// environmentFiles is how many of the workspace's files the model sees at the start of a run.
const environmentFiles = 200

// environmentText is the block that ends every user turn: what the model cannot know from the history. Its section
// names are Roo's. changed is the section of stale files, "" for none.
func (a *Agent) environmentText(changed string) string {
	var b strings.Builder
	b.WriteString("<environment_details>\n")
	if changed != "" {
		b.WriteString(changed + "\n")
	}
	now := time.UnixMilli(a.Host.Now()).UTC()
	fmt.Fprintf(&b, "# Current Time\nCurrent time in ISO 8601 UTC format: %s\n", now.Format("2006-01-02T15:04:05.000Z"))
	if a.User.Zone != "" {
		fmt.Fprintf(&b, "User time zone: %s\n", a.User.Zone)
	}
	fmt.Fprintf(&b, "\n# Current Cost\n$%.2f\n", float64(a.state().Usage.CostMicros)/1e6)
	slug, name := cmp.Or(a.Task.Settings.Mode, mode.Default), ""
	if m, ok := a.currentMode(); ok {
		name = "<name>" + m.Name + "</name>\n"
	}
	fmt.Fprintf(&b, "\n# Current Mode\n<slug>%s</slug>\n%s<model>%s</model>\n", slug, name, a.Task.Settings.Model)
	if a.loop.listFiles && a.Host.Workspace != nil {
		a.loop.listFiles = false
		listing, more := a.Host.Workspace.Overview(environmentFiles)
		fmt.Fprintf(&b, "\n# Current Workspace Directory (%s) Files\n%s\n", a.Host.Workspace.Root(), listing)
		if more {
			b.WriteString("\n(File list truncated. Use list_files to see more.)\n")
		}
	}
	if reminder := a.todoReminder(); reminder != "" {
		b.WriteString("\n" + reminder)
	}
	b.WriteString("</environment_details>")
	return b.String()
}

// addUserTurn adds the next user message: results of calls first, then the other blocks, then the environment.
func (d *draft) addUserTurn(results []string, blocks []task.Piece) {
	a := d.agent
	delegated := slices.ContainsFunc(results, func(id string) bool {
		c := a.state().Call(id)
		return c != nil && c.Name == task.SubtaskTool
	})
	changed, records := a.stale.Report(stale.Turn{
		Pending:   d.events,
		Delegated: delegated,
		Reread:    a.Task.Settings.Stale == api.StaleRead,
	})
	d.Put(records...)
	var calls []*task.Call
	for _, id := range results {
		calls = append(calls, a.state().Call(id))
	}
	a.checkpoints.AfterTurn(context.Background(), d, calls) // AfterTurn bounds its own time
	var pieces []task.Piece
	sep := `{"role":"user","content":[`
	add := func(p task.Piece) {
		if p.Literal != "" {
			pieces = append(pieces, task.Piece{Literal: sep + p.Literal})
		} else {
			pieces = append(pieces, task.Piece{Literal: sep}, p)
		}
		sep = ","
	}
	for _, call := range results {
		add(task.Piece{Result: call})
	}
	for _, b := range blocks {
		add(b)
	}
	add(task.Piece{Literal: string(rows.Text(a.mask(a.environmentText(changed))))})
	pieces = append(pieces, task.Piece{Literal: `],"ts":` + strconv.FormatInt(a.stamp(), 10) + `}`})
	body := task.Body{Compose: mergeLiterals(pieces)}
	if len(results) == 0 {
		// What a person shows may be large: as one literal, it can go into a blob.
		body = task.Body{Raw: json.RawMessage(body.Compose[0].Literal)}
	}
	d.addMessage(task.API, body)
}

func mergeLiterals(pieces []task.Piece) []task.Piece {
	var out []task.Piece
	for _, p := range pieces {
		if n := len(out); n > 0 && p.Literal != "" && out[n-1].Literal != "" {
			out[n-1].Literal += p.Literal
			continue
		}
		out = append(out, p)
	}
	return out
}
