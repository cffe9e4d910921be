package filetool

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/workspace"
)

// planned is what the journal keeps of a file that a call is to change: its hash
// before and after, as one value of tool.Ask.Before. An edit cannot be made again on
// the new content to see what would come of it; with both hashes there is nothing to
// guess.
func planned(before, after string) string { return before + " " + after }

// inspectPlanned judges a call by the hashes that were kept when it was planned. ok is
// false when they were not, or when a file is neither the old nor the planned one:
// another program changed it since, and its content must be examined.
func inspectPlanned(ctx context.Context, env tool.Env, before map[string]string) (found tool.Finding, ok bool, err error) {
	var done, open []string
	strange := len(before) == 0
	for path, hashes := range before {
		old, fresh, both := strings.Cut(hashes, " ")
		p, err := env.Workspace.Resolve(path)
		if err != nil {
			return tool.Unclear, true, err
		}
		state, err := look(ctx, env, p)
		if err != nil {
			return tool.Unclear, true, err
		}
		switch {
		case both && state.Hash == fresh:
			done = append(done, tool.SafeName(path))
		case state.Hash == old:
			open = append(open, tool.SafeName(path))
		default:
			strange = true
		}
	}
	if strange {
		return tool.Unclear, false, nil
	}
	found, err = verdict(done, open, nil)
	return found, true, err
}

// verdict is the finding over all files of a call. For a part of several files it
// comes with an error that names them: the model has to do the rest.
func verdict(done, open, other []string) (tool.Finding, error) {
	switch len(done) + len(open) + len(other) {
	case len(done):
		return tool.Done, nil
	case len(open):
		return tool.NotDone, nil
	case 1:
		return tool.Unclear, nil
	}
	return tool.Unclear, partly(done, open, other)
}

func partly(done, open, other []string) error {
	var parts []string
	for _, p := range []struct {
		what  string
		files []string
	}{{"Changed: ", done}, {"Not changed: ", open}, {"Not clear: ", other}} {
		if len(p.files) > 0 {
			slices.Sort(p.files)
			parts = append(parts, p.what+strings.Join(p.files, ", ")+".")
		}
	}
	return errors.New(strings.Join(parts, " "))
}

// look sweeps what a killed write may have left beside a file, and records the file.
func look(ctx context.Context, env tool.Env, p workspace.Path) (workspace.FileState, error) {
	_, _ = env.Workspace.Sweep(p) // a leftover that stays does not change the finding
	return env.Workspace.StatPath(ctx, p)
}

// inspectText judges a call by the hashes that were kept when it was planned. Without them, for a call that another
// program left, it judges by the file's text: whether it is what the call makes, or what the call was made for.
func inspectText(ctx context.Context, env tool.Env, p workspace.Path, before map[string]string,
	judge func(text string) (done, open bool)) (tool.Finding, error) {
	if found, ok, err := inspectPlanned(ctx, env, before); ok || err != nil {
		return found, err
	}
	if _, err := look(ctx, env, p); err != nil {
		return tool.Unclear, err
	}
	s, err := editable(ctx, env, p)
	if err != nil {
		return tool.Unclear, tool.ContextError(err)
	}
	return finding(judge(s.text)), nil
}

func finding(done, open bool) tool.Finding {
	switch {
	case done:
		return tool.Done
	case open:
		return tool.NotDone
	}
	return tool.Unclear
}

// source is a file that is to be changed by lines: its text without a byte order mark,
// and the mark, which belongs to the file and not to its first line.
type source struct {
	path       workspace.Path
	mark, text string
	coding     coding
	state      workspace.FileState
}

// editable reads a file that is to be changed; one that cannot be is refused.
func editable(ctx context.Context, env tool.Env, p workspace.Path) (s source, err error) {
	s.path = p
	data, state, err := env.Workspace.Read(ctx, p, MaxEdit)
	if s.state = state; err != nil {
		return s, explain(p, err)
	}
	var ok bool
	if s.text, s.coding, ok = decodeText(data); !ok {
		return s, notText(p)
	}
	if rest, marked := strings.CutPrefix(s.text, byteOrderMark); marked {
		s.mark, s.text = byteOrderMark, rest
	}
	return s, nil
}

// whole is the text with its mark.
func (s source) whole() string { return s.mark + s.text }

const byteOrderMark = "\ufeff"
