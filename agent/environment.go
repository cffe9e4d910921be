package agent

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/roost-dev/roost/mode"
)

// environmentFiles is how many of the workspace's files the model is told of at
// the start of a run.
const environmentFiles = 200

// environment is the block that ends every user turn: what the model cannot know
// from the history. Its section names are Roo's. changed is the section of files that
// somebody else changed, "" for none.
func (a *Agent) environment(changed string) string {
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
	if m, ok := a.inMode(); ok {
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
	if reminder := a.reminder(); reminder != "" {
		b.WriteString("\n" + reminder)
	}
	b.WriteString("</environment_details>")
	return b.String()
}
