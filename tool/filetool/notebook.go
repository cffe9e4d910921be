package filetool

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/linetext"
)

// maxCellOutput is how much of a cell's output is shown, in UTF-16 units. A notebook
// is read for its code; what it printed is often most of the file.
const maxCellOutput = 2000

// notebookNote precedes the lines of a notebook.
const notebookNote = "Note: this is a notebook; the lines below are those of its cells, not of the file, which is JSON.\n\n"

func isNotebook(name string) bool { return strings.EqualFold(filepath.Ext(name), ".ipynb") }

// notebookText gives the cells of a Jupyter notebook (format 4) as text: a heading for
// each, its source, and what it printed. Pictures are only named. ok is false for what
// is no such notebook.
func notebookText(data []byte) (text string, ok bool) {
	if !esjson.Valid(data) || esjson.TypeOf(data) != esjson.TypeObject {
		return "", false
	}
	cells, ok := esjson.Get(data, "cells")
	if !ok || esjson.TypeOf(cells) != esjson.TypeArray {
		return "", false
	}
	var b strings.Builder
	n := 0
	for cell := range esjson.Array(cells) {
		if esjson.TypeOf(cell) != esjson.TypeObject {
			continue
		}
		n++
		kind, _ := esjson.GetString(cell, "cell_type")
		heading(&b, fmt.Sprintf("# %%%% cell %d [%s]", n, tool.SafeName(kind)), member(cell, "source"))
		if out := cellOutput(cell); out != "" {
			heading(&b, fmt.Sprintf("# %%%% output of cell %d", n), out)
		}
	}
	return b.String(), true
}

func heading(b *strings.Builder, head, body string) {
	b.WriteString(head + "\n")
	if body = strings.TrimSuffix(body, "\n"); body != "" {
		b.WriteString(body + "\n")
	}
	b.WriteString("\n")
}

// member is text that a notebook holds as one string or as a list of lines.
func member(obj []byte, key string) string {
	raw, ok := esjson.Get(obj, key)
	if !ok {
		return ""
	}
	if esjson.TypeOf(raw) == esjson.TypeString {
		s, _ := esjson.Unquote(raw)
		return s
	}
	var b strings.Builder
	if esjson.TypeOf(raw) == esjson.TypeArray {
		for l := range esjson.Array(raw) {
			if s, err := esjson.Unquote(l); err == nil {
				b.WriteString(s)
			}
		}
	}
	return b.String()
}

func cellOutput(cell []byte) string {
	list, ok := esjson.Get(cell, "outputs")
	if !ok || esjson.TypeOf(list) != esjson.TypeArray {
		return ""
	}
	var parts []string
	for out := range esjson.Array(list) {
		if esjson.TypeOf(out) == esjson.TypeObject {
			parts = append(parts, outputText(out))
		}
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	all := strings.Join(parts, "\n")
	if short := linetext.Cut(all, maxCellOutput); short != all {
		return fmt.Sprintf("%s\n[... %d more characters]", short, linetext.Units(all)-linetext.Units(short))
	}
	return all
}

func outputText(out []byte) string {
	if kind, _ := esjson.GetString(out, "output_type"); kind == "error" {
		return strings.TrimSuffix(member(out, "ename")+": "+member(out, "evalue"), ": ")
	}
	if text := member(out, "text"); text != "" {
		return strings.TrimSuffix(text, "\n")
	}
	data, ok := esjson.Get(out, "data")
	if !ok || esjson.TypeOf(data) != esjson.TypeObject {
		return ""
	}
	var named []string
	for media := range esjson.Members(data) {
		if media != "text/plain" && media != "text/html" {
			named = append(named, "["+tool.SafeName(media)+", not shown]")
		}
	}
	if text := member(data, "text/plain"); text != "" {
		named = append([]string{strings.TrimSuffix(text, "\n")}, named...)
	}
	return strings.Join(named, "\n")
}
