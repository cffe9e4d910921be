package search

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/workspace"
)

// CompileGlob makes a test of paths relative to the searched folder. A glob
// without "/" is about the name at any depth; {a,b} gives alternatives.
func CompileGlob(glob string) (func(string) bool, error) {
	glob = filepath.ToSlash(strings.TrimSpace(glob))
	if glob == "" || glob == "*" {
		return func(string) bool { return true }, nil
	}
	exclude := strings.HasPrefix(glob, "!")
	var text strings.Builder
	alternatives := expandBraces(strings.TrimPrefix(glob, "!"), 256)
	if alternatives == nil {
		return nil, fmt.Errorf("the file_pattern %q has too many alternatives", glob)
	}
	for _, g := range alternatives {
		if g = strings.TrimPrefix(g, "./"); g != "" && (g[0] == '#' || g[0] == '!') {
			g = `\` + g
		}
		text.WriteString(g + "\n")
	}
	rules := workspace.ParseIgnore(text.String(), false)
	return func(rel string) bool { return rules.Hides(rel, false) != exclude }, nil
}

// expandBraces writes {a,b} out, nil when that gives more than most texts.
func expandBraces(s string, most int) []string {
	open := strings.IndexByte(s, '{')
	if open < 0 {
		return []string{s}
	}
	depth, start := 0, open+1
	var parts []string
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case ',':
			if depth == 1 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		case '}':
			if depth--; depth > 0 {
				continue
			}
			parts = append(parts, s[start:i])
			var out []string
			for _, p := range parts {
				rest := expandBraces(s[:open]+p+s[i+1:], most-len(out))
				if rest == nil || len(out)+len(rest) > most {
					return nil
				}
				out = append(out, rest...)
			}
			return out
		}
	}
	return []string{s} // never closed: literal
}
