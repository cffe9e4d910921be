package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/content"
	"github.com/roost-dev/roost/workspace"
)

// DiffOptions bound a diff. The zero value means the defaults.
type DiffOptions struct {
	Paths []string // only these files and the contents of these folders; none = all

	// Stat counts lines and writes no patches.
	Stat bool
	// Now: the second state is the current workspace, so contents that the store does not have are read there.
	Now bool

	MaxFile  int64 // bytes of one file that is compared by lines: 4 MiB
	MaxPatch int   // bytes of all patches together: 16 MiB; what comes after is not written
}

// Diff compares two states of files, by path. A path that is in one of them only is compared where that is possible:
// the other state does not know it.
func (k *Keeper) Diff(ctx context.Context, from, to map[string]api.FileVersion, o DiffOptions) ([]api.FileDiff, error) {
	if o.MaxFile == 0 {
		o.MaxFile = maxMerge
	}
	if o.MaxPatch == 0 {
		o.MaxPatch = 16 << 20
	}
	var out []api.FileDiff
	room := o.MaxPatch
	for _, p := range slices.Sorted(maps.Keys(from)) {
		a := from[p]
		b, ok := to[p]
		if !ok || !asked(p, o.Paths) || a.Same(b) || !present(a) && !present(b) {
			continue
		}
		d := api.FileDiff{Path: p, From: a, To: b, Change: changeOf(a, b)}
		if err := k.fill(ctx, &d, o, &room); err != nil {
			return nil, fmt.Errorf("compare %s: %w", p, err)
		}
		out = append(out, d)
	}
	return out, nil
}

func changeOf(a, b api.FileVersion) string {
	switch {
	case !present(a):
		return api.FileAdded
	case !present(b):
		return api.FileDeleted
	case a.Kind == b.Kind && a.Hash == b.Hash && a.Hash != "":
		return api.FileMode
	}
	return api.FileChanged
}

// fill compares the contents of one path.
func (k *Keeper) fill(ctx context.Context, d *api.FileDiff, o DiffOptions, room *int) error {
	var out bytes.Buffer
	if d.Change == api.FileMode {
		headers(&out, *d)
	} else {
		a, why, err := k.side(ctx, d.Path, d.From, o.MaxFile, false)
		if err != nil {
			return err
		}
		b, whyNew, err := k.side(ctx, d.Path, d.To, o.MaxFile, o.Now)
		if err != nil {
			return err
		}
		if why == "" {
			why = whyNew
		}
		if why == "" && (!isText(a) || !isText(b)) {
			why = "binary"
		}
		d.Why = why
		if gone := (api.FileVersion{Kind: api.KindGone}); present(d.From) && present(d.To) && d.From.Kind != d.To.Kind {
			err = errors.Join(
				diffBody(&out, d, api.FileDiff{Path: d.Path, Change: api.FileDeleted, From: d.From, To: gone}, a, nil),
				diffBody(&out, d, api.FileDiff{Path: d.Path, Change: api.FileAdded, From: gone, To: d.To}, nil, b),
			)
		} else {
			err = diffBody(&out, d, *d, a, b)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case o.Stat:
	case out.Len() > *room:
		*room = 0 // the patches end here, even if smaller ones would fit: a list with gaps misleads
		d.Why = "the patches are too large together"
	default:
		*room -= out.Len()
		d.Patch = out.String()
	}
	return nil
}

// body writes one part of the patch: a link that became a file is two.
func diffBody(out *bytes.Buffer, d *api.FileDiff, part api.FileDiff, a, b []byte) error {
	headers(out, part)
	old, made := named("a/", d.Path), named("b/", d.Path)
	if !present(part.From) {
		old = "/dev/null"
	}
	if !present(part.To) {
		made = "/dev/null"
	}
	if d.Why != "" {
		fmt.Fprintf(out, "Binary files %s and %s differ\n", old, made)
		return nil
	}
	return diffText(out, d, a, b, old, made)
}

func diffText(out *bytes.Buffer, d *api.FileDiff, a, b []byte, old, made string) error {
	x, y := splitLines(a), splitLines(b)
	edits := diffLines(x, y)
	for _, e := range edits {
		d.Added += e.newTo - e.newFrom
		d.Removed += e.to - e.from
	}
	text, err := patch(old+tab(old), made+tab(made), x, y, edits)
	out.WriteString(text)
	return err
}

// tab ends a name that holds a blank: otherwise its end is ambiguous.
func tab(name string) string {
	if strings.Contains(name, " ") {
		return "\t"
	}
	return ""
}

// headers are git's: they describe what lines cannot.
func headers(out *bytes.Buffer, d api.FileDiff) {
	a, b := gitMode(d.From), gitMode(d.To)
	finer := d.From.Kind == api.KindFile && d.To.Kind == api.KindFile && a == b && d.From.Mode != d.To.Mode
	if finer {
		// Git knows two file modes only. Programs that apply a patch skip text before a header.
		fmt.Fprintf(out, "permissions of %s: %03o before, %03o after\n", named("", d.Path), d.From.Mode, d.To.Mode)
	}
	if finer && d.Change == api.FileMode {
		return
	}
	fmt.Fprintf(out, "diff --git %s %s\n", named("a/", d.Path), named("b/", d.Path))
	switch {
	case d.Change == api.FileAdded:
		fmt.Fprintf(out, "new file mode %s\n", b)
	case d.Change == api.FileDeleted:
		fmt.Fprintf(out, "deleted file mode %s\n", a)
	case a != b:
		fmt.Fprintf(out, "old mode %s\nnew mode %s\n", a, b)
	}
}

func gitMode(v api.FileVersion) string {
	switch {
	case v.Kind == api.KindLink:
		return "120000"
	case v.Mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// side is the content of one version, "" of nothing. why is the reason why there is none.
func (k *Keeper) side(ctx context.Context, p string, v api.FileVersion, limit int64, disk bool) (data []byte, why string, err error) {
	switch {
	case !present(v):
		return nil, "", nil
	case v.Size > limit:
		return nil, fmt.Sprintf("too large (%d bytes)", v.Size), nil
	}
	if v.Blob != "" {
		data, err = k.Content(ctx, v, limit)
	}
	if v.Blob == "" || errors.Is(err, ErrUnkept) {
		if !disk {
			return nil, "its content was not kept", nil
		}
		data, err = k.present(ctx, p, v, limit)
	}
	var large *workspace.TooLargeError
	switch {
	case err == nil:
		return data, "", nil
	case ctx.Err() != nil:
		return nil, "", err
	case errors.As(err, &large), errors.Is(err, content.ErrTooLarge):
		return nil, "too large", nil
	case errors.Is(err, content.ErrDamaged), errors.Is(err, fs.ErrPermission), errors.Is(err, workspace.ErrChanged),
		errors.Is(err, fs.ErrNotExist):
		return nil, err.Error(), nil
	}
	return nil, "", err
}

// present reads the current content of a recorded path, if it is the version.
func (k *Keeper) present(ctx context.Context, p string, v api.FileVersion, limit int64) ([]byte, error) {
	if !plain(p) {
		return nil, workspace.ErrChanged
	}
	data, err := k.w.ReadEntry(ctx, OnDisk(p), limit)
	if err == nil && workspace.HashOf(data) != v.Hash {
		return nil, workspace.ErrChanged
	}
	return data, err
}
