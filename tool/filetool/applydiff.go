package filetool

import (
	"context"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/patch"
	"github.com/roost-dev/roost/workspace"
)

// ApplyDiff gives the tool apply_diff.
func ApplyDiff() tool.Tool { return writing{reading(applyDiffSpec, planDiff), inspectDiff} }

// applyDiffSpec is built once: every turn needs it.
var applyDiffSpec = tool.Spec{
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

func readDiff(env tool.Env, in tool.Input) (p workspace.Path, diff string, err error) {
	path, err := in.Need(false, "path", "file_path")
	if err != nil {
		return p, "", err
	}
	if diff, err = in.Need(false, "diff"); err != nil {
		return p, "", err
	}
	p, err = resolve(env, path)
	return p, diff, err
}

func planDiff(ctx context.Context, env tool.Env, in tool.Input) (tool.Plan, error) {
	p, diff, err := readDiff(env, in)
	if err != nil {
		return nil, err
	}
	e := &edit{env: env, path: p, ask: asks(in.Tool, p)}
	if p.Ignored {
		e.ask.Text = diffText(p, diff, "", "")
		return e, nil
	}
	s, err := editable(ctx, env, p)
	if err != nil {
		return nil, err
	}
	res, bad, err := patch.ApplyDiff(ctx, s.text, diff, patch.Exact)
	switch {
	case err != nil:
		return nil, err
	case bad != nil:
		return nil, refusal(bad.Reason)
	case res.Applied == 0:
		return nil, refuse("nothing in %s was changed.\n\n%s", tool.SafeName(p.Readable), failures(res.Failures))
	}
	if len(res.Failures) > 0 {
		e.note = fmt.Sprintf("\n<notice>%d of %d blocks were applied. These failed:\n\n%s</notice>", res.Applied,
			res.Applied+len(res.Failures), failures(res.Failures))
	}
	if err := e.change(s, strings.ToValidUTF8(res.Content, "\uFFFD")); err != nil {
		return nil, err
	}
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

// inspectDiff looks whether the replacements are there and the searched lines gone; with the hash
// from before, all that older journals hold, there is no doubt about "not done".
func inspectDiff(ctx context.Context, env tool.Env, in tool.Input, before map[string]string) (tool.Finding, error) {
	p, diff, err := readDiff(env, in)
	if err != nil {
		return tool.Unclear, err
	}
	blocks, bad := patch.ParseDiff(diff)
	if bad != nil {
		return tool.NotDone, nil // it never came to a change
	}
	return inspectText(ctx, env, p, before, func(text string) (done, open bool) {
		olds, news := patch.DiffState(text, blocks)
		return news == len(blocks), olds == len(blocks)
	})
}
