package filetool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
	"github.com/roost-dev/roost/workspace/terminal"
)

// exact is the similarity that apply_diff asks for.
const exact = 1.0

// ApplyDiff gives the tool apply_diff.
func ApplyDiff() tool.Tool { return applyDiffTool{} }

type applyDiffTool struct{}

// applyDiffToolSpec is made once: it is asked for at every turn.
var applyDiffToolSpec = tool.Spec{
	Name: "apply_diff",
	Description: "Change parts of an existing file. Each block names the lines as they are now and the lines that replace them; put all changes of a file into one call. " +
		"Copy the lines to be replaced exactly. Give :start_line: so that the right place is found when text repeats.\n\n" + blockForm,
	Schema: schema([]string{"path", "diff"},
		"path", property("string", "File to change, relative to the workspace."),
		"diff", property("string", "One or more SEARCH/REPLACE blocks.")),
	Class:  tool.Write,
	Replay: tool.Inspect,
}

func (applyDiffTool) Spec() tool.Spec { return applyDiffToolSpec }

func (applyDiffTool) parse(env tool.Env, raw json.RawMessage) (in input, p workspace.Path, diff string, err error) {
	if in, err = parseInput("apply_diff", raw); err != nil {
		return
	}
	path, err := in.need(false, "path", "file_path")
	if err != nil {
		return
	}
	if diff, err = in.need(false, "diff"); err != nil {
		return
	}
	p, err = in.resolve(env, path)
	return
}

func (a applyDiffTool) Plan(ctx context.Context, env tool.Env, raw json.RawMessage) (tool.Plan, error) {
	in, p, diff, err := a.parse(env, raw)
	if err != nil {
		return nil, err
	}
	e := &edit{env: env, path: p, ask: editAsk("apply_diff", p)}
	if p.Ignored {
		e.ask.Text = diffText(p, diff, "", "")
		return e, nil
	}
	s, why, err := editable(ctx, env, p)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return nil, in.wrong(why)
	}
	res, bad, err := applyDiff(ctx, s.text, diff, exact)
	switch {
	case err != nil:
		return nil, err
	case bad != nil:
		return nil, in.wrong(bad.reason)
	case res.applied == 0:
		return nil, in.wrong(fmt.Sprintf("nothing in %s was changed.\n\n%s", shown(p.Readable), failures(res.fails)))
	}
	text := strings.ToValidUTF8(res.content, "\uFFFD")
	if e.content, why = s.bytes(text); why != "" {
		return nil, in.wrong(why)
	}
	e.expect = s.state.Hash
	e.ask.Before = map[string]string{p.Readable: planned(s.state.Hash, workspace.HashOf([]byte(e.content)))}
	if len(res.fails) > 0 {
		e.note = fmt.Sprintf("\n<notice>%d of %d blocks were applied. These failed:\n\n%s</notice>", res.applied, res.applied+len(res.fails), failures(res.fails))
	}
	e.noteOthers(s)
	e.ask.Diff = unified(p.Readable, s.whole(), s.mark+text, false)
	e.ask.Text = diffText(p, diff, hunks(e.ask.Diff), s.whole())
	return e, nil
}

func failures(fails []blockFailure) string {
	var parts []string
	for _, f := range fails {
		parts = append(parts, f.message)
	}
	return strings.Join(parts, "\n\n")
}

func diffText(p workspace.Path, diff, content, old string) string {
	var o esjson.Object
	o.String("tool", "appliedDiff")
	o.String("path", p.Readable)
	o.String("diff", diff)
	o.String("content", content)
	o.String("originalContent", old)
	addStats(&o, content)
	o.Bool("isProtected", p.Protected)
	return string(o.Bytes())
}

// Inspect goes by the hashes that were kept when the call was planned. Without them it
// looks whether the replacements are there and the searched lines gone; with the hash
// from before, all that older journals hold, there is no doubt about "not done".
func (a applyDiffTool) Inspect(ctx context.Context, env tool.Env, raw json.RawMessage, before map[string]string) (tool.Finding, error) {
	_, p, diff, err := a.parse(env, raw)
	if err != nil {
		return tool.Unclear, err
	}
	blocks, bad := parseDiff(diff)
	if bad != nil {
		return tool.NotDone, nil // it never came to a change
	}
	if found, ok, err := inspectPlanned(ctx, env, before); ok || err != nil {
		return found, err
	}
	if _, err := look(ctx, env, p); err != nil {
		return tool.Unclear, err
	}
	s, why, err := editable(ctx, env, p)
	if err != nil || why != "" {
		return tool.Unclear, contextError(err)
	}
	d := newDocument(splitLines(s.text))
	olds, news := 0, 0
	for _, b := range blocks {
		search, replace := d.wanted(b)
		hasOld, hasNew := d.holds(search), len(replace) > 0 && d.holds(replace)
		switch {
		case hasNew && (!hasOld || contains(replace, search)):
			news++
		case len(replace) == 0 && !hasOld:
			news++ // a deletion leaves nothing but the gap
		case hasOld && !hasNew:
			olds++
		}
	}
	switch len(blocks) {
	case news:
		return tool.Done, nil
	case olds:
		return tool.NotDone, nil
	}
	return tool.Unclear, nil
}

// wanted gives the lines of a block as they stand in a file before and after it is
// applied: without line numbers, unless the file has them itself.
func (d *document) wanted(b block) (search, replace []string) {
	from, to := unescape(b.search), unescape(b.replace)
	search, replace = linesOf(from), linesOf(to)
	if allNumbered(from) && (allNumbered(to) || trim(to) == "") && !d.holds(search) && !d.holds(replace) {
		search, replace = linesOf(terminal.StripNumbers(from, false)), linesOf(terminal.StripNumbers(to, false))
	}
	return search, replace
}

// holds reports whether lines stand somewhere, blanks and typography apart.
func (d *document) holds(lines []string) bool {
	if len(lines) == 0 {
		return false
	}
	n := newNeedle(lines)
	for i := range d.lines {
		if d.equalAt(i, n) {
			return true
		}
	}
	return false
}

// contains reports whether the new lines hold the old ones, so that those stand in
// the file after the change too.
func contains(lines, part []string) bool { return newDocument(lines).holds(part) }
