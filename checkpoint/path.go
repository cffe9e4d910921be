package checkpoint

import (
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// escapeBase is where bytes of a name that are not UTF-8 go in a recorded path: the byte 0x80 is escapeBase+0x80.
// Journals are JSON, which holds no such bytes; leaving such files out was rejected, because they can be lost like any
// other.
const escapeBase = 0x10FF00

// Recorded is a path (or a name) of the disk as it is recorded: "/" between names, and
// valid UTF-8. OnDisk is its inverse.
func Recorded(name string) string {
	name = filepath.ToSlash(name)
	if utf8.ValidString(name) && !strings.ContainsFunc(name, isStrange) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && n == 1 || isStrange(r) {
			for _, c := range []byte(name[i : i+n]) {
				b.WriteRune(escapeBase + rune(c))
			}
		} else {
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// OnDisk is a recorded path as the disk has it.
func OnDisk(recorded string) string {
	if !strings.ContainsFunc(recorded, isStrange) {
		return filepath.FromSlash(recorded)
	}
	b := make([]byte, 0, len(recorded))
	for _, r := range recorded {
		if isStrange(r) {
			b = append(b, byte(r-escapeBase))
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return filepath.FromSlash(string(b))
}

func isStrange(r rune) bool { return r >= escapeBase+0x80 && r <= escapeBase+0xFF }

// plain reports whether a recorded path may be worked with: relative, clean, not the workspace itself, and without
// names of git's own data.
func plain(p string) bool {
	if p == "" || p == "." || p != path.Clean(p) || strings.HasPrefix(p, "/") || p == ".." || strings.HasPrefix(p, "../") ||
		strings.IndexByte(p, 0) >= 0 {
		return false
	}
	if len(p) > 4096 || !filepath.IsLocal(OnDisk(p)) {
		return false
	}
	for name := range strings.SplitSeq(p, "/") {
		if gitName(name) {
			return false
		}
	}
	return true
}

// gitName ignores letter case, because some disks do.
func gitName(name string) bool { return strings.EqualFold(name, ".git") }
