package filetool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/patch"
	"github.com/roost-dev/roost/workspace"
)

// ApplyDiff gives the tool apply_diff.
func ApplyDiff() tool.Tool { return applyDiffTool{} }

type applyDiffTool struct{}

// applyDiffToolSpec is built once: every turn needs it.
var applyDiffToolSpec = tool.Spec{
	Name: "apply_diff",
	Description: "Change parts of an existing file. Each block names the lines as they are now and the lines that replace " +
		"them; put all changes of a file into one call. " +
		"Copy the lines to be replaced exactly. Give :start_line: so that the right place is found when text repeats.\n\n" +
		patch.BlockForm,
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
	res, bad, err := patch.ApplyDiff(ctx, s.text, diff, patch.Exact)
	switch {
	case err != nil:
		return nil, err
	case bad != nil:
		return nil, in.wrong(bad.Reason)
	case res.Applied == 0:
		return nil, in.wrong(fmt.Sprintf("nothing in %s was changed.\n\n%s", tool.SafeName(p.Readable), failures(res.Failures)))
	}
	text := strings.ToValidUTF8(res.Content, "\uFFFD")
	if e.content, why = s.bytes(text); why != "" {
		return nil, in.wrong(why)
	}
	e.expect = s.state.Hash
	e.ask.Before = map[string]string{p.Readable: planned(s.state.Hash, workspace.HashOf([]byte(e.content)))}
	if len(res.Failures) > 0 {
		e.note = fmt.Sprintf("\n<notice>%d of %d blocks were applied. These failed:\n\n%s</notice>", res.Applied,
			res.Applied+len(res.Failures), failures(res.Failures))
	}
	e.noteOthers(s)
	e.ask.Diff = unified(p.Readable, s.whole(), s.mark+text, false)
	e.ask.Text = diffText(p, diff, hunks(e.ask.Diff), s.whole())
	return e, nil
}

func failures(fails []patch.BlockFailure) string {
	var parts []string
	for _, f := range fails {
		parts = append(parts, f.Message)
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
	blocks, bad := patch.ParseDiff(diff)
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
		return tool.Unclear, tool.ContextError(err)
	}
	olds, news := patch.DiffState(s.text, blocks)
	switch len(blocks) {
	case news:
		return tool.Done, nil
	case olds:
		return tool.NotDone, nil
	}
	return tool.Unclear, nil
}
